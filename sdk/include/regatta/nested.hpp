// SPDX-License-Identifier: Apache-2.0
//
// Opens a transport inside another one, for transports that are built of others:
//
//   class slow {
//     slow(const rg_host* host, const parameters& p) : inner_(host, p.over.c_str()) {}
//     rg_transport_caps caps() { return inner_.caps(); }
//     ...
//     rg::nested inner_;
//   };
//
// The member functions are those of rg_transport (abi/transport.h), with the contexts and lifetimes given there. They
// throw rg::error with the inner transport's status on failure (close() also with RG_TIMEOUT), without a text: the
// inner transport has reported the text to the host already.
#pragma once

#include <regatta/ext/counters.h>
#include <regatta/ext/nest.h>
#include <regatta/ext/regions.h>
#include <regatta/plugin.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace rg {

class nested {
public:
  // [main] Requires: the outer transport's constructor is running. Creates transport `id` with default parameters; the
  // destructor destroys it. Throws rg::error if there is no transport `id`, or if it cannot be created.
  nested(const rg_host* host, const char* id) : id_(id) {
    const auto* nest = static_cast<const rg_nest*>(host->extension(host->context, RG_EXT_NEST));
    if (!nest) throw error(RG_E_UNSUPPORTED, "this engine cannot open transport \"" + id_ + "\" inside another");
    nest_ = copy_versioned(*nest);
    auto made = make_versioned<rg_nested>();
    check(nest_.open(nest_.context, id, &made));
    functions_ = made.functions;
    self_ = made.self;
  }
  nested(nested&& other) noexcept
      : id_(std::move(other.id_)), nest_(other.nest_), functions_(other.functions_),
        self_(std::exchange(other.self_, nullptr)) {}
  nested(const nested&) = delete;
  nested& operator=(const nested&) = delete;
  ~nested() {
    if (self_) functions_->destroy(self_);
  }

  const std::string& id() const noexcept { return id_; }

  rg_transport_caps caps() const {
    auto c = make_versioned<rg_transport_caps>();
    check(functions_->caps(self_, &c));
    return c;
  }
  rg_blob listen(const rg_world& world) const {
    rg_blob blob{};
    check(functions_->listen(self_, &world, &blob));
    return blob;
  }
  void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns) const {
    check(functions_->connect(self_, blobs.data(), timeout_ns));
  }
  // These two return RG_OK, or RG_AGAIN if the inner transport has no room. Its completions come from poll().
  rg_status send(const rg_transfer& t) const { return check(functions_->send(self_, &t)); }
  rg_status recv(const rg_transfer& t) const { return check(functions_->recv(self_, &t)); }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) const {
    std::uint32_t count = 0;
    check(functions_->poll(self_, timeout_ns, spin_ns, out.data(), static_cast<std::uint32_t>(out.size()), &count));
    return count;
  }
  void wake() const noexcept { functions_->wake(self_); }
  void cancel(std::uint32_t peer) const { check(functions_->cancel(self_, peer)); }
  void close(std::uint64_t timeout_ns) const { check(functions_->close(self_, timeout_ns)); }
  rg_counters counters() const {
    auto c = make_versioned<rg_counters>();
    check(functions_->counters(self_, &c));
    return c;
  }
  // [loop] The counters of the extension "regatta.counters/1", valid until the next call; none without it.
  std::span<const rg_counter> own_counters() const {
    const auto* own = extension<rg_own_counters>(RG_EXT_COUNTERS);
    const rg_counter* first = nullptr;
    std::uint32_t count = 0;
    if (own) check(own->read(self_, &first, &count));
    return {first, count};
  }

  // [loop] The functions of the extension "regatta.regions/1". If the inner transport does not have the extension or
  // the function, allocate() returns null, and add() and remove() do nothing.
  void* allocate(rg_region region, std::uint64_t bytes, const rg_memory& memory) const {
    void* address = nullptr;
    const auto* regions = extension<rg_regions>(RG_EXT_REGIONS);
    if (regions && regions->allocate) check(regions->allocate(self_, region, bytes, &memory, &address));
    return address;
  }
  void add(rg_region region, void* address, std::uint64_t bytes, const rg_memory& memory) const {
    const auto* regions = extension<rg_regions>(RG_EXT_REGIONS);
    if (regions && regions->add) check(regions->add(self_, region, address, bytes, &memory));
  }
  // [loop] Registers host memory of the outer transport's own with the inner one, whose transfers may name it from now
  // on. Returns its region, which is valid until remove(), or until this object ends.
  rg_region add_own(void* address, std::uint64_t bytes) const {
    auto memory = make_versioned<rg_memory>();
    memory.place = RG_MEMORY_HOST;
    memory.device = memory.numa_node = memory.dma_buf = -1;
    const rg_region region = nest_.new_region(nest_.context);
    add(region, address, bytes, memory);
    return region;
  }
  void remove(rg_region region) const noexcept {
    const auto* regions = extension<rg_regions>(RG_EXT_REGIONS);
    if (regions && regions->remove) regions->remove(self_, region);
  }

  // Returns the functions of an extension, whose first argument is self(), or null if the transport does not have it.
  // The struct may be shorter than T: copy it with copy_versioned() before use. Valid as long as this object.
  template <class T> const T* extension(const char* id) const {
    return functions_->extension ? static_cast<const T*>(functions_->extension(self_, id)) : nullptr;
  }
  void* self() const noexcept { return self_; }
  // Throws rg::error if `status` is an error or RG_TIMEOUT; else returns it.
  static rg_status check(rg_status status) {
    if (status < 0 || status == RG_TIMEOUT) throw error(status, "");
    return status;
  }

private:
  std::string id_;
  rg_nest nest_{};
  const rg_transport* functions_ = nullptr;
  void* self_ = nullptr;
};

} // namespace rg
