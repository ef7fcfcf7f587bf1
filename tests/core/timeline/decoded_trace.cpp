// SPDX-License-Identifier: Apache-2.0
#include "decoded_trace.hpp"

#include <stdexcept>
#include <utility>

#include <zlib.h>

#include "perfetto.pb.h"

namespace regatta::test {
namespace {

namespace pb = perfetto::protos;

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("trace: expected ") + what);
}

std::string unzip(const std::string& file) {
  std::string out(std::size_t{1} << 26, '\0');
  z_stream z{};
  require(inflateInit2(&z, 16 + MAX_WBITS) == Z_OK, "zlib");
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  z.avail_in = static_cast<uInt>(file.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&z, Z_FINISH);
  out.resize(z.total_out);
  inflateEnd(&z);
  require(status == Z_STREAM_END && z.avail_in == 0, "one whole gzip stream");
  return out;
}

struct decoder {
  decoded_trace out;
  std::map<std::uint64_t, std::string> names, categories, annotations;
  std::map<std::uint64_t, std::vector<std::size_t>> open; // by track: indices of spans
  std::map<std::uint64_t, std::uint64_t> last;            // by track: time
  bool has_state = false;

  void take(const pb::TracePacket& p) {
    require(p.unknown_fields().empty() && p.trusted_packet_sequence_id() != 0, "known fields and a sequence");
    has_state |= (p.sequence_flags() & pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED) != 0;
    for (const auto& t : p.interned_data().event_names()) names[t.iid()] = t.name();
    for (const auto& t : p.interned_data().event_categories()) categories[t.iid()] = t.name();
    for (const auto& t : p.interned_data().debug_annotation_names()) annotations[t.iid()] = t.name();
    if (p.has_track_descriptor()) describe(p.track_descriptor());
    if (!p.has_track_event()) return;
    require(has_state && (p.sequence_flags() & pb::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE) != 0, "a state first");
    require(p.has_timestamp(), "a time");
    add(p.timestamp(), p.track_event());
  }

  void describe(const pb::TrackDescriptor& d) {
    require(d.unknown_fields().empty() && d.uuid() != 0, "known fields and a uuid");
    require(!out.processes.count(d.uuid()) && !out.tracks.count(d.uuid()), "each uuid once");
    if (d.has_process()) {
      require(d.process().pid() > 0, "a pid");
      const auto& labels = d.process().process_labels();
      out.processes[d.uuid()] = {d.process().pid(), d.process().process_name(), {labels.begin(), labels.end()}};
    } else {
      require(out.processes.count(d.parent_uuid()) == 1, "the process before its tracks");
      out.tracks[d.uuid()] = {d.name(), d.parent_uuid(), d.has_counter()};
    }
  }

  void add(std::uint64_t time, const pb::TrackEvent& e) {
    require(e.unknown_fields().empty() && out.tracks.count(e.track_uuid()) == 1, "known fields and a known track");
    auto& before = last[e.track_uuid()];
    require(before <= time, "ascending times on a track");
    before = time;
    auto& stack = open[e.track_uuid()];
    if (e.type() == pb::TrackEvent::TYPE_COUNTER) {
      require(out.tracks.at(e.track_uuid()).counter, "a track of a counter");
      out.samples.push_back({e.track_uuid(), time, e.double_counter_value()});
    } else if (e.type() == pb::TrackEvent::TYPE_SLICE_END) {
      require(!stack.empty(), "a begin before each end");
      auto& s = out.spans[stack.back()];
      s.end = time;
      s.ends.insert(s.ends.end(), e.terminating_flow_ids().begin(), e.terminating_flow_ids().end());
      stack.pop_back();
    } else {
      const bool instant = e.type() == pb::TrackEvent::TYPE_INSTANT;
      require(instant || e.type() == pb::TrackEvent::TYPE_SLICE_BEGIN, "a known type");
      require(e.category_iids_size() == 1, "one category");
      decoded_trace::span s{e.track_uuid(),
                            names.at(e.name_iid()),
                            categories.at(e.category_iids(0)),
                            time,
                            time,
                            stack.size(),
                            instant,
                            {},
                            {},
                            {}};
      for (const auto& a : e.debug_annotations()) s.numbers[annotations.at(a.name_iid())] = a.uint_value();
      s.begins.assign(e.flow_ids().begin(), e.flow_ids().end());
      if (!instant) stack.push_back(out.spans.size());
      out.spans.push_back(std::move(s));
    }
  }
};

} // namespace

decoded_trace decode_trace(const std::string& file) {
  pb::Trace trace;
  require(trace.ParseFromString(unzip(file)) && trace.unknown_fields().empty(), "a protobuf message");
  decoder d;
  for (const pb::TracePacket& p : trace.packet()) d.take(p);
  for (const auto& [track, spans] : d.open) require(spans.empty(), "an end of each span");
  return std::move(d.out);
}

} // namespace regatta::test
