// SPDX-License-Identifier: Apache-2.0
#include "join/binding.hpp"

#include <cerrno>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include "base/cpu_mask.hpp"
#include "base/failure.hpp"

namespace regatta {

void run_on(const std::vector<int>& cpus) {
  std::vector<int> all;
  if (cpus.empty()) {
    all.resize(1 << 16); // more than a kernel supports; it ignores CPUs that do not exist
    std::iota(all.begin(), all.end(), 0);
  }
  const cpu_mask mask(cpus.empty() ? all : cpus);
  if (::sched_setaffinity(0, mask.bytes(), mask.set()) != 0)
    throw failure(exit_code::run,
                  fmt::format("cannot run on the CPUs [{}]: {}", fmt::join(cpus, ", "), std::strerror(errno)));
}

} // namespace regatta
