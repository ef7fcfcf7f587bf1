// SPDX-License-Identifier: Apache-2.0
//
// The memory regions of an exchange. They are allocated here, registered with the transport if it can access them, and
// never move. [main] except where noted. Guard values lie before and after the bytes of each region, in the same
// allocation: find_damage() detects writes there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/processor.hpp"

namespace regatta {

struct aligned_free {
  void operator()(void* p) const noexcept;
};
// Returns zeroed host memory, aligned to a cache line; large memory to a page.
std::unique_ptr<void, aligned_free> allocate_aligned(std::uint64_t bytes);

class region_table {
public:
  // `transport` may be null: it then provides no memory and learns of none. `ghosts`: regions have a size but no bytes.
  // With `device`, regions are its memory, of type `kind` (RG_MEMORY_*), except those allocated on the host. Memory of
  // the types in `reaches` is registered with the transport.
  region_table(const rg_regions* transport, void* transport_self, bool ghosts, processor* device = nullptr,
               std::uint32_t kind = RG_MEMORY_HOST, std::uint32_t reaches = RG_MEMORY_HOST);
  ~region_table();
  region_table(const region_table&) = delete;
  region_table& operator=(const region_table&) = delete;

  // Allocates zeroed memory, aligned to 64 bytes, on the device if there is one. `name` names the region in
  // find_damage(). Throws failure if the memory is not available.
  rg_buffer allocate(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), device_ ? place::device : place::host);
  }
  // As allocate(), but always host memory: allocate_on_host() prefers the transport's memory, allocate_shared() takes
  // memory that the device can access.
  rg_buffer allocate_on_host(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), place::host);
  }
  rg_buffer allocate_shared(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), device_ ? place::shared : place::host);
  }
  bool ghosts() const noexcept { return ghosts_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  // [loop] Returns whether the buffer lies inside a region of this table.
  bool contains(const rg_buffer& b) const noexcept;
  // [loop] Returns whether the buffer is device memory; false if there is no such region.
  bool on_device(const rg_buffer& b) const noexcept {
    return b.region != 0 && b.region <= regions_.size() && regions_[b.region - 1].in == place::device;
  }
  // [loop] Returns the address of the first byte; null for ghosts. On a device it is a device address, which the host
  // must not access. Requires contains(b).
  void* address(const rg_buffer& b) const noexcept;
  template <class T> std::span<T> elements(const rg_buffer& b) const noexcept {
    return {static_cast<T*>(address(b)), b.count};
  }

  // Returns the first region whose guards have changed: "memory behind the gradients". Returns std::nullopt if none
  // has, and with ghosts. Call it while no operation is pending. `read` copies bytes from a device and waits for them;
  // unused without a device.
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
  void reserve(region& r, std::uint32_t kind, std::uint64_t bytes);
  void write_guard(const region& r, std::uint64_t at) const;

  rg_regions transport_{};
  void* transport_self_;
  bool ghosts_;
  processor* device_;
  std::uint32_t kind_, reaches_;
  std::uint64_t front_; // bytes of the guard before a region: the offset of every buffer from allocate()
  std::uint64_t bytes_ = 0;
  std::vector<region> regions_; // region k is regions_[k - 1]
};

} // namespace regatta
