// SPDX-License-Identifier: Apache-2.0
//
// One rank of a transport, called as the engine calls it, but without anything in between: calls of a test go to the
// transport directly.
#pragma once

#include "check/pulse.hpp"
#include "check/suite.hpp"
#include "registry/transport_host.hpp"

#include <regatta/plugin.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace regatta::conformance {

// Memory for transfers: the transport's own if it offers any, else the suite's, registered with the transport.
struct memory {
  rg_region region;
  std::byte* data;
  std::uint64_t bytes;
  float* floats() const { return reinterpret_cast<float*>(data); }
};

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::uint64_t second = 1'000'000'000;
// How long an operation may make no progress before the test fails.
constexpr std::uint64_t patience = 15 * second * slower;
// The same for operations that wait for a peer that died or left: a transport may detect that by heartbeats.
constexpr std::uint64_t patience_with_peers = 30 * second * slower;
// The longest time of connecting, and of closing, each of which is one call of the plugin.
constexpr std::uint64_t patience_to_connect = 15 * second * slower;

// One rank's instance. Functions throw failed if a call of the plugin fails, except those that return its status.
class endpoint {
public:
  endpoint(const subject& which, std::uint32_t rank, std::uint32_t ranks, std::uint32_t lanes,
           const std::string& secret = "secret of the run");
  ~endpoint();
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t lanes() const { return lanes_; }
  rg_transport_caps caps();
  // Returns the text of the last failure, and keeps it.
  const std::string& last_error();
  template <class T> const T* extension(const char* id) {
    return functions_.extension ? static_cast<const T*>(functions_.extension(self_, id)) : nullptr;
  }
  void* self() { return self_; }

  // Sets the address in place of 127.0.0.1; call it before listen. `address` must outlive this object.
  void listen_on(const char* address) { world_.address = address; }
  rg_status try_listen(rg_blob& blob) { return functions_.listen(self_, &world_, &blob); }
  // Throws skipped if there are peers and the transport connects no ranks.
  std::vector<std::uint8_t> listen();
  rg_status try_connect(const std::vector<std::vector<std::uint8_t>>& blobs, std::uint64_t timeout_ns);
  void connect(const std::vector<std::vector<std::uint8_t>>& blobs);

  memory allocate(std::uint64_t bytes);

  // Begin a transfer of `bytes` at `offset`; the cookie identifies it. send and recv keep a transfer that gets
  // RG_AGAIN, and retry it with every poll, as the engine does; try_send and try_recv return RG_AGAIN.
  rg_status try_send(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                     std::uint64_t& cookie);
  rg_status try_recv(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                     std::uint64_t& cookie, std::uint32_t flags = 0);
  std::uint64_t send(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                     std::uint64_t bytes);
  std::uint64_t recv(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                     std::uint32_t flags = 0);
  // Transfer `count` floats with wire type `wire` (RG_CAP_CONVERT).
  std::uint64_t send_as(std::uint32_t wire, std::uint32_t peer, const memory& m, std::uint64_t first,
                        std::uint64_t count);
  std::uint64_t recv_as(std::uint32_t wire, std::uint32_t peer, const memory& m, std::uint64_t first,
                        std::uint64_t count, std::uint32_t flags = 0);
  // Begin a function of rg_collectives on `count` elements of `type` at byte `offset`. try_collective returns RG_AGAIN;
  // collective polls until the transport accepts it.
  using collective_function = rg_status (*rg_collectives::*)(void*, const rg_collective*);
  rg_status try_collective(collective_function f, std::uint32_t group, const memory& m, std::uint64_t offset,
                           std::uint32_t type, std::uint64_t count, std::uint32_t root, std::uint64_t& cookie);
  std::uint64_t collective(collective_function f, std::uint32_t group, const memory& m, std::uint64_t offset,
                           std::uint32_t type, std::uint64_t count, std::uint32_t root = 0);

  // Polls once and keeps the completions. Returns their number.
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns = 0);
  bool ended(std::uint64_t cookie) const { return completions_.contains(cookie); }
  // Waits for a completion with any status. Throws timed_out if neither a completion nor a byte arrives for `longest`.
  rg_completion wait(std::uint64_t cookie, std::uint64_t longest = patience);
  std::uint64_t finish(std::uint64_t cookie); // throws unless the status is RG_OK; returns bytes
  void finish(std::span<const std::uint64_t> cookies);
  // Returns cookies in the order of their completions.
  const std::deque<std::uint64_t>& order_of_completion() const { return order_; }

  void wake() { functions_.wake(self_); }
  void cancel(std::uint32_t peer);
  rg_status try_close(std::uint64_t timeout_ns) { return functions_.close(self_, timeout_ns); }
  void close();
  rg_counters counters();

  void check(rg_status status, const std::string& what);

private:
  void require_sound_caps();
  std::uint64_t begin(bool receive, const rg_transfer& t);
  void retry();
  std::string describe(std::uint64_t cookie) const;
  rg_transfer transfer(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                       std::uint64_t bytes, std::uint32_t flags);

  const std::string secret_;
  rg_authenticate authenticate_;
  transport_host host_;
  std::string error_;
  parameter_values values_;
  const std::string address_;
  const std::uint32_t rank_, ranks_, lanes_;
  std::vector<std::uint32_t> peers_, host_of_;
  rg_world world_;
  rg_transport functions_;
  void* self_ = nullptr;
  const rg_regions* regions_ = nullptr;
  std::vector<memory> allocated_;
  std::vector<std::pair<void*, std::size_t>> ours_;
  std::uint64_t last_cookie_ = 0;
  struct backlog {
    bool receive;
    std::deque<rg_transfer> waiting;
  };
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, backlog> backlogs_; // by direction, peer, lane
  std::unordered_map<std::uint64_t, rg_completion> completions_;
  std::deque<std::uint64_t> order_;
  std::unordered_map<std::uint64_t, std::string> begun_; // a description of each operation by cookie, for messages
};

// Returns the capabilities of the transport.
rg_transport_caps caps_of(const subject& which);
// Returns true if the transport has an extension.
bool offers(const subject& which, const char* extension);

// Fills memory with bytes that depend on their position and on `seed`. is_filled() checks them.
void fill(void* data, std::uint64_t bytes, std::uint64_t seed);
bool is_filled(const void* data, std::uint64_t bytes, std::uint64_t seed);

} // namespace regatta::conformance
