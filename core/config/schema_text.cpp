// SPDX-License-Identifier: Apache-2.0
#include "config/load.hpp"
#include "config/reports.hpp"
#include "config/schema_rules.hpp"
#include "config/toml_document.hpp"
#include "text/values.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

// For the terminal: sizes and times with their units.
std::string default_text(const schema_key& key) {
  if (key.path() == "model.plugin") return "must be given";
  if (key.path() == "experiment.name") return "default the file's name";
  const json value = read(key, {}, {});
  if (key.rule.type == RG_PARAM_INT && key.rule.unit == RG_UNIT_NANOSECONDS)
    return "default " + exact_nanoseconds(value.get<std::int64_t>());
  return "default " + toml_literal(value);
}

} // namespace

std::string schema_text() {
  std::string text;
  std::string section;
  for (const schema_key& key : schema()) {
    if (key.section() != section) {
      section = key.section();
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("  {:<20} {}\n  {:<20} {}; {}\n", key.leaf(), key.rule.help, "", expectation(key),
                        default_text(key));
  }
  return text + R"(
[sweep]            every combination of the values of these keys is a case, the first key varying slowest
  "train.batch" = [32, 64]
  "strategy.plugin" = ["allreduce", "sync_ps"]
[[sweep.zip]]      the keys of one such table go in step; the table multiplies with the rest
  "cluster.workers" = [1, 2]
  "cluster.servers" = [1, 4]
[[claim]]          a statement about the results, which the run decides: holds, fails or undecided (docs/artifacts.md)
  left = { strategy.plugin = "sync_ps" }      the settings of one case; without it: the only case
  right = { strategy.plugin = "allreduce" }   the case that it is compared with; without it: the figure itself counts
  metric = "samples_per_second"               a figure of `regatta compare`
  at_least = 0.9                              bounds of left / right: at_least, at_most or both
  across = ["synchrony"]                      parts of the fingerprint in which both may differ
  text = "servers cost at most 10 %"          words of your own, for tables

)" + reports_text();
}

} // namespace regatta
