// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "base/units.hpp"
#include "page/chart/line_chart.hpp"
#include "page/sections.hpp"
#include "report/fields.hpp"
#include "report/rounded.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

// The entries of one pair of charts.
struct operation_runs {
  std::string op, ranks;
  std::vector<std::size_t> entries;
};

std::vector<operation_runs> operations_in(const json& results) {
  std::vector<operation_runs> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string op = plain_text(results[i].at("op")), ranks = plain_text(results[i].at("ranks"));
    auto known = std::find_if(all.begin(), all.end(), [&](const auto& o) { return o.op == op && o.ranks == ranks; });
    if (known == all.end()) known = all.insert(all.end(), {op, ranks, {}});
    known->entries.push_back(i);
  }
  return all;
}

std::string line_of(const json& entry) {
  const json algorithm = entry.value("algorithm", json());
  std::string name = plain_text(entry.at("transport"));
  if (algorithm.is_string()) name += " " + plain_text(algorithm);
  if (entry.value("wait", json()) == "spinning") name += ", spinning";
  return name;
}

std::string rate_text(double bytes_per_second) {
  return human_bytes(bytes_per_second) + "/s";
}

std::optional<figure> chart_of(const json& results, const operation_runs& o, const std::string& path, const axis& y,
                               const std::string& name, const std::string& title, std::string (*text)(double)) {
  line_chart chart{fmt::format("{}-{}-{}", name, o.op, o.ranks),
                   fmt::format("{} of {} between {} ranks", title, o.op, o.ranks),
                   {"size", measure::bytes, true, false, {}},
                   y,
                   {},
                   true,
                   {}};
  for (const std::size_t i : o.entries) {
    const json& entry = results[i];
    const auto size = number_at(entry, "bytes"), value = number_at(entry, path);
    if (!size || !value) continue;
    const std::string line = line_of(entry);
    auto to = std::find_if(chart.lines.begin(), chart.lines.end(), [&](const auto& l) { return l.name == line; });
    if (to == chart.lines.end()) to = chart.lines.insert(chart.lines.end(), {line, line, chart.lines.size(), {}});
    to->points.push_back({*size, *value, std::nullopt,
                          fmt::format("{}, {}: {}", line, exact_bytes(static_cast<std::int64_t>(*size)), text(*value)),
                          data_attributes(i, path, json(*value))});
  }
  return draw(chart);
}

page_table table_of(const json& results) {
  page_table table;
  for (const char* key : {"transport", "operation", "algorithm"}) table.columns.push_back({key, "", "", false});
  for (const char* key : {"ranks", "size"}) table.columns.push_back({key, "", "", true});
  table.keys = table.columns.size();
  table.of_cases = true;
  const struct {
    const char *header, *path, *tip;
    std::string (*text)(double);
  } figures[] = {{"median", "seconds.median", "time of an operation, of the slowest rank", human_seconds},
                 {"99 %", "seconds.p99", "", human_seconds},
                 {"algbw", "algorithm_bandwidth", "size / time", rate_text},
                 {"busbw", "bus_bandwidth", "per link", rate_text},
                 {"processor", "cpu_seconds", "per operation, of all ranks", human_seconds}};
  for (const auto& f : figures) table.columns.push_back({f.header, f.path, f.tip, true});
  table.columns.push_back({"wrong", "wrong", "wrong elements", true});
  for (std::size_t i = 0; i < results.size(); ++i) {
    const json& entry = results[i];
    page_row& row = table.rows.emplace_back();
    row.cells = {{plain_text(entry.at("transport")), nullptr, ""},
                 {plain_text(entry.at("op")), nullptr, ""},
                 {plain_text(entry.value("algorithm", json())), nullptr, ""},
                 {plain_text(entry.at("ranks")), nullptr, ""},
                 {exact_bytes(entry.at("bytes").get<std::int64_t>()), nullptr, ""}};
    for (const auto& f : figures) row.cells.push_back(number_cell(value_at(entry, f.path), f.text));
    row.cells.push_back(number_cell(value_at(entry, "wrong"), [](double n) { return fmt::format("{:.0f}", n); }));
  }
  return table;
}

} // namespace

void write_comm(writer& w, const json& document) {
  const json& results = document.at("results");
  w.heading("Time and bandwidth by size", "comm");
  for (const json& host : document.at("context").value("hosts", json::array()))
    w.paragraph(fmt::format("{}, {} cores", plain_text(host.value("cpu", json("unknown CPU"))),
                            plain_text(host.value("cores", json()))));
  for (const json& warning : document.at("context").value("warnings", json::array()))
    w.paragraph("warning: " + plain_text(warning));
  for (const json& failed : document.value("failures", json::array()))
    w.paragraph("failed: " + plain_text(failed.value("error", json())));
  for (const operation_runs& o : operations_in(results)) {
    std::vector<std::optional<figure>> drawn;
    drawn.push_back(chart_of(results, o, "seconds.median", {"time", measure::seconds, true, false, {}}, "time", "Time",
                             human_seconds));
    drawn.push_back(chart_of(results, o, "bus_bandwidth", {"bus bandwidth", measure::bytes_per_second, true, false, {}},
                             "bandwidth", "Bandwidth", rate_text));
    w.figures(std::move(drawn), "");
  }
  w.raw("<details><summary>All sizes</summary>\n" + markup_of(table_of(results)) + "</details>\n");
}

} // namespace regatta::page
