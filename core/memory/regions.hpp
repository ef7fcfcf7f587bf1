// SPDX-License-Identifier: Apache-2.0
//
// The memory regions of one rank's strategy. They are allocated here, registered with the transport if it can access
// them, never move, and live as long as their table. [main] except where noted. Guard values lie before and after the
// bytes of each region, in the same allocation: find_damage() detects writes there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/processor.hpp"

#include <regatta/ext/regions.h>
#include <regatta/plugin.hpp>

namespace regatta {

using rg::bytes_of;

struct aligned_free {
  void operator()(void* p) const noexcept;
};
// Returns zeroed host memory, aligned to 64 bytes; from 1 MiB on to a page, from 2 MiB on to a huge page (2 MiB).
// Throws failure (run) if there is not enough.
std::unique_ptr<void, aligned_free> allocate_aligned(std::uint64_t bytes);

class region_table {
public:
  // `transport` is copied and may be null: the transport then provides no memory and learns of none. The transport and
  // `device` must outlive the table. `ghosts`: regions have a size but no bytes. With `device`, allocate() takes its
  // memory; the device has number `device_index`. Memory of the places in `reaches` (a mask of RG_MEMORY_*) is
  // registered with the transport; the destructor removes it unless forget_transport() was called.
  region_table(const rg_regions* transport, void* transport_self, bool ghosts, std::uint32_t reaches = RG_MEMORY_HOST,
               processor* device = nullptr, std::int32_t device_index = -1);
  ~region_table();
  // Call it before the transport is destroyed while this object lives on: the destructor then leaves its regions alone.
  void forget_transport() noexcept { transport_ = {}; }
  // With ghosts: later regions of RG_I64 in host memory have bytes all the same. They hold the numbers of rows, on
  // which the lengths of messages depend.
  void keep_numbers() noexcept { numbers_ = true; }
  region_table(const region_table&) = delete;
  region_table& operator=(const region_table&) = delete;

  // Allocates zeroed memory for `count` elements of `type` (RG_F32, ...) as a new region, aligned to 64 bytes, on the
  // device if there is one. Returns the buffer that covers it. `name` names the region in find_damage(). Throws failure
  // (plugin) if `type` is unknown or `count` above 2^48, failure (run) if there is not enough memory or the transport
  // cannot use it.
  rg_buffer allocate(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), device_ ? place::device : place::host);
  }
  // As allocate(), but always host memory: allocate_on_host() takes the transport's memory if it provides some;
  // allocate_shared() takes memory that the device can access (without a device: as allocate_on_host()).
  rg_buffer allocate_on_host(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), place::host);
  }
  rg_buffer allocate_shared(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), device_ ? place::shared : place::host);
  }
  // [loop] Registers the caller's memory of kind RG_MEMORY_*, without guards, with the transport; `address` is null for
  // ghosts. Returns its region, which the other functions of this class do not know. Throws failure (run) if the
  // transport cannot use the memory.
  rg_region add(void* address, std::uint64_t bytes, std::uint32_t kind);
  // [loop] Undoes add(). Requires that no transfer uses the memory any more.
  void remove(rg_region added);
  // Returns whether regions are ghosts, but for those of keep_numbers().
  bool ghosts() const noexcept { return ghosts_; }
  // Returns the size of all regions without guards, ghosts included.
  std::uint64_t bytes() const noexcept { return bytes_; }

  // [loop] Returns whether the whole buffer lies inside a region of this table and has a known type. Any values are
  // allowed.
  bool contains(const rg_buffer& b) const noexcept;
  // [loop] Returns whether the buffer is device memory; false if there is no such region.
  bool on_device(const rg_buffer& b) const noexcept {
    return b.region != 0 && b.region <= regions_.size() && regions_[b.region - 1].in == place::device;
  }
  // [loop] Returns the address of the first byte; null for a ghost. On a device it is a device address, which the host
  // must not access. Requires contains(b).
  void* address(const rg_buffer& b) const noexcept;
  // [loop] Returns the buffer's elements at address(b). Requires that its type is T and that these are no ghosts.
  template <class T> std::span<T> elements(const rg_buffer& b) const noexcept {
    return {static_cast<T*>(address(b)), b.count};
  }

  // Returns which guard of the first damaged region has changed, such as "memory behind the gradients"; std::nullopt if
  // none has, and with ghosts. Call it while no operation is pending. `read` copies bytes from the device and returns
  // once they have arrived; it is not called without a device.
  using read_function = std::function<void(void* to, const void* from, std::uint64_t bytes)>;
  std::optional<std::string> find_damage(const read_function& read) const;

private:
  enum class place { host, device, shared }; // shared: host memory that the device can access
  rg_buffer allocate(std::uint32_t type, std::uint64_t count, std::string name, place in);

  struct region {
    place in = place::host;
    bool told = false;       // the transport knows this region
    char* address = nullptr; // of the guard before the region
    std::uint64_t bytes = 0; // without guards
    std::unique_ptr<void, aligned_free> own;
    std::string name;
  };
  // Allocates memory of `bytes` bytes, guards included, for the next region, and registers it with the transport.
  void reserve(region& r, rg_memory where, std::uint64_t bytes);
  rg_memory memory_in(std::uint32_t kind) const;
  void tell(rg_region id, void* address, std::uint64_t bytes, rg_memory where); // registers it with the transport
  void write_guard(const region& r, std::uint64_t at) const;                    // at byte `at` of its memory

  rg_regions transport_{};
  void* transport_self_;
  bool ghosts_, numbers_ = false;
  processor* device_;
  std::int32_t device_index_;
  std::uint32_t reaches_;
  std::uint64_t front_; // bytes of the guard before a region: the offset of every buffer from allocate()
  std::uint64_t bytes_ = 0;
  std::vector<region> regions_;     // region k is regions_[k - 1]
  rg_region next_added_ = 1u << 30; // regions of add(): strategies cannot allocate so many
};

} // namespace regatta
