// SPDX-License-Identifier: Apache-2.0
//
// The posted receives of one rank by the bytes that they write: messages are copied to their targets in the order in
// which overlapping receives were posted, however they arrive.
#pragma once

#include "message.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// One receive with bytes: its memory::content, shared with the `over` of later receives into the same bytes, which need
// it after it has ended.
struct received_bytes {
  std::uint64_t offset;
  bool adds;
  std::uint32_t peer, lane;
  message_bytes content;
};

struct receive {
  std::uint64_t cookie = 0;
  std::uint64_t offset = 0, bytes = 0; // of the buffer
  std::uint64_t number = 0;            // in posting order
  std::uint64_t arrived_bytes = 0;
  std::uint32_t rank = 0, region = 0;
  // Number of overlapping targets (posted_receives) with earlier receives, of each of which the last must end first.
  std::uint32_t waits_for = 0;
  std::uint32_t successor = nothing; // the next receive into exactly the same bytes
  std::uint32_t others = nothing;    // list of later receives into some of the same bytes, in posted_receives
  std::uint32_t next = nothing;      // of the channel
  std::uint32_t target = 0;          // where its target was in posted_receives when it was posted
  bool adds = false, arrived = false;
  bool engine_adds = false; // to the bytes' destination, once it has ended
  struct memory {
    void* address;
    std::shared_ptr<received_bytes> content;
    std::vector<std::shared_ptr<received_bytes>> over; // earlier receives into some of the same bytes
  };
  std::unique_ptr<memory> bytes_in; // null for ghosts
};

class posted_receives {
public:
  // Adds a receive, sets its `waits_for`, and for one with bytes that does not add, `over`.
  void add(slab<receive>& all, std::uint32_t r);
  // Removes a receive that has ended; appends to `free` those that now wait for no other one. Requires that its
  // waits_for is 0.
  void remove(slab<receive>& all, std::uint32_t r, std::vector<std::uint32_t>& free);

private:
  struct target { // outstanding receives into the same bytes, in posting order, linked by `successor`
    std::uint32_t region;
    std::uint64_t offset, bytes;
    std::uint32_t head, tail; // nothing: no receive is outstanding; kept until the next clean-up
  };
  struct other { // an element of receive::others
    std::uint32_t receive = nothing, next = nothing;
  };
  std::size_t find(const receive& x) const; // its target

  std::vector<target> targets_; // ascending by (region, offset, bytes)
  std::size_t unused_ = 0;      // without receives
  std::uint64_t longest_ = 0;   // bytes, of all targets so far
  slab<other> others_;
};

} // namespace regatta
