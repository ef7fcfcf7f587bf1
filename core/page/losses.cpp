// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "measure/statistics.hpp"
#include "page/chart/rows_chart.hpp"
#include "page/sections.hpp"
#include "report/fields.hpp"
#include "report/rounded.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

struct loss_part {
  const char *member, *name;
};

// In the order of the waterfall; the colour of a part is its index.
constexpr loss_part loss_parts[] = {
    {"compute", "compute"}, {"wait", "wait"},   {"exposed_communication", "communication"},
    {"update", "update"},   {"input", "input"}, {"other", "other"}};
constexpr std::size_t colour_of_e = 6;

// Draws one waterfall a case, from 1 by way of each cause to E.
std::optional<figure> waterfalls(const result_view& r) {
  rows_chart chart{
      "lost", "Where the efficiency went, from 1 down to E", {"E", measure::plain, false, true, {}}, {}, {}, {1}};
  for (std::size_t p = 0; p < std::size(loss_parts); ++p) chart.legend.emplace_back(loss_parts[p].name, p);
  for (const std::size_t i : r.measured()) {
    if (chart.rows.size() == most_rows) break;
    const json& entry = r.entry(i);
    const auto efficiency = number_at(entry, "efficiency.median");
    if (!efficiency || !entry.value("lost", json()).is_object()) continue;
    chart_row& row = chart.rows.emplace_back();
    row.label = r.name_of(i);
    row.colour = colour_of_e;
    double at = 1;
    for (std::size_t p = 0; p < std::size(loss_parts); ++p) {
      const double share = number_at(entry, std::string("lost.") + loss_parts[p].member).value_or(0);
      if (share != 0)
        row.marks.push_back(bar{at, at - share, p,
                                r.shows_marks() ? fmt::format("{} {}", loss_parts[p].name, percent_text(share)) : ""});
      at -= share;
    }
    row.marks.push_back(dot{*efficiency, std::nullopt, "E " + ratio_text(*efficiency),
                            data_attributes(i, "efficiency.median", json(*efficiency))});
  }
  return draw(chart);
}

void write_ledger(writer& w, const result_view& r) {
  page_table table = r.table_of_cases();
  const auto add = [&](const std::string& header, const std::string& path, const std::string& tip, auto text) {
    table.columns.push_back({header, path, tip, true});
    for (std::size_t i = 0; i < r.size(); ++i)
      table.rows[i].cells.push_back(number_cell(value_at(r.entry(i), path), text));
  };
  for (const loss_part& part : loss_parts)
    add(part.name, std::string("lost.") + part.member, "share of E lost to it; a gain is negative", percent_text);
  add("E", "efficiency.median", "1 less all of these", percent_text);
  add("E none", "contention.median", "of as many workers that exchange nothing: a bound for E", ratio_text);
  add("E/E none", "efficiency_over_contention.median", "what strategy and transport keep of that bound", ratio_text);
  remove_empty_columns(table);
  w.raw(markup_of(table));
}

// The largest of a list by rank, with its path.
page_cell largest_of(const json& entry, const std::string& path) {
  const json list = value_at(entry, path);
  if (!list.is_array()) return {"-", nullptr, ""};
  std::optional<std::size_t> most;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].is_number() && (!most || list[i] > list[*most])) most = i;
  if (!most) return {"-", nullptr, ""};
  return number_cell(list[*most], human_bytes, fmt::format("{}.{}", path, *most));
}

// Cells that are computed here have no path; the texts of their columns have the formula.
page_cell link_bound(const result_view& r, std::size_t i) {
  if (r.value_of(i, "transport.plugin") != "shaped") return {"-", nullptr, ""};
  json bandwidth = r.value_of(i, "transport.bandwidth");
  if (bandwidth.is_null()) bandwidth = r.value_of(i, "transport.shaped.bandwidth");
  const auto rate = swept_number("bandwidth", bandwidth);
  const auto sent = number_at(r.entry(i), "bytes.sent_per_step.worker"),
             received = number_at(r.entry(i), "bytes.received_per_step.worker");
  if (!rate || rate->first <= 0 || !sent || !received) return {"-", nullptr, ""};
  return {human_seconds(8 * std::max(*sent, *received) / rate->first), nullptr, ""};
}

page_cell processor_share(const result_view& r, std::size_t i) {
  double cores = 0, used = 0;
  for (const json& host : r.document().at("context").value("hosts", json::array()))
    cores += number_at(host, "cgroup_cpus").value_or(number_at(host, "cores").value_or(0));
  const json by_rank = r.entry(i).value("cpu_seconds", json());
  if (!by_rank.is_array() || cores <= 0) return {"-", nullptr, ""};
  for (const json& seconds : by_rank)
    if (seconds.is_number()) used += seconds.get<double>();
  std::vector<double> regions;
  const json repeats = r.entry(i).value("repeats", json::array());
  for (const json& repeat : repeats.is_array() ? repeats : json::array())
    if (const auto seconds = number_at(repeat, "case.region_seconds")) regions.push_back(*seconds);
  const auto region = median(regions);
  if (!region || *region <= 0) return {"-", nullptr, ""};
  return {fmt::format("{} of {}", human_seconds(used), human_seconds(cores * *region)), nullptr, ""};
}

void write_costs(writer& w, const result_view& r) {
  page_table table = r.table_of_cases();
  const auto add = [&](const page_column& column, auto cell) {
    table.columns.push_back(column);
    for (std::size_t i = 0; i < r.size(); ++i) table.rows[i].cells.push_back(cell(i));
  };
  const auto bytes = [&](const std::string& path) {
    return [&r, path](std::size_t i) { return number_cell(value_at(r.entry(i), path), human_bytes); };
  };
  const auto seconds = [&](const std::string& path) {
    return [&r, path](std::size_t i) { return number_cell(value_at(r.entry(i), path), human_seconds); };
  };
  if (r.shows_marks()) // else only the table of steps has it
    add({"step", "step_seconds.median", "median of all workers' steps", true}, seconds("step_seconds.median"));
  add({"sent/step", "bytes.sent_per_step.worker", "by a worker", true}, bytes("bytes.sent_per_step.worker"));
  add({"received/step", "bytes.received_per_step.worker", "by a worker", true},
      bytes("bytes.received_per_step.worker"));
  add({"server sent/step", "bytes.sent_per_step.server", "by a server that is no worker", true},
      bytes("bytes.sent_per_step.server"));
  add({"link bound", "",
       "the larger of sent and received over the link's bandwidth: a step cannot be shorter unless it "
       "overlaps with the next one",
       true},
      [&](std::size_t i) { return link_bound(r, i); });
  add({"event loop/step", "communication_total", "processor time of a worker's event loop", true},
      seconds("communication_total"));
  add({"server update/step", "server_update", "", true}, seconds("server_update"));
  add({"processor time", "", "of all ranks in the timed region, of what all cores have in its length", true},
      [&](std::size_t i) { return processor_share(r, i); });
  add({"peak memory", "", "of the largest rank", true},
      [&](std::size_t i) { return largest_of(r.entry(i), "memory_peak_bytes"); });
  remove_empty_columns(table);
  w.subheading("Bytes and processor time, beside what the machine allows");
  w.raw(markup_of(table));
}

} // namespace

void write_losses(writer& w, const result_view& r) {
  w.heading("Why it is not faster", "losses");
  std::optional<figure> chart = waterfalls(r);
  const bool known = chart.has_value();
  std::vector<std::optional<figure>> drawn;
  drawn.push_back(std::move(chart));
  w.figures(std::move(drawn),
            std::string("Read from the right: each cause takes its share of 1, and the marker is E. A thin bar goes "
                        "back to the right: that part took less time than in the baseline, as updates do when "
                        "servers make them.") +
                r.rows_left_out());
  if (known)
    write_ledger(w, r);
  else
    w.paragraph("No case has a baseline, so there is no efficiency to explain.");
  write_costs(w, r);
}

} // namespace regatta::page
