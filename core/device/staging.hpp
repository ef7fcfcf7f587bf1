// SPDX-License-Identifier: Apache-2.0
//
// Moves bytes between regions and memory that the transport can access. Packing and unpacking are in order with all
// other work of the processor; the host does them at once, a device asynchronously.
#pragma once

#include "device/device.hpp"
#include "memory/regions.hpp"

#include <cstdint>
#include <memory>

namespace regatta {

// Memory that the transport accesses in place of a region's; it grows on demand.
class scratch {
public:
  virtual ~scratch() = default;
  void* reserve(std::uint64_t bytes) {
    if (bytes > bytes_) {
      memory_ = nullptr;
      memory_ = grow(bytes);
      bytes_ = bytes;
    }
    return memory_;
  }
  void* get() const noexcept { return memory_; }

private:
  virtual void* grow(std::uint64_t bytes) = 0; // replaces the old memory
  void* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
};

class staging {
public:
  staging() = default;
  virtual ~staging() = default;
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  // Returns whether the transport cannot access regions, so that everything goes through scratch.
  virtual bool always() const noexcept = 0;
  virtual std::unique_ptr<scratch> make_scratch() = 0;
  // Fills scratch by `w`. The transport may access it once the returned fence has passed; 0: at once.
  virtual rg_fence pack(const rg_work& w) = 0;
  // Executes `w`, which copies received bytes to their target, from scratch or from another part of a region. Scratch
  // is in use until the returned fence has passed; 0: it is not in use.
  virtual rg_fence unpack(const rg_work& w) = 0;
  virtual bool passed(rg_fence fence) = 0;
  // Returns the fence for which the transport must wait before it accesses the memory of a region or of scratch.
  virtual rg_fence before() = 0;
  // Makes later work wait for a fence that the transport returned.
  virtual void came(rg_fence fence) = 0;
};

// Stages host memory; `host` executes the work at once.
std::unique_ptr<staging> stage_on_host(processor& host);
// Stages device memory that the transport can access; fences order its operations.
std::unique_ptr<staging> stage_on_device(device& d);
// Stages device memory that the transport cannot access, through host memory. Copies use separate streams for the two
// directions, while the device computes and the transport works on other operations.
std::unique_ptr<staging> stage_through_host(device& d);

} // namespace regatta
