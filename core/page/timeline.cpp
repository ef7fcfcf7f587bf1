// SPDX-License-Identifier: Apache-2.0
//
// One step of all ranks, from the trace of a run.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/failure.hpp"
#include "page/chart/look.hpp"
#include "page/chart/timeline_chart.hpp"
#include "page/sections.hpp"
#include "report/rounded.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/messages.hpp"
#include "timeline/tracks.hpp"

namespace regatta::page {
namespace {

// Kinds of spans: their entries in the legend, and their colours by the number.
enum class span_kind : std::uint8_t { backward, send, update, input, receive, forward, other, wait };
constexpr std::pair<span_kind, const char*> span_kinds[] = {
    {span_kind::forward, "forward"}, {span_kind::backward, "backward"}, {span_kind::wait, "wait"},
    {span_kind::update, "update"},   {span_kind::input, "input"},       {span_kind::send, "send"},
    {span_kind::receive, "receive"}, {span_kind::other, "other"}};

std::size_t colour_of(span_kind kind) {
  return kind == span_kind::wait ? no_series : static_cast<std::size_t>(kind);
}

// The part of a trace that a chart shows.
struct window {
  std::uint64_t step = 0, begin = UINT64_MAX, end = 0;
  bool has(const trace_event& e) const { return e.begin <= end && e.end >= begin; }
  double seconds(std::uint64_t time) const { return static_cast<double>(std::clamp(time, begin, end) - begin) / 1e9; }
};

bool is_step(const rank_trace& r, const trace_event& e) {
  return e.kind == event_kind::span && r.text(e.category) == "step";
}

// Returns the middle one of the traced steps, from its first begin to its last end on a rank.
std::optional<window> middle_step(const std::vector<rank_trace>& ranks) {
  const std::vector<std::uint64_t> steps = steps_of(ranks);
  if (steps.empty()) return std::nullopt;
  window w;
  w.step = steps[steps.size() / 2];
  for (const rank_trace& r : ranks)
    for (const trace_event& e : r.events) {
      if (!is_step(r, e) || e.number != w.step) continue;
      w.begin = std::min(w.begin, e.begin);
      w.end = std::max(w.end, e.end);
    }
  return w;
}

span_kind kind_of(const rank_trace& r, const trace_event& e) {
  if (e.kind == event_kind::send) return span_kind::send;
  if (e.kind == event_kind::receive) return span_kind::receive;
  const std::string &name = r.text(e.name), &category = r.text(e.category);
  if (category == "wait") return span_kind::wait;
  if (category == "forward" || name == "forward pass") return span_kind::forward;
  if (category == "backward" || name == "backward pass") return span_kind::backward;
  if (category == "update") return span_kind::update;
  return name == "input" ? span_kind::input : span_kind::other;
}

// The messages of a rank, in rows in which they do not overlap.
class message_rows {
public:
  static constexpr std::size_t most = 3; // more at once are not drawn

  // Returns the row of a message; std::nullopt if all are taken. Call it in the order of begins.
  std::optional<std::size_t> place(const trace_event& e) {
    for (std::size_t row = 0; row < most; ++row)
      if (e.begin >= free_[row]) {
        free_[row] = e.end;
        return row;
      }
    return std::nullopt;
  }

private:
  std::uint64_t free_[most] = {};
};

// Builds the chart of a step.
class step_chart {
public:
  step_chart(const std::vector<rank_trace>& ranks, const window& w, bool tips)
      : ranks_(ranks), window_(w), tips_(tips) {
    constexpr std::size_t most_ranks = 8;
    for (std::size_t g = 0; g < std::min(ranks.size(), most_ranks); ++g) add_rank(g);
    add_arrows();
  }

  timeline_chart take(const std::string& name, const std::string& title, std::size_t most_shapes) {
    chart_.name = name;
    chart_.title = title;
    chart_.most_shapes = most_shapes;
    for (const auto& [kind, text] : span_kinds)
      if (used_.contains(kind)) chart_.legend.emplace_back(text, colour_of(kind));
    return std::move(chart_);
  }

private:
  time_span span_of(const rank_trace& r, const trace_event& e, std::uint64_t begin, std::uint64_t end) {
    const span_kind kind = kind_of(r, e);
    used_.insert(kind);
    const bool message = kind == span_kind::send || kind == span_kind::receive;
    const std::string name = message ? (e.bucket == no_bucket ? human_bytes(static_cast<double>(e.number))
                                                              : fmt::format("bucket {}", e.bucket))
                                     : r.text(e.name);
    std::string tip;
    if (tips_) {
      tip = display_name(r, e);
      const std::string& category = r.text(e.category);
      if (category == "forward" || category == "backward") tip += " " + category;
      if (message) tip += ", " + human_bytes(static_cast<double>(e.number));
      tip += ", " + human_seconds(1e-9 * static_cast<double>(end - begin));
    }
    return {window_.seconds(begin), window_.seconds(end), colour_of(kind), name, tip};
  }

  void add_thread(timeline_group& group, const rank_trace& r, const char* label,
                  const std::vector<const trace_event*>& spans, std::vector<time_mark> marks) {
    timeline_row row{label, {}, std::move(marks)};
    for (const span_segment& s : segments_of(spans))
      if (!is_step(r, *s.innermost) && s.end > window_.begin && s.begin < window_.end)
        row.spans.push_back(span_of(r, *s.innermost, s.begin, s.end));
    if (!row.spans.empty() || !row.marks.empty()) group.rows.push_back(std::move(row));
  }

  void add_messages(std::size_t of_group, const rank_trace& r, const char* label,
                    std::vector<const trace_event*> messages) {
    std::ranges::stable_sort(messages, {}, &trace_event::begin);
    timeline_group& group = chart_.groups[of_group];
    const std::size_t first = group.rows.size();
    message_rows rows;
    for (const trace_event* e : messages) {
      const auto row = rows.place(*e);
      if (!row) continue;
      while (group.rows.size() <= first + *row) group.rows.push_back({label, {}, {}});
      group.rows[first + *row].spans.push_back(span_of(r, *e, e->begin, e->end));
      places_[e] = {of_group, first + *row};
    }
  }

  void add_rank(std::size_t number) {
    const rank_trace& r = ranks_[number];
    chart_.groups.push_back({fmt::format("rank {}: {}", r.rank, r.role), {}});
    std::vector<const trace_event*> compute, operations, sends, receives;
    std::vector<time_mark> ready;
    for (const trace_event& e : r.events) {
      if (!window_.has(e)) continue;
      if (e.kind == event_kind::send) sends.push_back(&e);
      if (e.kind == event_kind::receive) receives.push_back(&e);
      if (e.kind == event_kind::instant && e.origin == event_origin::loop)
        ready.push_back({window_.seconds(e.begin), tips_ ? fmt::format("bucket {} ready", e.number) : ""});
      if (e.kind != event_kind::span) continue;
      if (is_on_compute_thread(e)) compute.push_back(&e);
      if (e.origin == event_origin::loop || e.origin == event_origin::messages) operations.push_back(&e);
    }
    add_thread(chart_.groups.back(), r, "compute", compute, {});
    add_thread(chart_.groups.back(), r, "strategy", operations, std::move(ready));
    add_messages(number, r, "send", std::move(sends));
    add_messages(number, r, "receive", std::move(receives));
  }

  // Draws a line from each send to its receive, unless they would hide the chart.
  void add_arrows() {
    constexpr std::size_t most = 40;
    const auto sends = sends_of(ranks_);
    for (const rank_trace& r : ranks_)
      for (const trace_event& e : r.events) {
        if (e.kind != event_kind::receive || !places_.contains(&e)) continue;
        const auto send = sends.find(id_of(r.rank, e));
        if (send == sends.end() || !places_.contains(send->second) || e.end > window_.end) continue;
        const auto [from_group, from_row] = places_.at(send->second);
        const auto [to_group, to_row] = places_.at(&e);
        chart_.arrows.push_back(
            {from_group, from_row, to_group, to_row, window_.seconds(send->second->begin), window_.seconds(e.end)});
      }
    if (chart_.arrows.size() > most) chart_.arrows.clear();
  }

  const std::vector<rank_trace>& ranks_;
  window window_;
  bool tips_;
  timeline_chart chart_;
  std::set<span_kind> used_;
  std::map<const trace_event*, std::pair<std::size_t, std::size_t>> places_; // group and row of a message
};

// Returns the cases to draw: all if they are few, else the one with the highest and the one with the lowest E of those
// with several workers; of very many only the latter.
std::vector<std::size_t> cases_to_draw(const result_view& r) {
  constexpr std::size_t few = 4;
  if (r.measured().size() <= few) return r.measured();
  std::vector<std::size_t> several;
  for (const std::size_t i : r.measured())
    if (number_at(r.entry(i), "workers").value_or(0) > 1) several.push_back(i);
  if (several.empty()) several = r.measured();
  const auto [lowest, highest] = std::ranges::minmax_element(
      several, {}, [&](std::size_t i) { return number_at(r.entry(i), "efficiency.median").value_or(0); });
  return *lowest == *highest || !r.shows_marks() ? std::vector{*lowest} : std::vector{*highest, *lowest};
}

// Appends the largest shares of the critical path as rows.
void add_path(page_table& table, const std::string& name, const std::vector<rank_trace>& ranks, std::uint64_t step) {
  constexpr std::size_t most = 5;
  const auto path = critical_path_of(ranks, step);
  if (!path || path->length() == 0) return;
  const auto shares = shares_of(*path);
  for (std::size_t k = 0; k < std::min(shares.size(), most); ++k) {
    const double ns = static_cast<double>(shares[k].ns);
    table.rows.push_back({{{name, nullptr, ""},
                           {shares[k].what, nullptr, ""},
                           {fmt::format("{}", shares[k].rank), nullptr, ""},
                           {percent_text(ns / static_cast<double>(path->length())), nullptr, ""},
                           {human_seconds(1e-9 * ns), nullptr, ""}},
                          ""});
  }
}

} // namespace

void write_timeline(writer& w, const result_view& r, const trace_source& traces) {
  std::vector<std::optional<figure>> drawn;
  page_table paths;
  paths.keys = 1;
  paths.columns = {{"case", "", "", false},
                   {"on the critical path", "", "the chain of work and messages that ends with the step", false},
                   {"rank", "", "", true},
                   {"share", "", "of the path's length", true},
                   {"time", "", "", true}};
  std::vector<std::string> unreadable;
  for (const std::size_t i : traces ? cases_to_draw(r) : std::vector<std::size_t>{}) {
    std::vector<rank_trace> ranks;
    try {
      ranks = traces(i);
    } catch (const failure& e) {
      unreadable.push_back(e.what());
      continue;
    }
    const auto step = middle_step(ranks);
    if (!step) continue;
    constexpr std::size_t many = 300, few = 40;
    step_chart chart(ranks, *step, r.shows_marks());
    drawn.push_back(
        draw(chart.take(fmt::format("timeline-{}", i + 1), r.titled(fmt::format("Step {} of all ranks", step->step), i),
                        r.shows_marks() ? many : few)));
    add_path(paths, r.keys().empty() ? std::to_string(i + 1) : r.mark_name(i), ranks, step->step);
  }
  const bool any = std::any_of(drawn.begin(), drawn.end(), [](const auto& f) { return f.has_value(); });
  w.subheading("One step as a timeline");
  for (const std::string& text : unreadable) w.paragraph("The trace cannot be shown: " + text);
  if (!any && unreadable.empty())
    w.paragraph(
        "This result has no trace. `--set measure.trace=3` records one: every layer, bucket and message of three "
        "steps.");
  w.figures(
      std::move(drawn),
      "compute: the layers, input, updates and waits of the compute thread; strategy: operations such as updates, "
      "with a line where a bucket's gradients are ready; send and receive: messages from the strategy's call to "
      "their completion, and a line from each send to the end of its receive.");
  w.table(paths);
}

} // namespace regatta::page
