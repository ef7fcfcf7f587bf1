// SPDX-License-Identifier: Apache-2.0
//
// One rank of a transport, called as the engine calls it, but without anything in between: calls of a test go to the
// transport directly.
#pragma once

#include "check/harness/authenticator.hpp"
#include "check/harness/progress.hpp"
#include "check/harness/suite.hpp"
#include "registry/transport_host.hpp"

#include <regatta/clock.hpp>
#include <regatta/ext/collectives.h>
#include <regatta/ext/exchange.h>
#include <regatta/ext/one_sided.h>
#include <regatta/ext/regions.h>
#include <regatta/ext/trace.h>
#include <regatta/plugin.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace regatta::conformance {

// Memory for transfers, from endpoint::allocate(): the transport's own if it offers any, else the suite's, registered
// with the transport. The endpoint owns it.
struct memory {
  rg_region region;
  std::byte* data;
  std::uint64_t bytes;
  std::uint64_t room = 0; // of the registered region, at least `bytes`
  float* floats() const { return reinterpret_cast<float*>(data); }
};

// Where a put writes or a get reads: `offset` bytes behind the start of the region of `peer` with this key.
struct remote {
  std::uint32_t peer;
  const std::vector<std::uint8_t>& key; // from endpoint::expose() of the peer
  std::uint64_t offset = 0;
};
// The end of a peer's put, as poll() reports it to the owner of the region.
struct notification {
  std::uint64_t value, bytes; // the number that the peer gave to the put, and the size of the put
};

constexpr std::uint64_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::uint64_t second = 1'000'000'000; // all times are in nanoseconds
// How long an operation may make no progress before the test fails.
constexpr std::uint64_t operation_timeout = 15 * second * time_limit_factor;
// The same for operations whose peer died or left: a transport may detect that by missing heartbeats only.
constexpr std::uint64_t peer_failure_timeout = 30 * second * time_limit_factor;
// Timeout that connect() and close() pass to the transport. Each is one call of the plugin. It must be less than
// rank_call_limit: a transport that gives up at the timeout reports the reason, a killed one cannot.
constexpr std::uint64_t connect_timeout = 10 * second * time_limit_factor;
// How long one call of the plugin may take, sleeping or computing, in a rank that is a process of its own. After it the
// rank is killed, and the test goes on to report that. It is less than the limit after which the process of the whole
// test is killed (see runner.hpp).
constexpr std::uint64_t rank_call_limit = 13 * second * time_limit_factor;
static_assert(connect_timeout < rank_call_limit);

// One rank's instance of the transport under test; call it from one thread, except wake(), which any thread may call.
// Functions throw failed if a call of the plugin fails; those that return rg_status return the plugin's status instead.
// `which` must outlive this object.
class endpoint {
public:
  using message = std::vector<std::uint8_t>;
  // Sends `mine` to all members, which are ascending ranks with this one among them, and returns what they have sent.
  using exchange_function =
      std::function<std::vector<message>(std::span<const std::uint32_t> members, const message& mine)>;

  // Creates the instance, without listening. `exchange` serves RG_EXT_EXCHANGE, and `trace` is RG_EXT_TRACE; empty and
  // null: the host does not have it. Throws skipped if the transport cannot run on this machine or cannot reach host
  // memory; failure if its capabilities contradict themselves.
  endpoint(const subject& which, std::uint32_t rank, std::uint32_t ranks, std::uint32_t lanes, mac_plan macs = {},
           exchange_function exchange = {}, const rg_trace* trace = nullptr);
  ~endpoint(); // destroys the instance without close(), and frees its memory
  endpoint(const endpoint&) = delete;
  endpoint& operator=(const endpoint&) = delete;

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  std::uint32_t lanes() const { return lanes_; }
  rg_transport_caps caps();
  // Returns the text of the plugin's last failure, also if it was returned before; empty if there was none.
  const std::string& last_error();
  // Returns the data of each call of rg_authenticate.mac() by this instance.
  std::vector<std::string> macs() const { return authenticator_.calls(); }
  // Returns the plugin's table of functions of this extension, of type T; null if the plugin does not have it.
  template <class T> const T* extension(const char* id) {
    return functions_.extension ? static_cast<const T*>(functions_.extension(self_, id)) : nullptr;
  }
  void* self() { return self_; }

  rg_status try_listen(rg_blob& blob) { return functions_.listen(self_, &world_, &blob); }
  // Returns this rank's blob for connect(). Throws skipped if there are peers and the transport connects no ranks.
  std::vector<std::uint8_t> listen();
  // `blobs` are those of all ranks, by rank. Call these after listen(); they return once all ranks are connected.
  rg_status try_connect(const std::vector<std::vector<std::uint8_t>>& blobs, std::uint64_t timeout_ns);
  void connect(const std::vector<std::vector<std::uint8_t>>& blobs);

  // Returns memory that begins at a multiple of 64 bytes, with undefined contents. Valid until this object is
  // destroyed; if the transport allocated it, only until remove().
  memory allocate(std::uint64_t bytes);
  // Removes the region, and with it memory that the transport allocated. Requires that no operation uses it.
  void remove(const memory& m);

  // Begin a transfer of `bytes` bytes at byte `offset` of `m`. The cookie identifies the transfer; try_send() and
  // try_recv() write it to `cookie`. send() and recv() keep a transfer that gets RG_AGAIN and retry it with every
  // poll(), as the engine does; if it gets an error, wait() returns that error. try_send() and try_recv() return every
  // status, also RG_AGAIN. With RG_TRANSFER_ADD in `flags`, or with a wire type (rg_transfer.wire, for RG_CAP_CONVERT),
  // the elements are floats, else bytes. All throw failed if the range does not lie in `m`.
  rg_status try_send(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                     std::uint64_t& cookie);
  rg_status try_recv(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                     std::uint64_t& cookie);
  std::uint64_t send(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                     std::uint32_t wire = 0);
  std::uint64_t recv(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                     std::uint32_t flags = 0, std::uint32_t wire = 0);
  // Begin a transfer of the elements of `buffer`, which lie at m.data + buffer.offset, on lane 0. An element of an
  // unknown type has one byte. Return the cookie.
  std::uint64_t send_elements(std::uint32_t peer, const memory& m, const rg_buffer& buffer);
  std::uint64_t recv_elements(std::uint32_t peer, const memory& m, const rg_buffer& buffer);
  // Begin the collective `c`, whose buffers lie at bytes c.source.offset and c.target.offset of `m`; a buffer of type 0
  // is not used. `c.group` is a number from rg_collectives.split. Require that the transport has RG_EXT_COLLECTIVES.
  // try_collective() returns every status. collective() polls while the status is RG_AGAIN, throws timed_out after
  // `operation_timeout`, and returns the cookie.
  rg_status try_collective(rg_collective c, const memory& m, std::uint64_t& cookie);
  std::uint64_t collective(const rg_collective& c, const memory& m);

  // Put bytes [offset, offset + bytes) of `m` to `to`, or get them from `from`. Require RG_EXT_ONE_SIDED. expose()
  // returns the key of `m`. try_put() and try_get() return every status and write the cookie. put() and get() poll
  // while the status is RG_AGAIN, throw timed_out after `operation_timeout`, and return the cookie.
  message expose(const memory& m);
  rg_status try_put(const remote& to, const memory& m, std::uint64_t offset, std::uint64_t bytes, std::uint64_t value,
                    std::uint64_t& cookie);
  rg_status try_get(const remote& from, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                    std::uint64_t& cookie);
  std::uint64_t put(const remote& to, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                    std::uint64_t value = 0);
  std::uint64_t get(const remote& from, const memory& m, std::uint64_t offset, std::uint64_t bytes);
  // Returns the next notification that poll() has seen and this function has not returned, and polls until there is
  // one. Throws timed_out if poll() reports neither a notification nor a completion for `longest`.
  notification wait_for_notification(std::uint64_t longest = operation_timeout);
  // The notifications that wait_for_notification() has not returned.
  std::size_t notifications() const { return notifications_.size(); }

  // Retries kept transfers, polls the transport once and keeps completions and notifications. Returns their number, at
  // most 7. Waits up to timeout_ns, or up to 1 ms while transfers wait for a retry. Throws failed if a completion
  // belongs to no operation or has an impossible time, or if an operation completes twice.
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns = 0);
  // Returns whether the operation has completed, as far as poll() has seen it.
  bool completed(std::uint64_t cookie) const { return completions_.contains(cookie); }
  // Polls until the operation completes and returns its completion, with any status; a second call returns it again.
  // Throws timed_out if for `longest` no operation completes and no byte is sent or received.
  rg_completion wait(std::uint64_t cookie, std::uint64_t longest = operation_timeout);
  std::uint64_t finish(std::uint64_t cookie); // as wait(), throws failed unless the status is RG_OK; returns the bytes
  void finish(std::span<const std::uint64_t> cookies);
  // Overwrites bytes [0, bytes) of `m` with a message that depends on this rank and `round`, sends it to `peer` on lane
  // 0, and receives the message of `peer` into [bytes, 2 * bytes). Throws failed if that does not arrive unchanged. The
  // peer calls this function with the same `bytes` and `round`.
  void exchange(std::uint32_t peer, const memory& m, std::uint64_t bytes, std::uint64_t round = 0);

  void wake() { functions_.wake(self_); } // [any] rg_transport.wake: ends a poll() of another thread early
  void cancel(std::uint32_t peer);        // rg_transport.cancel: ends the operations with this peer early
  // Call one of these, once, after all operations have completed. close() allows connect_timeout.
  rg_status try_close(std::uint64_t timeout_ns) { return functions_.close(self_, timeout_ns); }
  void close();
  rg_counters counters();

  // Throws failed with `what`, the status and last_error() unless the status is RG_OK.
  void check(rg_status status, const std::string& what);

private:
  void require_sound_caps();
  std::uint64_t begin(bool receive, const rg_transfer& t);
  void retry();
  rg_one_sided_transfer one_sided(const remote& there, const memory& m, std::uint64_t offset, std::uint64_t bytes);
  std::uint64_t begin_one_sided(bool put, rg_one_sided_transfer t);
  std::string describe(std::uint64_t cookie) const;
  rg_transfer transfer(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                       std::uint64_t bytes, std::uint32_t flags = 0, std::uint32_t wire = 0);

  authenticator authenticator_;
  exchange_function exchange_;
  rg_exchange exchange_table_;
  std::vector<message> exchanged_; // by the last call of exchange_table_
  bool has_listened_ = false;
  transport_host host_;
  std::string error_;
  parameter_values values_;
  const std::uint32_t rank_, ranks_, lanes_;
  std::vector<std::uint32_t> peers_, host_of_;
  std::vector<const char*> addresses_;     // for world_
  std::vector<rg_addresses> addresses_of_; // by rank
  rg_world world_;
  rg_transport functions_;
  void* self_ = nullptr;
  const rg_regions* regions_ = nullptr;
  std::vector<memory> allocated_;
  std::vector<std::pair<void*, std::size_t>> mapped_;
  const std::uint64_t created_ns_ = rg::now_ns();
  std::uint64_t last_cookie_ = 0;
  rg_region last_region_ = 0;
  // Transfers that wait for room, by direction (true: receive), peer and lane.
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, std::deque<rg_transfer>> backlogs_;
  std::unordered_map<std::uint64_t, rg_completion> completions_;
  std::deque<notification> notifications_;
  std::unordered_map<std::uint64_t, std::string> descriptions_; // of each operation by cookie, for messages
};

// Returns the capabilities of the transport. Creates and destroys an instance, and throws as endpoint() does.
rg_transport_caps caps_of(const subject& which);

// Returns element `i` of a sequence of floats of very different magnitude, so that a sum depends on the order of its
// terms.
float term(std::uint64_t seed, std::uint64_t i);
// Writes `bytes` bytes that depend on `seed` and on their distance from `data`.
void fill(void* data, std::uint64_t bytes, std::uint64_t seed);
// Returns true if the bytes are those that fill() writes with this seed.
bool is_filled(const void* data, std::uint64_t bytes, std::uint64_t seed);

} // namespace regatta::conformance
