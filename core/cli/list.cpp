// SPDX-License-Identifier: Apache-2.0
#include "cli/list.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/indented_table.hpp"
#include "cli/standard_output.hpp"

#include <array>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {

std::vector<std::string> left_out(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> lines;
  for (const auto& f : folders) {
    std::ifstream in(f / "left-out.txt");
    for (std::string line; std::getline(in, line);) lines.push_back(line);
  }
  return lines;
}

namespace {

using nlohmann::ordered_json;

constexpr std::array all_kinds{kind::model, kind::executor, kind::transport, kind::strategy};

ordered_json listing(const registry& plugins, const std::vector<std::filesystem::path>& folders,
                     std::optional<kind> only) {
  ordered_json out{{"folders", ordered_json::array()}};
  for (const auto& f : folders) out["folders"].push_back(f.string());
  for (auto k : all_kinds) {
    if (only && *only != k) continue;
    auto& list = out[plural_of(k)] = ordered_json::array();
    for (const auto& c : plugins.components())
      if (c.kind == k)
        list.push_back({{"id", c.id},
                        {"summary", c.summary},
                        {"plugin", c.plugin_name},
                        {"version", c.plugin_version},
                        {"file", c.file.string()}});
  }
  out["hidden"] = ordered_json::array();
  for (const auto& h : plugins.hidden())
    out["hidden"].push_back(
        {{"kind", name_of(h.kind)}, {"id", h.id}, {"file", h.file.string()}, {"by", h.by.string()}});
  out["unusable"] = ordered_json::array();
  for (const auto& f : plugins.failures()) out["unusable"].push_back({{"file", f.file.string()}, {"reason", f.reason}});
  out["left_out"] = left_out(folders);
  return out;
}

// Prints nothing if there are no lines.
void print_part(const char* title, const std::vector<std::string>& lines) {
  if (!lines.empty()) print_output(fmt::format("{}\n  {}\n\n", title, join(lines, "\n  ")));
}

void print(const registry& plugins, const std::vector<std::filesystem::path>& folders, std::optional<kind> only) {
  for (auto k : all_kinds) {
    if (only && *only != k) continue;
    std::vector<std::vector<std::string>> rows;
    for (const auto& c : plugins.components())
      if (c.kind == k) rows.push_back({c.id, c.plugin_version, c.file.string(), c.summary});
    if (rows.empty())
      print_output(fmt::format("{}: none found\n\n", plural_of(k)));
    else
      print_output(fmt::format("{}\n{}\n", plural_of(k),
                               indented({{"id"}, {"version"}, {"file"}, {"summary"}}, std::move(rows))));
  }
  std::vector<std::string> hidden, unusable;
  for (const auto& h : plugins.hidden())
    hidden.push_back(
        fmt::format("{} {} of {}: {} is used instead", name_of(h.kind), h.id, h.file.string(), h.by.string()));
  for (const auto& f : plugins.failures()) unusable.push_back(fmt::format("{}: {}", f.file.string(), f.reason));
  print_part("hidden by a folder that comes first", hidden);
  print_part("not usable", unusable);
  print_part("left out of this build", left_out(folders));
  if (folders.empty())
    print_output("searched nowhere: there is no lib/regatta beside the program, and no --plugin-path\n");
  for (const auto& f : folders) print_output(fmt::format("searched {}\n", f.string()));
}

} // namespace

int list_verb(const std::vector<std::filesystem::path>& folders, std::optional<kind> only, bool json) {
  const registry plugins(folders);
  if (json)
    print_output(document_text(listing(plugins, folders, only)));
  else
    print(plugins, folders, only);
  return static_cast<int>(plugins.failures().empty() ? exit_code::done : exit_code::plugin);
}

} // namespace regatta
