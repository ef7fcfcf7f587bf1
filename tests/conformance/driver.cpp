// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/mman.h>

namespace conformance {
namespace {

// Loaded once and never unloaded, as the engine does it; the entry is [main].
const rg_component& load(const configuration& which) {
  static std::mutex one_at_a_time;
  static std::map<std::string, const rg_component*> loaded; // by path
  std::lock_guard lock(one_at_a_time);
  if (const auto known = loaded.find(which.path); known != loaded.end()) return *known->second;
  void* library = dlopen(which.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, which.path + ": " + (library ? "" : dlerror()));
  const auto entry = reinterpret_cast<rg_entry>(dlsym(library, RG_ENTRY_SYMBOL));
  require(entry != nullptr, which.path + ": no entry symbol");
  static test_host host("");
  const rg_plugin* plugin = entry(host.c());
  require(plugin != nullptr, which.path + ": no description");
  for (std::uint32_t i = 0; i < plugin->component_count; ++i) {
    const rg_component& c = *plugin->components[i];
    if (c.kind == RG_KIND_TRANSPORT && which.id == c.id) return *(loaded[which.path] = &c);
  }
  throw failure(which.path + ": holds no transport " + which.id);
}

// Values of simple parameters: numbers, booleans and strings.
std::vector<rg_value> values_of(const rg_component& component, const configuration& which,
                                std::deque<std::string>& strings) {
  std::vector<rg_value> values;
  for (const auto& [name, text] : which.parameters)
    require(std::any_of(component.params, component.params + component.param_count,
                        [&, n = name](const rg_param& p) { return p.name == n; }),
            which.name + ": no parameter " + name);
  for (std::uint32_t i = 0; i < component.param_count; ++i) {
    const rg_param& p = component.params[i];
    const auto given = which.parameters.find(p.name);
    const std::string text = given != which.parameters.end() ? given->second : p.default_value ? p.default_value : "";
    rg_value v{};
    if (p.type == RG_PARAM_BOOL) v.i = text == "true";
    if (p.type == RG_PARAM_INT) v.i = std::strtoll(text.c_str(), nullptr, 10);
    if (p.type == RG_PARAM_FLOAT) v.f = std::strtod(text.c_str(), nullptr);
    if (p.type == RG_PARAM_STRING)
      v.s = strings.emplace_back(text.size() >= 2 ? text.substr(1, text.size() - 2) : "").c_str();
    values.push_back(v);
  }
  return values;
}

std::uint64_t now() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

} // namespace

// --------------------------------------------------------------------------------------------------------- host ---

test_host::test_host(std::string secret)
    : host_(rg::make_versioned<rg_host>()), authenticate_(rg::make_versioned<rg_authenticate>()),
      secret_(std::move(secret)) {
  host_.abi_major = RG_ABI_MAJOR;
  host_.abi_minor = RG_ABI_MINOR;
  host_.context = this;
  host_.log = [](void*, std::int32_t, const char*) {};
  host_.fail = [](void* context, rg_status status, const char* text) {
    auto& self = *static_cast<test_host*>(context);
    std::lock_guard lock(self.mutex_);
    self.error_ = text;
    return status;
  };
  host_.extension = [](void* context, const char* id) -> const void* {
    auto& self = *static_cast<test_host*>(context);
    return std::string_view(id) == RG_EXT_AUTHENTICATE ? &self.authenticate_ : nullptr;
  };
  authenticate_.context = this;
  authenticate_.mac = [](void* context, const void* data, std::uint64_t bytes, std::uint8_t out[32]) -> rg_status {
    const auto& secret_key = static_cast<test_host*>(context)->secret_;
    unsigned length = 32;
    HMAC(EVP_sha256(), secret_key.data(), static_cast<int>(secret_key.size()), static_cast<const unsigned char*>(data),
         bytes, out, &length);
    return RG_OK;
  };
}

std::string test_host::last_error() {
  std::lock_guard lock(mutex_);
  return error_;
}

// ----------------------------------------------------------------------------------------------------- endpoint ---

endpoint::endpoint(const configuration& which, std::uint32_t rank, std::uint32_t ranks, std::uint32_t lanes,
                   const std::string& secret)
    : host_(secret), rank_(rank), ranks_(ranks), lanes_(lanes), host_of_(ranks),
      world_(rg::make_versioned<rg_world>()) {
  const rg_component& component = load(which);
  functions_ = rg::copy_versioned(*static_cast<const rg_transport*>(component.functions));
  std::deque<std::string> strings;
  const auto values = values_of(component, which, strings);
  check(functions_.create(host_.c(), values.data(), &self_), "create");
  for (std::uint32_t r = 0; r < ranks; ++r)
    if (r != rank) peers_.push_back(r);
  world_.rank = rank;
  world_.size = ranks;
  world_.lanes = lanes;
  world_.peers = peers_.data();
  world_.peer_count = ranks - 1;
  world_.host_of = host_of_.data();
  world_.address = "127.0.0.1";
  regions_ = extension<rg_regions>(RG_EXT_REGIONS);
}

endpoint::~endpoint() {
  if (!self_) return;
  if (regions_)
    for (const memory& m : allocated_) regions_->remove(self_, m.region);
  functions_.destroy(self_);
  for (const auto& [p, bytes] : ours_) munmap(p, bytes);
}

void endpoint::check(rg_status status, const std::string& what) {
  if (status != RG_OK)
    throw failure("rank " + std::to_string(rank_) + ": " + what + ": status " + std::to_string(status) + ", \"" +
                  last_error() + "\"");
}

rg_transport_caps endpoint::caps() {
  auto c = rg::make_versioned<rg_transport_caps>();
  check(functions_.caps(self_, &c), "caps");
  return c;
}

std::vector<std::uint8_t> endpoint::listen() {
  rg_blob blob{};
  check(functions_.listen(self_, &world_, &blob), "listen");
  const auto* first = static_cast<const std::uint8_t*>(blob.data);
  require(first != nullptr || blob.bytes == 0, "a blob without an address");
  return {first, first + blob.bytes};
}

rg_status endpoint::try_connect(const std::vector<std::vector<std::uint8_t>>& blobs, std::uint64_t timeout_ns) {
  std::vector<rg_blob> views;
  views.reserve(blobs.size());
  for (const auto& b : blobs) views.push_back({b.data(), b.size()});
  return functions_.connect(self_, views.data(), timeout_ns);
}

void endpoint::connect(const std::vector<std::vector<std::uint8_t>>& blobs) {
  check(try_connect(blobs, patience), "connect");
}

memory endpoint::allocate(std::uint64_t bytes) {
  memory m{static_cast<rg_region>(allocated_.size() + 1), nullptr, bytes};
  const std::uint64_t room = (bytes + 63) / 64 * 64 + 64;
  if (regions_ && regions_->allocate) {
    void* p = nullptr;
    check(regions_->allocate(self_, m.region, room, RG_MEMORY_HOST, &p), "allocate");
    m.data = static_cast<std::byte*>(p);
    require(p && reinterpret_cast<std::uintptr_t>(p) % 64 == 0, "allocate gives no aligned memory");
  } else {
    // Fresh pages, which cost nothing until they are touched.
    void* p = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(p != MAP_FAILED, "no memory for the test");
    ours_.emplace_back(p, room);
    m.data = static_cast<std::byte*>(p);
    if (regions_ && regions_->add) check(regions_->add(self_, m.region, m.data, room, RG_MEMORY_HOST), "add");
  }
  allocated_.push_back(m);
  return m;
}

rg_transfer endpoint::transfer(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                               std::uint64_t bytes, std::uint32_t flags) {
  require(offset + bytes <= m.bytes, "the test names bytes outside its memory");
  auto t = rg::make_versioned<rg_transfer>();
  const bool adds = flags & RG_TRANSFER_ADD;
  t.flags = flags;
  t.peer = peer;
  t.lane = lane;
  t.buffer = {m.region, static_cast<std::uint32_t>(adds ? RG_F32 : RG_U8), offset, adds ? bytes / 4 : bytes};
  t.address = m.data ? m.data + offset : nullptr;
  t.cookie = ++last_cookie_;
  return t;
}

rg_status endpoint::try_send(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                             std::uint64_t bytes, std::uint64_t& cookie) {
  const auto t = transfer(peer, lane, m, offset, bytes, 0);
  cookie = t.cookie;
  return functions_.send(self_, &t);
}

rg_status endpoint::try_recv(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                             std::uint64_t bytes, std::uint64_t& cookie, std::uint32_t flags) {
  const auto t = transfer(peer, lane, m, offset, bytes, flags);
  cookie = t.cookie;
  return functions_.recv(self_, &t);
}

std::uint64_t endpoint::begin(bool receive, const rg_transfer& t) {
  backlog& b = backlogs_[{receive, t.peer, t.lane}];
  b.receive = receive;
  b.waiting.push_back(t);
  retry();
  return t.cookie;
}

void endpoint::retry() {
  for (auto& [where, b] : backlogs_)
    while (!b.waiting.empty()) {
      const rg_transfer& t = b.waiting.front();
      const rg_status s = b.receive ? functions_.recv(self_, &t) : functions_.send(self_, &t);
      if (s == RG_AGAIN) break;
      if (s != RG_OK) completions_.emplace(t.cookie, rg_completion{.cookie = t.cookie, .status = s});
      b.waiting.pop_front();
    }
}

std::uint64_t endpoint::send(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                             std::uint64_t bytes) {
  return begin(false, transfer(peer, lane, m, offset, bytes, 0));
}

std::uint64_t endpoint::recv(std::uint32_t peer, std::uint32_t lane, const memory& m, std::uint64_t offset,
                             std::uint64_t bytes, std::uint32_t flags) {
  return begin(true, transfer(peer, lane, m, offset, bytes, flags));
}

rg_status endpoint::all_reduce(std::uint32_t group, const memory& m, std::uint64_t first, std::uint64_t count,
                               std::uint64_t& cookie) {
  auto c = rg::make_versioned<rg_collective>();
  c.group = group;
  c.buffer = {m.region, RG_F32, 4 * first, count};
  c.address = m.data + 4 * first;
  c.cookie = cookie = ++last_cookie_;
  return extension<rg_collectives>(RG_EXT_COLLECTIVES)->all_reduce(self_, &c);
}

std::uint32_t endpoint::poll(std::uint64_t timeout_ns, std::uint64_t spin_ns) {
  rg_completion out[7]; // few, so that some have to wait for the next poll
  std::uint32_t count = 0;
  retry();
  const bool waits_for_room =
      std::any_of(backlogs_.begin(), backlogs_.end(), [](const auto& b) { return !b.second.waiting.empty(); });
  if (waits_for_room) timeout_ns = std::min(timeout_ns, second / 1000);
  check(functions_.poll(self_, timeout_ns, spin_ns, out, std::size(out), &count), "poll");
  require(count <= std::size(out), "poll gives more completions than there is room for");
  for (const rg_completion& c : std::span(out, count)) {
    require(c.cookie >= 1 && c.cookie <= last_cookie_, "a completion of nothing that was begun");
    require(completions_.emplace(c.cookie, c).second, "an operation completes twice");
    order_.push_back(c.cookie);
  }
  return count;
}

rg_completion endpoint::wait(std::uint64_t cookie) {
  const std::uint64_t begin = now();
  while (!ended(cookie)) {
    const std::uint64_t waited = now() - begin;
    require(waited < patience, "rank " + std::to_string(rank_) + ": an operation does not end");
    poll(patience - waited);
  }
  return completions_.at(cookie);
}

std::uint64_t endpoint::finish(std::uint64_t cookie) {
  const rg_completion c = wait(cookie);
  check(c.status, "operation " + std::to_string(cookie));
  return c.bytes;
}

void endpoint::finish(std::span<const std::uint64_t> cookies) {
  for (std::uint64_t c : cookies) finish(c);
}

void endpoint::cancel(std::uint32_t peer) {
  check(functions_.cancel(self_, peer), "cancel");
}
void endpoint::close() {
  check(try_close(patience), "close");
}

rg_counters endpoint::counters() {
  auto c = rg::make_versioned<rg_counters>();
  check(functions_.counters(self_, &c), "counters");
  return c;
}

// ----------------------------------------------------------------------------------------------------- contents ---

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

} // namespace conformance
