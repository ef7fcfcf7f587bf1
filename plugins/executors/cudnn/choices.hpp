// SPDX-License-Identifier: Apache-2.0
//
// Which of cuDNN's algorithms runs a convolution: the first that its heuristics name, the fastest one by timing, or what
// another instance has picked.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cudnn {

struct choices {
  // `given` is the text of another instance's kernels(), one "name: number" a line; null: there is none. Throws rg::error,
  // RG_E_CONFIG, where it is not of that form.
  choices(bool time, const char* given);
  // The number given for `name`, or -1.
  int given(const std::string& name) const;
  void pick(const std::string& name, int number) { report += name + ": " + std::to_string(number) + '\n'; }

  bool timed;         // where nothing is given
  std::string report; // what has been picked

private:
  std::map<std::string, int> given_;
};

} // namespace cudnn
