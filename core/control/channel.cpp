// SPDX-License-Identifier: Apache-2.0
#include "control/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include "base/failure.hpp"
#include "base/json.hpp"

namespace regatta {

namespace {

constexpr std::array<std::uint8_t, 4> frame_magic{'R', 'G', 'F', '1'};
constexpr std::size_t chunk = 1 << 20;

std::uint64_t decode(const std::uint8_t* at, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::uint64_t{at[i]} << (8 * i);
  return value;
}

void encode(std::uint8_t* at, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

} // namespace

channel::channel(tcp::socket socket) : socket_(std::move(socket)) {
  boost::system::error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
}

asio::awaitable<message> channel::receive() {
  // Asio calls this before every partial read, so heard_ advances while a long frame arrives. Returns the limit of the
  // next partial read.
  const auto note = [this](boost::system::error_code error, std::size_t got) -> std::size_t {
    if (got > 0) heard_ = std::chrono::steady_clock::now();
    return error ? 0 : chunk;
  };
  std::array<std::uint8_t, 16> prefix{};
  co_await asio::async_read(socket_, asio::buffer(prefix), note, asio::use_awaitable);
  heard_ = std::chrono::steady_clock::now();
  const std::uint64_t header_bytes = decode(prefix.data() + 4, 4), payload_bytes = decode(prefix.data() + 8, 8);
  if (!std::equal(frame_magic.begin(), frame_magic.end(), prefix.begin()) || header_bytes > max_header_bytes ||
      payload_bytes > max_payload_bytes)
    throw failure(
        exit_code::run,
        fmt::format("control channel: expected a frame with at most {} bytes of header and {} of payload, got "
                    "16 other bytes or a larger frame; is every process of this run the same regatta?",
                    max_header_bytes, max_payload_bytes));

  // The announced size may be false, so memory grows with the bytes that arrive: first by one chunk, then twofold.
  std::string header(header_bytes, '\0');
  message m;
  m.payload.resize(std::min<std::uint64_t>(payload_bytes, chunk));
  const std::array<asio::mutable_buffer, 2> parts{asio::buffer(header), asio::buffer(m.payload)};
  co_await asio::async_read(socket_, parts, note, asio::use_awaitable);
  while (m.payload.size() < payload_bytes) {
    const std::size_t got = m.payload.size();
    m.payload.resize(std::min<std::uint64_t>(payload_bytes, 2 * got));
    co_await asio::async_read(socket_, asio::buffer(m.payload) + got, note, asio::use_awaitable);
  }
  heard_ = std::chrono::steady_clock::now();
  m.header = parse_json(header);
  if (!m.header.is_object())
    throw failure(exit_code::run, "control channel: expected a JSON object as header of a frame, got other JSON");
  co_return m;
}

void channel::send(const nlohmann::json& header, std::shared_ptr<const blob> payload, std::function<void()> done) {
  if (!socket_.is_open()) {
    if (done) done();
    return;
  }
  // Texts come from plugins and operating systems. Bytes that are not UTF-8 are replaced, so that the frame is still
  // sent.
  frame f{
      {}, header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), std::move(payload), std::move(done)};
  const std::uint64_t payload_bytes = f.payload ? f.payload->size() : 0;
  if (f.header.size() > max_header_bytes || payload_bytes > max_payload_bytes)
    throw failure(
        exit_code::run,
        fmt::format("control channel: a frame has at most {} bytes of header and {} of payload, got {} and {}",
                    max_header_bytes, max_payload_bytes, f.header.size(), payload_bytes));
  std::copy(frame_magic.begin(), frame_magic.end(), f.prefix.begin());
  encode(f.prefix.data() + 4, f.header.size(), 4);
  encode(f.prefix.data() + 8, payload_bytes, 8);
  queue_.push_back(std::move(f));
  if (queue_.size() == 1) write_next();
}

void channel::write_next() {
  const frame& f = queue_.front();
  const std::array<asio::const_buffer, 3> parts{asio::buffer(f.prefix), asio::buffer(f.header),
                                                f.payload ? asio::buffer(*f.payload) : asio::const_buffer()};
  asio::async_write(socket_, parts, [self = shared_from_this()](boost::system::error_code error, std::size_t) {
    auto written = std::move(self->queue_.front());
    self->queue_.pop_front();
    if (written.done) written.done();
    if (error) self->close();
    if (!self->socket_.is_open()) {
      for (auto dropped = std::exchange(self->queue_, {}); auto& unsent : dropped)
        if (unsent.done) unsent.done();
    } else if (!self->queue_.empty()) {
      self->write_next();
    }
  });
}

void channel::close() {
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_both, ignored);
  socket_.close(ignored);
}

std::shared_ptr<channel> channel_over(asio::io_context& io, const unique_fd& socket) {
  int family = AF_INET;
  socklen_t bytes = sizeof family;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &bytes);
  const int copy = ::fcntl(socket.get(), F_DUPFD_CLOEXEC, 3);
  if (copy < 0) throw failure(exit_code::run, fmt::format("cannot duplicate a socket: {}", std::strerror(errno)));
  return std::make_shared<channel>(tcp::socket(io, family == AF_INET6 ? tcp::v6() : tcp::v4(), copy));
}

} // namespace regatta
