// SPDX-License-Identifier: Apache-2.0
//
// The packets of a trace, and the critical paths of what was read.
#include "base/failure.hpp"
#include "timeline/critical_path.hpp"
#include "timeline/perfetto.hpp"

#include <cstdint>

using namespace regatta;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto ranks = read_perfetto_packets({reinterpret_cast<const char*>(data), size});
    for (const std::uint64_t step : steps_of(ranks))
      if (const auto path = critical_path_of(ranks, step)) (void)shares_of(*path);
    (void)perfetto_file(ranks);
  } catch (const failure&) {
  }
  return 0;
}
