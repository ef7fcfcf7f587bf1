// SPDX-License-Identifier: Apache-2.0
#include "handshake.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <regatta/ext/authenticate.h>

namespace shm {

namespace {

constexpr std::array<char, 8> card_mark{'R', 'G', 'S', 'H', 'M', '0', '1', 0};

template <class T> void fill_random(T& out) {
  if (::getrandom(&out, sizeof out, 0) != static_cast<ssize_t>(sizeof out))
    fail_with_errno(RG_E_OPERATION, "cannot read random numbers");
}

// An abstract address: the path begins with a zero byte.
std::pair<sockaddr_un, socklen_t> address_of(const std::array<char, 32>& name) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  static constexpr char prefix[] = "regatta-";
  std::memcpy(a.sun_path + 1, prefix, sizeof prefix - 1);
  std::memcpy(a.sun_path + sizeof prefix, name.data(), name.size());
  return {a, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof prefix + name.size())};
}

file_descriptor make_socket() {
  file_descriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) fail_with_errno(RG_E_OPERATION, "cannot make a Unix socket");
  return fd;
}

std::string rank_name(std::uint32_t rank) {
  return "rank " + std::to_string(rank);
}

using nonce = std::array<std::uint8_t, 32>;

enum class step : std::uint32_t { hello = 1, reply = 2, proof = 3, welcome = 4 };

struct packet {
  step kind;
  std::uint32_t from, to;
  std::uint32_t reserved;
  nonce challenge; // hello, reply
  nonce mac;       // reply, proof
};

// The data of a proof: both challenges, both ranks, and the name of the listening socket.
struct statement {
  std::array<char, 16> purpose{'r', 'e', 'g', 'a', 't', 't', 'a', ' ', 's', 'h', 'm', ' ', '1'};
  std::array<char, 32> name;
  std::uint32_t higher, lower;
  std::uint32_t speaker; // the rank that makes the proof
  std::uint32_t reserved = 0;
  nonce higher_challenge, lower_challenge;
};

bool send_packet(int fd, const packet& p, std::span<const int> descriptors) {
  iovec data{const_cast<packet*>(&p), sizeof p};
  alignas(cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  if (!descriptors.empty()) {
    m.msg_control = space;
    m.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(fd, &m, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof p);
}

enum class arrival { packet, nothing, broken };

arrival receive_packet(int fd, packet& p, std::array<file_descriptor, 2>& descriptors) {
  iovec data{&p, sizeof p};
  alignas(cmsghdr) char space[CMSG_SPACE(2 * sizeof(int))];
  msghdr m{};
  m.msg_iov = &data;
  m.msg_iovlen = 1;
  m.msg_control = space;
  m.msg_controllen = sizeof space;
  const ssize_t n = ::recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? arrival::nothing : arrival::broken;
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= c->cmsg_len; ++i) {
      int received;
      std::memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      file_descriptor owned(received); // closed here if it is one too many
      if (i < 2) descriptors[i] = std::move(owned);
    }
  }
  return n == static_cast<ssize_t>(sizeof p) ? arrival::packet : arrival::broken;
}

// A connection during its handshake.
class pending_connection {
public:
  struct circumstances {
    const rg_authenticate& authenticate;
    std::uint32_t rank;
    std::array<char, 32> own_name;
    std::array<int, 2> descriptors; // control, heap
  };
  enum class outcome { pending, authenticated, refused };

  // This rank connects to `peer`, which listens under `name`.
  pending_connection(const circumstances& c, std::uint32_t peer, const std::array<char, 32>& name)
      : circumstances_(c), socket_(make_socket()), peer_(peer), connects_(true), awaited_(step::reply) {
    fill_random(own_challenge_);
    statement_.name = name;
  }
  // A peer has connected to this rank.
  pending_connection(const circumstances& c, file_descriptor socket)
      : circumstances_(c), socket_(std::move(socket)), awaited_(step::hello) {
    fill_random(own_challenge_);
    statement_.name = c.own_name;
  }

  int socket() const noexcept { return socket_.get(); }
  bool connects() const noexcept { return connects_; }
  bool is_connected() const noexcept { return connected_ || !connects_; }
  std::uint32_t peer() const noexcept { return peer_; }
  connected_peer result() {
    return {peer_, std::move(socket_), std::move(descriptors_[0]), std::move(descriptors_[1])};
  }

  outcome connect() {
    const auto [address, bytes] = address_of(statement_.name);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0)
      return errno == EAGAIN || errno == EINTR ? outcome::pending : outcome::refused; // EAGAIN: too many at once
    connected_ = true;
    return say(step::hello, own_challenge_, {}, false) ? outcome::pending : outcome::refused;
  }

  outcome advance() {
    packet p{};
    const arrival a = receive_packet(socket_.get(), p, descriptors_);
    if (a == arrival::nothing) return outcome::pending;
    if (a == arrival::broken || p.kind != awaited_ || p.to != circumstances_.rank) return outcome::refused;
    if (p.kind != step::hello && p.from != peer_) return outcome::refused;
    switch (p.kind) {
    case step::hello:
      peer_ = p.from;
      state(p.challenge);
      awaited_ = step::proof;
      return say(step::reply, own_challenge_, proof_of(circumstances_.rank), false) ? outcome::pending
                                                                                    : outcome::refused;
    case step::reply:
      state(p.challenge);
      if (!is_proved(p)) return outcome::refused;
      awaited_ = step::welcome;
      return say(step::proof, {}, proof_of(circumstances_.rank), true) ? outcome::pending : outcome::refused;
    case step::proof:
      if (!is_proved(p) || !has_descriptors() || !say(step::welcome, {}, {}, true)) return outcome::refused;
      return outcome::authenticated;
    case step::welcome: return has_descriptors() ? outcome::authenticated : outcome::refused;
    }
    return outcome::refused;
  }

private:
  bool has_descriptors() const noexcept { return descriptors_[0] && descriptors_[1]; }

  void state(const nonce& their_challenge) {
    const std::uint32_t own = circumstances_.rank;
    statement_.higher = connects_ ? own : peer_;
    statement_.lower = connects_ ? peer_ : own;
    statement_.higher_challenge = connects_ ? own_challenge_ : their_challenge;
    statement_.lower_challenge = connects_ ? their_challenge : own_challenge_;
  }
  nonce proof_of(std::uint32_t speaker) const {
    statement s = statement_;
    s.speaker = speaker;
    nonce mac{};
    const rg_authenticate& a = circumstances_.authenticate;
    const rg_status status = a.mac(a.context, &s, sizeof s, mac.data());
    if (status != RG_OK) throw rg::error(status, "shm: the host failed to compute a MAC");
    return mac;
  }
  bool is_proved(const packet& p) const {
    const nonce expected = proof_of(peer_);
    std::uint8_t difference = 0; // compares in constant time
    for (std::size_t i = 0; i < expected.size(); ++i)
      difference = static_cast<std::uint8_t>(difference | (expected[i] ^ p.mac[i]));
    return difference == 0;
  }
  bool say(step kind, const nonce& challenge, const nonce& mac, bool with_descriptors) {
    const packet p{kind, circumstances_.rank, peer_, 0, challenge, mac};
    return send_packet(socket_.get(), p,
                       with_descriptors ? std::span<const int>(circumstances_.descriptors) : std::span<const int>());
  }

  const circumstances& circumstances_;
  file_descriptor socket_;
  std::uint32_t peer_ = UINT32_MAX;
  bool connects_ = false, connected_ = false;
  step awaited_;
  nonce own_challenge_{};
  statement statement_{};
  std::array<file_descriptor, 2> descriptors_;
};

} // namespace

rendezvous::rendezvous(const rg_host* host, const rg_world& world) : host_(host) {
  card_.mark = card_mark;
  card_.rank = world.rank;
  card_.size = world.size;
  std::array<std::uint8_t, 16> random{};
  fill_random(random);
  for (std::size_t i = 0; i < random.size(); ++i) {
    card_.name[2 * i] = "0123456789abcdef"[random[i] >> 4];
    card_.name[2 * i + 1] = "0123456789abcdef"[random[i] & 15];
  }
  if (world.peer_count == 0) return;

  const void* extension = host->extension ? host->extension(host->context, RG_EXT_AUTHENTICATE) : nullptr;
  authenticate_ = static_cast<const rg_authenticate*>(extension);
  if (!authenticate_ || !authenticate_->mac)
    throw rg::error(RG_E_UNSUPPORTED,
                    "shm: expected a host with " RG_EXT_AUTHENTICATE ", got one without: peers cannot be "
                    "authenticated");
  listener_ = make_socket();
  const auto [address, bytes] = address_of(card_.name);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0)
    fail_with_errno(RG_E_OPERATION, "cannot listen on an abstract Unix socket");
}

std::vector<connected_peer> rendezvous::connect(const rg_world& world, std::span<const rg_blob> blobs,
                                                std::uint64_t timeout_ns, const file_descriptor& control,
                                                const file_descriptor& heap) {
  using clock = std::chrono::steady_clock;
  const std::uint64_t day = std::uint64_t{86'400} * 1'000'000'000;
  const auto deadline = clock::now() + std::chrono::nanoseconds(std::min(timeout_ns, day));
  std::vector<connected_peer> connected;
  if (world.peer_count == 0) return connected;

  const std::span<const std::uint32_t> peers(world.peers, world.peer_count);
  const pending_connection::circumstances circumstances{
      *authenticate_, world.rank, card_.name, {control.get(), heap.get()}};
  std::vector<std::unique_ptr<pending_connection>> pending_connections;
  for (std::uint32_t peer : peers) {
    card c{};
    if (peer >= blobs.size() || blobs[peer].bytes != sizeof c)
      throw rg::error(RG_E_PEER, "shm: expected an address from " + rank_name(peer) +
                                     ", got other bytes: use transport shm on all ranks");
    std::memcpy(&c, blobs[peer].data, sizeof c);
    if (c.mark != card_mark || c.rank != peer || c.size != world.size)
      throw rg::error(RG_E_PEER, "shm: " + rank_name(peer) +
                                     " uses another version of this transport: use one build on all ranks");
    if (peer < world.rank)
      pending_connections.push_back(std::make_unique<pending_connection>(circumstances, peer, c.name));
  }
  const auto is_connected_to = [&](std::uint32_t peer) {
    return std::any_of(connected.begin(), connected.end(), [&](const connected_peer& a) { return a.rank == peer; });
  };

  std::vector<pollfd> waiting;
  while (connected.size() < peers.size()) {
    bool retries = false;
    for (auto it = pending_connections.begin(); it != pending_connections.end();) {
      pending_connection& m = **it;
      auto outcome = m.is_connected() ? m.advance() : m.connect();
      const bool is_welcome = m.connects() || (m.peer() > world.rank && !is_connected_to(m.peer()) &&
                                               std::find(peers.begin(), peers.end(), m.peer()) != peers.end());
      if (outcome == pending_connection::outcome::authenticated && is_welcome) {
        connected.push_back(m.result());
      } else if (outcome == pending_connection::outcome::pending) {
        retries |= !m.is_connected();
        ++it;
        continue;
      } else if (m.connects()) {
        throw rg::error(RG_E_PEER,
                        "shm: cannot connect to " + rank_name(m.peer()) + ": it has ended, or failed authentication");
      } else {
        rg::logger(host_).debug("shm: rejected a connection that failed authentication");
      }
      it = pending_connections.erase(it);
    }
    if (connected.size() == peers.size()) break;

    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0) {
      std::string missing;
      for (std::uint32_t peer : peers)
        if (!is_connected_to(peer)) missing += (missing.empty() ? "" : ", ") + rank_name(peer);
      throw rg::error(RG_E_PEER, "shm: no connection before the deadline with " + missing);
    }
    waiting.assign(1, {listener_.get(), POLLIN, 0});
    for (const auto& m : pending_connections)
      if (m->is_connected()) waiting.push_back({m->socket(), POLLIN, 0});
    ::poll(waiting.data(), waiting.size(), static_cast<int>(retries ? 1 : std::min<std::int64_t>(left, 1000)));
    for (;;) {
      file_descriptor arrived(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!arrived) break;
      ucred who{};
      socklen_t bytes = sizeof who;
      if (::getsockopt(arrived.get(), SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0 || who.uid != ::geteuid()) continue;
      pending_connections.push_back(std::make_unique<pending_connection>(circumstances, std::move(arrived)));
    }
  }
  listener_ = file_descriptor();
  return connected;
}

} // namespace shm
