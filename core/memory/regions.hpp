// SPDX-License-Identifier: Apache-2.0
//
// The buffers that take part in exchanges. Made here, known to the transport where it can reach them, never moved. [main]
// but for address().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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

  // Zeroed. Throws failure where the memory cannot be had.
  rg_buffer allocate(std::uint32_t type, std::uint64_t count) {
    return allocate(type, count, device_ ? place::device : place::host);
  }
  // Likewise of the host's memory, device or not: as the transport has it best, or as a device has.
  rg_buffer allocate_on_host(std::uint32_t type, std::uint64_t count) { return allocate(type, count, place::host); }
  rg_buffer allocate_shared(std::uint32_t type, std::uint64_t count) {
    return allocate(type, count, device_ ? place::shared : place::host);
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

private:
  enum class place { host, device, shared }; // shared: the host's, which the device reaches
  rg_buffer allocate(std::uint32_t type, std::uint64_t count, place in);

  struct region {
    place in = place::host;
    bool told = false; // to the transport
    void* address = nullptr;
    std::uint64_t bytes = 0;
    std::unique_ptr<void, aligned_free> own;
  };
  rg_regions transport_{};
  void* transport_self_;
  bool ghosts_;
  processor* device_;
  std::uint32_t kind_, reaches_;
  std::uint64_t bytes_ = 0;
  std::vector<region> regions_; // region k is regions_[k - 1]
};

} // namespace regatta
