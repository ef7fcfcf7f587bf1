// SPDX-License-Identifier: Apache-2.0
//
// Autotuning: chooses among several kernels for a shape. RG_KERNELS_FIXED takes the first one; RG_KERNELS_TIMED repeats
// the choices of another instance if they are given, else takes the cache's result, else times the candidates.
#pragma once

#include "../../common/choice_cache.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <regatta/plugin.hpp>

namespace executors {

class kernel_choices {
public:
  // `executor` names the cache file. `mode` is RG_KERNELS_FIXED or RG_KERNELS_TIMED. `given` is the text of another
  // instance's model::kernels(), with lines "NAME: ALGORITHM" or "NAME: ALGORITHM IMPLEMENTATION", or null; it is read
  // only here, and only if timed. With an empty text choose() throws.
  // `machine` names everything besides a shape that determines a kernel's speed: library, device, threads. `log` must
  // outlive this object. Throws RG_E_CONFIG if `given` has another form. Timed and cached choices are logged at debug
  // level.
  kernel_choices(const std::string& executor, std::uint32_t mode, const char* given, std::string machine,
                 const rg::logger& log);
  // Saves the results of timing in the user's cache file; a failure is only logged, at debug level. Instances with
  // `given` and those with RG_KERNELS_FIXED neither read nor write the file.
  ~kernel_choices();
  kernel_choices(const kernel_choices&) = delete;
  kernel_choices& operator=(const kernel_choices&) = delete;

  // Returns the index in `algorithms` of the kernel to run for `name`. `shape` describes everything that determines
  // their speed on one machine: the result for a shape is reused. Returns 0 with RG_KERNELS_FIXED, and for a single
  // candidate without `given`. `seconds(i)` runs candidate i once and returns its time in seconds; it is called several
  // times per candidate, of which the first does not count, or not at all. Throws RG_E_CONFIG if `given` names no
  // algorithm for `name`, or one that is not in `algorithms`.
  std::size_t choose(const std::string& name, const std::string& shape, const std::vector<std::string>& algorithms,
                     const std::function<double(std::size_t)>& seconds);

private:
  // Returns whether `given` names an algorithm for `name`; no other may run then.
  bool given(const std::string& name) const { return given_.contains(name); }
  // Returns the algorithm that `given` names for `name`; else, if timed, that of an earlier choose() or of the cache
  // file for `shape`; else null. The pointer is valid until the next choose().
  const std::string* known(const std::string& name, const std::string& shape) const;

  bool timed_;   // the mode is RG_KERNELS_TIMED
  bool follows_; // `given` was not null
  const rg::logger& log_;
  plugins::choice_cache cache_;
  std::string machine_;
  std::map<std::string, std::string> given_; // name to algorithm
};

} // namespace executors
