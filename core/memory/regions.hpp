// SPDX-License-Identifier: Apache-2.0
//
// The buffers that take part in exchanges. Made here, known to the transport where it can reach them, never moved. [main]
// but for address(). Guards lie before and after the bytes of each region, in the same memory: find_damage() tells
// whether anybody wrote there.
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
// Zeroed host memory, aligned to a page where it is large and to a cache line else.
std::unique_ptr<void, aligned_free> allocate_aligned(std::uint64_t bytes);

class region_table {
public:
  // `transport` may be null: then all memory is our own. `ghosts`: regions have a size but no bytes. With `device` they
  // are its memory, of this kind (RG_MEMORY_*), but for those that are asked for on the host. The transport is told of
  // memory of the kinds that it `reaches`.
  region_table(const rg_regions* transport, void* transport_self, bool ghosts, processor* device = nullptr,
               std::uint32_t kind = RG_MEMORY_HOST, std::uint32_t reaches = RG_MEMORY_HOST);
  ~region_table();
  region_table(const region_table&) = delete;
  region_table& operator=(const region_table&) = delete;

  // Zeroed, 64-byte aligned. `name` is how find_damage() calls the region. Throws failure where the memory cannot be had.
  rg_buffer allocate(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), device_ ? place::device : place::host);
  }
  // As allocate(), but of the host's memory, device or not: as the transport has it best, or as a device has.
  rg_buffer allocate_on_host(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), place::host);
  }
  rg_buffer allocate_shared(std::uint32_t type, std::uint64_t count, std::string name) {
    return allocate(type, count, std::move(name), device_ ? place::shared : place::host);
  }
  bool ghosts() const noexcept { return ghosts_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  // Whether the buffer lies inside a region of this table. [loop]
  bool contains(const rg_buffer& b) const noexcept;
  // Whether it is a device's memory; false where there is no such region. [loop]
  bool on_device(const rg_buffer& b) const noexcept {
    return b.region != 0 && b.region <= regions_.size() && regions_[b.region - 1].in == place::device;
  }
  // First byte; null for ghosts; on a device an address there, which the host must not touch. The buffer must be
  // contained. [loop]
  void* address(const rg_buffer& b) const noexcept;
  template <class T> std::span<T> elements(const rg_buffer& b) const noexcept {
    return {static_cast<T*>(address(b)), b.count};
  }

  // The first region whose guards are not as they were made: "memory behind the gradients". Nothing: all are, or there
  // are no bytes. Call it while nothing is under way. `read` copies bytes from a device and waits for them; unused
  // without a device.
  using read_function = std::function<void(void* to, const void* from, std::uint64_t bytes)>;
  std::optional<std::string> find_damage(const read_function& read) const;

private:
  enum class place { host, device, shared }; // shared: the host's, which the device reaches
  rg_buffer allocate(std::uint32_t type, std::uint64_t count, std::string name, place in);

  struct region {
    place in = place::host;
    bool told = false;       // to the transport
    char* address = nullptr; // of the guard before its bytes
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
  std::uint64_t front_; // bytes of the guard before a region: the offset of every buffer that allocate() makes
  std::uint64_t bytes_ = 0;
  std::vector<region> regions_; // region k is regions_[k - 1]
};

} // namespace regatta
