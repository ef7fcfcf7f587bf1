// SPDX-License-Identifier: Apache-2.0
//
// A trace as a reader sees it that protoc generates: independent of core/timeline.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace regatta::test {

struct decoded_trace {
  struct process {
    int pid;
    std::string name;
    std::vector<std::string> labels;
  };
  struct track {
    std::string name;
    std::uint64_t process; // its uuid
    bool counter;
  };
  // A span or, with end = begin, an instant.
  struct span {
    std::uint64_t track;
    std::string name, category;
    std::uint64_t begin, end;
    std::size_t depth; // spans of the track that contain it
    bool instant;
    std::map<std::string, std::uint64_t> numbers; // debug annotations
    std::vector<std::uint64_t> begins, ends;      // flows that lead from it, and to its end
  };
  struct sample {
    std::uint64_t track, time;
    double value;
  };
  std::map<std::uint64_t, process> processes; // by uuid
  std::map<std::uint64_t, track> tracks;      // by uuid
  std::vector<span> spans;                    // by their begins in the file
  std::vector<sample> samples;                // of counters

  const process& process_of(const span& s) const { return processes.at(tracks.at(s.track).process); }
};

// Decodes a compressed file. Throws std::runtime_error if it is invalid: no gzip or no protobuf, unknown fields, a
// packet without sequence, a text or a track that is not declared before, times of a track that descend, or a span
// without begin or end.
decoded_trace decode_trace(const std::string& file);

} // namespace regatta::test
