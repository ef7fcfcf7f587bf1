// SPDX-License-Identifier: Apache-2.0
//
// One socket: a lane to one peer, in both directions. post_send() and post_receive() only queue operations; progress()
// moves bytes without waiting. Sends gather headers and payloads of several messages from where they lie; receives
// scatter into the posted buffers. Data that follows the current message in the stream is read onto the *stage*, a few
// KiB that hold the next header and small messages. So a small message costs one system call, and only the kernel
// copies a large one. One thread at a time may use the connections of an instance.
#pragma once

#include "../common/posting_order.hpp"
#include "../common/ring.hpp"
#include "descriptor.hpp"
#include "rendezvous.hpp"
#include "wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <regatta/trace.hpp>

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
  rg::tracer trace{nullptr};
  std::uint32_t tracks = 0; // of the trace, taken so far
  std::size_t chunk; // bytes that progress() moves in each direction; up to twice as many to end a message being sent
  ring<rg_completion> finished;    // for poll() to return
  rg_counters counters{};          // bytes on the streams after the handshake, headers included
  std::uint64_t system_calls = 0;  // that sent or received, or tried to
  posting_order<connection> order; // of receives into overlapping bytes
  ring<connection*> released;      // connections whose receive may start now, because an earlier one has ended
  // Data to be added is read here first, and stays in the cache. It begins at its offset in the message modulo a page
  // (wire.hpp has the reason), hence one page more.
  std::vector<page> scratch = std::vector<page>(scratch_bytes / sizeof(page) + 1);
};

class connection {
public:
  // `shared` must outlive this object. `made` is from rendezvous::connect().
  connection(common& shared, link made);
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  std::uint32_t peer() const { return peer_; }
  std::uint32_t lane() const { return lane_; }
  std::size_t rail() const { return rail_; }
  // Returns the bytes that were sent and received, headers included.
  std::uint64_t bytes() const { return bytes_; }
  int native() const { return socket_.get(); } // the socket, for epoll
  // Numbers of operations that are posted and not completed.
  std::size_t sends() const { return sends_.size(); }
  std::size_t receives() const { return receives_.size(); }

  // Returns whether the first posted receive fits the stage and its message has not begun: reading without asking epoll
  // is then worthwhile.
  bool awaits_short_message() const {
    return !ended_ && !in_message_ && !receives_.empty() && receives_.front().capacity <= stage_bytes;
  }

  // Queue an operation of `bytes`, or of up to `capacity` bytes. progress(), cancel() or abandon() appends its
  // completion with `cookie` to common::finished; `data` must stay valid until then. Receives take the peer's messages
  // in order: they store the bytes in `data`, or with `adds` add them to it as fp32. A message that is longer than
  // `capacity`, or with `adds` no whole number of floats, completes the receive with RG_E_OPERATION, and progress()
  // throws. Require !ended(), and for sends at most longest_message bytes and no finish_sending() before.
  void post_send(const void* data, std::uint64_t bytes, std::uint64_t cookie);
  void post_receive(void* data, std::uint64_t capacity, bool adds, std::uint64_t cookie);

  // Records what epoll reports as possible. `hung_up`: the peer's end of the stream, or an error, can be read.
  void became(bool readable, bool writable, bool hung_up);

  // Moves up to a chunk in each direction, besides messages that arrive on the stage, without waiting. Returns true if
  // more could be moved at once. After false, call it again after became() or a post, or when the connection is in
  // common::released. Throws rg::error (RG_E_PEER) if the connection is lost or the peer breaks the format of wire.hpp,
  // or a message does not fit its receive; then call abandon().
  bool progress();

  // Returns whether the peer has closed its end and everything before that was received, or abandon() was called. No
  // operation can be posted any more, and progress() does nothing: abandon() completes those that are still posted.
  bool ended() const { return ended_; }

  // Completes all posted operations with `status` and closes the socket; does not access their buffers any more.
  // `error` is the errno that ended the connection; 0: none.
  void abandon(rg_status status, int error = 0);
  // Returns the errno with which progress() failed; 0: it did not, or not by a system call.
  int error() const { return error_; }

  // Completes an operation with RG_E_CANCELLED if no byte of its message, header included, was sent, or taken for the
  // receive; else changes nothing. Returns whether an operation with this cookie was posted.
  bool cancel(std::uint64_t cookie);

  // Returns how many segments the kernel has sent again on this socket, since it was connected.
  std::uint64_t retransmits();

  // Closes this end of the stream, which tells the peer that nothing more will be sent. Messages that are still
  // queued are not sent.
  void finish_sending();
  // Discards the data that can be read without waiting. Returns whether the peer has closed its end; false: call it
  // again after became(). Throws as progress() does.
  bool drained();

  bool queued = false, queued_to_send = false; // for the owner: the connection is in these queues of its lane

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

  // Send or receive up to a chunk. Return true if more could be moved at once.
  bool send_some();
  bool receive_some();
  // Starts the message whose header is on the stage. Returns false if the header is incomplete. Requires a posted
  // receive. Throws if the message does not fit it, or the header is invalid.
  bool begin_message();
  // Completes the first posted receive, whose message has been received, broken off, or never begun.
  void end_message(rg_status status);
  // Moves bytes of the current message from the stage to its receive.
  void take_from_stage();
  // Adds the next bytes of the current message to its receive's buffer; they may begin and end within a float.
  void add(const std::byte* data, std::size_t bytes);
  std::byte* stage() { return stage_[0].bytes.data(); }
  // Makes room on the stage and reads more. Returns false if nothing came and the stream has not ended.
  bool fill_stage();
  // Reads what is there, without waiting, and returns the number of bytes: 0 also at the end of the stream. Fewer than
  // `wanted` mean that the stream is empty.
  std::size_t read(std::span<iovec> parts, std::size_t wanted);
  // Appends a completion to common::finished.
  void complete(std::uint64_t cookie, rg_status status, std::uint64_t bytes);
  // Records a message that began at `began`, unless that is 0. Returns when it ended, for the next one.
  std::uint64_t trace(bool received, std::uint64_t began, std::uint64_t bytes) const;
  // Throw rg::error, RG_E_PEER: `how`, or errno, says how the connection was lost.
  [[noreturn]] void lost(const std::string& how) const;
  [[noreturn]] void lost_by_errno();

  static constexpr std::size_t stage_bytes = 8192;

  common& shared_;
  const std::uint32_t peer_, lane_, track_; // sends are on this track, receives on the next
  const std::size_t rail_;
  std::uint64_t bytes_ = 0;
  const std::array<const char*, 2> names_;           // of spans in the trace: of sends, of receives
  std::uint64_t send_began_ = 0, receive_began_ = 0; // of the current messages, while spans are recorded; else 0
  descriptor socket_;
  std::uint64_t retransmits_ = 0;          // as the kernel said last
  bool readable_ = true, writable_ = true; // until a system call says otherwise
  bool hung_up_ = false;                   // the end of the stream was announced: read on to reach it
  bool at_end_ = false;                    // the end has been read
  bool ended_ = false;                     // the end has been read, and the stage is empty
  int error_ = 0;                          // errno of the failure; in completions that are no success

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
