// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives over any transport: what a transport need not do itself is done here. Messages to oneself are
// copied; operations that the transport refuses with "again" wait in line; a receive that adds goes through scratch
// where the transport cannot add, and so does what has another type on the wire than in memory where it cannot convert,
// and every buffer of a device's whose memory the transport cannot touch: then a send waits in line until its bytes are
// in scratch, and a receive has ended when they are on their way from there to where they belong, ahead of all that is
// asked of the device later. Receives into overlapping bytes take effect in the order in which they were
// posted, whichever of these ways each of them goes.
//
// Everything is [loop]. Nothing is allocated once as many operations were under way as ever will be.
#pragma once

#include "device/staging.hpp"
#include "memory/regions.hpp"
#include "registry/plugin_host.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class transfers {
public:
  // Borrows everything but `name`, which errors begin with: "transport tcp". `functions` are those of a connected
  // transport instance `self`; ranks 0 .. size-1, this is `rank`. `on_host` and `on_device` are for regions there; the
  // latter is null where there are none.
  transfers(const rg_transport& functions, void* self, const rg_transport_caps& caps, plugin_host& host,
            std::string name, const region_table& regions, staging& on_host, staging* on_device, std::uint32_t rank,
            std::uint32_t size, std::uint32_t lanes);
  ~transfers();

  // Begins; `cookie` is in a later completion of poll(). The arguments were checked. `wire`: RG_F16 or RG_BF16 where
  // the buffer is of RG_F32 and that is to cross instead; 0: as it is.
  void send(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer,
            std::uint32_t wire = 0);
  void recv(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer, bool add,
            std::uint32_t wire = 0);
  // `function`: one of the transport's rg_collectives.
  using collective_function = rg_status (*)(void* self, const rg_collective* collective);
  void collective(std::uint64_t cookie, collective_function function, std::uint32_t group, std::uint32_t root,
                  const rg_buffer& buffer);

  // Moves bytes and appends what ended; waits as rg_transport.poll does while there is nothing. Throws failure, also for
  // a completion that belongs to no operation under way: one that comes twice, or whose cookie was never given.
  void poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::vector<rg_completion>& out);
  // Throws failure if an operation ended with an error. Call it when the strategy has read its completions, and has not
  // failed itself: an error that nobody reads must not pass.
  void require_success() const;

  // Bytes of the sends and collectives that the transport took, since the start.
  std::uint64_t given_bytes() const noexcept { return given_bytes_; }

  // For people: what has not ended, receives first. [loop]
  struct open_operation {
    const char* kind;   // "send", "receive", "collective operation"
    std::uint32_t peer; // UINT32_MAX: none, of a collective
    std::uint32_t lane;
    std::uint64_t bytes;
    bool receives, refused; // refused: the transport has not taken it yet
  };
  std::vector<open_operation> open() const;

  // Operations that have not ended.
  std::size_t outstanding() const noexcept { return outstanding_; }

private:
  enum class way { transport, self, scratch };
  struct operation {
    staging* stage; // of the memory that it is about, the same for good
    std::uint64_t cookie, bytes;
    rg_transfer transfer;         // what the transport sees: of the target, or of scratch
    collective_function function; // of a collective, else null
    rg_collective joint;          // what it is called with
    rg_buffer target;             // in the region's memory
    void* target_address;
    operation* source; // receives from oneself: the send that was met
    way how;
    std::uint32_t wire;
    bool receive, add, arrived; // arrived: the bytes are here, but not yet in the target
    bool posted;                // the transport has it
    rg_fence fence;
    std::unique_ptr<regatta::scratch> scratch; // kept for the next one
    rg_fence busy;                             // until then scratch is being filled or emptied
  };
  // First in, first out, in one block of memory.
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

  operation* take(std::uint64_t cookie, std::uint32_t peer, std::uint32_t lane, const rg_buffer& buffer);
  void through_scratch(operation* o);
  void pack(operation* o);
  rg_fence put(const operation& o);
  void post(operation* o);
  bool try_post(operation* o);
  void match_self(std::uint32_t lane);
  void post_waiting();
  bool waits_for_earlier(const operation* o, bool only_local) const;
  void settle_local();
  operation* of(const rg_completion& c) const;
  static std::string describe(const operation& o);
  void end(operation* o, rg_status status, rg_fence busy = 0);
  void free_emptied();
  // Collectives wait in one line: whatever their groups, they begin in the order in which they were asked for.
  fifo& line(const operation* o) {
    return o->function ? lines_.back() : lines_[(o->transfer.peer * lanes_ + o->transfer.lane) * 2 + o->receive];
  }

  const rg_transport& functions_;
  void* self_;
  bool adds_, converts_;
  plugin_host& host_;
  std::string name_;
  const region_table& regions_;
  staging& on_host_;
  staging* on_device_;
  std::uint32_t rank_, lanes_;
  std::vector<fifo> lines_;                      // refused or held back: [peer][lane][send, receive], then collectives
  std::size_t waiting_ = 0;                      // operations in lines_
  std::vector<fifo> self_sends_, self_receives_; // [lane]
  std::vector<operation*> receives_;             // under way, in posting order
  std::size_t local_ = 0;                        // of them, those that are put in place here
  std::vector<rg_completion> ended_;             // since the last poll, without the transport
  std::vector<std::unique_ptr<operation>> operations_;
  std::vector<operation*>& free_of(const staging* s) { return free_[s == on_device_]; }
  std::array<std::vector<operation*>, 2> free_; // on the host, on the device
  std::vector<operation*> emptying_;            // have ended, but their scratch is in use
  std::size_t outstanding_ = 0;
  std::uint64_t given_bytes_ = 0;
  rg_status first_error_ = RG_OK; // of an operation that ended
  std::string failed_;            // which one
};

} // namespace regatta
