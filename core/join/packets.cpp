// SPDX-License-Identifier: Apache-2.0
#include "join/packets.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/failure.hpp"
#include "base/json.hpp"

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::size_t longest_packet = 64 << 10; // bytes
constexpr std::size_t most_descriptors = 4;

struct socket_name {
  explicit socket_name(const std::string& job) {
    address.sun_family = AF_UNIX;
    const std::string name = fmt::format("regatta-{}-{}", ::getuid(), job);
    const std::size_t count = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), count);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t bytes = 0;
};

unique_fd make_socket() {
  unique_fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) throw failure(exit_code::run, fmt::format("cannot make a socket: {}", std::strerror(errno)));
  return fd;
}

// Returns the process at the other end if it belongs to this user, else -1.
pid_t peer_of(int socket) {
  ucred who{};
  socklen_t bytes = sizeof who;
  const bool ours = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 && who.uid == ::getuid();
  return ours ? who.pid : -1;
}

} // namespace

unique_fd listen_at(const std::string& name) {
  unique_fd fd = make_socket();
  const socket_name at(name);
  if (::bind(fd.get(), at.get(), at.bytes) == 0 && ::listen(fd.get(), SOMAXCONN) == 0) return fd;
  if (errno == EADDRINUSE) return {};
  throw failure(exit_code::run, fmt::format("cannot listen for processes of this host: {}", std::strerror(errno)));
}

unique_fd connect_at(const std::string& name) {
  unique_fd fd = make_socket();
  const socket_name at(name);
  if (::connect(fd.get(), at.get(), at.bytes) != 0 || peer_of(fd.get()) <= 0) return {};
  return fd;
}

unique_fd accept_at(int listener, pid_t& peer) {
  unique_fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  peer = fd.get() < 0 ? -1 : peer_of(fd.get());
  if (peer < 0) return {};
  return fd;
}

void put(int socket, const json& what, std::span<const int> descriptors) {
  auto packet = json::to_cbor(what);
  iovec data{packet.data(), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> room{};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  if (!descriptors.empty()) {
    m.msg_control = room.data();
    m.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&m);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  if (::sendmsg(socket, &m, MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size()))
    throw failure(exit_code::run,
                  fmt::format("lost the connection to a process that the launcher started: {}", std::strerror(errno)));
}

std::optional<json> get(int socket, std::vector<unique_fd>* descriptors) {
  std::vector<std::uint8_t> packet(longest_packet);
  iovec data{packet.data(), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> room{};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = descriptors ? room.data() : nullptr;
  m.msg_controllen = descriptors ? room.size() : 0;
  ssize_t n = 0;
  while ((n = ::recvmsg(socket, &m, MSG_CMSG_CLOEXEC)) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) break;
    pollfd waiting{socket, POLLIN, 0}; // a coordinator that watches the socket has made it non-blocking
    ::poll(&waiting, 1, -1);
  }
  if (cmsghdr* const c = descriptors && n > 0 ? CMSG_FIRSTHDR(&m) : nullptr; c && c->cmsg_type == SCM_RIGHTS)
    for (std::size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int got = -1;
      std::memcpy(&got, CMSG_DATA(c) + at, sizeof got);
      descriptors->emplace_back(got);
    }
  if (n <= 0) return {};
  packet.resize(static_cast<std::size_t>(n));
  try {
    json what = parse_cbor(packet);
    return what.is_object() ? std::optional(std::move(what)) : std::nullopt;
  } catch (const failure&) {
    return {};
  }
}

std::optional<std::size_t> wait_readable(std::span<const int> descriptors,
                                         std::chrono::steady_clock::time_point until) {
  std::vector<pollfd> waiting;
  for (const int fd : descriptors) waiting.push_back({fd, POLLIN, 0}); // poll() ignores negative ones
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    if (left <= 0) return {};
    const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(std::min<std::int64_t>(left, 1 << 30)));
    if (ready < 0 && errno != EINTR) return {};
    for (std::size_t i = 0; ready > 0 && i < waiting.size(); ++i)
      if (waiting[i].revents) return i;
  }
}

} // namespace regatta
