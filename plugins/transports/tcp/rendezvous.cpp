// SPDX-License-Identifier: Apache-2.0
#include "rendezvous.hpp"

#include <utility> // Boost 1.74's coroutine support uses std::exchange without including it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <sstream>
#include <type_traits>

#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <regatta/ext/authenticate.h>

namespace tcp {
namespace {

namespace asio = boost::asio;
using socket = asio::ip::tcp::socket;
using endpoint = asio::ip::tcp::endpoint;
using asio::use_awaitable;

using token = std::array<std::uint8_t, 16>;
using nonce = std::array<std::uint8_t, 32>;
using signature = std::array<std::uint8_t, 32>;

struct hello {
  std::array<char, 8> magic;
  std::uint32_t from, to, lane, lanes, ranks, reserved;
  token listener;
  nonce challenge;
};
static_assert(sizeof(hello) == 80 && std::has_unique_object_representations_v<hello>); // no padding: it is signed
constexpr std::array<char, 8> hello_magic = {'r', 'e', 'g', 't', 'c', 'p', '/', '1'};

// The data of a signature.
struct statement {
  std::array<char, 16> role;
  hello opening;
  nonce challenge;
};
static_assert(std::has_unique_object_representations_v<statement>);
constexpr std::array<char, 16> connecting = {'c', 'o', 'n', 'n', 'e', 'c', 't', 'i', 'n', 'g'};
constexpr std::array<char, 16> accepting = {'a', 'c', 'c', 'e', 'p', 't', 'i', 'n', 'g'};

template <class T> T random_bytes() {
  T bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail_with_errno(RG_E_OPERATION, "tcp: cannot read random numbers");
  return bytes;
}

// Compares in constant time.
template <class T> bool same_secret(const T& a, const T& b) {
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<std::uint8_t>(a[i] ^ b[i]);
  return difference == 0;
}

asio::mutable_buffer bytes_of(auto& value) {
  return asio::buffer(&value, sizeof value);
}

std::string hexadecimal(const token& t) {
  std::string text;
  for (std::uint8_t b : t) text += {"0123456789abcdef"[b >> 4], "0123456789abcdef"[b & 15]};
  return text;
}

bool parse_hexadecimal(const std::string& text, token& t) {
  if (text.size() != 2 * t.size()) return false;
  for (std::size_t i = 0; i < t.size(); ++i) {
    const char* first = text.data() + 2 * i;
    if (std::from_chars(first, first + 2, t[i], 16).ptr != first + 2) return false;
  }
  return true;
}

struct listener {
  std::vector<endpoint> rails; // at least one
  token name;
};

listener parse_blob(std::uint32_t rank, const rg_blob& blob) {
  std::istringstream text(std::string(static_cast<const char*>(blob.data), blob.bytes));
  std::string scheme, address, name;
  std::uint16_t port = 0;
  listener l;
  text >> scheme >> name;
  bool sound = text && scheme == "tcp/1" && parse_hexadecimal(name, l.name);
  while (sound && text >> address) {
    boost::system::error_code failed;
    const auto ip = asio::ip::make_address(address, failed);
    sound = text >> port && !failed;
    if (sound) l.rails.emplace_back(ip, port);
  }
  if (!sound || l.rails.empty())
    throw rg::error(RG_E_PEER, "tcp: expected an address from rank " + std::to_string(rank) +
                                   ", got other bytes: use the same transport and version on all ranks");
  return l;
}

constexpr auto authentication_limit = std::chrono::seconds(2); // from connecting to the proof
constexpr auto retry_pause = std::chrono::milliseconds(50);
constexpr std::size_t pending_beyond_links = 64;

std::string in_words(const endpoint& e) {
  return e.address().to_string() + " port " + std::to_string(e.port());
}

} // namespace

struct rendezvous::state {
  state(const rg_host* host, const rg_world& w, std::uint64_t buffer) : world(w), buffer_bytes(buffer) {
    authenticate = static_cast<const rg_authenticate*>(host->extension(host->context, RG_EXT_AUTHENTICATE));
    if (!authenticate)
      throw rg::error(RG_E_UNSUPPORTED,
                      "tcp: expected a host with " RG_EXT_AUTHENTICATE ", got one without: peers cannot be "
                      "authenticated");
    blob = "tcp/1 " + hexadecimal(name);
    for (std::uint32_t rail = 0; rail < world.address_count; ++rail) listen_on(world.addresses[rail]);
    links.resize(std::size_t{world.peer_count} * world.lanes);
  }

  void listen_on(const std::string& address) {
    boost::system::error_code failed;
    const auto ip = asio::ip::make_address(address, failed);
    if (failed)
      throw rg::error(RG_E_CONFIG, "tcp: expected a numeric IP address to listen on, got \"" + address + "\"");
    try {
      const endpoint any_port(ip, 0);
      auto& acceptor = acceptors.emplace_back(io);
      acceptor.open(any_port.protocol());
      prepare(acceptor, ip); // before listening: accepted sockets inherit it, and the buffers bound the window scale
      acceptor.bind(any_port);
      acceptor.listen();
      blob += " " + address + " " + std::to_string(acceptor.local_endpoint().port());
    } catch (const boost::system::system_error& e) {
      throw rg::error(RG_E_CONFIG, "tcp: cannot listen on " + address + ": " + e.code().message());
    }
  }

  // Sets socket options that must precede the connection.
  void prepare(auto& s, const asio::ip::address& listening) const {
    // BBR, the default of some systems, paces its sends by timers. Within one machine nothing is lost and there is no
    // rate to find, so pacing only costs time (an all-reduce of 1 MiB takes 1.2 to 1.6 times as long). Linux always has
    // Reno and lets every process select it.
    if (listening.is_loopback()) ::setsockopt(s.native_handle(), IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (buffer_bytes == 0) return;
    s.set_option(asio::socket_base::send_buffer_size(static_cast<int>(buffer_bytes)));
    s.set_option(asio::socket_base::receive_buffer_size(static_cast<int>(buffer_bytes)));
  }

  // The link to (peer, lane), or null if they are not expected.
  link* find(std::uint32_t peer, std::uint32_t lane) {
    const auto* end = world.peers + world.peer_count;
    const auto* p = std::lower_bound(world.peers, end, peer);
    if (p == end || *p != peer || lane >= world.lanes) return nullptr;
    return &links[static_cast<std::size_t>(p - world.peers) * world.lanes + lane];
  }

  signature sign(const std::array<char, 16>& role, const hello& opening, const nonce& challenge) const {
    const statement s{role, opening, challenge};
    signature mac;
    if (authenticate->mac(authenticate->context, &s, sizeof s, mac.data()) != RG_OK)
      throw rg::error(RG_E_OPERATION, "tcp: the host failed to compute a MAC");
    return mac;
  }

  void done(std::uint32_t peer, std::uint32_t lane, std::size_t rail, socket s) {
    s.set_option(asio::ip::tcp::no_delay(true));
    s.native_non_blocking(true);
    link& l = *find(peer, lane);
    l = {peer, lane, rail, descriptor(s.release())};
    if (--missing == 0) io.stop();
  }

  // Ends the rendezvous with its first error.
  void give_up(const std::exception_ptr& why) {
    if (!failure) failure = why;
    io.stop();
  }

  // A connection that has not proved to be a peer yet.
  struct pending_connection {
    pending_connection(socket s, std::size_t r)
        : connection(std::move(s)), rail(r), patience(connection.get_executor()) {}
    void drop() {
      boost::system::error_code ignored;
      connection.close(ignored);
    }
    socket connection;
    std::size_t rail;
    asio::steady_timer patience;
    bool proven = false; // a peer, which is never dropped
  };

  // Drops the oldest unproven connection. It is the least likely to be a peer: peers answer at once, and try again when
  // dropped.
  bool drop_oldest_pending() {
    const auto oldest = std::find_if(pending_connections.begin(), pending_connections.end(),
                                     [](const auto& s) { return !s->proven && s->connection.is_open(); });
    if (oldest == pending_connections.end()) return false;
    (*oldest)->drop();
    return true;
  }

  asio::awaitable<void> accept_all(std::size_t rail) {
    rlimit descriptors{};
    ::getrlimit(RLIMIT_NOFILE, &descriptors);
    const std::size_t most =
        std::min<std::size_t>(links.size() + pending_beyond_links, std::max<std::size_t>(descriptors.rlim_cur / 4, 4));
    asio::steady_timer pause(io);
    for (;;) {
      boost::system::error_code failed;
      socket s = co_await acceptors[rail].async_accept(asio::redirect_error(use_awaitable, failed));
      if (failed == asio::error::operation_aborted) co_return;
      if (failed) { // for example no descriptor left; a peer that is therefore missing is reported at the deadline
        pause.expires_after(drop_oldest_pending() ? std::chrono::milliseconds(0) : retry_pause);
        co_await pause.async_wait(use_awaitable);
        continue;
      }
      if (pending_connections.size() >= most) drop_oldest_pending();
      pending_connections.push_back(std::make_shared<pending_connection>(std::move(s), rail));
      asio::co_spawn(io, answer(pending_connections.back()), asio::detached);
    }
  }

  // Strangers, and peers that break off, are dropped silently; a peer that is then missing is reported at the deadline.
  asio::awaitable<void> answer(std::shared_ptr<pending_connection> who) {
    who->patience.expires_after(authentication_limit);
    who->patience.async_wait([who](boost::system::error_code cancelled) {
      if (!cancelled && !who->proven) who->drop();
    });
    co_await hear(*who);
    who->patience.cancel();
    pending_connections.remove(who);
  }

  asio::awaitable<void> hear(pending_connection& who) {
    socket& s = who.connection;
    try {
      hello opening;
      co_await asio::async_read(s, bytes_of(opening), use_awaitable);
      if (opening.magic != hello_magic || opening.to != world.rank || opening.from <= world.rank ||
          opening.lanes != world.lanes || opening.ranks != world.size || !same_secret(opening.listener, name))
        co_return;
      nonce challenge = random_bytes<nonce>();
      co_await asio::async_write(s, bytes_of(challenge), use_awaitable);
      signature theirs;
      co_await asio::async_read(s, bytes_of(theirs), use_awaitable);
      if (!same_secret(theirs, sign(connecting, opening, challenge))) co_return;
      who.proven = true;
      const link* l = find(opening.from, opening.lane);
      if (!l || l->socket) co_return;
      signature ours = sign(accepting, opening, challenge);
      co_await asio::async_write(s, bytes_of(ours), use_awaitable);
      if (!l->socket) done(opening.from, opening.lane, who.rail, std::move(s));
    } catch (const boost::system::system_error&) {
    } catch (...) {
      give_up(std::current_exception());
    }
  }

  // A peer that unauthenticated connections keep busy may drop this connection together with theirs: tries again until
  // the deadline.
  asio::awaitable<void> reach(std::uint32_t peer, std::uint32_t lane, listener to) {
    asio::steady_timer pause(io);
    while (!co_await try_to_reach(peer, lane, to)) {
      pause.expires_after(retry_pause);
      co_await pause.async_wait(use_awaitable);
    }
  }

  // Returns false if the peer broke off the handshake, or all descriptors were in use.
  asio::awaitable<bool> try_to_reach(std::uint32_t peer, std::uint32_t lane, const listener& to) {
    // The connections of a rank, and of a lane among several peers, are spread over the rails.
    const std::size_t chosen = std::size_t{peer} + world.rank + lane, own = chosen % acceptors.size();
    const endpoint& where = to.rails[chosen % to.rails.size()];
    const std::string who = "rank " + std::to_string(peer) + " at " + in_words(where);
    bool connected = false;
    try {
      socket s(io, where.protocol());
      prepare(s, where.address());
      // From the rail's own interface: by the routes alone, all connections might leave through one.
      if (const auto from = acceptors[own].local_endpoint().address();
          acceptors.size() > 1 && from.is_v4() == where.address().is_v4())
        s.bind(endpoint(from, 0));
      co_await s.async_connect(where, use_awaitable);
      connected = true;
      hello opening{hello_magic, world.rank, peer, lane, world.lanes, world.size, 0, to.name, random_bytes<nonce>()};
      co_await asio::async_write(s, bytes_of(opening), use_awaitable);
      nonce challenge;
      co_await asio::async_read(s, bytes_of(challenge), use_awaitable);
      signature ours = sign(connecting, opening, challenge);
      co_await asio::async_write(s, bytes_of(ours), use_awaitable);
      signature theirs;
      co_await asio::async_read(s, bytes_of(theirs), use_awaitable);
      if (!same_secret(theirs, sign(accepting, opening, challenge)))
        throw rg::error(RG_E_PEER, "tcp: " + who + " failed authentication: it does not have this run's secret");
      done(peer, lane, own, std::move(s));
    } catch (const boost::system::system_error& e) {
      if (connected || e.code() == asio::error::no_descriptors) co_return false;
      give_up(
          std::make_exception_ptr(rg::error(RG_E_PEER, "tcp: cannot connect to " + who + ": " + e.code().message())));
    } catch (...) {
      give_up(std::current_exception());
    }
    co_return true;
  }

  std::string absent() const {
    std::string text;
    for (std::uint32_t i = 0; i < world.peer_count; ++i) {
      const auto first = links.begin() + std::ptrdiff_t{i} * world.lanes;
      if (std::all_of(first, first + world.lanes, [](const link& l) { return bool(l.socket); })) continue;
      text += (text.empty() ? "rank " : ", rank ") + std::to_string(world.peers[i]);
      if (!peers[i].rails.empty()) text += " at " + in_words(peers[i].rails.front());
    }
    return text;
  }

  const rg_world& world;
  const std::uint64_t buffer_bytes;
  const rg_authenticate* authenticate;
  asio::io_context io{1};                        // run by one thread
  std::deque<asio::ip::tcp::acceptor> acceptors; // by rail: in the order of world.addresses
  const token name = random_bytes<token>();
  std::string blob;
  std::vector<listener> peers; // in the order of world.peers; without rails: the peer connects to this rank
  std::vector<link> links;     // by peer, then lane
  std::list<std::shared_ptr<pending_connection>> pending_connections; // the oldest first
  std::size_t missing = 0;
  std::exception_ptr failure;
};

rendezvous::rendezvous(const rg_host* host, const rg_world& world, std::uint64_t buffer_bytes)
    : state_(std::make_unique<state>(host, world, buffer_bytes)) {}
rendezvous::~rendezvous() = default;

const std::string& rendezvous::blob() const {
  return state_->blob;
}

std::vector<link> rendezvous::connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) {
  state& s = *state_;
  s.missing = s.links.size();
  if (s.missing == 0) return {};
  for (std::uint32_t i = 0; i < s.world.peer_count; ++i) {
    const std::uint32_t peer = s.world.peers[i];
    s.peers.push_back(peer < s.world.rank ? parse_blob(peer, blobs[peer]) : listener{});
  }
  for (std::size_t rail = 0; rail < s.acceptors.size(); ++rail)
    asio::co_spawn(s.io, s.accept_all(rail), asio::detached);
  for (std::uint32_t i = 0; i < s.world.peer_count; ++i)
    for (std::uint32_t lane = 0; lane < s.world.lanes && s.world.peers[i] < s.world.rank; ++lane)
      asio::co_spawn(s.io, s.reach(s.world.peers[i], lane, s.peers[i]), asio::detached);

  const auto longest = std::uint64_t{INT64_MAX} / 4; // so that now + timeout does not overflow
  s.io.run_for(std::chrono::nanoseconds(std::min(timeout_ns, longest)));
  if (s.failure) std::rethrow_exception(s.failure);
  if (s.missing > 0)
    throw rg::error(RG_E_PEER, "tcp: rank " + std::to_string(s.world.rank) + " has no connection after " +
                                   std::to_string(timeout_ns / 1'000'000) + " ms to " + s.absent());
  return std::move(s.links);
}

} // namespace tcp
