// SPDX-License-Identifier: Apache-2.0
//
// The processor that computes on regions: the host at once, a device asynchronously in its stream. Both execute rg_work
// (regatta/device.h).
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

  // Returns zeroed memory of the processor's kind, aligned to at least a cache line. The processor owns it until its
  // destruction. Throws failure if there is none.
  virtual void* allocate(std::uint64_t bytes) = 0;
  // Returns zeroed host memory that the processor reads and writes at full speed (pinned memory for a device). Same
  // ownership, alignment and errors as allocate().
  virtual void* allocate_shared(std::uint64_t bytes) = 0;
  // Executes `work` as rg_device.work does, after all earlier work. Returns false if an index lies outside the target;
  // then nothing was written. A device always returns true and ignores such elements, because the host does not wait
  // for it.
  virtual bool run(const rg_work& work) = 0;
  // Copies after all earlier work. On a device the two ranges must not overlap.
  virtual void copy(void* to, const void* from, std::uint64_t bytes) = 0;
};

} // namespace regatta
