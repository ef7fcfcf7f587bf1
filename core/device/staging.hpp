// SPDX-License-Identifier: Apache-2.0
//
// The way between regions and what a transport can touch. What is packed and unpacked is in order with everything else that
// was asked of the processor; the host does it at once, a device is asked and not waited for.
#pragma once

#include "device/device.hpp"
#include "memory/regions.hpp"

#include <cstdint>
#include <memory>

namespace regatta {

// Memory that the transport sees in place of a region's; grows.
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
  virtual void* grow(std::uint64_t bytes) = 0; // in place of what it had
  void* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
};

class staging {
public:
  staging() = default;
  virtual ~staging() = default;
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  // Whether the transport cannot touch regions, so that everything goes through scratch.
  virtual bool always() const noexcept = 0;
  virtual std::unique_ptr<scratch> make_scratch() = 0;
  // Fills scratch as `w` says. The transport may be shown it once the fence has passed; 0: now.
  virtual rg_fence pack(const rg_work& w) = 0;
  // Puts what came into its place, from scratch or from another part of a region. Until the fence has passed, scratch is in
  // use; 0: it is not.
  virtual rg_fence unpack(const rg_work& w) = 0;
  virtual bool passed(rg_fence fence) = 0;
  // What the transport has to wait for before it touches a region's or scratch's memory.
  virtual rg_fence before() = 0;
  // What is computed from now on comes after the fence, which the transport gave.
  virtual void came(rg_fence fence) = 0;
};

// `host` does it, on memory of the host's.
std::unique_ptr<staging> stage_on_host(processor& host);
// Regions are the device's, and so is what the transport can touch: its operations are ordered by fences.
std::unique_ptr<staging> stage_on_device(device& d);
// Regions are the device's, and the transport can only touch the host's: copies go by streams of their own, in both
// directions, while the device computes and the transport is busy with others.
std::unique_ptr<staging> stage_through_host(device& d);

} // namespace regatta
