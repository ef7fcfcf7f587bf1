// SPDX-License-Identifier: Apache-2.0
//
// Who computes on regions: the host at once, a device in its stream. The same text for both: rg_work (regatta/device.h).
#pragma once

#include <cstdint>

#include <regatta/device.h>

namespace regatta {

// One call at a time.
class processor {
public:
  processor() = default;
  virtual ~processor() = default;
  processor(const processor&) = delete;
  processor& operator=(const processor&) = delete;

  // Zeroed memory of the kind it computes on, aligned to a cache line at least; its own until its end. Throws failure
  // where there is none.
  virtual void* allocate(std::uint64_t bytes) = 0;
  // Likewise of the host's memory, which it reads and writes at full speed.
  virtual void* allocate_shared(std::uint64_t bytes) = 0;
  // As rg_device.work says, after what was asked for before. False: an index names an element outside, and nothing was
  // done; a device leaves such elements out instead, for nobody waits for it.
  virtual bool run(const rg_work& work) = 0;
  // Likewise. On a device the two do not overlap.
  virtual void copy(void* to, const void* from, std::uint64_t bytes) = 0;
};

} // namespace regatta
