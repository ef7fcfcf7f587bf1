// SPDX-License-Identifier: Apache-2.0
//
// A transport over Unix-domain stream sockets, for ranks of one host, with one socket for each peer and lane. A stream
// is in order, and sockets do not block each other: this is all that lanes require. In the stream a message is its
// length (8 bytes) and then its bytes. meeting.hpp connects the ranks and checks that they belong to the run.
#include "meeting.hpp"

#include <regatta/transport.hpp>

#include <deque>
#include <optional>

#include <sys/eventfd.h>

namespace {

using namespace unix_sockets;

class unix_transport {
public:
  unix_transport(const rg_host* host, const rg::parameters_t<unix_transport>&) : host_(host) {}

  // [main] Lanes do not block each other, and poll() can sleep. The engine does whatever is not declared here: without
  // RG_CAP_ADD, it receives into temporary memory and adds; without RG_CAP_ORDERED_RECEIVES, it keeps receives into the
  // same bytes apart.
  rg_transport_caps caps() const {
    rg_transport_caps caps = {};
    caps.flags = RG_CAP_SLEEP | RG_CAP_LONG_FAILS_SENDER;
    caps.memory = RG_MEMORY_HOST;
    caps.p2p = RG_P2P_INDEPENDENT;
    return caps;
  }

  // [main] The engine passes the blob to all peers. `world` stays valid until close().
  rg_blob listen(const rg_world& world) {
    world_ = &world;
    meeting_.emplace(host_, world);
    return meeting_->blob();
  }
  // [main] Connects to all peers.
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
    channels_ = std::vector<channel>(std::size_t{world_->size} * world_->lanes);
    meeting_->connect(blobs, timeout_ns,
                      [&](std::uint32_t peer, std::uint32_t lane) -> descriptor& { return at(peer, lane).socket; });
    meeting_.reset(); // no further peer will connect
  }

  // [loop] send() and recv() only enqueue: bytes move in poll(). The buffer must stay until the completion.
  rg_status send(const rg_transfer& t) {
    check(t).sends.push_back({static_cast<std::byte*>(t.address), t.bytes, t.cookie});
    return RG_OK;
  }
  rg_status recv(const rg_transfer& t) {
    check(t).receives.push_back({static_cast<std::byte*>(t.address), t.bytes, t.cookie});
    return RG_OK;
  }

  // [loop] All bytes move here: a part of the first message of every stream, in both directions, in turns, until there
  // is a completion to report, wake() is called, or the time is over.
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const deadline until(timeout_ns);
    for (;;) {
      bool moved = false;
      for (channel& c : channels_) {
        moved |= send_some(c);
        moved |= receive_some(c);
      }
      if (!ended_.empty() || until.left() == 0) break;
      if (!moved && wait(until.waited() < spin_ns ? 0 : until.left())) break; // spinning is polling without waiting
    }
    std::uint32_t count = 0;
    for (; count < out.size() && !ended_.empty(); ended_.pop_front()) out[count++] = ended_.front();
    return count;
  }
  // [any] Ends the current wait(), or the next one.
  void wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(wake_up_, &one, sizeof one);
  }

  // [loop] Once the socket is closed, the kernel does not access the buffers of its operations any more.
  void cancel(std::uint32_t peer) {
    for (std::uint32_t lane = 0; lane < world_->lanes; ++lane) end(at(peer, lane), RG_E_CANCELLED);
  }

  // [main] Tells all peers that no more bytes follow, and waits until all peers do the same: then all have been
  // received.
  void close(std::uint64_t timeout_ns) {
    const deadline until(timeout_ns);
    for (const channel& c : channels_)
      if (c.socket >= 0) ::shutdown(c.socket, SHUT_WR);
    for (const channel& c : channels_) {
      char unasked;
      while (c.socket >= 0 && read_all(c.socket, &unasked, 1, until.left())) {
      }
    }
    channels_.clear();
    if (until.left() == 0) throw rg::error(RG_TIMEOUT, "unix: not all peers have closed before the deadline");
  }

  rg_counters counters() const { return counters_; }

private:
  struct operation {
    std::byte* data;
    std::uint64_t bytes, cookie;
  };
  struct channel { // one lane to one peer
    descriptor socket;
    std::deque<operation> sends, receives;
    std::uint64_t sent = 0, received = 0; // bytes of the first message, including its header
    std::uint64_t length = 0;             // of the message that is being received, once received >= header
  };
  static constexpr std::uint64_t header = sizeof(std::uint64_t);

  channel& at(std::uint32_t peer, std::uint32_t lane) { return channels_[std::size_t{peer} * world_->lanes + lane]; }

  channel& check(const rg_transfer& t) {
    if (t.peer >= world_->size || t.lane >= world_->lanes)
      throw rg::error(RG_E_OPERATION, "unix: there is no such rank or lane");
    if (!t.address && t.bytes) throw rg::error(RG_E_OPERATION, "unix: a ghost has no bytes to transfer");
    channel& c = at(t.peer, t.lane);
    if (c.socket < 0) throw rg::error(RG_E_PEER, rank_name(t.peer) + " is not connected any more");
    return c;
  }

  // Returns whether anything changed on this stream: bytes moved, or the stream failed.
  bool send_some(channel& c) {
    if (c.sends.empty()) return false;
    operation& o = c.sends.front();
    const std::uint64_t head = std::min(c.sent, header);
    iovec parts[] = {{reinterpret_cast<std::byte*>(&o.bytes) + head, header - head},
                     {o.data + (c.sent - head), o.bytes - (c.sent - head)}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const auto n = ::sendmsg(c.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n <= 0) return failed(c, n);
    counters_.bytes_sent += static_cast<std::uint64_t>(n);
    c.sent += static_cast<std::uint64_t>(n);
    if (c.sent == header + o.bytes) {
      ++counters_.messages_sent;
      c.sent = 0;
      complete(c.sends, RG_OK, o.bytes);
    }
    return true;
  }

  // Reads only messages that have a posted receive: other bytes stay in the kernel, and so limit their sender.
  bool receive_some(channel& c) {
    if (c.receives.empty()) return false;
    const operation& o = c.receives.front();
    const bool in_header = c.received < header;
    auto* const to = in_header ? reinterpret_cast<std::byte*>(&c.length) + c.received : o.data + (c.received - header);
    const auto n = ::recv(c.socket, to, (in_header ? header : header + c.length) - c.received, MSG_DONTWAIT);
    if (n <= 0) return failed(c, n);
    counters_.bytes_received += static_cast<std::uint64_t>(n);
    c.received += static_cast<std::uint64_t>(n);
    if (c.received < header) return true;
    if (c.length > o.bytes)
      lose(c, "sends " + std::to_string(c.length) + " bytes to a receive of " + std::to_string(o.bytes));
    else if (c.received == header + c.length) {
      ++counters_.messages_received;
      c.received = 0;
      complete(c.receives, RG_OK, c.length);
    }
    return true;
  }

  bool failed(channel& c, ssize_t n) {
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false; // the kernel has no room, or no bytes
    lose(c, n == 0 ? "has left" : std::string("is lost: ") + std::strerror(errno));
    return true;
  }
  // Fails operations after their call: the host gets the text, and the completions have the status.
  void lose(channel& c, const std::string& what) {
    const auto peer = static_cast<std::uint32_t>(static_cast<std::size_t>(&c - channels_.data()) / world_->lanes);
    host_->fail(host_->context, RG_E_PEER, (rank_name(peer) + " " + what).c_str());
    end(c, RG_E_PEER);
  }
  void end(channel& c, rg_status status) {
    c.socket = descriptor();
    while (!c.sends.empty()) complete(c.sends, status, 0);
    while (!c.receives.empty()) complete(c.receives, status, 0);
  }
  void complete(std::deque<operation>& queue, rg_status status, std::uint64_t bytes) {
    rg_completion completion = {};
    completion.cookie = queue.front().cookie;
    completion.status = status;
    completion.bytes = bytes;
    ended_.push_back(completion);
    queue.pop_front();
  }

  // Waits until bytes can move on a stream, or wake() is called. Returns true for wake().
  bool wait(std::uint64_t timeout_ns) {
    polled_.assign(1, {wake_up_, POLLIN, 0});
    for (const channel& c : channels_) {
      const int events = (c.sends.empty() ? 0 : POLLOUT) | (c.receives.empty() ? 0 : POLLIN);
      if (events) polled_.push_back({c.socket, static_cast<short>(events), 0});
    }
    const timespec t = to_timespec(timeout_ns);
    ::ppoll(polled_.data(), polled_.size(), &t, nullptr);
    std::uint64_t wake_ups;
    return (polled_[0].revents & POLLIN) && ::read(wake_up_, &wake_ups, sizeof wake_ups) > 0;
  }

  const rg_host* host_;
  const rg_world* world_ = nullptr;
  std::optional<meeting> meeting_;
  descriptor wake_up_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::vector<channel> channels_; // [peer][lane]
  std::deque<rg_completion> ended_;
  std::vector<pollfd> polled_;
  rg_counters counters_{};
};

} // namespace

RG_PLUGIN("custom_transport", "1.0",
          rg::transport<unix_transport>("unix", "example: Unix-domain sockets, for ranks of one host"))
