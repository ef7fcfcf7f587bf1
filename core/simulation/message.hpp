// SPDX-License-Identifier: Apache-2.0
//
// A message in a virtual network, and what the stages on its way share.
#pragma once

#include "event_queue.hpp"
#include "slab.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace regatta {

using message_bytes = std::vector<std::uint8_t>;

struct alignas(64) network_message { // one cache line: there may be millions
  std::uint64_t cookie = 0;          // of the send
  std::uint64_t bytes = 0;
  // Until it has left: its last byte leaves no earlier. Then: when its first byte left, or came.
  std::uint64_t time = 0;
  const void* address = nullptr;          // of the send's buffer; null for ghosts
  std::unique_ptr<message_bytes> content; // null for ghosts
  std::uint32_t from = 0, to = 0;
  std::uint32_t channel = 0;       // of virtual_network
  std::uint32_t receive = nothing; // rendezvous: the one that it is for
  std::uint32_t next = nothing;
  std::uint16_t lane = 0;
  bool copied = false;    // sent on behalf of a rank that is not simulated: its end completes no send
  std::uint8_t stage = 0; // of links that it passes where it has arrived
};
static_assert(sizeof(network_message) == 64);

// Kinds of events; `what` is the number of:
enum network_event : std::uint32_t {
  batch_left,      // a batch whose last byte left its link; void if the batch was interrupted since
  batch_prepared,  // a batch that a processor passes to the links
  message_arrives, // a message whose last byte reaches the receiver's link
  batch_passed,    // a batch that passed the receiver's link
  batch_received,  // a batch that the receiver's processor is done with
  rank_retries,    // a rank whose collective was refused
  collective_ends, // a collective
  late_collective_ends
};

} // namespace regatta
