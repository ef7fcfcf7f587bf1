// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "page/chart/line_chart.hpp"
#include "page/sections.hpp"
#include "report/fields.hpp"
#include "report/rounded.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

// The horizontal axis of a curve.
enum class over { steps, time, bytes };

constexpr struct {
  over of;
  const char *name, *title;
  measure kind;
} abscissas[] = {{over::steps, "steps", "step", measure::plain},
                 {over::time, "time", "time since the begin of the timed region", measure::seconds},
                 {over::bytes, "bytes", "sent by a worker", measure::bytes}};

// A point of a curve: completed steps, seconds (unknown in the warm-up), value.
struct sample {
  double steps = 0;
  std::optional<double> seconds;
  double value = 0;
};

std::vector<sample> losses_of(const json& entry) {
  std::vector<sample> samples;
  const json loss = entry.value("loss", json());
  if (!loss.is_object()) return samples;
  const json curve = loss.value("curve", json::array()), steps = loss.value("steps", json::array()),
             seconds = loss.value("seconds", json::array());
  for (std::size_t s = 0; s < std::min(curve.size(), steps.size()); ++s) {
    if (!curve[s].is_number()) continue;
    const bool timed = s < seconds.size() && seconds[s].is_number();
    samples.push_back(
        {steps[s].get<double>() + 1, timed ? std::optional(seconds[s].get<double>()) : std::nullopt, curve[s]});
  }
  return samples;
}

std::vector<sample> metrics_of(const json& entry) {
  std::vector<sample> samples;
  const json metric = entry.value("metric", json());
  const json curve = metric.is_object() ? metric.value("curve", json::array()) : json::array();
  for (const json& point : curve) {
    const auto step = number_at(point, "step"), value = number_at(point, "value");
    if (step && value) samples.push_back({*step, number_at(point, "seconds"), *value});
  }
  return samples;
}

std::optional<double> abscissa(const sample& s, over of, const json& entry) {
  if (of == over::steps) return s.steps;
  if (of == over::time) return s.seconds;
  const auto sent = number_at(entry, "bytes.sent_per_step.worker");
  return sent && *sent > 0 ? std::optional(s.steps * *sent) : std::nullopt;
}

template <class Samples>
std::vector<std::optional<figure>> curves(const result_view& r, const std::string& name, const std::string& title,
                                          const std::string& value, bool with_bytes, Samples of) {
  constexpr std::size_t all_points = 600, most_points = 160;
  const std::size_t lines = r.measured().size();
  const std::vector<legend_entry> legend = r.legend_of(r.keys());
  std::vector<std::optional<figure>> drawn;
  for (const auto& a : abscissas) {
    if (a.of == over::bytes && !with_bytes) continue;
    line_chart chart{fmt::format("{}-over-{}", name, a.name),
                     fmt::format("{} over {}", title, a.name),
                     {a.title, a.kind, false, true, {}},
                     {value, measure::plain, false, false, {}},
                     {},
                     false,
                     {}};
    double low = 1e300, high = 0;
    for (const std::size_t i : r.measured()) {
      std::vector<chart_point> points;
      for (const sample& s : of(r.entry(i)))
        if (const auto x = abscissa(s, a.of, r.entry(i))) {
          points.push_back({*x, s.value, std::nullopt, "", ""});
          low = std::min(low, s.value);
          high = std::max(high, s.value);
        }
      if (points.empty()) continue;
      chart.lines.push_back({r.name_of(i), legend[i].first, legend[i].second,
                             thinned_points(points, std::clamp<std::size_t>(all_points / lines, 6, most_points)),
                             r.mark_name(i)});
    }
    constexpr double wide = 30;
    chart.y.log = low > 0 && high > wide * low;
    drawn.push_back(draw(chart));
  }
  return drawn;
}

// Returns for example "top1 of at least 0.9"; "target" if cases have different ones, and an empty text without any.
std::string name_of_target(const result_view& r) {
  std::string name;
  for (std::size_t i = 0; i < r.size(); ++i) {
    const json target = r.entry(i).value("target", json());
    if (!target.is_object()) continue;
    const std::string own =
        fmt::format("{} of {} {}", plain_text(target.at("metric")),
                    target.at("side") == "at_most" ? "at most" : "at least", plain_text(target.at("value")));
    if (!name.empty() && name != own) return "target";
    name = own;
  }
  return name;
}

// Returns what a case must reach: "top1 ≥ 0.9"; "-" without a target.
std::string target_of(const json& entry) {
  const json target = entry.value("target", json());
  if (!target.is_object()) return "-";
  return fmt::format("{} {} {}", plain_text(target.value("metric", json())),
                     target.value("side", json()) == "at_most" ? "≤" : "≥", plain_text(target.value("value", json())));
}

void write_targets(writer& w, const result_view& r) {
  const std::string name = name_of_target(r);
  if (name.empty()) return;
  page_table table = r.table_of_cases();
  const auto add = [&](const char* header, const std::string& path, const char* tip, auto text) {
    table.columns.push_back({header, path, tip, true});
    for (std::size_t i = 0; i < r.size(); ++i)
      table.rows[i].cells.push_back(number_cell(value_at(r.entry(i), path), text));
  };
  if (name == "target") { // each case has its own
    table.columns.push_back({"target", "", "", false});
    for (std::size_t i = 0; i < r.size(); ++i) table.rows[i].cells.push_back({target_of(r.entry(i)), nullptr, ""});
  }
  const auto count = [](double n) { return plain_text(json(n)); };
  const char* const interval = "interval of the median; -: a repeat that did not reach it";
  add("time", "seconds_to_target.median",
      "of training until the first evaluation that reached it: with the warm-up, without evaluations", human_seconds);
  if (r.shows_marks()) { // many cases fill the page
    add("from", "seconds_to_target.low", interval, human_seconds);
    add("to", "seconds_to_target.high", interval, human_seconds);
  }
  add("steps", "steps_to_target.median", "completed by then", count);
  if (r.shows_marks()) {
    add("from", "steps_to_target.low", interval, count);
    add("to", "steps_to_target.high", interval, count);
  }
  add("reached", "target.reached", "repeats that reached it", count);
  add("of", "samples_per_second.n", "repeats", count);
  if (r.shows_marks())
    add("evaluation", "evaluation_seconds", "time of all evaluations of a run, which no other figure contains",
        human_seconds);
  w.subheading("Time to a " + name);
  w.table(table);
}

void write_ends(writer& w, const result_view& r) {
  page_table table = r.table_of_cases();
  const auto add = [&](const std::string& header, const std::string& path, const std::string& tip) {
    table.columns.push_back({header, path, tip, true});
    for (std::size_t i = 0; i < r.size(); ++i)
      table.rows[i].cells.push_back(number_cell(value_at(r.entry(i), path), loss_text));
  };
  add("first loss", "loss.first", "of the first step of the warm-up");
  add("last loss", "loss.last", "of the last step");
  add("metric", "metric.value", "after the last step");
  remove_empty_columns(table);
  w.table(table);
}

} // namespace

void write_learning(writer& w, const result_view& r) {
  w.heading("What it learned", "learning");
  w.figures(curves(r, "loss", "Loss", "loss", true, losses_of),
            "The mean loss over the samples of all workers, of the first repeat. Time counts without evaluations and "
            "without warm-up, whose steps only the other charts have. Lines with equal losses cover one another.");
  std::string metric;
  for (const std::size_t i : r.measured())
    if (const json m = r.entry(i).value("metric", json()); m.is_object())
      metric = plain_text(m.value("name", json("metric")));
  if (!metric.empty()) w.figures(curves(r, "metric", "Evaluation: " + metric, metric, r.shows_marks(), metrics_of), "");
  if (r.shows_marks()) write_ends(w, r); // else the table of all cases has these
  write_targets(w, r);
}

} // namespace regatta::page
