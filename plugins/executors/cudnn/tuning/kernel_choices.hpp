// SPDX-License-Identifier: Apache-2.0
//
// Remembers which engine of each convolution and which algorithm of each GEMM is used, as its index in the list of the
// heuristics of cuDNN or cuBLASLt. It is the choice of another instance, an earlier timing from the cache, the fastest
// in a timing, or the first of the list. The caller does the timing.
#pragma once

#include "../../common/choice_cache.hpp"

#include <map>
#include <string>

namespace cudnn {

class kernel_choices {
public:
  // `timed`: candidates are to be timed where no choice is known, and timings are kept in the cache. `chosen`:
  // model::kernels() of another instance, one "name: number" per line, read during the call; null: there is none. With
  // `chosen` the cache file is neither read nor written. `machine` names everything on which an algorithm's speed
  // depends beside its shapes. Throws rg::error, RG_E_CONFIG, if `chosen` is malformed.
  kernel_choices(bool timed, const char* chosen, std::string machine);
  // Writes new timings to the cache file; a failure is ignored.
  ~kernel_choices();
  kernel_choices(const kernel_choices&) = delete;
  kernel_choices& operator=(const kernel_choices&) = delete;

  // Returns the number that `chosen` has for `name`; else, with `timed`, that of an earlier choose() or of the cache
  // file for `shape`, which describes all that the speed depends on; else -1. The number may be outside of the list of
  // this version of the library. If there is no usable number, times() tells whether to time the candidates.
  int known(const std::string& name, const std::string& shape) const;
  bool times() const { return timed_; }
  bool given(const std::string& name) const { return given_.contains(name); } // by `chosen`: no other may be used
  // Adds the choice to the report, and with `timed` to the cache unless given().
  void choose(const std::string& name, const std::string& shape, int number);
  // Adds a line to the report only, for a fact that is no choice.
  void note(const std::string& name, int number);
  // Returns the lines "name: number" of all choose() and note() so far, in their order.
  const std::string& report() const { return report_; }

private:
  bool timed_;
  std::string machine_, report_;
  std::map<std::string, int> given_;
  plugins::choice_cache cache_;
};

} // namespace cudnn
