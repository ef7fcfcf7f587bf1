// SPDX-License-Identifier: Apache-2.0
//
// Which kernel runs where there are several: by a fixed rule, as another instance has picked, as the cache knows, or by
// timing.
#pragma once

#include "../../common/pick_cache.hpp"
#include "memory_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace onednn {

class picks {
public:
  // `given` is the text of another instance's kernels(): one "name: algorithm implementation" a line; may be null.
  // Throws RG_E_CONFIG where it is not of that form. What is picked by timing is logged, for debugging.
  picks(std::uint32_t mode, const char* given, const device& dev);
  // Keeps in the cache what has been timed.
  ~picks();
  picks(const picks&) = delete;
  picks& operator=(const picks&) = delete;

  // The number of the candidate to run for `name`, out of `algorithms`; the first is the fixed rule's. `shape` names
  // what decides their speed on one machine: what was timed once is not timed again. `seconds` times candidate i, once.
  std::size_t choose(const std::string& name, const std::string& shape, const std::vector<std::string>& algorithms,
                     const std::function<double(std::size_t)>& seconds);

  // Memory for trials, filled with harmless numbers before its first use.
  float* workspace(std::size_t bytes);

private:
  bool timed_;
  const rg::logger& log_;
  plugins::pick_cache cache_;
  std::string machine_; // what else decides the speed of a kernel: library, CPU, threads
  aligned_bytes workspace_;
  std::size_t workspace_bytes_ = 0;
  std::map<std::string, std::string> given_; // name to algorithm
};

} // namespace onednn
