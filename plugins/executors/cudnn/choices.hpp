// SPDX-License-Identifier: Apache-2.0
//
// Which of cuDNN's algorithms runs a convolution, and which of cuBLASLt's a product: the first that their heuristics name,
// what another instance has picked, what the cache knows from an earlier timing, or the fastest one by timing.
#pragma once

#include "../../common/pick_cache.hpp"

#include <map>
#include <string>

namespace cudnn {

class choices {
public:
  // `picks` is the text of another instance's kernels(), one "name: number" a line; null: there is none. `machine` names
  // what the speed of an algorithm depends on, beside its shapes. Throws rg::error, RG_E_CONFIG, where picks is not of
  // that form.
  choices(bool timed, const char* picks, std::string machine);
  // Keeps in the cache what has been timed.
  ~choices();
  choices(const choices&) = delete;
  choices& operator=(const choices&) = delete;

  // The number picked for `name`, whose speed depends on `shape`; -1: nobody has. In the latter case, whether to time.
  int known(const std::string& name, const std::string& shape) const;
  bool times() const { return timed_; }
  bool given(const std::string& name) const { return given_.contains(name); } // so that nothing else will do
  // What runs.
  void pick(const std::string& name, const std::string& shape, int number);
  // The same where there was nothing to choose.
  void note(const std::string& name, int number);
  const std::string& report() const { return report_; }

private:
  bool timed_;
  std::string machine_, report_;
  std::map<std::string, int> given_;
  plugins::pick_cache cache_;
};

} // namespace cudnn
