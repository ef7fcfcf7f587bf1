// SPDX-License-Identifier: Apache-2.0
//
// All-reduce, reduce-scatter, all-gather and broadcast in a group of ranks that map each other's heaps.
//
// The state of a group lies in the heap of its lowest rank. The operations of a group are numbered; number n uses slot
// n % slots. In a slot every member has a post, in which it writes the offset of its buffer (or, up to `small` bytes,
// its contents) and then sets `arrived` to n + 1. Once all members have arrived:
//
//   small   every member computes its own result from the posts: sums in order of rank.
//   large   the buffer is cut into one chunk per member, and chunks into units of work of `unit_bytes` bytes. Members
//           claim units. For a claimed unit, a member
//             all-reduce      reads it from all buffers, sums in order of rank, and writes the sum to all buffers
//             reduce-scatter  does the same, but writes the sum only to the buffer of the member that owns the chunk
//             all-gather      reads it from that member's buffer, and writes it to all other buffers
//             broadcast       reads it from the root's buffer, and writes it to all other buffers
//           So every byte is read once and written once, which is the minimum. A member starts with its own chunk,
//           which keeps to its caches, and continues with units that others have not claimed: a member that is
//           descheduled delays only the unit it is working on. When all units are done, all buffers are final.
//
// The result does not depend on which member computes it. Further invariants:
//  - A slot is reused only when all members have left its previous operation (`left`), so no post changes while it
//    is read.
//  - The counters of a slot contain the number of their operation. A stale counter counts as zero, so counters need no
//    reset.
//  - Before a member touches other members' buffers it sets `working` and then reads `broken`. A member that ends the
//    group (because a member is lost or cancelled) sets `broken` and then waits until no live member is `working`: from
//    then on no other member touches its buffers (Dekker's algorithm: each side stores before it loads). A broken group
//    stays broken.
//  - The last member to arrive, and the member that finishes the last unit, wake the sleeping members.
#pragma once

#include "peer.hpp"

#include <span>

namespace shm {

// A call of a collective (rg_op_collective). All members must pass the same kind, `count`, `element`, `root` and
// counts.
struct request {
  std::uint32_t kind;      // RG_OP_ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER or BROADCAST
  const std::byte* source; // both valid until the completion; in or outside the heap
  std::byte* target;
  std::uint64_t count,
      element;        // of the buffer with all chunks: elements, and bytes of one element (4 if they are summed)
  std::uint64_t root; // broadcast: index of the root among the members
  // Elements of each chunk, valid until the completion. Null: chunks that differ by at most 16 elements and begin at
  // multiples of 16 (rg::chunk_of()).
  const std::uint64_t* counts;
  std::uint64_t cookie;

  std::uint64_t bytes() const noexcept { return count * element; }
};

// Identifies a group by its members.
std::uint64_t group_fingerprint(std::span<const std::uint32_t> members) noexcept;

class group {
public:
  // [main] All members call it with the same `members`: ascending ranks, including this one, all connected. The lowest
  // rank allocates the state and sends its offset to all members, which wait for it at most `timeout_ns` nanoseconds.
  // The state is freed only with the heap, because a slow member may still read it when others have left. Throws
  // RG_E_UNSUPPORTED if a member is not connected, RG_E_PEER if the lowest rank is lost or late, or cannot reach a
  // member, RG_E_OPERATION if `members` is wrong or differs, or if memory runs out. `home` must outlive the group.
  group(instance_state& home, std::span<const std::uint32_t> members, std::uint64_t timeout_ns);

  // [loop] Queues a collective; sums are of floats. instance_state::complete() reports its end, with RG_E_OPERATION if
  // members call it with different arguments. Throws the status of end() once the group has ended, and RG_E_OPERATION
  // for a wrong root, counts that do not add up, or if there is no memory for scratch. A collective of more than
  // `small` bytes needs scratch if `target` is outside the heap, or if it is a reduce-scatter that is not in place.
  void begin(const request& r);
  // [loop] Makes progress, up to about one unit of work, and the copies of all complete results from scratch to their
  // targets. Returns false if nothing could be done. If a member is lost, or another member has ended the group, calls
  // end(RG_E_PEER) once nothing can be done any more.
  bool progress();
  // [loop] Ends the group for all members. Later calls of progress() complete this rank's operations with `status`,
  // once no other member touches this rank's buffers. Only the first call counts.
  void end(rg_status status);
  // Returns whether the rank is a member.
  bool has(std::uint32_t rank) const noexcept;
  bool is_ended() const noexcept { return verdict_ != RG_OK; }

private:
  // A range of bytes of a buffer.
  struct range {
    std::uint64_t at, end;
    std::uint64_t size() const noexcept { return end - at; }
  };
  struct operation : request {
    std::uint64_t number;
    std::byte* shared;         // the whole buffer in memory that members can read: the caller's, or scratch in the heap
    bool is_scratch;           // `shared` is scratch
    range given, taken;        // of the whole buffer: the bytes in `source`, and those that `target` gets
    range unstaged, unfetched; // yet to be copied from `source` into `shared`, and from there to `target`
    // all members have posted; their posts agree; all units are claimed; the result is in `shared`, or small in
    // `target`
    bool have_all_arrived, is_sound, is_exhausted, is_worked;

    bool is_small() const noexcept { return bytes() <= small; }
    bool sums() const noexcept { return kind == RG_OP_ALL_REDUCE || kind == RG_OP_REDUCE_SCATTER; }
  };
  struct header;
  struct member_line;
  struct counter;
  struct post;
  static constexpr std::uint64_t slots = 8;
  static constexpr std::uint64_t small = 1024; // bytes

  std::uint64_t state_bytes() const noexcept;
  // On the lowest rank: allocates state_ and sends its offset to the other members.
  void publish_state();
  // On other ranks: waits for that offset and sets state_.
  void find_state(std::uint64_t timeout_ns);

  // Parts of the state: the header; a member's line; and for operation `number` (of slot number % slots) the units that
  // are done, the units claimed of a chunk, and a member's post.
  header& head() const noexcept;
  member_line& line(std::size_t member) const noexcept;
  counter& done(std::uint64_t number) const noexcept;
  counter& claimed(std::uint64_t number, std::size_t chunk) const noexcept;
  post& post_of(std::uint64_t number, std::size_t member) const noexcept;
  std::uint64_t& offset_of(std::uint64_t number, std::size_t member) noexcept; // checked by all_arrived()

  // Ranges of bytes of the whole buffer: a member's chunk; the bytes that a member contributes; those that this member
  // receives.
  range chunk_of(const operation& op, std::uint64_t member) const noexcept;
  range given(const operation& op, std::uint64_t member) const noexcept;
  range taken(const operation& op) const noexcept;
  // Sets op.shared, unstaged and unfetched. Allocates scratch where the caller's buffer cannot be used.
  void share(operation& op);
  // Returns the bytes that a member gets from other members' memory, on average over members, whether it reads them or
  // they write them; as many go the other way.
  std::uint64_t crossed(const operation& op) const noexcept;

  // Copies up to unit_bytes bytes from the source to op.shared. Returns false if none were left.
  bool stage(operation& op);
  // Publishes this member's post. Returns false if a member has not left the slot's previous operation.
  bool try_post(operation& op);
  // Returns whether all members have posted; if so, also checks their posts (op.is_sound).
  bool all_arrived(operation& op);
  // Computes this member's result of a small operation from the posts.
  void work_small(operation& op);
  // Does one unit of work that is not claimed yet. Returns false if there is none, or if the group is broken.
  bool work_unit(operation& op);
  bool claim_and_work(operation& op);
  // Does the unit of `bytes` bytes at offset `at` of the whole buffer, which are in the chunk of member `chunk`.
  void work(const operation& op, std::size_t chunk, std::uint64_t at, std::uint64_t bytes) noexcept;
  // Copies a unit of work from addresses_[from] to all other addresses_.
  void copy_to_others(std::size_t from, std::uint64_t bytes) noexcept;
  // Returns whether all units of the operation are done.
  bool is_done(const operation& op) const noexcept;
  // Retires the first of operations_ if it has ended, or brings it closer to that. Returns false if there was nothing
  // to do.
  bool finish_first();
  // Leaves the first of operations_ and completes it.
  void retire_first(rg_status status);
  // Returns a member that is lost, or null.
  const peer* lost_member() const noexcept;
  // Returns whether no other live member accesses buffers of this group.
  bool is_quiet() const noexcept;
  // Wakes the other members that sleep.
  void wake_others() noexcept;

  instance_state& home_;
  std::vector<std::uint32_t> members_;
  std::size_t self_ = 0; // index of this rank in members_
  std::vector<const mapping*> memories_;
  std::byte* state_ = nullptr;
  fifo<operation> operations_;
  std::size_t posted_ = 0; // how many of operations_ have been posted, from the first on
  std::uint64_t next_number_ = 0;
  std::uint64_t all_left_ = 0;        // operations that all members had left when last checked
  std::vector<std::byte*> addresses_; // for work(): the addresses of a unit in every member's buffer
  std::vector<const float*> terms_;   // for work() and work_small()
  std::vector<float*> targets_;
  std::vector<std::uint64_t> offsets_; // of members' buffers, by slot: checked copies, because posts may change
  rg_status verdict_ = RG_OK;          // status of all operations once the group has ended
};

} // namespace shm
