// SPDX-License-Identifier: Apache-2.0
//
// One socket: a lane to one peer, in both directions. It queues operations and moves as many bytes as possible without
// waiting when asked to. Sends gather headers and payloads of several messages from where they lie; receives scatter
// into the posted buffers. Data behind the current message, or that comes before a receive is posted, lands on the
// *stage*, a few KiB that hold the next header and small messages. So a small message costs one system call, and only
// the kernel copies a large one.
#pragma once

#include "../common/posting_order.hpp"
#include "../common/ring.hpp"
#include "descriptor.hpp"
#include "wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct iovec;

namespace tcp {

using transports::posting_order;
using transports::ring;

class connection;

struct alignas(4096) page {
  std::array<std::byte, 4096> bytes;
};

inline constexpr std::size_t scratch_bytes = 512 << 10; // half of a core's L2 cache

// State that all connections of an instance share.
struct common {
  std::size_t chunk;               // bytes that a connection moves before others have their turn
  ring<rg_completion> finished;    // for poll() to return
  rg_counters counters{};          // bytes on the streams after the handshake, headers included
  posting_order<connection> order; // of receives into overlapping bytes
  ring<connection*> released;      // connections whose receive may start because an earlier one has ended
  // Data to be added passes through here, and stays in the cache. It may begin anywhere in the first page.
  std::vector<page> scratch = std::vector<page>(scratch_bytes / sizeof(page) + 1);
};

class connection {
public:
  connection(common& shared, std::uint32_t peer, std::uint32_t lane, descriptor socket);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  std::uint32_t peer() const { return peer_; }
  std::uint32_t lane() const { return lane_; }
  int native() const { return socket_.get(); }
  std::size_t sends() const { return sends_.size(); }
  std::size_t receives() const { return receives_.size(); }

  // Whether the next receive is so short that reading at once is worthwhile.
  bool awaits_short_message() const {
    return !ended_ && !in_message_ && !receives_.empty() && receives_.front().capacity <= stage_bytes;
  }

  void post_send(const void* data, std::uint64_t bytes, std::uint64_t cookie);
  void post_receive(void* data, std::uint64_t capacity, bool adds, std::uint64_t cookie);

  // Records what epoll reports as possible.
  void became(bool readable, bool writable, bool hung_up);

  // Moves bytes in both directions. Returns true if more can be done at once. Throws RG_E_PEER if the peer is lost.
  bool progress();

  // Whether the peer has closed its end and everything before that was received: no operation can be posted any more.
  bool ended() const { return ended_; }

  // Completes all posted operations with `status` and closes the socket: buffers are not touched any more.
  void abandon(rg_status status);

  // finish_sending() tells the peer that nothing more will be sent. drained() discards incoming data and returns
  // whether the peer has closed its end; it throws as progress() does.
  void finish_sending();
  bool drained();

  bool queued = false; // is in its lane's queue of connections with work

private:
  struct outgoing {
    const std::byte* data;
    std::uint64_t bytes;
    std::uint64_t cookie;
    tcp::header header; // as on the wire, which carries its first head() bytes
    std::size_t head() const { return header_bytes(bytes); }
  };
  struct incoming {
    std::byte* data;
    std::uint64_t capacity;
    std::uint64_t cookie;
    std::uint32_t ticket; // in common::order
    bool adds;
  };

  bool send_some();
  bool receive_some();
  bool begin_message();
  void end_message(rg_status status);
  void take_from_stage();
  void add(const std::byte* data, std::size_t bytes);
  std::byte* stage() { return stage_[0].bytes.data(); }
  bool fill_stage();
  std::size_t read(std::span<iovec> parts, std::size_t wanted);
  void complete(std::uint64_t cookie, rg_status status, std::uint64_t bytes);
  [[noreturn]] void lost(const std::string& how) const;

  static constexpr std::size_t stage_bytes = 8192;

  common& shared_;
  const std::uint32_t peer_, lane_;
  descriptor socket_;
  bool readable_ = true, writable_ = true; // until a system call says otherwise
  bool hung_up_ = false;                   // the end of the stream was announced: read on to reach it
  bool at_end_ = false;                    // the end has been read
  bool ended_ = false;                     // the end has been read, and the stage is empty

  ring<outgoing> sends_;
  std::uint64_t sent_ = 0; // bytes of the first send, header included

  ring<incoming> receives_;
  bool in_message_ = false;
  std::uint64_t length_ = 0, received_ = 0; // of the current message
  std::array<std::byte, 4> partial_;        // a float to be added, of which received_ % 4 bytes have arrived
  std::unique_ptr<page[]> stage_ = std::make_unique<page[]>(stage_bytes / sizeof(page));
  std::size_t stage_first_ = 0, stage_last_ = 0;
};

} // namespace tcp
