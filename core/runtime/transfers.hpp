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
  struct operation;
  // The rest of an operation that the transport does not carry out as it is: one that goes through scratch memory or to
  // the own rank, a collective, and any one with a trace. It is kept for a later operation in the same memory.
  struct extra {
    bool on_device;                         // the memory of its operations; never changes
    operation* source = nullptr;            // of a receive from the own rank: the matching send
    std::uint64_t bytes = 0;                // of a receive that has arrived
    rg_fence fence = 0;                     // of its completion
    rg_fence busy = 0;                      // scratch is being filled or emptied until this fence
    collective_function function = nullptr; // of a collective
    std::unique_ptr<rg_collective> joint;   // its argument
    scratch_memory memory;
    std::uint64_t memory_bytes = 0;
    rg_region region = 0; // of `memory`; 0: it was never used
    std::unique_ptr<trace_event> traced;
  };
  struct alignas(64) operation { // one cache line: there may be thousands
    union {
      std::uint64_t cookie; // of the strategy
      tally* own;           // if `engines`
    };
    rg_buffer target;     // in the region's memory
    extra* more;          // or null
    std::uint32_t index;  // in operations_; never changes
    std::uint32_t uses;   // of the index so far
    std::uint32_t before; // of a pending receive: its neighbours in posting order
    std::uint32_t behind; // of a free operation: the next one
    std::uint32_t peer;
    std::uint16_t lane;
    std::uint16_t wire : 4;
    path how : 2;
    bool on_device : 1, receive : 1, add : 1, collective : 1;
    bool engines : 1; // its completion changes `own`
    bool pending : 1; // it has not ended
    bool arrived : 1; // the bytes are here, but not yet in the target
    bool posted : 1;  // the transport has accepted it
  };
  static_assert(sizeof(operation) == 64);
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
  extra& more_of(operation* o); // takes one if the operation has none
  std::uint64_t cookie_of(const operation& o) const { return std::uint64_t{o.uses} << 32 | o.index; } // the transport's
  rg_buffer buffer_of(const operation& o) const; // the memory that the transport uses, in the type of the wire
  void* address_of(const operation& o) const;    // of the target; null for ghosts
  staging& stage(bool on_device) const { return on_device ? *on_device_ : on_host_; }
  staging& stage_of(const operation& o) const { return stage(o.on_device); }
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
  void end_trace(const operation& o, std::uint64_t bytes) const;
  // Of `how` it takes the status, the bytes, which are those in memory, the fence and the vendor's error. `busy`: scratch
  // is in use until this fence.
  void end(operation* o, const rg_completion& how, rg_fence busy = 0);
  void free_emptied(); // those of emptying_ whose scratch is no longer in use
  // A queue of operations that were refused or held back. Few peers ever have one: it is made on first use.
  struct line {
    std::uint64_t number; // ascending by peer, lane, send before receive; the last one is that of collectives
    fifo waiting;
  };
  // Collectives share one queue: they begin in the order in which they were submitted, also those of different groups.
  std::uint64_t line_number(const operation* o) const {
    return o->collective ? UINT64_MAX : (std::uint64_t{o->peer} * lanes_ + o->lane) * 2 + o->receive;
  }
  fifo& line_of(const operation* o);
  void append_receive(operation* o);
  void remove_receive(operation* o);

  static constexpr std::uint32_t none = UINT32_MAX; // the index of no operation
  static constexpr std::size_t block = 32;          // operations
  operation& operation_at(std::uint32_t i) const { return (*operations_[i / block])[i % block]; }
  operation* receive_at(std::uint32_t i) const { return i == none ? nullptr : &operation_at(i); }

  // The members that each message and each poll() need come first, in three cache lines: a simulation of thousands of
  // ranks is limited by its cache misses.
  const rg_transport& functions_;
  void* self_;
  region_table& regions_;
  staging& on_host_;
  staging* on_device_;
  trace_recorder* trace_;
  std::uint32_t rank_, lanes_;
  bool adds_, converts_, virtual_, ordered_;
  rg_status first_error_ = RG_OK;                            // of an operation that ended
  std::uint32_t first_receive_ = none, last_receive_ = none; // pending, in posting order
  std::uint32_t operation_count_ = 0, free_ = none;
  std::size_t waiting_ = 0; // operations in lines_
  std::size_t local_ = 0;   // pending receives that are copied to their target here
  std::size_t arrived_ = 0; // of these, the ones whose bytes are here
  std::size_t outstanding_ = 0;
  std::uint64_t given_bytes_ = 0;
  // By the lower 32 bits of their cookies, in blocks, which never move.
  std::vector<std::unique_ptr<std::array<operation, block>>> operations_;
  std::vector<rg_completion> ended_; // ended since the last poll, without the transport
  std::vector<extra*> emptying_;     // their operations have ended, but scratch is in use

  plugin_host& host_;
  std::string name_;
  std::vector<line> lines_;                      // ascending by number
  std::vector<fifo> self_sends_, self_receives_; // [lane]
  std::vector<std::unique_ptr<extra>> extras_;
  std::array<std::vector<extra*>, 2> free_extras_; // on the host, on the device
  std::vector<std::uint64_t> sequences_;           // with a trace: messages so far, by [peer][lane][send, receive]
  std::uint32_t bucket_ = no_bucket;
  std::string failed_; // describes the operation of first_error_
};

} // namespace regatta
