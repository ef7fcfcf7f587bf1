// SPDX-License-Identifier: Apache-2.0
//
// Chooses among several kernels: by a fixed rule, as another instance chose, as the cache says, or by timing.
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
  // `given` is the text of another instance's kernels(), with lines "name: algorithm implementation", whose choices are
  // repeated; may be null. Throws RG_E_CONFIG if it has another form. Choices by timing are logged at debug level.
  picks(std::uint32_t mode, const char* given, const device& dev);
  // Saves the results of timing in the cache.
  ~picks();
  picks(const picks&) = delete;
  picks& operator=(const picks&) = delete;

  // Returns the index in `algorithms` of the kernel to run for `name`; the fixed rule takes the first. `shape` names
  // everything that determines their speed on one machine: a shape is timed once. `seconds(i)` runs candidate i once
  // and returns its time. Throws RG_E_CONFIG if `given` names no algorithm, or an unknown one, for `name`.
  std::size_t choose(const std::string& name, const std::string& shape, const std::vector<std::string>& algorithms,
                     const std::function<double(std::size_t)>& seconds);

  // Returns memory for trial runs, at least `bytes` long, filled with normal numbers when it is allocated. A call with
  // more bytes frees the memory of earlier calls.
  float* workspace(std::size_t bytes);

private:
  bool timed_;
  const rg::logger& log_;
  plugins::pick_cache cache_;
  std::string machine_; // library, CPU and threads, which also determine a kernel's speed
  aligned_bytes workspace_;
  std::size_t workspace_bytes_ = 0;
  std::map<std::string, std::string> given_; // name to algorithm
};

} // namespace onednn
