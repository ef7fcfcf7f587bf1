// SPDX-License-Identifier: Apache-2.0
//
// All-reduce, reduce-scatter, all-gather and broadcast of a group of ranks that reach each other's heaps.
//
// The state of a group lies in the heap of its lowest rank. The operations of a group are numbered; number n uses slot
// n % slots. In a slot every member has a post: it writes there where its buffer is (or, up to `small` bytes, what is
// in it) and then sets `arrived` to n + 1. Once all have arrived:
//
//   small   every member takes what it is to get out of the posts by itself: sums in order of rank.
//   large   the buffer is cut into a share for each member and those into portions. Who claims a portion does with it
//           what is to be done:
//             all-reduce      reads it from all buffers, adds it up in order of rank, writes the sum to all buffers
//             reduce-scatter  likewise, but writes it only to the buffer of the member whose share it is
//             all-gather      reads it from that member's buffer, writes it to all others
//             broadcast       reads it from the root's buffer, writes it to all others
//           So every byte that counts is read once and written once, by anybody, which is the least there can be. A
//           member begins with its own share (which keeps to its caches) and goes on with what others have not claimed:
//           who is descheduled holds up no more than the portion it is at. When the portions done are all portions, all
//           buffers are final.
//
// The result is the same whoever forms it. Why the rest is safe:
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

enum class collective : std::uint64_t { all_reduce, reduce_scatter, all_gather, broadcast };

// What a member asks for.
struct request {
  collective what;
  std::byte* address;
  std::uint64_t count, element; // of the buffer: elements, and bytes of one
  std::uint64_t root;           // broadcast: its place among the members
  std::uint64_t cookie;

  std::uint64_t bytes() const noexcept { return count * element; }
};

class group {
public:
  // [main] `members` ascending, with this rank among them, all connected. The lowest one makes the state and tells the
  // others where it lies, who wait for that until `timeout_ns` have passed. It is never freed but with the heap: a
  // member that is slow may still look at it when the others have gone.
  group(station& home, std::span<const std::uint32_t> members, std::uint64_t timeout_ns);

  // [loop] Throws once the group has ended; else taken always. Sums are of floats.
  void begin(const request& r);
  // [loop] Does what can be done, up to about a portion. False: there was nothing.
  bool progress();
  // [loop] Ends all operations with `status`, once nobody is in this rank's buffers.
  void end(rg_status status);
  bool has(std::uint32_t rank) const noexcept;
  bool is_ended() const noexcept { return verdict_ != RG_OK; }

private:
  // Bytes of a buffer.
  struct range {
    std::uint64_t at, end;
    std::uint64_t size() const noexcept { return end - at; }
  };
  struct operation : request {
    std::uint64_t number;
    std::byte* shared;         // what the members reach: address, or scratch in the heap
    range unstaged, unfetched; // what is yet to be copied into the scratch, and out of it
    bool have_all_arrived, is_sound, is_exhausted, is_worked;

    bool is_small() const noexcept { return bytes() <= small; }
    bool sums() const noexcept { return what == collective::all_reduce || what == collective::reduce_scatter; }
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
  std::uint64_t& offset_of(std::uint64_t number, std::size_t member) noexcept; // as checked by all_arrived()

  range share(const operation& op, std::uint64_t member) const noexcept;
  range given(const operation& op, std::uint64_t member) const noexcept;
  range taken(const operation& op) const noexcept;
  std::uint64_t crossed(const operation& op) const noexcept;

  bool stage(operation& op);
  bool try_post(operation& op);
  bool all_arrived(operation& op);
  void work_small(operation& op);
  bool work_portion(operation& op);
  bool claim_and_work(operation& op);
  void work(const operation& op, std::size_t slice, std::uint64_t at, std::uint64_t bytes) noexcept;
  void copy_to_others(std::size_t from, std::uint64_t bytes) noexcept;
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
  std::vector<std::byte*> places_;  // scratch of work(): a portion in every member's buffer
  std::vector<const float*> terms_; // likewise, and of work_small()
  std::vector<float*> targets_;
  std::vector<std::uint64_t>
      offsets_;               // of members' buffers, by slot: what was checked, which posts need not be any more
  rg_status verdict_ = RG_OK; // how all operations end, once the group has
};

} // namespace shm
