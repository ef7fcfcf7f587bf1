// SPDX-License-Identifier: Apache-2.0
#include "comm/matrix.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/rounded.hpp"
#include "report/text_table.hpp"
#include "text/values.hpp"

namespace regatta::comm {
namespace {

using nlohmann::json;

constexpr link_figure figures[] = {link_figure::latency, link_figure::bandwidth, link_figure::loss};

// Returns the member for one pass; null without links.
json pass_of(const std::vector<rank_link>& links, const plan& p) {
  if (links.empty()) return nullptr;
  json pass;
  for (const link_figure f : figures) {
    json rows = json(p.ranks, json(p.ranks, nullptr));
    for (const rank_link& l : links)
      if (const double value = figure_of(l, f); !std::isnan(value)) rows[l.from][l.to] = value;
    pass[name_of(f)] = std::move(rows);
  }
  pass["marks"] = json::array();
  for (const link_mark& m : marks_of(links, p.host_of))
    pass["marks"].push_back({{"figure", name_of(m.figure)},
                             {"from", m.from},
                             {"to", m.to},
                             {"value", m.value},
                             {"usual", m.usual},
                             {"within", m.within}});
  return pass;
}

std::string label_of(const json& rank) {
  return fmt::format("{}@{}", rank.at("rank").get<std::uint32_t>(), rank.at("host").get<std::string>());
}

bool is_marked(const json& pass, const std::string& figure, std::size_t from, std::size_t to) {
  return std::ranges::any_of(pass.at("marks"), [&](const json& m) {
    return m.at("figure") == figure && m.at("from") == from && m.at("to") == to;
  });
}

// Returns a cell without unit: us, MB/s or %.
std::string cell_text(const std::string& figure, const json& value) {
  if (!value.is_number()) return "-";
  const double v = value.get<double>();
  return figure == "latency" ? fmt::format("{:.1f}", v * 1e6)
         : figure == "loss"  ? fmt::format("{:.2f}", v * 100)
                             : fmt::format("{:.{}f}", v * 1e-6, v < 1e8 ? 1 : 0);
}

std::string table_of_figure(const json& matrix, const json& pass, const std::string& figure) {
  text_table t;
  t.keys = 1;
  t.columns.push_back({"from \\ to"});
  const json& ranks = matrix.at("ranks");
  for (const json& r : ranks) t.columns.push_back({label_of(r), true});
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    table_row& row = t.rows.emplace_back();
    row.cells.push_back(label_of(ranks[from]));
    for (std::size_t to = 0; to < ranks.size(); ++to)
      row.cells.push_back(cell_text(figure, pass.at(figure)[from][to]) +
                          (is_marked(pass, figure, from, to) ? "*" : ""));
  }
  return draw(t, 0);
}

bool has_values(const json& rows) {
  return std::ranges::any_of(rows, [](const json& row) {
    return std::ranges::any_of(row, [](const json& v) { return v.is_number() && v != 0; });
  });
}

} // namespace

std::vector<rank_link> links_of(const std::vector<json>& results, const char* pass) {
  std::vector<rank_link> all;
  for (const json& r : results)
    for (const rank_link& l : r.at(pass).get<std::vector<rank_link>>()) all.push_back(l);
  return all;
}

json matrix_of(const plan& p, const std::vector<std::string>& hosts, const std::vector<json>& results) {
  json m = {{"transport", p.transport},
            {"latency_bytes", p.counts[0] * sizeof(float)},
            {"bandwidth_bytes", p.counts[1] * sizeof(float)},
            {"ranks", json::array()}};
  for (std::uint32_t r = 0; r < p.ranks; ++r) m["ranks"].push_back({{"rank", r}, {"host", hosts.at(r)}});
  const auto alone = links_of(results, "alone"), at_once = links_of(results, "at_once");
  m["alone"] = pass_of(alone, p);
  m["at_once"] = pass_of(at_once, p);
  if (!at_once.empty() && !p.pairs.many) m["at_once"]["sums"] = sums_of_rounds(at_once, p.ranks);
  return m;
}

std::vector<double> sums_of_rounds(const std::vector<rank_link>& at_once, std::uint32_t ranks) {
  std::vector<double> sums;
  for (const round_of_pairs& round : tournament(ranks)) {
    double sum = 0;
    for (const rank_link& l : at_once)
      if (std::ranges::find(round, rank_pair{std::min(l.from, l.to), std::max(l.from, l.to)}) != round.end())
        sum += l.bandwidth / 2; // the directions of a pair take turns
    sums.push_back(sum);
  }
  return sums;
}

std::string link_figure_text(const std::string& figure, double value) {
  if (figure == "latency") return fmt::format("{:.3g} us", value * 1e6);
  if (figure == "loss") return fmt::format("{:.2g} %", value * 100);
  return value < 1e9 ? fmt::format("{:.3g} MB/s", value * 1e-6) : fmt::format("{:.3g} GB/s", value * 1e-9);
}

std::string mark_text(const json& mark, const json& ranks) {
  const std::string figure = mark.at("figure");
  const auto end = [&](const char* which) { return label_of(ranks.at(mark.at(which).get<std::size_t>())); };
  return fmt::format(
      "{} to {}: {} {}, usual {} {}", end("from"), end("to"), figure, link_figure_text(figure, mark.at("value")),
      mark.at("within") == true ? "within a host" : "between hosts", link_figure_text(figure, mark.at("usual")));
}

std::string matrix_text(const json& matrix) {
  std::string text;
  for (const char* name : {"alone", "at_once"}) {
    const json& pass = matrix.at(name);
    if (!pass.is_object()) continue;
    for (const link_figure f : figures) {
      const std::string figure = name_of(f);
      if (f == link_figure::loss && !has_values(pass.at(figure))) continue;
      const auto bytes = [&](const char* key) { return exact_bytes(matrix.at(key).get<std::int64_t>()); };
      text += fmt::format("{}{}: {}, {}\n", text.empty() ? "" : "\n", matrix.at("transport").get<std::string>(),
                          f == link_figure::latency     ? "latency of " + bytes("latency_bytes") + ", us"
                          : f == link_figure::bandwidth ? "bandwidth of " + bytes("bandwidth_bytes") + ", MB/s"
                                                        : std::string("segments sent again, %"),
                          std::string_view(name) == "alone" ? "each pair alone" : "disjoint pairs at once");
      text += table_of_figure(matrix, pass, figure);
    }
    if (const json& sums = pass.value("sums", json::array()); !sums.empty()) {
      const auto [least, most] = std::ranges::minmax(sums.get<std::vector<double>>());
      text += fmt::format("{} pairs at once: {} to {} in all\n", matrix.at("ranks").size() / 2,
                          link_figure_text("bandwidth", least), link_figure_text("bandwidth", most));
    }
    for (const json& mark : pass.at("marks"))
      text += fmt::format("* far off: {}\n", mark_text(mark, matrix.at("ranks")));
  }
  return text;
}

std::string matrix_csv(const json& matrices) {
  std::string text = "transport,pass,from,from_host,to,to_host,latency,bandwidth,loss,marks\n";
  for (const json& m : matrices)
    for (const char* name : {"alone", "at_once"}) {
      const json &pass = m.at(name), &ranks = m.at("ranks");
      if (!pass.is_object()) continue;
      for (std::size_t from = 0; from < ranks.size(); ++from)
        for (std::size_t to = 0; to < ranks.size(); ++to) {
          if (from == to) continue;
          std::vector<std::string> cells = {m.at("transport"),    name,
                                            std::to_string(from), ranks[from].at("host"),
                                            std::to_string(to),   ranks[to].at("host")};
          std::string marks;
          for (const link_figure f : figures) {
            const json& value = pass.at(name_of(f))[from][to];
            cells.push_back(value.is_null() ? "" : value.dump());
            if (is_marked(pass, name_of(f), from, to)) marks += (marks.empty() ? "" : " ") + std::string(name_of(f));
          }
          cells.push_back(marks);
          text += join(cells, ",") + "\n";
        }
    }
  return text;
}

} // namespace regatta::comm
