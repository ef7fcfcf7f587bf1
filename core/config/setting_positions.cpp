// SPDX-License-Identifier: Apache-2.0
#include "config/setting_positions.hpp"

#include "base/text.hpp"
#include "config/effect.hpp"
#include "experiment/schema.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include <fmt/format.h>

namespace regatta {
namespace {

std::string place_of(const origin& from, const std::string& file) {
  return from.option.empty() ? fmt::format("{}:{}:{}", file, from.at.line, from.at.column) : from.option;
}

// Returns a key and the values that the cases have for it: "optimizer.plugin = "sgd", "adam"".
std::string values_text(const std::string& path, const std::vector<case_config>& cases) {
  std::vector<std::string> values;
  for (const case_config& c : cases) {
    const std::string text = toml_literal(read(*find_key(path), {}, c));
    if (std::ranges::find(values, text) == values.end()) values.push_back(text);
  }
  return fmt::format("{} = {}", path, join(values));
}

} // namespace

source_positions::map written_in(const settings& all, const std::string& file) {
  source_positions::map written;
  for (const auto& [name, at] : all.sections) written.emplace(name, place_of({{}, at}, file));
  for (const auto& [path, given] : all.values) written.insert_or_assign(path, place_of(given.from, file));
  return written;
}

source_positions::map written_in(const std::vector<std::pair<std::string, const setting*>>& swept,
                                 const std::string& file) {
  source_positions::map written;
  for (const auto& [path, s] : swept) written.insert_or_assign(path, place_of(s->from, file));
  return written;
}

std::vector<std::string> without_effect(const settings& all, const std::string& file,
                                        const std::vector<case_config>& cases) {
  std::map<std::string, origin> given;
  for (const auto& [path, s] : all.values) given[path] = {s.from.option, s.node.key};
  for (const axis& a : all.axes)
    for (const swept_key& k : a.keys) given[k.path] = k.from;
  std::vector<std::pair<position, std::string>> notices;
  for (const auto& [path, from] : given) {
    if (!find_key(path) || std::ranges::any_of(cases, [&, &key = path](const auto& c) { return has_effect(key, c); }))
      continue;
    const std::string text =
        fmt::format("{} has no effect with {}", path, values_text(ignored_because_of(path, cases.front()), cases));
    if (from.option.empty())
      notices.emplace_back(from.at, fmt::format("{}: notice: {}", place_of(from, file), text));
    else
      notices.emplace_back(position{UINT32_MAX, 0}, fmt::format("notice: {} {}", from.option, text));
  }
  std::ranges::stable_sort(notices, {}, [](const auto& n) { return n.first; });
  std::vector<std::string> texts;
  for (auto& [at, text] : notices) texts.push_back(std::move(text));
  return texts;
}

} // namespace regatta
