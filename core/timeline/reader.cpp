// SPDX-License-Identifier: Apache-2.0
#include "files/gzip.hpp"
#include "timeline/perfetto.hpp"
#include "timeline/perfetto_fields.hpp"
#include "timeline/protobuf.hpp"
#include "timeline/track_numbers.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace regatta {
namespace {

namespace p = perfetto;
using protobuf::reader;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30; // before compression

class file_reader {
public:
  std::vector<rank_trace> read(std::string_view packets);

private:
  using texts = std::unordered_map<std::uint64_t, std::string>;
  // The texts of one rank, which rank_trace::strings numbers.
  struct process {
    rank_trace trace;
    std::unordered_map<std::string, std::uint32_t> numbers{{"", 0}};
    std::uint32_t number_of(const std::string& text) {
      const auto [at, is_new] = numbers.try_emplace(text, static_cast<std::uint32_t>(trace.strings.size()));
      if (is_new) trace.strings.push_back(text);
      return at->second;
    }
  };

  void read_packet(std::string_view packet);
  void read_texts(std::string_view data);
  void read_descriptor(std::string_view descriptor);
  void read_event(std::uint64_t time, std::string_view event);
  void annotate(process& of, trace_event& e, std::string_view annotation);
  static const std::string& text_of(const texts& of, std::uint64_t iid);

  std::map<std::uint64_t, process> processes_; // by number
  texts names_, categories_, annotations_;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> open_; // by track: events whose end is still to come
};

[[noreturn]] void refuse(const std::string& why) {
  throw failure(exit_code::usage, fmt::format("expected a trace that `regatta run` wrote: {}", why));
}

const std::string& file_reader::text_of(const texts& of, std::uint64_t iid) {
  const auto found = of.find(iid);
  if (found == of.end()) refuse(fmt::format("it has no text with number {}", iid));
  return found->second;
}

std::vector<rank_trace> file_reader::read(std::string_view packets) {
  for (reader r(packets); r.next();)
    if (r.field() == p::trace::packet) read_packet(r.bytes());
  std::vector<rank_trace> ranks;
  for (auto& [number, of] : processes_) ranks.push_back(std::move(of.trace));
  if (ranks.empty()) refuse("it has no process");
  return ranks;
}

void file_reader::read_packet(std::string_view packet) {
  std::uint64_t time = 0;
  std::string_view event;
  for (reader r(packet); r.next();) {
    if (r.field() == p::trace_packet::timestamp) time = r.value();
    if (r.field() == p::trace_packet::track_event) event = r.bytes();
    if (r.field() == p::trace_packet::interned_data) read_texts(r.bytes());
    if (r.field() == p::trace_packet::track_descriptor) read_descriptor(r.bytes());
  }
  if (!event.empty()) read_event(time, event);
}

void file_reader::read_texts(std::string_view data) {
  for (reader r(data); r.next();) {
    std::uint64_t iid = 0;
    std::string_view name;
    for (reader one(r.bytes()); one.next();)
      if (one.field() == p::interned_data::iid)
        iid = one.value();
      else if (one.field() == p::interned_data::name)
        name = one.bytes();
    texts& to = r.field() == p::interned_data::event_names        ? names_
                : r.field() == p::interned_data::event_categories ? categories_
                                                                  : annotations_;
    to[iid] = name;
  }
}

// Takes rank, role and drops from the description of a process.
void file_reader::read_descriptor(std::string_view descriptor) {
  std::uint64_t uuid = 0;
  std::string_view described;
  for (reader r(descriptor); r.next();) {
    if (r.field() == p::track_descriptor::uuid) uuid = r.value();
    if (r.field() == p::track_descriptor::process) described = r.bytes();
  }
  if (described.empty()) return;
  rank_trace& trace = processes_[process_of(uuid)].trace;
  for (reader r(described); r.next();) {
    if (r.field() == p::process_descriptor::pid) trace.rank = static_cast<std::uint32_t>(r.value() - 1);
    if (r.field() == p::process_descriptor::process_labels)
      trace.dropped = std::strtoull(std::string(r.bytes()).c_str(), nullptr, 10);
    if (r.field() == p::process_descriptor::process_name) {
      const std::size_t colon = r.bytes().find(": ");
      trace.role = colon == std::string_view::npos ? r.bytes() : r.bytes().substr(colon + 2);
    }
  }
}

void file_reader::read_event(std::uint64_t time, std::string_view event) {
  std::uint64_t type = 0, uuid = 0, name = 0, category = 0;
  std::vector<std::string_view> annotations;
  for (reader r(event); r.next();) {
    if (r.field() == p::track_event::type) type = r.value();
    if (r.field() == p::track_event::track_uuid) uuid = r.value();
    if (r.field() == p::track_event::name_iid) name = r.value();
    if (r.field() == p::track_event::category_iids) category = r.value();
    if (r.field() == p::track_event::debug_annotations) annotations.push_back(r.bytes());
  }
  if (type == p::track_event::counter) return;
  const auto found = processes_.find(process_of(uuid));
  if (found == processes_.end()) refuse("an event belongs to no process");
  process& of = found->second;
  std::vector<std::size_t>& open = open_[uuid];
  if (type == p::track_event::slice_end) {
    if (open.empty() || of.trace.events[open.back()].begin > time) refuse("a span ends that has not begun");
    of.trace.events[open.back()].end = time;
    open.pop_back();
    return;
  }
  trace_event e;
  const track_number at = number_of(uuid);
  e.origin = at.origin;
  e.track = at.track;
  e.begin = e.end = time;
  e.name = of.number_of(text_of(names_, name));
  e.category = of.number_of(text_of(categories_, category));
  if (type == p::track_event::instant) e.kind = event_kind::instant;
  for (const std::string_view a : annotations) annotate(of, e, a);
  if (type == p::track_event::slice_begin) open.push_back(of.trace.events.size());
  of.trace.events.push_back(e);
}

// A span with a peer is a message.
void file_reader::annotate(process& of, trace_event& e, std::string_view annotation) {
  std::uint64_t iid = 0, value = 0;
  for (reader r(annotation); r.next();)
    if (r.field() == p::debug_annotation::name_iid)
      iid = r.value();
    else if (r.field() == p::debug_annotation::uint_value)
      value = r.value();
  const std::string& name = text_of(annotations_, iid);
  const bool message = e.origin == event_origin::messages;
  if (message && name == "peer") {
    e.peer = static_cast<std::uint32_t>(value);
    e.kind = of.trace.text(e.name).starts_with("send") ? event_kind::send : event_kind::receive;
    e.track = 0;
  } else if (message && name == "lane") {
    e.lane = static_cast<std::uint32_t>(value);
  } else if (message && name == "sequence") {
    e.sequence = value;
  } else if (message && name == "bucket") {
    e.bucket = static_cast<std::uint32_t>(value);
  } else {
    e.number_name = of.number_of(name);
    e.number = value;
  }
}

} // namespace

std::vector<rank_trace> read_perfetto_file(std::string_view file) {
  return read_perfetto_packets(gunzip(file, most_bytes));
}

std::vector<rank_trace> read_perfetto_packets(std::string_view packets) {
  return file_reader().read(packets);
}

} // namespace regatta
