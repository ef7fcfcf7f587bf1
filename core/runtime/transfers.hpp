// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives over any transport, and implements the parts that a transport may lack:
//
// Messages to the own rank are copied. Operations that the transport refuses with RG_AGAIN are queued, and submitted
// again in poll(). Scratch memory is used for a receive that adds where the transport cannot add, for a wire type where
// it cannot convert, and for device buffers that it cannot access. A send through scratch is queued until its bytes are
// there. A receive into such a device buffer has ended once the copy from scratch is enqueued on the device, ahead of
// all later work there. Receives into overlapping bytes take effect in the order in which they were posted: until the
// earlier one has ended, the later one is not submitted, or, if it goes through scratch, not copied to the buffer. A
// transport with RG_CAP_ORDERED_RECEIVES gets both at once if neither goes through scratch. All memory that the
// transport sees is in a region.
//
// Everything is [loop]. Nothing is allocated once the largest number and size of simultaneous operations has been
// reached.
#pragma once

#include "device/staging.hpp"
#include "memory/regions.hpp"
#include "registry/plugin_host.hpp"
#include "trace/recorder.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <regatta/abi.h>
#include <regatta/ext/collectives.h>

namespace regatta {

class transfers {
public:
  // Borrows everything but `name`, which begins errors: "transport tcp". `trace` records messages; null: no trace.
  // `functions` belong to the connected transport instance `self`. Ranks are 0 .. size-1; this rank is `rank`.
  // `on_host` and `on_device` stage regions in host and device memory; `on_device` is null if no region is on a device.
  transfers(const rg_transport& functions, void* self, const rg_transport_caps& caps, plugin_host& host,
            std::string name, region_table& regions, staging& on_host, staging* on_device, std::uint32_t rank,
            std::uint32_t size, std::uint32_t lanes, trace_recorder* trace = nullptr);
  ~transfers();
  // With a `trace`: the next operation, and only that one, carries this bucket; no_bucket: none.
  void next_carries(std::uint32_t bucket) noexcept { bucket_ = bucket; }

  // Begins a send or a receive; a later poll() reports its completion, with `cookie`. Until then the buffer of a send
  // must not change, and that of a receive must not be used. Sends and receives of one peer and lane match in order; a
  // receive may be longer than its message. The caller has checked the arguments. `add`: adds to the buffer's elements
  // instead of replacing them. `wire` is RG_F16 or RG_BF16 to convert a buffer of RG_F32 for the wire; 0: no
  // conversion. Throws failure if the transport rejects the operation, except for a lost peer (RG_E_PEER,
  // RG_E_CANCELLED): that becomes the completion's status.
  // With `own` the operation is the engine's: its completion changes `own`, and no poll() reports it.
  struct tally {
    std::size_t pending = 0;    // operations
    std::uint64_t received = 0; // bytes of the receives that have ended
  };
  void send(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer,
            std::uint32_t wire = 0, tally* own = nullptr);
  void recv(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer, bool add,
            std::uint32_t wire = 0, tally* own = nullptr);
  // Begins a collective by `function`, rg_collectives.begin of the transport; completes and fails as send(). The caller
  // has checked the arguments; `source` and `target` are the buffers that this rank uses, or null.
  using collective_function = rg_status (*)(void* self, const rg_collective* collective);
  void collective(const rg_op_collective& what, collective_function function, const rg_buffer* source,
                  const rg_buffer* target);

  // Moves bytes and appends completions to `out`, those with an error included. If no operation has completed, it waits
  // for up to `timeout_ns`, and spins for the first `spin_ns` of it. Throws failure, also (plugin) for a completion
  // that belongs to no pending operation: it came twice, or its cookie was never issued.
  void poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::vector<rg_completion>& out);
  // Throws the failure of the first operation that ended with an error; does nothing if there is none. Call it after
  // the strategy has read its completions without failing itself, so that an error that the strategy ignores is not
  // lost.
  void require_success() const;

  // Returns the bytes of the sends and collectives that the transport accepted since the start, in the type of memory;
  // of a collective those of the larger buffer. Receives and messages to the own rank do not count.
  std::uint64_t given_bytes() const noexcept { return given_bytes_; }

  // Lists the operations that have not ended, receives first, for messages to people.
  struct open_operation {
    const char* kind;   // "send", "receive", "collective operation"
    std::uint32_t peer; // UINT32_MAX for a collective
    std::uint32_t lane;
    std::uint64_t bytes;    // of the buffer
    bool receives, refused; // refused: the transport has not accepted it yet
  };
  std::vector<open_operation> open() const;

  // Returns the number of operations that have not ended, those with `own` included.
  std::size_t outstanding() const noexcept { return outstanding_; }

private:
  enum class path : std::uint8_t { transport, self, scratch };
  struct scratch_of_operation { // kept for the next operation
    scratch_memory memory;
    std::uint64_t bytes = 0;
    rg_region region = 0; // 0: it was never used
  };
  // The members that its end reads come first, in two cache lines.
  struct alignas(64) operation {
    std::uint64_t cookie, bytes;
    staging* stage; // of the operation's memory; never changes
    tally* own;
    operation *before, *behind; // of a pending receive: its neighbours in posting order
    std::uint32_t wire;
    path how;
    bool receive, add, arrived; // arrived: the bytes are here, but not yet in the target
    bool posted;                // the transport has accepted it
    rg_fence fence;
    rg_transfer transfer; // as the transport sees it: of the target, or of scratch
    rg_buffer target;     // in the region's memory
    void* target_address;
    operation* source;            // of a receive from the own rank: the matching send
    collective_function function; // of a collective, else null
    // Of operations that need them: there may be thousands of others.
    std::unique_ptr<rg_collective> joint; // argument of the collective
    std::unique_ptr<scratch_of_operation> scratch;
    std::unique_ptr<trace_event> traced; // with a trace
    rg_fence busy;                       // scratch is being filled or emptied until this fence
  };
  // A queue in one block of memory.
  struct fifo {
    std::vector<operation*> items;
    std::size_t head = 0;
    bool empty() const { return head == items.size(); }
    operation* front() const { return items[head]; }
    void push(operation* o) { items.push_back(o); }
    void pop() {
      if (++head == items.size()) {
        items.clear();
        head = 0;
      }
    }
  };

  operation* new_operation(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer,
                           tally* own = nullptr);
  void through_scratch(operation* o);          // makes the transport use scratch memory in place of the buffer
  void pack(operation* o);                     // begins to copy the buffer of a send to scratch
  rg_fence copy_to_target(const operation& o); // begins to copy a received message; returns the fence of scratch
  // try_post() passes an operation to the transport, and returns false if it must wait. post() then queues it, and
  // post_waiting() tries the queued ones again.
  void post(operation* o);
  bool try_post(operation* o);
  void post_waiting();
  // Matches sends of this rank to itself with its receives.
  void match_self(std::uint32_t lane);
  // Returns whether an earlier receive into the same bytes is pending; only_local: one that is copied here.
  bool waits_for_earlier(const operation* o, bool only_local) const;
  // Copies messages that have arrived to their targets and ends the receives.
  void complete_local();
  // Throws failure (plugin) if the completion belongs to no pending operation.
  operation* operation_of(const rg_completion& c) const;
  static std::string describe(const operation& o);
  std::uint64_t now() const;
  void begin_trace(operation* o);
  void end_trace(const operation& o) const;
  void end(operation* o, rg_status status, rg_fence busy = 0, std::int32_t vendor_error = 0);
  void free_emptied(); // operations of emptying_ whose scratch is no longer in use
  // A queue of operations that were refused or held back. Few peers ever have one: it is made on first use.
  struct line {
    std::uint64_t number; // ascending by peer, lane, send before receive; the last one is that of collectives
    fifo waiting;
  };
  // Collectives share one queue: they begin in the order in which they were submitted, also those of different groups.
  std::uint64_t line_number(const operation* o) const {
    return o->function ? UINT64_MAX : (std::uint64_t{o->transfer.peer} * lanes_ + o->transfer.lane) * 2 + o->receive;
  }
  fifo& line_of(const operation* o);
  void append_receive(operation* o);
  void remove_receive(operation* o);

  const rg_transport& functions_;
  void* self_;
  bool adds_, converts_, virtual_, ordered_;
  plugin_host& host_;
  std::string name_;
  region_table& regions_;
  staging& on_host_;
  staging* on_device_;
  std::uint32_t rank_, lanes_;
  std::vector<line> lines_;                                      // ascending by number
  std::size_t waiting_ = 0;                                      // operations in lines_
  std::vector<fifo> self_sends_, self_receives_;                 // [lane]
  operation *first_receive_ = nullptr, *last_receive_ = nullptr; // pending, in posting order
  std::size_t local_ = 0;            // pending receives that are copied to their target here
  std::size_t arrived_ = 0;          // of these, the ones whose bytes are here
  std::vector<rg_completion> ended_; // ended since the last poll, without the transport
  // By the lower 32 bits of their cookies, in blocks, which never move.
  static constexpr std::size_t block = 8;
  std::vector<std::unique_ptr<std::array<operation, block>>> operations_;
  std::size_t operation_count_ = 0;
  operation& operation_at(std::size_t i) const { return (*operations_[i / block])[i % block]; }
  std::vector<operation*>& free_of(const staging* s) { return free_[s == on_device_]; }
  std::array<std::vector<operation*>, 2> free_; // on the host, on the device
  std::vector<operation*> emptying_;            // have ended, but their scratch is in use
  std::size_t outstanding_ = 0;
  std::uint64_t given_bytes_ = 0;
  trace_recorder* trace_;
  std::vector<std::uint64_t> sequences_; // with a trace: messages so far, by [peer][lane][send, receive]
  std::uint32_t bucket_ = no_bucket;
  rg_status first_error_ = RG_OK; // of an operation that ended
  std::string failed_;            // describes that operation
};

} // namespace regatta
