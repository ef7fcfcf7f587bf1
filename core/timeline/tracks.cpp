// SPDX-License-Identifier: Apache-2.0
#include "timeline/tracks.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace regatta {
namespace {

bool is_message(const trace_event& e) {
  return e.kind == event_kind::send || e.kind == event_kind::receive;
}

// Sorts by the order of a page. Messages are in the order of lanes, and each direction of a peer has its own track.
using track_key = std::tuple<event_origin, std::uint32_t, std::uint32_t, event_kind>;

track_key key_of(const trace_event& e) {
  if (e.origin == event_origin::executor && e.track == 0) return {event_origin::compute, 0, 0, event_kind::span};
  if (is_message(e)) return {e.origin, e.lane, e.peer, e.kind};
  return {e.origin, e.track, 0, event_kind::span};
}

std::string name_of(const track_key& key) {
  const auto& [origin, number, peer, kind] = key;
  switch (origin) {
  case event_origin::compute: return "compute";
  case event_origin::executor: return fmt::format("executor {}", number);
  case event_origin::loop: return "operations";
  case event_origin::strategy: return fmt::format("strategy {}", number);
  case event_origin::functions: return "functions of the strategy";
  case event_origin::messages:
    if (kind == event_kind::span) return "collectives";
    return fmt::format("lane {}: {} rank {}", number, kind == event_kind::send ? "to" : "from", peer);
  case event_origin::transport: return fmt::format("transport {}", number);
  }
  return "";
}

// The spans that contain the place after the last event of a row, outermost first.
using open_spans = std::vector<const trace_event*>;

bool fits(open_spans& row, const trace_event& e) {
  while (!row.empty() && row.back()->end <= e.begin && row.back()->begin < e.begin) row.pop_back();
  return row.empty() || row.back()->end >= e.end;
}

} // namespace

std::string display_name(const rank_trace& r, const trace_event& e) {
  const std::string& name = r.text(e.name);
  if (!is_message(e)) return name;
  return fmt::format("{}{} {} rank {}", name, e.bucket == no_bucket ? "" : fmt::format(" bucket {}", e.bucket),
                     e.kind == event_kind::send ? "to" : "from", e.peer);
}

std::vector<span_segment> segments_of(std::vector<const trace_event*> spans) {
  std::ranges::stable_sort(spans, [](const trace_event* a, const trace_event* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
  });
  std::vector<span_segment> out;
  std::vector<const trace_event*> open;
  std::uint64_t at = 0;
  const auto until = [&](std::uint64_t time) {
    if (!open.empty() && time > at) out.push_back({at, time, open.back()});
    at = std::max(at, time);
  };
  const auto close = [&] {
    until(open.back()->end);
    open.pop_back();
  };
  for (const trace_event* e : spans) {
    while (!open.empty() && open.back()->end <= e->begin) close();
    until(e->begin);
    open.push_back(e);
  }
  while (!open.empty()) close();
  return out;
}

std::vector<trace_track> tracks_of(const rank_trace& r) {
  std::map<track_key, std::vector<const trace_event*>> groups;
  for (const trace_event& e : r.events)
    if (e.kind != event_kind::counter) groups[key_of(e)].push_back(&e);
  std::vector<trace_track> tracks;
  for (auto& [key, events] : groups) {
    std::ranges::stable_sort(events, [](const trace_event* a, const trace_event* b) {
      return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
    });
    std::vector<open_spans> rows;
    const std::size_t first = tracks.size();
    for (const trace_event* e : events) {
      std::size_t k = 0;
      while (k < rows.size() && !fits(rows[k], *e)) ++k;
      if (k == rows.size()) {
        rows.emplace_back();
        tracks.push_back({name_of(key), std::get<0>(key), std::get<1>(key), {}});
      }
      rows[k].push_back(e);
      tracks[first + k].events.push_back(e);
    }
  }
  return tracks;
}

} // namespace regatta
