// SPDX-License-Identifier: Apache-2.0
#include "join/frames.hpp"

#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/failure.hpp"
#include "join/packets.hpp"

namespace regatta {
namespace {

// Runs a coroutine on an io_context of its own until it ends, and rethrows its exception.
template <class Coroutine> void run_alone(const unique_fd& socket, Coroutine&& coroutine) {
  asio::io_context io{1};
  std::exception_ptr broken;
  const auto wire = channel_over(io, socket);
  asio::co_spawn(io, coroutine(*wire), [&](const std::exception_ptr& e) { broken = e; });
  io.run();
  try {
    if (broken) std::rethrow_exception(broken);
  } catch (const boost::system::system_error& e) {
    throw failure(exit_code::run, fmt::format("the connection ended: {}", e.code().message()));
  }
  if (!wire->is_open()) throw failure(exit_code::run, "the connection ended while a frame was sent");
}

} // namespace

void send_frame(const unique_fd& socket, const nlohmann::json& header, blob payload) {
  run_alone(socket, [&](channel& wire) -> asio::awaitable<void> {
    wire.send(header, std::make_shared<const blob>(std::move(payload)));
    co_return; // the io_context runs until the frame is sent
  });
}

std::optional<message> receive_frame(const unique_fd& socket, std::chrono::milliseconds limit) {
  const auto until = limit == std::chrono::milliseconds::max() ? std::chrono::steady_clock::time_point::max()
                                                               : std::chrono::steady_clock::now() + limit;
  if (!wait_readable(std::array{socket.get()}, until)) return {};
  std::optional<message> received;
  run_alone(socket, [&](channel& wire) -> asio::awaitable<void> { received = co_await wire.receive(); });
  return received;
}

} // namespace regatta
