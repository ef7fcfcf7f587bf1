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
  // In ns. Until it has left: its last byte leaves no earlier. Then: when its first byte left; from links::travel() on:
  // when that byte arrives.
  std::uint64_t time = 0;
  const void* address = nullptr;          // of the send's buffer; null for ghosts
  std::unique_ptr<message_bytes> content; // null for ghosts
  std::uint32_t from = 0, to = 0;
  std::uint32_t channel = 0;       // of virtual_network
  std::uint32_t receive = nothing; // rendezvous: the one that it is for
  std::uint32_t next = nothing;
  std::uint16_t lane = 0;
  // Stands for the message of a rank that is not simulated (folding.hpp): it ends a receive, but no send.
  bool copied : 1 = false;
  std::uint8_t converted : 2 = 0; // by the engine to bf16 (1) or fp16 (2), and back by the receiver's; 0: not at all
  std::uint8_t stage = 0; // the next of the links after the latency: of switches, up and down, then the receiver's
};
static_assert(sizeof(network_message) == 64);

// Kinds of events; `what` is the number of the following. A batch here is the messages that pass a stage together
// (links.hpp).
enum network_event : std::uint32_t {
  batch_left,          // a batch whose last byte left its link; void if the batch was interrupted since
  batch_prepared,      // a batch that the sender's processor, which may still work on its bytes, passes to the links
  message_arrives,     // a message whose last byte ends the latency, and reaches the first link that `stage` counts
  batch_passed,        // a batch that passed one of the links that `stage` counts
  batch_received,      // a batch that the receiver's processor is done with
  rank_retries,        // a rank whose collective was refused
  collective_ends,     // a collective
  late_collective_ends // nothing: the first in virtual_network::late_, a rank's delayed end (network_options::staggers)
};

} // namespace regatta
