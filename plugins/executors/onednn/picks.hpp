// SPDX-License-Identifier: Apache-2.0
//
// Which kernel runs where there are several: by a fixed rule, as another instance has picked, or by timing.
#pragma once

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
  // Throws RG_E_CONFIG where it is not of that form.
  picks(std::uint32_t mode, const char* given);

  // The number of the candidate to run for `name`, out of `algorithms`; the first is the fixed rule's. `shape` names
  // what decides their speed: what was timed once is not timed again. `seconds` times candidate i, once.
  std::size_t choose(const std::string& name, const std::string& shape, const std::vector<std::string>& algorithms,
                     const std::function<double(std::size_t)>& seconds);

  // Memory for trials, filled with harmless numbers before its first use.
  float* workspace(std::size_t bytes);

private:
  bool timed_;
  aligned_bytes workspace_;
  std::size_t workspace_bytes_ = 0;
  std::map<std::string, std::string> given_; // name to algorithm
  std::map<std::string, std::size_t> known_; // shape to candidate
};

} // namespace onednn
