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
  // `transport` may be null: then all memory is our own. `ghosts`: regions have a size but no bytes. With `device` all
  // are its memory, which the transport is told of where it is one for memory of this kind (RG_MEMORY_*).
  region_table(const rg_regions* transport, void* transport_self, bool ghosts, processor* device = nullptr,
               std::uint32_t kind = RG_MEMORY_HOST);
  ~region_table();
  region_table(const region_table&) = delete;
  region_table& operator=(const region_table&) = delete;

  // Zeroed. Throws failure where the memory cannot be had.
  rg_buffer allocate(std::uint32_t type, std::uint64_t count);
  bool ghosts() const noexcept { return ghosts_; }
  bool on_device() const noexcept { return device_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  // Whether the buffer lies inside a region of this table. [loop]
  bool contains(const rg_buffer& b) const noexcept;
  // First byte; null for ghosts; on a device an address there, which the host must not touch. The buffer must be
  // contained. [loop]
  void* address(const rg_buffer& b) const noexcept;
  template <class T> std::span<T> elements(const rg_buffer& b) const noexcept {
    return {static_cast<T*>(address(b)), b.count};
  }

private:
  struct region {
    void* address = nullptr;
    std::uint64_t bytes = 0;
    std::unique_ptr<void, aligned_free> own;
  };
  rg_regions transport_{};
  void* transport_self_;
  bool ghosts_;
  processor* device_;
  std::uint32_t kind_;
  std::uint64_t bytes_ = 0;
  std::vector<region> regions_; // region k is regions_[k - 1]
};

} // namespace regatta
