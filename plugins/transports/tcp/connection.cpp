// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include "add.hpp"

#include <algorithm>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <regatta/clock.hpp>
#include <sys/socket.h>
#include <sys/uio.h>

namespace tcp {

connection::connection(common& shared, link made)
    : shared_(shared), peer_(made.peer), lane_(made.lane), track_(shared.tracks), rail_(made.rail),
      names_{shared.trace.text("send to rank " + std::to_string(peer_) + ", lane " + std::to_string(lane_)),
             shared.trace.text("receive from rank " + std::to_string(peer_) + ", lane " + std::to_string(lane_))},
      socket_(std::move(made.socket)) {
  shared.tracks += 2;
}

void connection::post_send(const void* data, std::uint64_t bytes, std::uint64_t cookie) {
  sends_.push({static_cast<const std::byte*>(data), bytes, cookie, make_header(bytes)});
}

void connection::post_receive(void* data, std::uint64_t capacity, bool adds, std::uint64_t cookie) {
  auto* first = static_cast<std::byte*>(data);
  receives_.push({first, capacity, cookie, shared_.order.enter(first, first + capacity, this), adds});
}

void connection::became(bool readable, bool writable, bool hung_up) {
  readable_ |= readable | hung_up;
  writable_ |= writable;
  hung_up_ |= hung_up;
}

bool connection::progress() {
  if (ended_) return false;
  const bool more_to_send = send_some();
  return receive_some() || (more_to_send && !ended_);
}

void connection::abandon(rg_status status, int error) {
  error_ = error;
  while (!sends_.empty()) complete(sends_.pop().cookie, status, 0);
  sent_ = 0;
  while (!receives_.empty()) end_message(status);
  socket_.reset();
  ended_ = true;
}

// ------------------------------------------------------------------------------------------------------ sending ---

bool connection::send_some() {
  // A message of up to two chunks is sent at once: if it were cut, its second half would wait behind data of the other
  // direction.
  std::size_t budget = shared_.chunk;
  if (!sends_.empty()) {
    const std::uint64_t left = sends_.front().head() + sends_.front().bytes - sent_;
    if (left <= 2 * shared_.chunk + long_header) budget = std::max<std::size_t>(budget, left);
  }
  while (writable_ && !sends_.empty()) {
    if (budget == 0) return true;
    std::array<iovec, 32> parts;
    std::size_t count = 0, total = 0;
    auto gather = [&](const void* from, std::size_t bytes) {
      if (bytes > 0) parts[count++] = {const_cast<void*>(from), bytes};
      total += bytes;
    };
    for (std::size_t i = 0; i < sends_.size() && count + 2 <= parts.size() && total < budget; ++i) {
      const outgoing& m = sends_.at(i);
      const std::uint64_t gone = i == 0 ? sent_ : 0;
      if (gone < m.head()) gather(reinterpret_cast<const std::byte*>(m.header.data()) + gone, m.head() - gone);
      const std::uint64_t from = gone > m.head() ? gone - m.head() : 0;
      gather(m.data + from, std::min<std::uint64_t>(m.bytes - from, total < budget ? budget - total : 0));
      if (total >= budget) break; // may have cut this message: nothing may follow it
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    if (sent_ == 0) send_began_ = shared_.trace.on() ? rg::now_ns() : 0;
    ++shared_.system_calls;
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) lost_by_errno();
      writable_ = false;
      return false;
    }
    const auto written = static_cast<std::size_t>(n);
    shared_.counters.bytes_sent += written;
    bytes_ += written;
    budget -= std::min(budget, written);
    writable_ = written == total; // epoll(7): a stream that takes less than offered is full
    for (sent_ += written; !sends_.empty() && sent_ >= sends_.front().head() + sends_.front().bytes;) {
      const outgoing done = sends_.pop();
      sent_ -= done.head() + done.bytes;
      ++shared_.counters.messages_sent;
      send_began_ = trace(false, send_began_, done.bytes);
      complete(done.cookie, RG_OK, done.bytes);
    }
  }
  return false;
}

// ---------------------------------------------------------------------------------------------------- receiving ---

bool connection::receive_some() {
  std::size_t budget = shared_.chunk;
  for (;;) {
    const std::size_t staged = stage_last_ - stage_first_;
    if (!in_message_) {
      if (at_end_ && staged == 0) {
        ended_ = true;
        return false;
      }
      if (receives_.empty() && !(hung_up_ && staged == 0)) return false;
      if (!begin_message()) {
        if (!fill_stage()) return false;
        continue;
      }
    }
    const incoming& r = receives_.front();
    if (!shared_.order.may_start(r.ticket)) return false; // released() brings this connection back
    take_from_stage();
    if (received_ == length_) {
      ++shared_.counters.messages_received;
      trace(true, receive_began_, length_);
      end_message(RG_OK);
      continue;
    }
    if (budget == 0) return true;
    if (at_end_) lost("closed the connection in the middle of a message");
    if (!readable_) return false;

    // The rest of the message goes directly into its buffer, and data behind it onto the stage, which is empty now.
    const std::uint64_t left = length_ - received_;
    std::size_t direct = static_cast<std::size_t>(std::min<std::uint64_t>(left, budget));
    if (r.adds) direct = std::min(direct, scratch_bytes);
    // At the stream's offset modulo a page, which makes the kernel's copying fast (wire.hpp).
    std::byte* const scratch = shared_.scratch.data()->bytes.data() + received_ % sizeof(page);
    std::array<iovec, 2> parts = {iovec{r.adds ? scratch : r.data + received_, direct}, iovec{stage(), stage_bytes}};
    const bool whole = direct == left;
    const std::size_t n = read(std::span(parts).first(whole ? 2 : 1), direct);
    budget -= std::min(budget, n);
    const std::size_t ours = std::min(n, direct);
    stage_first_ = 0;
    stage_last_ = n - ours;
    if (r.adds)
      add(scratch, ours);
    else
      received_ += ours;
  }
}

bool connection::begin_message() {
  const std::size_t staged = stage_last_ - stage_first_;
  if (staged < short_header) return false;
  if (!read_header(stage() + stage_first_, length_)) lost("sent an invalid message header");
  if (staged < header_bytes(length_)) return false;
  const incoming& r = receives_.front();
  stage_first_ += header_bytes(length_);
  received_ = 0;
  in_message_ = true;
  receive_began_ = shared_.trace.on() ? rg::now_ns() : 0;
  const bool too_long = length_ > r.capacity;
  if (!too_long && !(r.adds && length_ % sizeof(float) != 0)) return true;
  const std::string size = std::to_string(length_) + " bytes";
  end_message(RG_E_OPERATION);
  lost("sent a message of " + size +
       (too_long ? ", longer than the receive posted for it" : ", which is no whole number of floats to add"));
}

std::uint64_t connection::trace(bool received, std::uint64_t began, std::uint64_t bytes) const {
  if (!began) return 0;
  const std::uint64_t now = rg::now_ns();
  shared_.trace.span({.name = names_[received],
                      .category = "communication",
                      .track = track_ + received,
                      .number_name = "bytes",
                      .number = bytes},
                     began, now);
  return now;
}

void connection::end_message(rg_status status) {
  const incoming done = receives_.pop();
  complete(done.cookie, status, status == RG_OK ? length_ : 0);
  in_message_ = false;
  shared_.order.leave(done.ticket, [this](connection* c) { shared_.released.push(c); });
}

void connection::take_from_stage() {
  const std::uint64_t staged = stage_last_ - stage_first_;
  const auto bytes = static_cast<std::size_t>(std::min(length_ - received_, staged));
  if (bytes == 0) return;
  const std::byte* data = stage() + stage_first_;
  const incoming& r = receives_.front();
  if (r.adds) {
    add(data, bytes);
  } else {
    std::memcpy(r.data + received_, data, bytes);
    received_ += bytes;
  }
  stage_first_ += bytes;
}

void connection::add(const std::byte* data, std::size_t bytes) {
  std::byte* const target = receives_.front().data;
  while (bytes > 0 && (received_ % 4 != 0 || bytes < 4)) {
    partial_[received_ % 4] = *data++;
    --bytes;
    if (++received_ % 4 == 0) add_floats(target + received_ - 4, partial_.data(), 1);
  }
  const std::size_t count = bytes / 4;
  add_floats(target + received_, data, count);
  received_ += 4 * count;
  if (bytes > 4 * count) add(data + 4 * count, bytes - 4 * count);
}

bool connection::fill_stage() {
  const std::size_t kept = stage_last_ - stage_first_;
  if (at_end_) lost("closed the connection in the middle of a message");
  if (!readable_) return false;
  std::memmove(stage(), stage() + stage_first_, kept);
  stage_first_ = 0;
  stage_last_ = kept;
  iovec part = {stage() + kept, stage_bytes - kept};
  stage_last_ += read(std::span(&part, 1), part.iov_len);
  return stage_last_ > kept || at_end_;
}

std::size_t connection::read(std::span<iovec> parts, std::size_t wanted) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  ++shared_.system_calls;
  ssize_t n;
  do n = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  while (n < 0 && errno == EINTR);
  if (n < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK) lost_by_errno();
    readable_ = false;
    return 0;
  }
  at_end_ = n == 0;
  const auto bytes = static_cast<std::size_t>(n);
  shared_.counters.bytes_received += bytes;
  bytes_ += bytes;
  // epoll(7): a stream that returns less than asked for is empty. But the end of a stream is announced only once.
  if (bytes < wanted && !hung_up_) readable_ = false;
  return bytes;
}

// ------------------------------------------------------------------------------------------------------ leaving ---

void connection::finish_sending() {
  if (socket_) ::shutdown(socket_.get(), SHUT_WR);
}

bool connection::drained() {
  while (!at_end_ && readable_) {
    std::array<std::byte, 65536> waste;
    iovec part = {waste.data(), waste.size()};
    read(std::span(&part, 1), waste.size());
  }
  return at_end_;
}

bool connection::cancel(std::uint64_t cookie) {
  for (std::size_t i = 0; i < sends_.size(); ++i) {
    if (sends_.at(i).cookie != cookie) continue;
    if (i == 0 && sent_ > 0) return true;
    sends_.erase(i);
    complete(cookie, RG_E_CANCELLED, 0);
    return true;
  }
  for (std::size_t i = 0; i < receives_.size(); ++i) {
    if (receives_.at(i).cookie != cookie) continue;
    if (i == 0 && in_message_) return true;
    const std::uint32_t ticket = receives_.at(i).ticket;
    receives_.erase(i);
    complete(cookie, RG_E_CANCELLED, 0);
    shared_.order.leave(ticket, [this](connection* c) { shared_.released.push(c); });
    return true;
  }
  return false;
}

std::uint64_t connection::retransmits() {
  tcp_info info{};
  socklen_t length = sizeof info;
  // The socket of an abandoned connection is closed: the last count stands.
  if (socket_ && ::getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
    retransmits_ = info.tcpi_total_retrans;
  return retransmits_;
}

void connection::complete(std::uint64_t cookie, rg_status status, std::uint64_t bytes) {
  shared_.finished.push({.cookie = cookie,
                         .status = status,
                         .vendor_error = status == RG_OK ? 0 : error_,
                         .bytes = bytes,
                         .time_ns = shared_.trace.on() ? rg::now_ns() : 0});
}

void connection::lost_by_errno() {
  error_ = errno;
  lost(std::strerror(error_));
}

void connection::lost(const std::string& how) const {
  throw rg::error(RG_E_PEER, "tcp: rank " + std::to_string(peer_) + ", lane " + std::to_string(lane_) + ": " + how);
}

} // namespace tcp
