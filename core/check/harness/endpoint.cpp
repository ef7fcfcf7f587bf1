// SPDX-License-Identifier: Apache-2.0
#include "check/harness/endpoint.hpp"

#include "registry/extension_tables.hpp"
#include "registry/validate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <regatta/clock.hpp>
#include <sys/mman.h>

#include <regatta/ext/collectives.h>
#include <regatta/ext/regions.h>

namespace regatta::conformance {

endpoint::endpoint(const subject& which, std::uint32_t rank, std::uint32_t ranks, std::uint32_t lanes, mac_plan macs,
                   exchange_function exchange, const rg_trace* trace)
    : authenticator_(std::move(macs)), exchange_(std::move(exchange)),
      exchange_table_(rg::make_versioned<rg_exchange>()),
      host_(*which.plugins, {},
            [this, trace](std::string_view id) -> const void* {
              if (id == RG_EXT_TRACE) return trace;
              if (id == RG_EXT_EXCHANGE && exchange_) return &exchange_table_;
              return id == RG_EXT_AUTHENTICATE ? &authenticator_.table() : nullptr;
            }),
      values_(*which.tested, which.parameters), rank_(rank), ranks_(ranks), lanes_(lanes), host_of_(ranks),
      world_(rg::make_versioned<rg_world>()), functions_(which.tested->transport) {
  exchange_table_.context = this;
  exchange_table_.all_gather = [](void* self, const std::uint32_t* members, std::uint32_t count, const rg_blob* mine,
                                  rg_blob* parts) -> rg_status {
    auto& e = *static_cast<endpoint*>(self);
    return rg::fence(e.host_.c(), [&] {
      const auto* first = static_cast<const std::uint8_t*>(mine->data);
      require(e.has_listened_, "regatta.exchange/1 is called before connect(), within create() or listen()");
      e.exchanged_ = e.exchange_({members, count}, message(first, first + mine->bytes));
      for (std::size_t k = 0; k < count; ++k) parts[k] = {e.exchanged_[k].data(), e.exchanged_[k].size()};
    });
  };
  const rg_status created = functions_.create(host_.c(), values_.data(), &self_);
  if (created == RG_E_UNSUPPORTED) throw skipped("it cannot run on this machine: " + last_error());
  check(created, "create");
  require_sound_caps();
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (r != rank) peers_.push_back(r);
  world_.rank = rank;
  world_.size = ranks;
  world_.lanes = lanes;
  world_.peers = peers_.data();
  world_.peer_count = ranks - 1;
  world_.host_of = host_of_.data();
  for (const std::string& a : which.addresses) addresses_.push_back(a.c_str());
  auto of_rank = rg::make_versioned<rg_addresses>();
  of_rank.texts = addresses_.data();
  of_rank.count = static_cast<std::uint32_t>(addresses_.size());
  addresses_of_.assign(ranks, of_rank); // all ranks are on this host
  world_.addresses = of_rank.texts;
  world_.address_count = of_rank.count;
  world_.addresses_of = addresses_of_.data();
  regions_ = extension<rg_regions>(RG_EXT_REGIONS);
}

endpoint::~endpoint() {
  if (!self_) return;
  if (regions_)
    for (const memory& m : allocated_) regions_->remove(self_, m.region);
  functions_.destroy(self_);
  for (const auto& [p, bytes] : mapped_) munmap(p, bytes);
}

const std::string& endpoint::last_error() {
  if (std::string text = host_.take_error(); !text.empty()) error_ = std::move(text);
  return error_;
}

void endpoint::check(rg_status status, const std::string& what) {
  if (status != RG_OK) throw failed(what + ": status " + std::to_string(status) + ", \"" + last_error() + "\"");
}

// Throws failure if the capabilities contradict themselves, and skipped if the transport cannot run on this machine or
// cannot reach host memory, in which all buffers of the suite are.
void endpoint::require_sound_caps() {
  auto c = rg::make_versioned<rg_transport_caps>();
  const rg_status s = functions_.caps(self_, &c);
  try {
    if (s == RG_E_UNSUPPORTED) throw skipped("it cannot run on this machine: " + last_error());
    if (s != RG_OK) return;
    if (c.memory && !(c.memory & RG_MEMORY_HOST))
      throw skipped("it transfers device memory only, and the suite uses host memory");
    validate(c, "caps");
    checked_extensions(functions_, self_, "transport");
  } catch (...) {
    functions_.destroy(std::exchange(self_, nullptr)); // a constructor that throws runs no destructor
    throw;
  }
}

rg_transport_caps endpoint::caps() {
  auto c = rg::make_versioned<rg_transport_caps>();
  check(functions_.caps(self_, &c), "caps");
  return c;
}

std::vector<std::uint8_t> endpoint::listen() {
  if (ranks_ > 1 && caps().flags & RG_CAP_NONE) throw skipped("it connects no ranks (RG_CAP_NONE)");
  rg_blob blob{};
  check(try_listen(blob), "listen");
  has_listened_ = true;
  const auto* first = static_cast<const std::uint8_t*>(blob.data);
  require(first != nullptr || blob.bytes == 0, "listen() returns a blob with a size but without data");
  return {first, first + blob.bytes};
}

rg_status endpoint::try_connect(const std::vector<std::vector<std::uint8_t>>& blobs, std::uint64_t timeout_ns) {
  std::vector<rg_blob> views;
  views.reserve(blobs.size());
  for (const auto& b : blobs) views.push_back({b.data(), b.size()});
  const rg_status status = functions_.connect(self_, views.data(), timeout_ns);
  report_progress();
  return status;
}

void endpoint::connect(const std::vector<std::vector<std::uint8_t>>& blobs) {
  check(try_connect(blobs, connect_timeout), "connect");
}

memory endpoint::allocate(std::uint64_t bytes) {
  const std::uint64_t room = (bytes + 63) / 64 * 64 + 64;
  memory m{++last_region_, nullptr, bytes, room};
  auto where = rg::make_versioned<rg_memory>();
  where.place = RG_MEMORY_HOST;
  where.device = where.numa_node = where.dma_buf = -1;
  void* allocated = nullptr;
  if (regions_ && regions_->allocate && regions_->allocate(self_, m.region, room, &where, &allocated) == RG_OK &&
      allocated) {
    m.data = static_cast<std::byte*>(allocated);
    require(reinterpret_cast<std::uintptr_t>(allocated) % 64 == 0,
            "rg_regions.allocate() returns memory that is not aligned to 64 bytes");
  } else { // as the engine does: fresh pages, which take memory only once they are touched
    void* p = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(p != MAP_FAILED, "no memory for the test");
    mapped_.emplace_back(p, room);
    m.data = static_cast<std::byte*>(p);
    if (regions_ && regions_->add) check(regions_->add(self_, m.region, m.data, room, &where), "add");
  }
  allocated_.push_back(m);
  return m;
}

void endpoint::remove(const memory& m) {
  if (regions_) regions_->remove(self_, m.region);
  std::erase_if(allocated_, [&](const memory& other) { return other.region == m.region; });
}

rg_transfer endpoint::transfer(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                               std::uint64_t bytes, std::uint32_t flags, std::uint32_t wire) {
  require(offset + bytes <= m.bytes, "the test itself is wrong: it uses bytes outside its memory");
  auto t = rg::make_versioned<rg_transfer>();
  const bool as_floats = (flags & RG_TRANSFER_ADD) || wire != 0;
  t.flags = flags;
  t.peer = peer;
  t.lane = lane;
  t.buffer = {m.region, static_cast<std::uint32_t>(as_floats ? RG_F32 : RG_U8), offset, as_floats ? bytes / 4 : bytes};
  t.wire = wire;
  t.bytes = bytes;
  t.address = m.data ? m.data + offset : nullptr;
  t.cookie = ++last_cookie_;
  return t;
}

rg_status endpoint::try_send(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                             std::uint64_t bytes, std::uint64_t& cookie) {
  const auto t = transfer(peer, lane, m, offset, bytes);
  cookie = t.cookie;
  return functions_.send(self_, &t);
}

rg_status endpoint::try_recv(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                             std::uint64_t bytes, std::uint64_t& cookie) {
  const auto t = transfer(peer, lane, m, offset, bytes);
  cookie = t.cookie;
  return functions_.recv(self_, &t);
}

std::uint64_t endpoint::begin(bool receive, const rg_transfer& t) {
  descriptions_[t.cookie] = fmt::format("{} of {} bytes {} rank {} on lane {}", receive ? "receive" : "send", t.bytes,
                                        receive ? "from" : "to", t.peer, t.lane);
  backlogs_[{receive, t.peer, t.lane}].push_back(t);
  retry();
  return t.cookie;
}

void endpoint::retry() {
  for (auto& [stream, waiting] : backlogs_)
    while (!waiting.empty()) {
      const rg_transfer& t = waiting.front();
      const rg_status s = std::get<0>(stream) ? functions_.recv(self_, &t) : functions_.send(self_, &t);
      if (s == RG_AGAIN) break;
      if (s != RG_OK) completions_.emplace(t.cookie, rg_completion{.cookie = t.cookie, .status = s});
      waiting.pop_front();
    }
}

std::uint64_t endpoint::send(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                             std::uint64_t bytes, std::uint32_t wire) {
  return begin(false, transfer(peer, lane, m, offset, bytes, 0, wire));
}

std::uint64_t endpoint::recv(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                             std::uint64_t bytes, std::uint32_t flags, std::uint32_t wire) {
  return begin(true, transfer(peer, lane, m, offset, bytes, flags, wire));
}

namespace {
rg_transfer with_elements(rg_transfer t, const rg_buffer& buffer) {
  t.buffer.type = buffer.type;
  t.buffer.count = buffer.count;
  return t;
}
std::uint64_t bytes_of_elements(const rg_buffer& b) {
  return rg::bits_of(b.type) ? rg::bytes_of(b) : b.count;
}
} // namespace

std::uint64_t endpoint::send_elements(std::uint32_t peer, const memory& m, const rg_buffer& buffer) {
  return begin(false, with_elements(transfer(peer, 0, m, buffer.offset, bytes_of_elements(buffer), 0), buffer));
}

std::uint64_t endpoint::recv_elements(std::uint32_t peer, const memory& m, const rg_buffer& buffer) {
  return begin(true, with_elements(transfer(peer, 0, m, buffer.offset, bytes_of_elements(buffer), 0), buffer));
}

rg_status endpoint::try_collective(rg_collective c, const memory& m, std::uint64_t& cookie) {
  const auto place = [&](rg_buffer& b) -> std::byte* {
    if (b.type == 0) return nullptr;
    require(b.offset + rg::bytes_of(b) <= m.bytes, "the test itself is wrong: it uses bytes outside its memory");
    b.region = m.region;
    return m.data ? m.data + b.offset : nullptr;
  };
  c.source_address = place(c.source);
  c.target_address = place(c.target);
  c.cookie = cookie = ++last_cookie_;
  return rg::copy_versioned(*extension<rg_collectives>(RG_EXT_COLLECTIVES)).begin(self_, &c);
}

std::uint64_t endpoint::collective(const rg_collective& c, const memory& m) {
  std::uint64_t cookie = 0;
  rg_status s;
  const std::uint64_t begin = rg::now_ns();
  while ((s = try_collective(c, m, cookie)) == RG_AGAIN) {
    if (rg::now_ns() - begin > operation_timeout)
      throw timed_out(fmt::format("a collective returns RG_AGAIN for {} s", operation_timeout / 1'000'000'000));
    poll(second / 1000);
  }
  descriptions_[cookie] = "collective of " + std::to_string(std::max(c.source.count, c.target.count)) + " elements";
  check(s, descriptions_[cookie]);
  return cookie;
}

endpoint::message endpoint::expose(const memory& m) {
  const auto table = rg::copy_versioned(*extension<rg_one_sided>(RG_EXT_ONE_SIDED));
  require(table.key_bytes >= 1 && table.key_bytes <= 1024, "rg_one_sided.key_bytes is not between 1 and 1024");
  constexpr std::uint8_t guard = 0xa5;
  message key(table.key_bytes + 64, guard);
  check(table.expose(self_, m.region, key.data()), "expose of regatta.one_sided/1");
  require(std::all_of(key.begin() + table.key_bytes, key.end(), [](std::uint8_t b) { return b == guard; }),
          "expose() of regatta.one_sided/1 writes more than key_bytes bytes");
  key.resize(table.key_bytes);
  return key;
}

rg_one_sided_transfer endpoint::one_sided(const remote& there, const memory& m, std::uint64_t offset,
                                          std::uint64_t bytes) {
  require(offset <= m.bytes && bytes <= m.bytes - offset, "the test itself is wrong: it uses bytes outside its memory");
  auto t = rg::make_versioned<rg_one_sided_transfer>();
  t.peer = there.peer;
  t.region = m.region;
  t.address = m.data + offset;
  t.bytes = bytes;
  t.key = there.key.data();
  t.offset = there.offset;
  t.cookie = ++last_cookie_;
  return t;
}

rg_status endpoint::try_put(const remote& to, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                            std::uint64_t value, std::uint64_t& cookie) {
  auto t = one_sided(to, m, offset, bytes);
  t.notification = value;
  cookie = t.cookie;
  return rg::copy_versioned(*extension<rg_one_sided>(RG_EXT_ONE_SIDED)).put(self_, &t);
}

rg_status endpoint::try_get(const remote& from, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                            std::uint64_t& cookie) {
  const auto t = one_sided(from, m, offset, bytes);
  cookie = t.cookie;
  return rg::copy_versioned(*extension<rg_one_sided>(RG_EXT_ONE_SIDED)).get(self_, &t);
}

std::uint64_t endpoint::begin_one_sided(bool put, rg_one_sided_transfer t) {
  const auto table = rg::copy_versioned(*extension<rg_one_sided>(RG_EXT_ONE_SIDED));
  descriptions_[t.cookie] =
      fmt::format("{} of {} bytes {} rank {}", put ? "put" : "get", t.bytes, put ? "to" : "from", t.peer);
  rg_status s;
  const std::uint64_t begin = rg::now_ns();
  while ((s = put ? table.put(self_, &t) : table.get(self_, &t)) == RG_AGAIN) {
    if (rg::now_ns() - begin > operation_timeout)
      throw timed_out(
          fmt::format("a {} returns RG_AGAIN for {} s", descriptions_[t.cookie], operation_timeout / second));
    poll(second / 1000);
  }
  check(s, descriptions_[t.cookie]);
  return t.cookie;
}

std::uint64_t endpoint::put(const remote& to, const memory& m, std::uint64_t offset, std::uint64_t bytes,
                            std::uint64_t value) {
  auto t = one_sided(to, m, offset, bytes);
  t.notification = value;
  return begin_one_sided(true, t);
}

std::uint64_t endpoint::get(const remote& from, const memory& m, std::uint64_t offset, std::uint64_t bytes) {
  return begin_one_sided(false, one_sided(from, m, offset, bytes));
}

notification endpoint::wait_for_notification(std::uint64_t longest) {
  for (std::uint64_t since = rg::now_ns(); notifications_.empty();) {
    if (poll(second / 2) > 0) since = rg::now_ns();
    if (rg::now_ns() - since > longest)
      throw timed_out(fmt::format("the notification of a put does not come: no progress for {} s", longest / second));
  }
  const notification first = notifications_.front();
  notifications_.pop_front();
  return first;
}

std::uint32_t endpoint::poll(std::uint64_t timeout_ns, std::uint64_t spin_ns) {
  rg_completion out[7]; // small, so that some completions must wait for the next poll
  std::uint32_t count = 0;
  retry();
  const bool waits_for_room =
      std::any_of(backlogs_.begin(), backlogs_.end(), [](const auto& b) { return !b.second.empty(); });
  if (waits_for_room) timeout_ns = std::min(timeout_ns, second / 1000);
  const rg_status status = functions_.poll(self_, timeout_ns, spin_ns, out, std::size(out), &count);
  report_progress();
  check(status, "poll");
  require(count <= std::size(out), "poll() returns more completions than its array holds");
  for (const rg_completion& c : std::span(out, count)) {
    if (c.status == RG_NOTIFIED) {
      notifications_.push_back({c.cookie, c.bytes});
      continue;
    }
    require(c.cookie >= 1 && c.cookie <= last_cookie_, "poll() reports a completion with a cookie of no operation");
    require(c.time_ns == 0 || (c.time_ns >= created_ns_ && c.time_ns <= rg::now_ns()),
            fmt::format("rg_completion.time_ns of {} is {}, which is no time on CLOCK_MONOTONIC between create() and "
                        "this poll(); 0 means unknown",
                        describe(c.cookie), c.time_ns));
    require(completions_.emplace(c.cookie, c).second, describe(c.cookie) + " completes twice");
  }
  return count;
}

std::string endpoint::describe(std::uint64_t cookie) const {
  const auto known = descriptions_.find(cookie);
  return known == descriptions_.end() ? "an operation" : "a " + known->second;
}

rg_completion endpoint::wait(std::uint64_t cookie, std::uint64_t longest) {
  std::uint64_t since = rg::now_ns(), moved = 0;
  while (!completed(cookie)) {
    if (poll(second / 2) > 0) since = rg::now_ns();
    if (rg::now_ns() - since < second) continue;
    auto c = rg::make_versioned<rg_counters>(); // a message of gigabytes shows no other progress
    const bool counted = functions_.counters(self_, &c) == RG_OK;
    if (counted && c.bytes_sent + c.bytes_received != moved) {
      moved = c.bytes_sent + c.bytes_received;
      since = rg::now_ns();
    } else if (rg::now_ns() - since > longest) {
      throw timed_out(fmt::format("{} does not complete: no progress for {} s", describe(cookie), longest / second));
    }
  }
  return completions_.at(cookie);
}

std::uint64_t endpoint::finish(std::uint64_t cookie) {
  const rg_completion c = wait(cookie);
  check(c.status, describe(cookie));
  return c.bytes;
}

void endpoint::finish(std::span<const std::uint64_t> cookies) {
  for (std::uint64_t c : cookies) finish(c);
}

void endpoint::exchange(std::uint32_t peer, const memory& m, std::uint64_t bytes, std::uint64_t round) {
  fill(m.data, bytes, rank_ + round);
  const std::uint64_t sent = send(peer, 0, m, 0, bytes);
  finish(recv(peer, 0, m, bytes, bytes));
  finish(sent);
  require(is_filled(m.data + bytes, bytes, peer + round),
          fmt::format("messages between ranks {} and {} arrive changed", rank_, peer));
}

void endpoint::cancel(std::uint32_t peer) {
  check(functions_.cancel(self_, peer), "cancel");
}
void endpoint::close() {
  const rg_status status = try_close(connect_timeout);
  report_progress();
  check(status, "close");
}

rg_counters endpoint::counters() {
  auto c = rg::make_versioned<rg_counters>();
  check(functions_.counters(self_, &c), "counters");
  return c;
}

rg_transport_caps caps_of(const subject& which) {
  return endpoint(which, 0, 1, 1).caps();
}

// ----------------------------------------------------------------------------------------------------- contents ---

float term(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t x = (seed * 0x9e3779b97f4a7c15 + i) * 0xbf58476d1ce4e5b9;
  const float mantissa = static_cast<float>(static_cast<std::int64_t>(x >> 40)) - 8388608.0f;
  return std::ldexp(mantissa, static_cast<int>((x >> 32) & 31) - 28);
}

namespace {
std::uint64_t word(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t x = (seed << 32) + i + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 31);
}
} // namespace

void fill(void* data, std::uint64_t bytes, std::uint64_t seed) {
  auto* to = static_cast<std::byte*>(data);
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    const std::uint64_t w = word(seed, i / 8);
    std::memcpy(to + i, &w, std::min<std::uint64_t>(8, bytes - i));
  }
}

bool is_filled(const void* data, std::uint64_t bytes, std::uint64_t seed) {
  const auto* from = static_cast<const std::byte*>(data);
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    const std::uint64_t w = word(seed, i / 8);
    if (std::memcmp(from + i, &w, std::min<std::uint64_t>(8, bytes - i)) != 0) return false;
  }
  return true;
}

} // namespace regatta::conformance
