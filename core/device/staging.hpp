// SPDX-License-Identifier: Apache-2.0
//
// Moves bytes between regions and memory that the transport can access. Packing and unpacking come after all earlier
// work of the processor; the host does them at once, a device asynchronously. [loop]
#pragma once

#include "device/device.hpp"
#include "memory/regions.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace regatta {

// Memory that the transport accesses in place of a region's, for one operation at a time.
using scratch_memory = std::unique_ptr<void, std::function<void(void*)>>;

// The default functions are those of memory that the transport can access, and of work that needs no fences.
class staging {
public:
  staging() = default;
  virtual ~staging() = default;
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  // Returns whether the transport cannot access regions, so that everything goes through scratch.
  virtual bool always_copies() const noexcept { return false; }
  // Returns `bytes` of scratch memory; free it before this object's processor. Throws failure if there is not enough
  // memory: run on the host, by the status of the executor's function on a device.
  virtual scratch_memory allocate_scratch(std::uint64_t bytes) = 0;
  // Returns where scratch memory is: RG_MEMORY_HOST or RG_MEMORY_DEVICE.
  virtual std::uint32_t scratch_place() const noexcept { return RG_MEMORY_HOST; }
  // Executes `w`, whose target is scratch memory. Later work of the processor need not wait for it, unless it writes to
  // the source. Once passed() is true for the returned fence (0: at once), and not before, the operation may be posted
  // to the transport, and the source overwritten.
  virtual rg_fence pack(const rg_work& w) = 0;
  // Executes `w`, which copies received bytes to their target, from scratch or from another part of a region, before
  // later work of the processor. Scratch may be reused once passed() is true for the returned fence; 0: at once.
  virtual rg_fence unpack(const rg_work& w) { return pack(w); }
  // Returns whether the host need not wait for a fence of pack() or unpack() any more. Does not block.
  virtual bool passed(rg_fence) { return true; }
  // Returns the fence after all work so far, for which the transport must wait before it accesses the memory of a
  // region or of scratch (rg_transfer.after); 0: none.
  virtual rg_fence fence_for_transport() { return 0; }
  // Makes later work of the processor wait for the fence of a completion; 0: none.
  virtual void wait_for(rg_fence) {}
};

// The argument of these functions must outlive the result.

// Stages host memory; `host` executes the work at once.
std::unique_ptr<staging> stage_on_host(processor& host);
// Stages device memory that the transport can access; fences order its operations.
std::unique_ptr<staging> stage_on_device(device& d);
// Stages device memory that the transport cannot access, through host memory. Copies use separate streams for the two
// directions, while the device computes and the transport works on other operations.
std::unique_ptr<staging> stage_through_host(device& d);

} // namespace regatta
