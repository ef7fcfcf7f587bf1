// SPDX-License-Identifier: Apache-2.0
#include "report/cases_table.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"
#include "report/rounded.hpp"

namespace regatta {
namespace {

using nlohmann::json;
using cells = std::vector<std::string>;

struct filled_column {
  table_column column;
  cells values;
  std::string constant;
};

// Returns the text that all cells share, not counting cells without a value; std::nullopt if they differ.
std::optional<std::string> common(const cells& c) {
  std::optional<std::string> text;
  for (const std::string& cell : c) {
    if (cell == "-") continue;
    if (text && *text != cell) return std::nullopt;
    text = cell;
  }
  return text;
}
bool all_equal(const cells& c) {
  return std::all_of(c.begin(), c.end(), [&](const std::string& text) { return text == c.front(); });
}
bool all_unknown(const cells& c) {
  return std::all_of(c.begin(), c.end(), [](const std::string& text) { return text == "-"; });
}

template <class Of> cells each(const json& result, Of of) {
  cells out;
  for (const json& entry : result.at("results")) out.push_back(of(entry));
  return out;
}

// Returns a number for each case that has figures, with aligned digits.
cells numbers(const json& result, const std::string& path) {
  std::vector<json> values;
  for (const json& entry : result.at("results"))
    values.push_back(has_figures(entry) ? field(result, entry, path) : json());
  return aligned_numbers(values);
}

bool communicates(const json& result, const json& entry) {
  return field(result, entry, "strategy.plugin") != "none";
}

std::string servers_of(const json& result, const json& entry) {
  const json servers = entry.value("servers", json());
  if (servers.is_null() || servers == 0) return "-";
  return plain_text(servers) + (field(result, entry, "cluster.colocate") == true ? " (co)" : "");
}

// Returns the largest parts of 1 - E, a gain with a minus sign, and the sum of the other parts, so that the text adds
// up to 1 - E: "communication 1.1 %  wait 0.6 %  compute -0.3 %  other 0.1 %". With `parts` 0: the largest part, and
// "…" for the others.
std::string lost_to(const json& entry, std::size_t parts) {
  constexpr double visible = 0.0005; // rounds to 0.1 %
  const json lost = entry.value("lost", json());
  if (!has_figures(entry) || !lost.is_object()) return "-";
  std::vector<std::pair<double, std::string>> shares;
  double others = 0;
  for (const auto& [name, value] : lost.items()) {
    if (!value.is_number()) continue;
    const double share = value;
    if (name == "other" || std::abs(share) < visible)
      others += share;
    else
      shares.emplace_back(share, name == "exposed_communication" ? "communication" : name);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  for (; shares.size() > std::max<std::size_t>(parts, 1); shares.pop_back()) others += shares.back().first;
  cells texts;
  for (const auto& [share, name] : shares) texts.push_back(name + " " + percent(share));
  if (std::abs(others) >= visible) texts.push_back(parts == 0 && !texts.empty() ? "…" : "other " + percent(others));
  return texts.empty() ? "-" : join(texts, "  ");
}

// Returns the share of a step spent generating, reading or waiting for its batch; "-" if it is too small for a column.
std::string input_of(const json& entry) {
  constexpr double visible = 0.01;
  const json time = entry.value("time", json());
  if (!has_figures(entry) || !time.is_object()) return "-";
  double step = 0;
  for (const auto& [name, seconds] : time.items()) step += seconds.is_number() ? seconds.get<double>() : 0;
  const json input = time.value("input", json());
  const double share = input.is_number() && step > 0 ? input.get<double>() / step : 0;
  return share >= visible ? percent(share) : "-";
}

std::string loss_of(const json& entry) {
  const json loss = entry.value("loss", json());
  if (!has_figures(entry) || !loss.is_object()) return "-";
  const auto text = [](const json& value) {
    return value.is_number() ? fmt::format("{:.3g}", value.get<double>()) : std::string("not finite");
  };
  return text(loss.at("first")) + " → " + text(loss.at("last"));
}

std::string share_of(const json& value) {
  return value.is_number() ? percent(value) : "-";
}
std::string ratio_of(const json& value) {
  return value.is_number() ? fmt::format("{:.2f}", value.get<double>()) : "-";
}

// Returns the interval of the efficiency: "0.97–0.99"; heading.cpp says how often it contains the true median.
std::string interval_of(const json& entry) {
  const json e = entry.value("efficiency", json());
  if (!has_figures(entry) || !e.is_object() || e.value("n", 0) < 2) return "-";
  return fmt::format("{:.2f}–{:.2f}", e.at("low").get<double>(), e.at("high").get<double>());
}

// Returns mean and maximum of an asynchronous strategy's staleness, which is a reason for a higher loss.
std::string staleness_of(const json& seen) {
  // Another strategy may record other values under this name.
  if (!seen.is_object() || !seen.value("mean", json()).is_number() || !seen.contains("max")) return "-";
  return fmt::format("{:.1f}, at most {}", seen["mean"].get<double>(), plain_text(seen["max"]));
}

std::string sent_of(const json& result, const json& entry) {
  const json sent = field(result, entry, "bytes.sent_per_step.worker");
  return has_figures(entry) && sent.is_number() && communicates(result, entry) ? human_bytes(sent) : "-";
}

// Returns the median time to the target: "1.32 s"; with the repeats that reached it unless all did: "1.32 s (5 of 6)".
std::string time_to_target(const json& entry) {
  const json target = entry.value("target", json());
  if (!has_figures(entry) || !target.is_object()) return "-";
  const json seconds = entry.value("seconds_to_target", json());
  if (!seconds.is_object()) return "not reached";
  const json& median = seconds.at("median");
  const std::string time = median.is_number() ? human_seconds(median) : "not reached";
  return target.at("reached") == seconds.at("n")
             ? time
             : fmt::format("{} ({} of {})", time, plain_text(target["reached"]), plain_text(seconds["n"]));
}

// Returns its interval: "1.29 s–1.40 s".
std::string interval_to_target(const json& entry) {
  const json seconds = entry.value("seconds_to_target", json());
  if (!has_figures(entry) || !seconds.is_object() || seconds.value("n", 0) < 2) return "-";
  const auto bound = [&](const char* name) {
    const json& value = seconds.at(name);
    return value.is_number() ? human_seconds(value) : std::string("not reached");
  };
  return bound("low") + "–" + bound("high");
}

std::string steps_to_target(const json& entry) {
  const json steps = entry.value("steps_to_target", json());
  return has_figures(entry) && steps.is_object() ? plain_text(steps.at("median")) : "-";
}

// Returns what all targets ask for: "top1 ≥ 0.9"; "target" if they differ; empty without a target.
std::string name_of_target(const json& result) {
  std::optional<std::string> name;
  for (const json& entry : result.at("results")) {
    const json target = entry.value("target", json());
    if (!target.is_object()) continue;
    const std::string own = fmt::format("{} {} {}", plain_text(target.at("metric")),
                                        target.at("side") == "at_most" ? "≤" : "≥", plain_text(target.at("value")));
    if (name && *name != own) return "target";
    name = own;
  }
  return name.value_or("");
}

table_column left(const std::string& header, int dispensable = 0) {
  return {header, false, dispensable};
}
table_column right(const std::string& header, int dispensable = 0) {
  return {header, true, dispensable};
}

class column_list {
public:
  explicit column_list(const json& result) : result_(result) {}

  // `constant`: text for the heading if all cells are equal, with {} for the cell; empty: it stays a column.
  void add(table_column column, cells values, const std::string& constant = "") {
    columns_.push_back({std::move(column), std::move(values), constant});
  }
  // Adds a field of every case that has figures, formatted by `text`.
  template <class Text>
  void add_field(const table_column& column, const std::string& path, Text text, const std::string& constant = "") {
    add(column,
        each(result_, [&](const json& e) { return has_figures(e) ? text(field(result_, e, path)) : std::string("-"); }),
        constant);
  }
  std::vector<filled_column> take() { return std::move(columns_); }

private:
  const json& result_;
  std::vector<filled_column> columns_;
};

// Columns that identify a row: the swept keys, and always strategy, transport, workers and servers, which readers look
// for first.
std::vector<filled_column> key_columns(const json& result) {
  const auto own = [](const std::string& key) {
    return key == "strategy.plugin" || key == "transport.plugin" || key == "cluster.workers" ||
           key == "cluster.servers" || key == "cluster.colocate";
  };
  const auto text = [&](const std::string& path) {
    return each(result, [&](const json& e) { return plain_text(field(result, e, path)); });
  };
  column_list columns(result);
  for (const std::string& key : swept_keys(result)) {
    if (own(key)) continue;
    const bool number = result["results"].front()["case"].value(key, json()).is_number();
    columns.add(number ? right(short_name(key)) : left(short_name(key)), text(key));
  }
  columns.add(left("strategy"), text("strategy.plugin"), "{}");
  columns.add(left("transport"),
              each(result,
                   [&](const json& e) {
                     return communicates(result, e) ? plain_text(field(result, e, "transport.plugin")) : "-";
                   }),
              "over {}");
  columns.add(right("workers"), text("workers"), "workers: {}");
  columns.add(right("servers"), each(result, [&](const json& e) { return servers_of(result, e); }), "servers: {}");
  return columns.take();
}

std::vector<filled_column> figure_columns(const json& result, std::size_t parts) {
  column_list columns(result);
  columns.add(right("samples/s"), numbers(result, "samples_per_second"));
  columns.add_field(right("± cv", 5), "samples_per_second.cv", share_of);
  columns.add(right("1 worker", 8), numbers(result, "baseline_samples_per_second"), "one worker alone: {} samples/s");
  columns.add_field(right("E", 1), "efficiency", ratio_of);
  columns.add(right("E from–to", 2), each(result, interval_of));
  columns.add_field(right("detectable", 9), "efficiency.smallest_detectable", share_of);
  columns.add_field(right("E none", 3), "contention", ratio_of);
  columns.add_field(right("E/E none", 7), "efficiency_over_contention", ratio_of);
  columns.add(left("lost to", 3), each(result, [&](const json& e) { return lost_to(e, parts); }));
  columns.add(right("input", 6), each(result, input_of));
  columns.add(left("loss", 4), each(result, loss_of));
  columns.add_field(right("staleness", 5), "strategy.staleness", staleness_of);
  for (const json& entry : result.at("results"))
    if (const json metric = entry.value("metric", json()); metric.is_object()) {
      columns.add(right(plain_text(metric.at("name")), 2), numbers(result, "metric.value"));
      break;
    }
  if (const std::string target = name_of_target(result); !target.empty()) {
    columns.add(right(target + " after"), each(result, time_to_target));
    columns.add(right("after from–to", 2), each(result, interval_to_target));
    columns.add(right("in steps", 3), each(result, steps_to_target));
    columns.add_field(right("evaluation", 8), "evaluation_seconds",
                      [](const json& s) { return s.is_number() ? human_seconds(s) : std::string("-"); });
  }
  columns.add(right("sent/step", 6), each(result, [&](const json& e) { return sent_of(result, e); }));
  return columns.take();
}

std::string note_of(const json& entry) {
  if (has_figures(entry)) return "";
  const std::string status = entry.at("status");
  const json error = entry.value("error", json());
  return error.is_string() ? status + ": " + one_line(error.get<std::string>()) : status;
}

} // namespace

cases_table table_of_cases(const json& result, std::size_t parts) {
  cases_table out;
  const json& entries = result.at("results");
  if (entries.empty()) return out;
  for (const json& entry : entries) out.table.rows.push_back({{}, note_of(entry)});
  const auto add = [&](filled_column c) {
    for (std::size_t r = 0; r < c.values.size(); ++r) out.table.rows[r].cells.push_back(std::move(c.values[r]));
    out.table.columns.push_back(std::move(c.column));
  };
  const auto to_heading = [&](const filled_column& c, const std::string& text) {
    out.constant.push_back(fmt::format(fmt::runtime(c.constant), text));
  };
  for (filled_column& c : key_columns(result)) {
    if (c.constant.empty() || !all_equal(c.values)) {
      add(std::move(c));
      ++out.table.keys;
    } else if (!all_unknown(c.values)) {
      to_heading(c, c.values.front());
    }
  }
  for (filled_column& c : figure_columns(result, parts)) {
    const auto text = common(c.values);
    if (text && !c.constant.empty())
      to_heading(c, *text);
    else if (!all_unknown(c.values) || c.column.dispensable == 0)
      add(std::move(c));
  }
  return out;
}

} // namespace regatta
