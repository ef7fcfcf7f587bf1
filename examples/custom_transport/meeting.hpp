// SPDX-License-Identifier: Apache-2.0
//
// Connects the ranks of one host over Unix-domain sockets. Any process of the host may connect to an abstract socket,
// so both sides first prove that they know the run's secret. The secret stays with the engine, which computes the
// proofs (regatta.authenticate/1).
#pragma once

#include <regatta/ext/authenticate.h>
#include <regatta/plugin.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace unix_sockets {

using token = std::array<std::uint8_t, 16>; // names a listening socket, and makes the proofs of each run new
using proof = std::array<std::uint8_t, 32>;

inline std::string rank_name(std::uint32_t rank) {
  return "unix: rank " + std::to_string(rank);
}
[[noreturn]] inline void fail_with_errno(rg_status status, const std::string& what) {
  throw rg::error(status, what + ": " + std::strerror(errno));
}

class descriptor {
public:
  descriptor(int fd = -1) : fd_(fd) {}
  descriptor(descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  descriptor& operator=(descriptor&& o) noexcept { return std::swap(fd_, o.fd_), *this; }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  operator int() const { return fd_; }

private:
  int fd_;
};

// A limit in nanoseconds on the time since construction; left() is 0 once it has passed.
class deadline {
public:
  explicit deadline(std::uint64_t ns) : start_(std::chrono::steady_clock::now()), ns_(ns) {}
  std::uint64_t waited() const {
    return static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start_).count());
  }
  std::uint64_t left() const { return ns_ - std::min(ns_, waited()); }

private:
  std::chrono::steady_clock::time_point start_;
  std::uint64_t ns_;
};

inline timespec to_timespec(std::uint64_t ns) {
  ns = std::min<std::uint64_t>(ns, 1'000'000'000'000'000'000); // 30 years; UINT64_MAX means no limit
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

// Reads exactly `bytes` bytes, which must be there already. Returns false if they are not, or recv() fails.
inline bool read_now(int fd, void* to, std::size_t bytes) {
  return ::recv(fd, to, bytes, MSG_DONTWAIT) == static_cast<ssize_t>(bytes);
}
// Reads exactly `bytes` bytes. Returns false if they do not arrive in time, the peer closes, or recv() fails.
inline bool read_all(int fd, void* to, std::size_t bytes, std::uint64_t timeout_ns) {
  const timespec t = to_timespec(timeout_ns);
  const timeval limit = {t.tv_sec, t.tv_nsec / 1000 + 1}; // 0 would mean no limit
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return ::recv(fd, to, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

class meeting {
public:
  // Opens a socket for peers. Keeps a reference to `world`. An abstract name (its first byte is 0) is in no directory,
  // and ends with the last descriptor: nothing remains, however a rank dies.
  meeting(const rg_host* host, const rg_world& world) : world_(world) {
    authenticate_ = static_cast<const rg_authenticate*>(host->extension(host->context, RG_EXT_AUTHENTICATE));
    if (!authenticate_) throw rg::error(RG_E_CONFIG, "unix: the engine offers no " RG_EXT_AUTHENTICATE);
    if (::getrandom(token_.data(), token_.size(), 0) != static_cast<ssize_t>(token_.size()))
      fail_with_errno(RG_E_OPERATION, "unix: cannot read random bytes");
    const auto [address, length] = address_of(token_.data());
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) || ::listen(listener_, SOMAXCONN))
      fail_with_errno(RG_E_OPERATION, "unix: cannot listen");
  }

  // The bytes that the engine passes to every peer; valid as long as this object.
  rg_blob blob() const { return {token_.data(), token_.size()}; }

  // Connects to peers with lower ranks and accepts those with higher ranks. `blobs` is indexed by rank. Each connection
  // is stored in `socket(peer, lane)`, which must be -1 before. Throws rg::error, RG_E_PEER, if a peer does not connect
  // in time or fails to prove that it belongs to the run.
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns,
               const std::function<descriptor&(std::uint32_t, std::uint32_t)>& socket) {
    const deadline until(timeout_ns);
    const auto each = [&](auto visit) { // visits all connections of this rank
      for (const std::uint32_t peer : std::span(world_.peers, world_.peer_count))
        for (std::uint32_t lane = 0; lane < world_.lanes; ++lane) visit(peer, lane, socket(peer, lane));
    };
    each([&](std::uint32_t peer, std::uint32_t lane, descriptor& s) {
      if (blobs[peer].bytes != sizeof(token)) throw rg::error(RG_E_PEER, rank_name(peer) + " sent no address");
      if (peer < world_.rank) s = call(peer, lane, blobs);
    });
    std::vector<descriptor> unknown; // accepted; the first bytes have not arrived yet
    for (;;) {
      std::uint32_t missing = world_.size;
      each([&](std::uint32_t peer, std::uint32_t, descriptor& s) {
        if (s < 0) missing = peer;
      });
      if (missing == world_.size) break;
      answer(missing, blobs, until, unknown, socket);
    }
    each([&](std::uint32_t peer, std::uint32_t lane, descriptor& s) {
      proof theirs;
      if (peer < world_.rank &&
          (!read_all(s, &theirs, sizeof theirs, until.left()) || !equal(theirs, prove(peer, world_.rank, lane, blobs))))
        throw rg::error(RG_E_PEER, rank_name(peer) + " failed authentication");
    });
  }

private:
  struct hello { // the first bytes on a connection; the answer is a proof
    std::uint32_t from, lane;
    proof mac;
  };

  descriptor call(std::uint32_t peer, std::uint32_t lane, std::span<const rg_blob> blobs) const {
    descriptor s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto [address, length] = address_of(blobs[peer].data);
    const hello h = {world_.rank, lane, prove(world_.rank, peer, lane, blobs)};
    if (::connect(s, reinterpret_cast<const sockaddr*>(&address), length) ||
        ::send(s, &h, sizeof h, MSG_NOSIGNAL) != sizeof h)
      fail_with_errno(RG_E_PEER, rank_name(peer) + " cannot be connected to");
    return s;
  }

  // Waits for the next connection and for the first bytes on those in `unknown`. A stranger that sends nothing, or a
  // peer that is slow, delays no other peer.
  void answer(std::uint32_t missing, std::span<const rg_blob> blobs, const deadline& until,
              std::vector<descriptor>& unknown,
              const std::function<descriptor&(std::uint32_t, std::uint32_t)>& socket) const {
    std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
    for (const descriptor& s : unknown) waiting.push_back({s, POLLIN, 0});
    const timespec t = to_timespec(until.left());
    if (::ppoll(waiting.data(), waiting.size(), &t, nullptr) == 0)
      throw rg::error(RG_E_PEER, rank_name(missing) + " did not connect in time");
    for (std::size_t i = unknown.size(); i-- > 0;) {
      if (!waiting[i + 1].revents) continue;
      identify(std::move(unknown[i]), blobs, socket);
      unknown.erase(unknown.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (!waiting[0].revents) return;
    descriptor s = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (s >= 0)
      unknown.push_back(std::move(s));
    else if (errno != EINTR && errno != ECONNABORTED) // EMFILE would come again at once, and for ever
      fail_with_errno(RG_E_OPERATION, "unix: cannot accept a connection");
  }

  // Keeps a connection whose first bytes prove that it is an expected peer; closes any other. A peer sends these bytes
  // with one call, so they arrive together.
  void identify(descriptor s, std::span<const rg_blob> blobs,
                const std::function<descriptor&(std::uint32_t, std::uint32_t)>& socket) const {
    hello h;
    if (!read_now(s, &h, sizeof h)) return;
    const std::span peers(world_.peers, world_.peer_count);
    if (h.lane >= world_.lanes || h.from <= world_.rank || !std::count(peers.begin(), peers.end(), h.from) ||
        socket(h.from, h.lane) >= 0 || !equal(h.mac, prove(h.from, world_.rank, h.lane, blobs)))
      return;
    const proof ours = prove(world_.rank, h.from, h.lane, blobs);
    if (::send(s, &ours, sizeof ours, MSG_NOSIGNAL) == sizeof ours) socket(h.from, h.lane) = std::move(s);
  }

  // A value that only ranks of this run can compute, and that holds for this connection only: both sides' tokens are
  // new in every run.
  proof prove(std::uint32_t from, std::uint32_t to, std::uint32_t lane, std::span<const rg_blob> blobs) const {
    struct {
      char what[16] = "regatta-unix/1";
      std::uint32_t from, to, lane;
      token of_from, of_to;
    } said;
    said.from = from;
    said.to = to;
    said.lane = lane;
    const auto token_of = [&](std::uint32_t rank) -> const void* {
      return rank == world_.rank ? token_.data() : blobs[rank].data;
    };
    std::memcpy(said.of_from.data(), token_of(from), sizeof(token));
    std::memcpy(said.of_to.data(), token_of(to), sizeof(token));
    proof out;
    if (authenticate_->mac(authenticate_->context, &said, sizeof said, out.data()) != RG_OK)
      throw rg::error(RG_E_OPERATION, "unix: the engine failed to compute a MAC");
    return out;
  }
  static bool equal(const proof& a, const proof& b) { // takes the same time wherever they differ
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const unsigned byte_of_a = a[i], byte_of_b = b[i];
      difference |= byte_of_a ^ byte_of_b;
    }
    return difference == 0;
  }
  static std::pair<sockaddr_un, socklen_t> address_of(const void* name) {
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path + 1, name, sizeof(token));
    return {a, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + sizeof(token))};
  }

  const rg_world& world_;
  const rg_authenticate* authenticate_;
  token token_{};
  descriptor listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

} // namespace unix_sockets
