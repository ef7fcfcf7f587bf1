// SPDX-License-Identifier: Apache-2.0
//
// Frames over an authenticated connection: a small JSON header and an optional binary payload.
//
//   4 bytes magic | header bytes, u32 little endian | payload bytes, u64 little endian | header | payload
//
// A channel may only be used on the thread that runs its io_context, and must be owned by a std::shared_ptr.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "base/descriptor.hpp"
#include "control/asio.hpp"
#include "control/blob.hpp"

namespace regatta {

struct message {
  nlohmann::json header; // an object
  blob payload;
};

// Far above any valid frame: these limits bound the memory that a faulty peer can make this process allocate.
inline constexpr std::uint64_t max_header_bytes = 16ull << 20;
inline constexpr std::uint64_t max_payload_bytes = 1ull << 30;

class channel : public std::enable_shared_from_this<channel> {
public:
  // Takes over a socket on which the handshake is done.
  explicit channel(tcp::socket socket);

  // Returns the next frame. Throws boost::system::system_error if the connection ends or is closed, failure (run) if
  // the bytes are no frame or exceed the limits. One call at a time.
  asio::awaitable<message> receive();

  // Returns when bytes last arrived in receive(), at first the time of construction. Advances within a frame too,
  // because a long frame takes time.
  std::chrono::steady_clock::time_point heard() const noexcept { return heard_; }

  // Queues a frame behind the others and returns. `header` must be an object. Throws failure (run) if the header or the
  // payload exceeds its limit, and then sends nothing and does not call `done`. Calls `done` once the frame was passed
  // to the kernel or can no longer be sent: within this call if the channel is closed, else later. Keeps `payload`
  // until then.
  void send(const nlohmann::json& header, std::shared_ptr<const blob> payload = {}, std::function<void()> done = {});

  // Returns whether the connection was neither closed nor lost while a frame was sent.
  bool is_open() const noexcept { return socket_.is_open(); }

  // Closes the connection at once; receive() then throws. Queued frames are dropped, and their `done` is called later.
  void close();

private:
  struct frame {
    std::array<std::uint8_t, 16> prefix;
    std::string header;
    std::shared_ptr<const blob> payload;
    std::function<void()> done;
  };

  void write_next();

  tcp::socket socket_;
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now();
  std::deque<frame> queue_; // the first frame is being written
};

// Returns a channel over a duplicate of a connected socket, which the caller keeps and may use again once the channel
// is gone, if the last frame was received as a whole and every frame was sent. Throws failure (run) if the system
// refuses.
std::shared_ptr<channel> channel_over(asio::io_context& io, const unique_fd& socket);

} // namespace regatta
