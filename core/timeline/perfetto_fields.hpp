// SPDX-License-Identifier: Apache-2.0
//
// Numbers of the fields that traces use, from protos/perfetto/trace of Perfetto (github.com/google/perfetto).
// tests/core/timeline/perfetto.proto has the same subset as a schema.
#pragma once

#include <cstdint>

namespace regatta::perfetto {

using field = std::uint32_t;

namespace trace {
inline constexpr field packet = 1;
} // namespace trace
namespace trace_packet {
inline constexpr field timestamp = 8, trusted_packet_sequence_id = 10, track_event = 11, interned_data = 12,
                       sequence_flags = 13, track_descriptor = 60;
inline constexpr std::uint64_t incremental_state_cleared = 1, needs_incremental_state = 2; // sequence_flags
} // namespace trace_packet
namespace interned_data {
inline constexpr field event_categories = 1, event_names = 2, debug_annotation_names = 3;
inline constexpr field iid = 1, name = 2; // of each of them
} // namespace interned_data
namespace track_event {
inline constexpr field category_iids = 3, debug_annotations = 4, type = 9, name_iid = 10, track_uuid = 11,
                       counter_value = 30, double_counter_value = 44, flow_ids = 47, terminating_flow_ids = 48;
inline constexpr std::uint64_t slice_begin = 1, slice_end = 2, instant = 3, counter = 4; // type
} // namespace track_event
namespace debug_annotation {
inline constexpr field name_iid = 1, uint_value = 3;
}
namespace track_descriptor {
inline constexpr field uuid = 1, name = 2, process = 3, parent_uuid = 5, counter = 8, child_ordering = 11,
                       sibling_order_rank = 12;
inline constexpr std::uint64_t explicit_order = 3; // child_ordering
} // namespace track_descriptor
namespace process_descriptor {
inline constexpr field pid = 1, process_name = 6, process_labels = 8;
}
namespace counter_descriptor {
inline constexpr field unit = 3, unit_name = 6;
inline constexpr std::uint64_t size_bytes = 3; // unit
} // namespace counter_descriptor

} // namespace regatta::perfetto
