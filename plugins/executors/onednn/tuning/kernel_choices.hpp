// SPDX-License-Identifier: Apache-2.0
//
// Autotuning on the CPU: ../common/kernel_choices.hpp with the names of CPU and library, and memory for trial runs.
#pragma once

#include "../common/kernel_choices.hpp"
#include "runtime/memory_plan.hpp"

#include <chrono>

namespace onednn {

// Returns the seconds that run() takes, for kernel_choices::choose().
template <class Run> double seconds_of(const Run& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class kernel_choices : public executors::kernel_choices {
public:
  // As the constructor of the base class. `dev` must outlive this object.
  kernel_choices(std::uint32_t mode, const char* given, const device& dev);

  // Returns memory for trial runs, at least `bytes` long and aligned to 64 bytes. This object owns it. A call with more
  // bytes than ever before frees the memory of earlier calls and fills the new memory with numbers in -0.5 .. 0.5;
  // other calls return the same memory as it is.
  float* workspace(std::size_t bytes);

private:
  aligned_bytes workspace_;
  std::size_t workspace_bytes_ = 0;
};

} // namespace onednn
