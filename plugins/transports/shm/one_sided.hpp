// SPDX-License-Identifier: Apache-2.0
//
// Puts into, and gets from, regions that ranks have exposed (regatta.one_sided/1).
//
// A rank that exposes a region writes its place in its heap to its control memory, where all peers can read it. The key
// names that entry. A put or get looks the entry up, checks the range, and copies in the caller's progress(), directly
// between the caller's bytes and the peer's heap. After a put's last byte, the caller publishes its notification as a
// record on the ring of notifications, which the peer's poll() reads. The release and acquire of the record's `ready`
// word make the bytes visible before the notification.
#pragma once

#include "peer.hpp"

#include <regatta/ext/one_sided.h>

namespace shm {

// The bytes of a key.
struct region_key {
  std::uint64_t id;         // exposure::id
  std::uint32_t rank, slot; // of the owner; the entry in its control memory
};

// [main] Lets peers put into and get from `bytes` bytes at `offset` of this rank's heap. Throws RG_E_OPERATION if
// most_exposed regions are exposed already.
region_key expose(instance_state& home, std::uint64_t offset, std::uint64_t bytes);
// [main] [loop] Ends what expose() began: later puts and gets with the key fail. Requires that peers have none under
// way.
void withdraw(instance_state& home, const region_key& key) noexcept;

// Puts and gets between this rank and one peer, in the order in which they were begun.
class one_sided {
public:
  // [main] Both must outlive this object. Make one for each peer.
  one_sided(instance_state& home, peer& other);

  // [loop] Queues a put (`writes`) or a get for progress(). Throws RG_E_OPERATION if the key is unknown, the range
  // leaves the region or local bytes are missing; RG_E_PEER if the peer is lost or has exposed memory outside its heap;
  // RG_E_CANCELLED after peer::cancel().
  void begin(const rg_one_sided_transfer& t, bool writes);
  // [loop] Makes progress, up to about one unit of work, and queues completions and the notifications of the peer's
  // puts. If the peer is lost, ends all operations with RG_E_PEER, or RG_E_CANCELLED after peer::cancel(). Returns
  // false if nothing could be done.
  bool progress();

private:
  struct operation {
    std::byte *local, *remote;
    std::uint64_t bytes, moved, notification, cookie; // notification: 0: none
    bool writes;
  };

  // Returns the address of the transfer's remote bytes in this process. Throws as begin().
  std::byte* find(const rg_one_sided_transfer& t);
  // Queues completions for the notifications of the peer's puts that have arrived. Returns whether there was any.
  bool take_notifications();
  // Copies the next bytes of a put or get, at most unit_bytes.
  void move(operation& op);
  // Publishes the notification of a put whose bytes have been copied. Returns false if the ring has no room now; the
  // peer then wakes this rank once it has.
  bool notify(const operation& op);
  // Completes the first of operations_.
  void end(rg_status status);

  instance_state& home_;
  peer& other_;
  ring_producer out_; // notifications for the peer
  ring_consumer in_;  // notifications from it
  fifo<operation> operations_;
};

} // namespace shm
