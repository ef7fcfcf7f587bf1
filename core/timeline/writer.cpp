// SPDX-License-Identifier: Apache-2.0
#include "files/gzip.hpp"
#include "timeline/messages.hpp"
#include "timeline/perfetto.hpp"
#include "timeline/perfetto_fields.hpp"
#include "timeline/protobuf.hpp"
#include "timeline/track_numbers.hpp"
#include "timeline/tracks.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace regatta {
namespace {

namespace p = perfetto;
using protobuf::message;

constexpr std::uint64_t sequence_id = 1; // all packets are of one sequence, which shares interned texts

// Numbers texts from 1 on.
class interned {
public:
  std::uint64_t operator()(const std::string& text) {
    return numbers_.try_emplace(text, numbers_.size() + 1).first->second;
  }
  void write(message& to, p::field field) const {
    message one;
    for (const auto& [text, number] : numbers_) {
      one.clear();
      one.varint(p::interned_data::iid, number);
      one.bytes(p::interned_data::name, text);
      to.add(field, one);
    }
  }

private:
  std::unordered_map<std::string, std::uint64_t> numbers_;
};

// A packet with a TrackEvent: the begin or the end of a span, an instant, or the value of a counter.
struct packet {
  std::uint64_t time = 0, track = 0, type = 0;
  const rank_trace* rank = nullptr;
  const trace_event* event = nullptr; // null: a counter
  std::uint64_t name = 0;             // interned
  double value = 0;                   // of a counter
};

class file {
public:
  explicit file(const std::vector<rank_trace>& ranks) : ranks_(ranks) {}
  std::string text();

private:
  void find_flows();
  void add_rank(const rank_trace& r, std::uint64_t number);
  void add_track(const rank_trace& r, const trace_track& t, std::uint64_t uuid);
  void add_counters(const rank_trace& r, std::uint64_t process);
  void describe_process(const rank_trace& r, std::uint64_t uuid);
  void describe_track(std::uint64_t uuid, std::uint64_t process, const std::string& name, const char* unit = nullptr);
  void write_descriptor(const message& descriptor);
  void write_texts();
  void write(const packet& of);
  void write_annotations(message& event, const packet& of);
  void annotate(message& event, const std::string& name, std::uint64_t value);
  void emit(const message& packet);

  const std::vector<rank_trace>& ranks_;
  gzip_writer out_;
  interned names_, categories_, annotations_;
  std::vector<packet> packets_;
  std::unordered_map<const trace_event*, std::uint64_t> flows_; // of sends and receives whose other side is known
  std::uint64_t order_ = 0;                                     // of the last track
  message packet_, event_, annotation_;                         // their memory is reused
};

void file::find_flows() {
  const auto sends = sends_of(ranks_);
  std::uint64_t last = 0;
  for (const rank_trace& r : ranks_)
    for (const trace_event& e : r.events)
      if (e.kind == event_kind::receive)
        if (const auto sent = sends.find(id_of(r.rank, e)); sent != sends.end())
          flows_[sent->second] = flows_[&e] = ++last;
}

std::string file::text() {
  find_flows();
  std::uint64_t number = 0;
  for (const rank_trace& r : ranks_) add_rank(r, ++number);
  // Events of one time keep the order of their track.
  std::ranges::stable_sort(packets_, {}, &packet::time);
  for (const packet& of : packets_)
    if (of.event) categories_(of.rank->text(of.event->category));
  for (const packet& of : packets_)
    if (of.event && of.event->number_name) annotations_(of.rank->text(of.event->number_name));
  for (const char* name : {"peer", "lane", "sequence", "bucket", "bytes"}) annotations_(name);
  write_texts();
  for (const packet& of : packets_) write(of);
  return out_.finish();
}

void file::add_rank(const rank_trace& r, std::uint64_t number) {
  const std::uint64_t process = track_uuid(number, {});
  describe_process(r, process);
  std::map<std::pair<event_origin, std::uint32_t>, std::uint64_t> rows; // so far, of tracks with the same number
  for (const trace_track& t : tracks_of(r)) {
    // Lanes of two peers share their number, so rows are counted.
    const std::uint64_t row = ++rows[{t.origin, t.number}];
    const std::uint64_t uuid = track_uuid(number, {t.origin, t.number, row});
    describe_track(uuid, process, t.name);
    add_track(r, t, uuid);
  }
  add_counters(r, number);
}

// A track's events nest: a span ends before the next event that it does not contain.
void file::add_track(const rank_trace& r, const trace_track& t, std::uint64_t uuid) {
  std::vector<packet> open;
  const auto close = [&] {
    packet end = open.back();
    end.time = end.event->end;
    end.type = p::track_event::slice_end;
    packets_.push_back(end);
    open.pop_back();
  };
  for (const trace_event* e : t.events) {
    while (!open.empty() && open.back().event->end <= e->begin && open.back().event->begin < e->begin) close();
    packet begin{e->begin, uuid, p::track_event::slice_begin, &r, e, names_(display_name(r, *e))};
    if (e->kind == event_kind::instant) begin.type = p::track_event::instant;
    packets_.push_back(begin);
    if (e->kind != event_kind::instant) open.push_back(begin);
  }
  while (!open.empty()) close();
}

void file::add_counters(const rank_trace& r, std::uint64_t number) {
  const auto count = [&](std::uint64_t uuid, std::uint64_t time, double value) {
    packet of{time, uuid, p::track_event::counter};
    of.value = value;
    packets_.push_back(of);
  };
  std::vector<std::pair<std::uint64_t, std::int64_t>> changes; // of bytes in flight
  std::vector<std::pair<std::uint64_t, std::uint64_t>> cpu;
  for (const trace_event& e : r.events) {
    if (e.kind == event_kind::counter && r.text(e.name) == "CPU time") cpu.emplace_back(e.begin, e.number);
    if (e.kind != event_kind::send || e.peer == r.rank) continue;
    changes.emplace_back(e.begin, static_cast<std::int64_t>(e.number));
    changes.emplace_back(e.end, -static_cast<std::int64_t>(e.number));
  }
  const std::uint64_t process = track_uuid(number, {});
  if (!changes.empty()) {
    const std::uint64_t uuid = counter_uuid(number, 1);
    describe_track(uuid, process, "bytes in flight", "bytes");
    std::ranges::stable_sort(changes, {}, &std::pair<std::uint64_t, std::int64_t>::first);
    std::int64_t now = 0;
    for (const auto& [time, change] : changes) count(uuid, time, static_cast<double>(now += change));
  }
  std::ranges::sort(cpu);
  if (cpu.size() > 1) {
    const std::uint64_t uuid = counter_uuid(number, 2);
    describe_track(uuid, process, "cores busy", "cores");
    for (std::size_t k = 0; k + 1 < cpu.size(); ++k)
      if (const std::uint64_t time = cpu[k + 1].first - cpu[k].first)
        count(uuid, cpu[k].first, static_cast<double>(cpu[k + 1].second - cpu[k].second) / static_cast<double>(time));
    count(uuid, cpu.back().first, 0);
  }
}

void file::describe_process(const rank_trace& r, std::uint64_t uuid) {
  message process, descriptor;
  process.varint(p::process_descriptor::pid, r.rank + 1); // 0 is the idle process of a kernel
  process.bytes(p::process_descriptor::process_name, fmt::format("rank {}: {}", r.rank, r.role));
  if (r.dropped) process.bytes(p::process_descriptor::process_labels, fmt::format("{} events dropped", r.dropped));
  descriptor.varint(p::track_descriptor::uuid, uuid);
  descriptor.add(p::track_descriptor::process, process);
  descriptor.varint(p::track_descriptor::child_ordering, p::track_descriptor::explicit_order);
  write_descriptor(descriptor);
}

void file::describe_track(std::uint64_t uuid, std::uint64_t process, const std::string& name, const char* unit) {
  message descriptor;
  descriptor.varint(p::track_descriptor::uuid, uuid);
  descriptor.bytes(p::track_descriptor::name, name);
  descriptor.varint(p::track_descriptor::parent_uuid, process);
  descriptor.varint(p::track_descriptor::sibling_order_rank, ++order_);
  if (unit) {
    message counter;
    counter.bytes(p::counter_descriptor::unit_name, unit);
    descriptor.add(p::track_descriptor::counter, counter);
  }
  write_descriptor(descriptor);
}

void file::write_descriptor(const message& descriptor) {
  packet_.clear();
  packet_.add(p::trace_packet::track_descriptor, descriptor);
  emit(packet_);
}

void file::write_texts() {
  message texts;
  categories_.write(texts, p::interned_data::event_categories);
  names_.write(texts, p::interned_data::event_names);
  annotations_.write(texts, p::interned_data::debug_annotation_names);
  packet_.clear();
  packet_.varint(p::trace_packet::sequence_flags, p::trace_packet::incremental_state_cleared);
  packet_.add(p::trace_packet::interned_data, texts);
  emit(packet_);
}

void file::write(const packet& of) {
  event_.clear();
  event_.varint(p::track_event::type, of.type);
  event_.varint(p::track_event::track_uuid, of.track);
  if (of.type == p::track_event::counter) {
    event_.real(p::track_event::double_counter_value, of.value);
  } else {
    const bool begins = of.type != p::track_event::slice_end, receives = of.event->kind == event_kind::receive;
    if (begins) {
      event_.varint(p::track_event::name_iid, of.name);
      event_.varint(p::track_event::category_iids, categories_(of.rank->text(of.event->category)));
      write_annotations(event_, of);
    }
    // An arrow begins where the send begins, and ends where the receive ends: a receive often begins before its send.
    if (const auto flow = flows_.find(of.event); flow != flows_.end() && begins != receives)
      event_.fixed64(receives ? p::track_event::terminating_flow_ids : p::track_event::flow_ids, flow->second);
  }
  packet_.clear();
  packet_.varint(p::trace_packet::timestamp, of.time);
  packet_.varint(p::trace_packet::sequence_flags, p::trace_packet::needs_incremental_state);
  packet_.add(p::trace_packet::track_event, event_);
  emit(packet_);
}

void file::write_annotations(message& event, const packet& of) {
  const trace_event& e = *of.event;
  if (e.number_name) annotate(event, of.rank->text(e.number_name), e.number);
  if (e.kind != event_kind::send && e.kind != event_kind::receive) return;
  annotate(event, "peer", e.peer);
  annotate(event, "lane", e.lane);
  annotate(event, "sequence", e.sequence);
  if (e.bucket != no_bucket) annotate(event, "bucket", e.bucket);
}

void file::annotate(message& event, const std::string& name, std::uint64_t value) {
  annotation_.clear();
  annotation_.varint(p::debug_annotation::name_iid, annotations_(name));
  annotation_.varint(p::debug_annotation::uint_value, value);
  event.add(p::track_event::debug_annotations, annotation_);
}

// Adds the sequence, and appends the packet to the file.
void file::emit(const message& one) {
  message with_sequence = one, whole;
  with_sequence.varint(p::trace_packet::trusted_packet_sequence_id, sequence_id);
  whole.add(p::trace::packet, with_sequence);
  out_.add(whole.data());
}

} // namespace

std::string perfetto_file(const std::vector<rank_trace>& ranks) {
  return file(ranks).text();
}

} // namespace regatta
