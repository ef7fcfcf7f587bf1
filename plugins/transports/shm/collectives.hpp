// SPDX-License-Identifier: Apache-2.0
//
// All-reduce of a group of ranks that reach each other's heaps.
//
// The state of a group lies in the heap of its lowest rank. The operations of a group are numbered; number n uses slot
// n % slots. In a slot every member has a post: it writes there where its buffer is (or, up to `small` bytes, what is
// in it) and then sets `arrived` to n + 1. Once all have arrived:
//
//   small   every member adds up all posts by itself, in order of rank, into its own buffer.
//   large   the buffer is cut into a slice for each member and those into portions. Who claims a portion reads it
//           from all buffers, adds it up in order of rank, and writes the sum back to all buffers: so each byte of each
//           buffer is read once and written once, by anybody, which is the least there can be. A member begins with its
//           own slice (which keeps to its caches) and goes on with what others have not claimed: who is descheduled
//           holds up no more than the portion it is at. When the portions done are all portions, all buffers are final.
//
// The sum is the same whoever forms it. Why the rest is safe:
//  - A slot is used again only when all members have left the operation before (`left`), so a post does not change
//    under a reader.
//  - The counters of a slot carry the number of the operation they count for; a stale one counts as zero, so nobody
//    has to reset them.
//  - Whoever touches the others' buffers sets `working` first and then looks at `broken`. Who ends a group (a member is
//    lost or cancelled) sets `broken` and waits until no live member is `working`: from then on nobody touches its
//    buffers (Dekker, as in wake.hpp). A group that is broken stays so.
//  - The last to arrive, and who finishes the last portion, wake those who sleep.
#pragma once

#include "peer.hpp"

#include <span>

namespace shm {

class group {
public:
  // [main] `members` ascending, with this rank among them, all connected. The lowest one makes the state and tells the
  // others where it lies, who wait for that until `timeout_ns` have passed. It is never freed but with the heap: a
  // member that is slow may still look at it when the others have gone.
  group(station& home, std::span<const std::uint32_t> members, std::uint64_t timeout_ns);

  // [loop] Throws once the group has ended; else taken always.
  void all_reduce(float* address, std::uint64_t count, std::uint64_t cookie);
  // [loop] Does what can be done, up to about a portion. False: there was nothing.
  bool progress();
  // [loop] Ends all operations with `status`, once nobody is in this rank's buffers.
  void end(rg_status status);
  bool has(std::uint32_t rank) const noexcept;
  bool is_ended() const noexcept { return verdict_ != RG_OK; }

private:
  struct operation {
    float* address;
    std::uint64_t count, cookie, number;
    float* shared;         // what the members reach: address, or scratch in the heap
    std::uint64_t staged;  // elements copied into the scratch
    std::uint64_t fetched; // elements copied out of it
    bool have_all_arrived, is_sound, is_exhausted, is_reduced;

    bool is_small() const noexcept { return count * sizeof(float) <= small; }
  };
  struct header;
  struct member_line;
  struct counter;
  struct post;
  static constexpr std::uint64_t slots = 8;
  static constexpr std::uint64_t small = 1024; // bytes

  std::uint64_t state_bytes() const noexcept;
  void publish_state();
  void find_state(std::uint64_t timeout_ns);

  header& head() const noexcept;
  member_line& line(std::size_t member) const noexcept;
  counter& done(std::uint64_t number) const noexcept;
  counter& claimed(std::uint64_t number, std::size_t slice) const noexcept;
  post& post_of(std::uint64_t number, std::size_t member) const noexcept;

  bool stage(operation& op);
  bool try_post(operation& op);
  bool all_arrived(operation& op);
  void reduce_small(operation& op);
  bool reduce_portion(operation& op);
  bool claim_and_reduce(operation& op);
  void reduce(const operation& op, std::uint64_t first, std::uint64_t count) noexcept;
  bool is_done(const operation& op) const noexcept;
  bool finish_first();
  void retire_first(rg_status status);
  const peer* lost_member() const noexcept;
  bool is_quiet() const noexcept;
  void wake_others() noexcept;

  station& home_;
  std::vector<std::uint32_t> members_;
  std::size_t self_ = 0; // our place among them
  std::vector<const mapping*> memories_;
  std::byte* state_ = nullptr;
  fifo<operation> operations_;
  std::size_t posted_ = 0; // of operations_, the first ones
  std::uint64_t next_number_ = 0;
  std::uint64_t all_left_ = 0;      // operations that all members have left, as last seen
  std::vector<const float*> terms_; // scratch of reduce
  std::vector<float*> targets_;
  rg_status verdict_ = RG_OK; // how all operations end, once the group has
};

} // namespace shm
