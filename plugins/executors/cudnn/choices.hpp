// SPDX-License-Identifier: Apache-2.0
//
// Chooses the engine of each convolution and the algorithm of each GEMM: the first that the heuristics of cuDNN or
// cuBLASLt list, the choice of another instance, an earlier timing from the cache, or the fastest in a timing.
#pragma once

#include "../../common/pick_cache.hpp"

#include <map>
#include <string>

namespace cudnn {

class choices {
public:
  // `picks`: kernels() of another instance, one "name: number" per line; null: there is none. `machine` names
  // everything on which an algorithm's speed depends beside its shapes. Throws rg::error, RG_E_CONFIG, if `picks` is
  // malformed.
  choices(bool timed, const char* picks, std::string machine);
  // Writes new timings to the cache.
  ~choices();
  choices(const choices&) = delete;
  choices& operator=(const choices&) = delete;

  // known() returns the number chosen for `name`, whose speed depends on `shape`; -1: none, and then times() tells
  // whether to time the candidates.
  int known(const std::string& name, const std::string& shape) const;
  bool times() const { return timed_; }
  bool given(const std::string& name) const { return given_.contains(name); } // from `picks`: no other may be used
  // Records the choice.
  void pick(const std::string& name, const std::string& shape, int number);
  // Records a number in the report only, where there was no choice.
  void note(const std::string& name, int number);
  const std::string& report() const { return report_; }

private:
  bool timed_;
  std::string machine_, report_;
  std::map<std::string, int> given_;
  plugins::pick_cache cache_;
};

} // namespace cudnn
