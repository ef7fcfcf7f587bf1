// SPDX-License-Identifier: Apache-2.0
//
// Chooses among several kernels. RG_KERNELS_FIXED takes the first one; RG_KERNELS_TIMED repeats the choices of another
// instance if they are given, else takes the cache's result, else times the candidates.
#pragma once

#include "../../common/pick_cache.hpp"
#include "runtime/memory_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace onednn {

class picks {
public:
  // `mode` is RG_KERNELS_FIXED or RG_KERNELS_TIMED. `given` is the text of another instance's model::kernels(), with
  // lines "NAME: ALGORITHM IMPLEMENTATION", or null; it is read only here, and only if timed. `dev` must outlive this
  // object. Throws RG_E_CONFIG if `given` has another form. Timed and cached choices are logged at debug level.
  picks(std::uint32_t mode, const char* given, const device& dev);
  // Saves the results of timing in the user's cache file; a failure is only logged, at debug level. Instances with
  // `given` neither read nor write the file.
  ~picks();
  picks(const picks&) = delete;
  picks& operator=(const picks&) = delete;

  // Returns the index in `algorithms` of the kernel to run for `name`. `shape` describes everything that determines
  // their speed on one machine: the result for a shape is reused. `seconds(i)` runs candidate i once and returns its
  // time in seconds; it is called several times per candidate, or not at all. Throws RG_E_CONFIG if `given` names no
  // algorithm for `name`, or one that is not in `algorithms`.
  std::size_t choose(const std::string& name, const std::string& shape, const std::vector<std::string>& algorithms,
                     const std::function<double(std::size_t)>& seconds);

  // Returns memory for trial runs, at least `bytes` long and aligned to 64 bytes. This object owns it. A call with more
  // bytes than ever before frees the memory of earlier calls and fills the new memory with numbers in -0.5 .. 0.5;
  // other calls return the same memory as it is.
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
