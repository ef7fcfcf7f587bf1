// SPDX-License-Identifier: Apache-2.0
//
// Frames over an authenticated connection: a small JSON header and an optional binary payload.
//
//   4 bytes magic | header bytes, u32 little endian | payload bytes, u64 little endian | header | payload
//
// Belongs to the one thread that runs its io_context.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "control/asio.hpp"
#include "control/blob.hpp"

namespace regatta {

struct message {
  nlohmann::json header; // an object
  blob payload;
};

// A sane frame is far below: these only keep a peer that has lost its mind from taking us along.
inline constexpr std::uint64_t max_header_bytes = 16ull << 20;
inline constexpr std::uint64_t max_payload_bytes = 1ull << 30;

class channel : public std::enable_shared_from_this<channel> {
public:
  explicit channel(tcp::socket socket);

  // The next frame. Throws system_error when the connection ends, failure when what came is no frame. One at a time.
  asio::awaitable<message> receive();

  // When bytes last came. A frame may take long.
  std::chrono::steady_clock::time_point heard() const noexcept { return heard_; }

  // Queues a frame and returns; `done` is called once it was handed to the kernel or cannot be any more.
  void send(const nlohmann::json& header, std::shared_ptr<const blob> payload = {}, std::function<void()> done = {});

  // Ends both directions at once; receive() then throws. What is queued is dropped.
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
  std::deque<frame> queue_; // the first is being written
};

} // namespace regatta
