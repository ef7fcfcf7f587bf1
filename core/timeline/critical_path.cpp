// SPDX-License-Identifier: Apache-2.0
#include "timeline/critical_path.hpp"

#include "timeline/messages.hpp"
#include "timeline/tracks.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace regatta {
namespace {

struct rank_view {
  const rank_trace* trace;
  std::vector<span_segment> compute, operations, functions;
  std::vector<const trace_event*> receives, buckets; // by their ends
  std::uint64_t step_begin = 0;                      // nothing of the path is earlier
};

class walk {
public:
  walk(const std::vector<rank_trace>& ranks, std::uint64_t step);
  std::optional<critical_path> path();

private:
  void compute();
  void operate();
  void follow(const trace_event& receive);
  void link(path_part part, std::string what, std::uint64_t begin);
  const trace_event* last_cause(std::uint64_t after);
  const span_segment* segment_before(const std::vector<span_segment>& segments) const;
  const span_segment* last_operation() const;
  std::string compute_name(const trace_event& e) const;

  rank_view& view() { return views_.at(rank_); }
  const rank_view& view() const { return views_.at(rank_); }

  std::map<std::uint32_t, rank_view> views_;
  std::map<message_id, const trace_event*> sends_;
  std::set<const trace_event*> followed_; // receives
  critical_path path_;
  bool found_ = false;

  // Where the walk is: on `rank_` at `time_`, in its computing or in its strategy's operations. `message_`: the send
  // through which the walk came to this rank, until it goes on to a cause; null: the wait of the compute thread.
  std::uint32_t rank_ = 0;
  std::uint64_t time_ = 0;
  bool computing_ = true, over_ = false;
  const trace_event* message_ = nullptr;
};

walk::walk(const std::vector<rank_trace>& ranks, std::uint64_t step) : sends_(sends_of(ranks)) {
  path_.step = step;
  std::uint64_t first = UINT64_MAX;
  for (const rank_trace& r : ranks) {
    rank_view& v = views_[r.rank];
    v.trace = &r;
    std::vector<const trace_event*> compute, operations, functions;
    for (const trace_event& e : r.events) {
      if (e.kind == event_kind::span && is_on_compute_thread(e)) compute.push_back(&e);
      if (e.kind == event_kind::span && e.origin == event_origin::loop) operations.push_back(&e);
      if (e.kind == event_kind::span && e.origin == event_origin::functions) functions.push_back(&e);
      if (e.kind == event_kind::instant && e.origin == event_origin::loop) v.buckets.push_back(&e);
      if (e.kind == event_kind::receive) v.receives.push_back(&e);
      if (e.kind != event_kind::span || r.text(e.category) != "step" || e.number != step) continue;
      v.step_begin = e.begin;
      first = std::min(first, e.begin);
      if (found_ && e.end <= time_) continue;
      found_ = true;
      rank_ = path_.rank = r.rank;
      time_ = e.end;
    }
    v.compute = segments_of(std::move(compute));
    v.operations = segments_of(std::move(operations));
    v.functions = segments_of(std::move(functions));
    std::ranges::stable_sort(v.receives, {}, &trace_event::end);
    std::ranges::stable_sort(v.buckets, {}, &trace_event::end);
  }
  for (auto& [rank, v] : views_)
    if (!v.step_begin) v.step_begin = first; // a server, or a worker in another step
}

std::optional<critical_path> walk::path() {
  if (!found_) return std::nullopt;
  while (!over_ && time_ > view().step_begin) computing_ ? compute() : operate();
  return std::move(path_);
}

// Adds a link that ends where the walk is, and goes to its begin.
void walk::link(path_part part, std::string what, std::uint64_t begin) {
  begin = std::max(begin, view().step_begin);
  if (begin < time_) path_.links.push_back({rank_, part, std::move(what), begin, time_});
  time_ = std::min(time_, begin);
}

// The last segment that begins before `time_`.
const span_segment* walk::segment_before(const std::vector<span_segment>& segments) const {
  const auto after = std::ranges::lower_bound(segments, time_, {}, &span_segment::begin);
  return after == segments.begin() ? nullptr : &*std::prev(after);
}

// The operation at `time_`, else the operation or the function of the strategy's own that ended last. A function that
// still runs at `time_` is not the cause of anything.
const span_segment* walk::last_operation() const {
  const span_segment* const operation = segment_before(view().operations);
  const auto& functions = view().functions;
  const auto running = std::ranges::upper_bound(functions, time_, {}, &span_segment::end);
  if (running == functions.begin()) return operation;
  const span_segment* const function = &*std::prev(running);
  return operation && operation->end >= function->end ? operation : function;
}

std::string walk::compute_name(const trace_event& e) const {
  const std::string &name = view().trace->text(e.name), &category = view().trace->text(e.category);
  if (category == "step") return "between the phases of the step";
  return category == "forward" || category == "backward" ? name + " " + category : name;
}

void walk::compute() {
  const span_segment* const s = segment_before(view().compute);
  if (!s) {
    over_ = true;
  } else if (s->end < time_) {
    link(path_part::computing, "between recorded spans", s->end);
  } else if (view().trace->text(s->innermost->category) == "wait") {
    computing_ = false;
    message_ = nullptr;
  } else {
    link(path_part::computing, compute_name(*s->innermost), s->begin);
  }
}

// Returns what ended last within (after, time_] and let the strategy go on: a message on the lane by which the walk
// came, a bucket that became ready (that of the message, if it has one), or the begin of a wait of the compute thread,
// which then runs the strategy. Null: nothing.
const trace_event* walk::last_cause(std::uint64_t after) {
  const rank_view& v = view();
  const auto last_of = [&](const std::vector<const trace_event*>& events, const auto& fits) {
    const trace_event* last = nullptr;
    for (auto at = std::ranges::upper_bound(events, time_, {}, &trace_event::end); at != events.begin() && !last;) {
      const trace_event* const e = *--at;
      if (e->end <= after) break;
      if (fits(*e)) last = e;
    }
    return last;
  };
  const trace_event* const receive = last_of(v.receives, [&](const trace_event& e) {
    return (!message_ || e.lane == message_->lane) && !followed_.contains(&e);
  });
  const trace_event* const bucket = last_of(v.buckets, [&](const trace_event& e) {
    return !message_ || message_->bucket == no_bucket || e.number == message_->bucket;
  });
  return receive && (!bucket || receive->end > bucket->end) ? receive : bucket;
}

void walk::operate() {
  const span_segment* const s = last_operation();
  if (s && s->end >= time_) return link(path_part::strategy, view().trace->text(s->innermost->name), s->begin);
  const span_segment* const thread = segment_before(view().compute);
  const bool waits = thread && view().trace->text(thread->innermost->category) == "wait";
  // Nothing before the begin of a wait of the compute thread explains it, unless it was an operation of the strategy.
  const std::uint64_t operation = s ? s->end : 0, wait = waits ? thread->begin : 0;
  const trace_event* const cause = last_cause(std::max(operation, wait));
  if (cause) {
    link(path_part::strategy, "strategy", cause->end);
    if (cause->kind == event_kind::receive) return follow(*cause);
    // The bucket became ready while the compute thread computed, or at the begin of its wait.
    if (waits && thread->end >= time_) link(path_part::computing, compute_name(*thread->innermost), thread->begin);
    computing_ = true;
    return;
  }
  if (operation >= wait && operation > view().step_begin) return link(path_part::strategy, "strategy", operation);
  if (waits) link(path_part::computing, compute_name(*thread->innermost), wait);
  if (!thread) link(path_part::strategy, "strategy", view().step_begin); // a server
  computing_ = true;
}

void walk::follow(const trace_event& receive) {
  followed_.insert(&receive);
  const auto found = sends_.find(id_of(rank_, receive));
  const trace_event* const send = found == sends_.end() ? nullptr : found->second;
  const std::uint32_t bucket = receive.bucket != no_bucket ? receive.bucket
                               : send                      ? send->bucket
                                                           : std::uint32_t{no_bucket};
  std::string what = bucket == no_bucket ? fmt::format("waiting for rank {}, lane {}", receive.peer, receive.lane)
                                         : fmt::format("waiting for bucket {} of rank {}", bucket, receive.peer);
  if (!send) return link(path_part::messages, what + ", whose send is not recorded", receive.begin);
  link(path_part::messages, std::move(what), send->begin);
  over_ = send->begin <= view().step_begin; // it belongs to the step before
  rank_ = receive.peer;
  message_ = send;
}

} // namespace

std::vector<std::uint64_t> steps_of(const std::vector<rank_trace>& ranks) {
  std::set<std::uint64_t> steps;
  for (const rank_trace& r : ranks)
    for (const trace_event& e : r.events)
      if (e.kind == event_kind::span && r.text(e.category) == "step") steps.insert(e.number);
  return {steps.begin(), steps.end()};
}

std::optional<critical_path> critical_path_of(const std::vector<rank_trace>& ranks, std::uint64_t step) {
  return walk(ranks, step).path();
}

std::uint64_t ns_of(const critical_path& path, path_part part) {
  std::uint64_t sum = 0;
  for (const path_link& l : path.links) sum += l.part == part ? l.end - l.begin : 0;
  return sum;
}

std::vector<path_share> shares_of(const critical_path& path) {
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> sums;
  for (const path_link& l : path.links) sums[{l.what, l.rank}] += l.end - l.begin;
  std::vector<path_share> shares;
  for (const auto& [key, ns] : sums) shares.push_back({key.first, key.second, ns});
  std::ranges::stable_sort(shares, std::ranges::greater(), &path_share::ns);
  return shares;
}

} // namespace regatta
