// SPDX-License-Identifier: Apache-2.0
//
// A descriptor for a rank that waits for this transport and others at once. It becomes readable when a peer has sent a
// byte or hung up, or when an 8-byte count is written to wake_up(). It is made when it is first needed.
#pragma once

#include "peer.hpp"

#include <array>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace shm {

// [loop]; wake_up() also [any].
class doorbell {
public:
  // Returns the descriptor, which this object owns, and marks it as armed. Once readable, it stays so until disarm().
  // `peers` must be all connected peers, which outlive this object; later calls ignore them. Throws RG_E_OPERATION.
  int arm(const std::vector<peer*>& peers) {
    if (!epoll_) {
      file_descriptor made(::epoll_create1(EPOLL_CLOEXEC));
      if (!made) fail_with_errno(RG_E_OPERATION, "cannot watch sockets");
      watch(made.get(), wake_up_.get(), nullptr);
      for (peer* p : peers) watch(made.get(), p->socket(), p);
      epoll_ = std::move(made); // only now: after an error, the next call begins anew
    }
    armed_ = true;
    return epoll_.get();
  }
  bool is_armed() const noexcept { return armed_; }
  // An eventfd.
  int wake_up() const noexcept { return wake_up_.get(); }

  // Consumes events, of up to 16 descriptors, and marks the descriptor as not armed. Returns true if a peer has hung
  // up; its socket is not watched any more. Requires arm().
  bool disarm() {
    armed_ = false;
    bool hung_up = false;
    std::array<epoll_event, 16> events;
    const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < n; ++i) {
      const epoll_event& e = events[static_cast<std::size_t>(i)];
      auto* const p = static_cast<peer*>(e.data.ptr);
      if (!p) {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto n_read = ::read(wake_up_.get(), &count, sizeof count);
        continue;
      }
      p->read_socket();
      if ((e.events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) == 0) continue;
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, p->socket(), nullptr);
      hung_up = true;
    }
    return hung_up;
  }

private:
  // `p`: whose socket it is; null for the eventfd.
  static void watch(int epoll, int fd, peer* p) {
    epoll_event e{};
    e.events = EPOLLIN | EPOLLRDHUP;
    e.data.ptr = p;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0) fail_with_errno(RG_E_OPERATION, "cannot watch a socket");
  }

  file_descriptor epoll_;
  file_descriptor wake_up_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  bool armed_ = false;
};

} // namespace shm
