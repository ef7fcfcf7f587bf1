// SPDX-License-Identifier: Apache-2.0
//
// A transport that asks of the engine all that the interface lets it ask: it refuses a buffer outside of registered
// memory and a receive that overlaps an outstanding one, and reports completions in any order. Another transport moves
// the bytes.
#include <regatta/nested.hpp>
#include <regatta/transport.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

class exacting {
public:
  struct parameters {
    std::string over = "shm";
  };
  static constexpr auto fields = rg::fields(rg::field("over", &parameters::over, "the transport that moves the bytes"));

  exacting(const rg_host* host, const parameters& p) : inner_(host, p.over.c_str()) {}

  rg_transport_caps caps() const {
    rg_transport_caps c = inner_.caps();
    c.flags &= ~std::uint32_t{RG_CAP_ORDERED_RECEIVES};
    return c;
  }
  rg_blob listen(const rg_world& world) {
    random_.seed(world.rank + 1);
    return inner_.listen(world);
  }
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) { inner_.connect(blobs, timeout_ns); }

  rg_status send(const rg_transfer& t) {
    require_region(t);
    return inner_.send(t);
  }
  rg_status recv(const rg_transfer& t) {
    require_region(t);
    const range mine = range_of(t);
    for (const auto& [cookie, other] : receives_)
      if (mine.first < other.last && other.first < mine.last)
        throw rg::error(RG_E_OPERATION, "exacting: a receive overlaps one that is outstanding");
    const rg_status s = inner_.recv(t);
    if (s == RG_OK) receives_.emplace(t.cookie, mine);
    return s;
  }

  // Holds completions back, at random, as long as the inner transport reports more.
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    rg_completion got[16];
    const std::uint32_t count = inner_.poll(held_.empty() ? timeout_ns : 0, spin_ns, got);
    held_.insert(held_.end(), got, got + count);
    std::shuffle(held_.begin(), held_.end(), random_);
    const std::size_t given = std::min(out.size(), count ? random_() % (held_.size() + 1) : held_.size());
    for (std::size_t i = 0; i < given; ++i) {
      out[i] = held_.back();
      held_.pop_back();
      receives_.erase(out[i].cookie);
    }
    return static_cast<std::uint32_t>(given);
  }
  void wake() noexcept { inner_.wake(); }
  void cancel(std::uint32_t peer) { inner_.cancel(peer); }
  void close(std::uint64_t timeout_ns) { inner_.close(timeout_ns); }
  rg_counters counters() const { return inner_.counters(); }

  void add(rg_region region, void* address, std::uint64_t bytes, const rg_memory&) {
    const auto* first = static_cast<const std::byte*>(address);
    if (!regions_.emplace(region, range{first, first + bytes}).second)
      throw rg::error(RG_E_OPERATION, "exacting: region " + std::to_string(region) + " is registered twice");
  }
  void remove(rg_region region) noexcept { regions_.erase(region); }

private:
  struct range {
    const std::byte *first, *last;
  };
  static range range_of(const rg_transfer& t) {
    const auto* first = static_cast<const std::byte*>(t.address);
    return {first, first + t.bytes};
  }
  void require_region(const rg_transfer& t) const {
    const auto region = regions_.find(t.buffer.region);
    const range r = range_of(t);
    if (region == regions_.end() || r.first < region->second.first || r.last > region->second.last)
      throw rg::error(RG_E_OPERATION, "exacting: " + std::to_string(t.bytes) + " bytes are not in region " +
                                          std::to_string(t.buffer.region));
  }

  std::map<rg_region, range> regions_;
  std::map<std::uint64_t, range> receives_; // outstanding, by cookie
  std::vector<rg_completion> held_;
  std::mt19937 random_;
  rg::nested inner_;
};

} // namespace

RG_PLUGIN("exacting", "0.1.0", rg::transport<exacting>("exacting", "takes registered memory only, and orders nothing"))
