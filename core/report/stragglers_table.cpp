// SPDX-License-Identifier: Apache-2.0
#include "report/stragglers_table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"
#include "report/rounded.hpp"

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::size_t most_cases = 8, most_ranks = 5;

// Returns the ranks to show, the slowest first.
std::vector<json> shown_ranks(const json& stragglers) {
  std::vector<json> ranks = stragglers.at("ranks");
  std::ranges::stable_sort(ranks, std::ranges::greater(),
                           [](const json& r) { return r.at("compute_seconds").get<double>(); });
  if (ranks.size() > most_ranks) ranks.erase(ranks.begin() + most_ranks - 1, ranks.end() - 1);
  return ranks;
}

} // namespace

text_table table_of_stragglers(const json& result) {
  const json& entries = result.at("results");
  const bool named = entries.size() > 1;
  text_table table;
  if (named) table.columns.push_back({"held back"});
  for (const char* header : {"rank", "host"}) table.columns.push_back({header});
  for (const char* header : {"compute", "last"}) table.columns.push_back({header, true});
  table.keys = named ? 2 : 1;
  std::size_t cases = 0;
  for (const json& entry : entries) {
    const json stragglers = entry.value("stragglers", json());
    if (!stragglers.is_object() || stragglers.at("held_back_by").is_null() || ++cases > most_cases) continue;
    const std::vector<json> ranks = shown_ranks(stragglers);
    for (const json& rank : ranks) {
      std::vector<std::string> cells;
      if (named) cells.push_back(&rank == &ranks.front() ? one_line(case_label(entry)) : "");
      cells.push_back(plain_text(rank.at("rank")));
      cells.push_back(plain_text(rank.at("host")));
      cells.push_back(human_seconds(rank.at("compute_seconds")));
      cells.push_back(rank.at("last").is_number() ? fmt::format("{:.0f} %", 100 * rank.at("last").get<double>()) : "-");
      table.rows.push_back({std::move(cells), ""});
    }
  }
  if (cases > most_cases) {
    table.rows.push_back({std::vector<std::string>(table.columns.size()), ""});
    table.rows.back().cells.front() = "…";
    table.rows.back().note = fmt::format("{} more cases: `stragglers` in result.json", cases - most_cases);
  }
  return table;
}

} // namespace regatta
