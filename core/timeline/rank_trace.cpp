// SPDX-License-Identifier: Apache-2.0
#include "timeline/rank_trace.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {

rank_trace rank_trace_from(const nlohmann::json& j) {
  rank_trace t;
  try {
    j.at("rank").get_to(t.rank);
    j.at("role").get_to(t.role);
    j.at("clock").get_to(t.clock);
    j.at("dropped").get_to(t.dropped);
    j.at("strings").get_to(t.strings);
    const auto& bytes = j.at("events").get_binary();
    t.events.resize(bytes.size() / sizeof(trace_event));
    if (!bytes.empty()) std::memcpy(t.events.data(), bytes.data(), t.events.size() * sizeof(trace_event));
  } catch (const nlohmann::json::exception& e) {
    throw failure(exit_code::run, fmt::format("a rank's trace cannot be read: {}", e.what()));
  }
  for (const trace_event& e : t.events)
    if (std::max({e.name, e.category, e.number_name}) >= t.strings.size() || e.begin > e.end ||
        static_cast<std::uint8_t>(e.origin) >= origins)
      throw failure(exit_code::run, fmt::format("the trace of rank {} has an event of another format: is every process "
                                                "of this run the same regatta?",
                                                t.rank));
  return t;
}

} // namespace regatta
