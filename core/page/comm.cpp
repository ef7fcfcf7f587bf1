// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "page/chart/heat_map.hpp"
#include "page/chart/line_chart.hpp"
#include "page/sections.hpp"
#include "report/fields.hpp"
#include "report/rounded.hpp"
#include "text/values.hpp"

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

// Returns the attributes of an element that shows a number of the context.
std::string context_attributes(const std::string& path, double value) {
  return fmt::format("data-context=\"{}\" data-value=\"{}\"", path, json(value).dump());
}

// Returns the machine's bound of a time: a cache line takes half of its round trip to another CPU.
std::vector<chart_reference> latency_of(const json& context) {
  constexpr const char* path = "machine.line_round_trip_seconds";
  const auto trip = number_at(context, path);
  if (!trip) return {};
  return {{*trip / 2, "a cache line to another CPU: " + human_seconds(*trip / 2), context_attributes(path, *trip)}};
}

std::vector<chart_reference> copies_of(const json& context) {
  constexpr const char* path = "machine.copy";
  const auto rate = number_at(context, path);
  if (!rate) return {};
  return {{*rate, "copies by two CPUs: " + rate_text(*rate), context_attributes(path, *rate)}};
}

std::optional<figure> chart_of(const json& results, const operation_runs& o, const std::string& path, const axis& y,
                               const std::string& name, const std::string& title, std::string (*text)(double),
                               std::vector<chart_reference> references) {
  line_chart chart{fmt::format("{}-{}-{}", name, o.op, o.ranks),
                   fmt::format("{} of {} between {} ranks", title, o.op, o.ranks),
                   {"size", measure::bytes, true, false, {}},
                   y,
                   {},
                   true,
                   {},
                   std::move(references)};
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

// Hosts, warnings and failed runs.
void write_comm_hosts(writer& w, const json& document) {
  for (const json& host : document.at("context").value("hosts", json::array()))
    w.paragraph(fmt::format("{}, {} cores", plain_text(host.value("cpu", json("unknown CPU"))),
                            plain_text(host.value("cores", json()))));
  for (const json& warning : document.at("context").value("warnings", json::array()))
    w.paragraph("warning: " + plain_text(warning));
  for (const json& failed : document.value("failures", json::array()))
    w.paragraph("failed: " + plain_text(failed.value("error", json())));
}

// A heat map of one figure of the links between ranks: rows send, columns receive. Marked cells end in "*".
std::optional<figure> links_chart(const json& matrix, const std::string& pass, const std::string& what,
                                  std::size_t number) {
  const json& links = matrix.at(pass);
  heat_map map{fmt::format("links-{}-{}-{}", number, pass, what),
               fmt::format("{} between ranks over {}, {}", what == "latency" ? "Latency, us" : "Bandwidth, MB/s",
                           plain_text(matrix.at("transport")),
                           pass == "alone" ? "each pair alone" : "disjoint pairs at once"),
               "from",
               "to",
               {},
               {},
               {}};
  for (const json& r : matrix.at("ranks"))
    map.rows.push_back(fmt::format("{}@{}", plain_text(r.at("rank")), plain_text(r.at("host"))));
  map.columns = map.rows;
  for (std::size_t from = 0; from < map.rows.size(); ++from) {
    auto& row = map.cells.emplace_back(map.rows.size());
    for (std::size_t to = 0; to < map.rows.size(); ++to) {
      const json& value = links.at(what)[from][to];
      if (!value.is_number()) continue;
      const bool marked = std::ranges::any_of(links.at("marks"), [&](const json& m) {
        return m.at("figure") == what && m.at("from") == from && m.at("to") == to;
      });
      const double v = value.get<double>();
      row[to] = heat_cell{v, fmt::format("{:.3g}{}", v * (what == "latency" ? 1e6 : 1e-6), marked ? "*" : ""),
                          fmt::format("{} to {}: {}", map.rows[from], map.rows[to],
                                      what == "latency" ? human_seconds(v) : rate_text(v)),
                          ""};
    }
  }
  return draw(map);
}

// Returns for example "0@n0 to 3@n3: bandwidth 11.9 MB/s, usual 23.9 MB/s".
std::string link_mark_text(const json& mark, const json& ranks) {
  const auto end = [&](const char* which) {
    const json& r = ranks.at(mark.at(which).get<std::size_t>());
    return fmt::format("{}@{}", plain_text(r.at("rank")), plain_text(r.at("host")));
  };
  const std::string what = plain_text(mark.at("figure"));
  const auto text = [&](const char* which) {
    const double v = mark.at(which);
    return what == "latency" ? human_seconds(v) : what == "loss" ? fmt::format("{:.2g} %", v * 100) : rate_text(v);
  };
  return fmt::format("{} to {}: {} {}, usual {}", end("from"), end("to"), what, text("value"), text("usual"));
}

void write_links(writer& w, const json& matrices) {
  w.heading("Links between ranks", "links");
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const json& matrix = matrices[i];
    for (const char* pass : {"alone", "at_once"}) {
      if (!matrix.at(pass).is_object()) continue;
      std::vector<std::optional<figure>> drawn;
      for (const char* what : {"bandwidth", "latency"}) drawn.push_back(links_chart(matrix, pass, what, i));
      w.figures(std::move(drawn), "");
      for (const json& mark : matrix.at(pass).at("marks"))
        w.paragraph("* far off: " + link_mark_text(mark, matrix.at("ranks")));
    }
  }
  w.note("Rows send, columns receive. Links marked with * are far off those of their kind, within or between hosts.");
}

} // namespace

void write_comm(writer& w, const json& document) {
  const json& results = document.at("results");
  const json matrices = document.value("matrix", json::array());
  if (!matrices.empty()) {
    write_links(w, matrices);
    if (results.empty()) return write_comm_hosts(w, document);
  }
  w.heading("Time and bandwidth by size", "comm");
  write_comm_hosts(w, document);
  const json& context = document.at("context");
  const axis time{"time", measure::seconds, true, false, {}},
      bandwidth{"bus bandwidth", measure::bytes_per_second, true, false, {}};
  for (const operation_runs& o : operations_in(results)) {
    std::vector<std::optional<figure>> drawn;
    drawn.push_back(chart_of(results, o, "seconds.median", time, "time", "Time", human_seconds, latency_of(context)));
    drawn.push_back(
        chart_of(results, o, "bus_bandwidth", bandwidth, "bandwidth", "Bandwidth", rate_text, copies_of(context)));
    w.figures(std::move(drawn), "");
  }
  if (!latency_of(context).empty() || !copies_of(context).empty())
    w.note(
        "Dashed: the time of a cache line from one CPU to another, and the bytes that two CPUs copy at once from "
        "buffers of 16 MiB, measured before the runs. Messages that stay in caches can be faster than these copies.");
  w.begin_details("All sizes");
  w.table(table_of(results));
  w.end_details();
}

} // namespace regatta::page
