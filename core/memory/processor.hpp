// SPDX-License-Identifier: Apache-2.0
//
// The processor that computes on regions: the host at once, a device asynchronously in its stream. Both execute rg_work
// (regatta/ext/device.h).
#pragma once

#include <cstdint>

#include <regatta/device.hpp>

namespace regatta {

// One call at a time, unless the class says otherwise (device.hpp). Addresses, also those in an rg_work, are in memory
// from allocate() or allocate_shared(), or in any host memory if the processor is the host.
class processor {
public:
  processor() = default;
  virtual ~processor() = default;
  processor(const processor&) = delete;
  processor& operator=(const processor&) = delete;

  // Returns zeroed memory of the processor's kind, aligned to at least 64 bytes. The processor owns it until its
  // destruction. Throws failure if there is not enough: run, on a device by the status of the executor's function.
  virtual void* allocate(std::uint64_t bytes) = 0;
  // Returns zeroed host memory that the processor reads and writes at full speed (pinned memory for a device). Same
  // ownership, alignment and errors as allocate().
  virtual void* allocate_shared(std::uint64_t bytes) = 0;
  // Executes `work`, an operation of the kind work.kind on the memory that it names (rg_work; the host: except
  // GATHER_ROWS and SCATTER_ROWS), and RG_OP_COPY as copy(), after all earlier work; a device only enqueues it, so its
  // memory must stay until the device has executed it. Returns false if an index lies outside the target; then nothing
  // was written. A device always returns true and ignores such elements, because the host does not wait for it.
  virtual bool run(const rg_work& work) = 0;
  // Copies `bytes` bytes after all earlier work; a device only enqueues the copy, and the ranges must not overlap
  // there.
  virtual void copy(void* to, const void* from, std::uint64_t bytes) = 0;
  // Returns a new file descriptor of memory from allocate(), which the caller closes, and the place of `address` in it
  // (rg_device.export_memory); fd = -1: there is none.
  virtual rg::exported_memory export_memory(void*, std::uint64_t) { return {}; }
};

} // namespace regatta
