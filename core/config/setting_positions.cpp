// SPDX-License-Identifier: Apache-2.0
#include "config/setting_positions.hpp"

#include "base/text.hpp"
#include "config/effect.hpp"
#include "config/schema_rules.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include <fmt/format.h>

namespace regatta {
namespace {

std::string place_of(const origin& from, const std::string& file) {
  return from.option.empty() ? fmt::format("{}:{}:{}", file, from.at.line, from.at.column) : from.option;
}

// Returns the keys because of which `key` is ignored, in the order of the cases, each with the values that it has where
// it decides: "train.device = "cpu" or train.debug = "sync"". Requires that `key` has an effect in no case.
std::string reasons_text(const std::string& key, const std::vector<case_config>& cases) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const case_config& c : cases) {
    const std::string decides = ignored_because_of(key, c), value = toml_literal(read(*find_key(decides), {}, c));
    auto reason = std::ranges::find(reasons, decides, [](const auto& r) { return r.first; });
    if (reason == reasons.end()) reason = reasons.insert(reason, {decides, {}});
    if (std::ranges::find(reason->second, value) == reason->second.end()) reason->second.push_back(value);
  }
  std::string text;
  for (const auto& [decides, values] : reasons)
    text += fmt::format("{}{} = {}", text.empty() ? "" : " or ", decides, join(values));
  return text;
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
    const std::string text = fmt::format("{} has no effect with {}", path, reasons_text(path, cases));
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
