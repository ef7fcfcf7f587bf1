// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

namespace cudnn {

// Selects positions of a sequence: those that the input `indices` names, or the first ones if that is null. The
// output's shape gives their number. vary(), which runs on the CPU before each forward pass, throws rg::error,
// RG_E_OPERATION, for an index that is no position; it does not check padding samples, and forward() does not write
// their output.
class select_positions : public op {
public:
  select_positions(std::string name, value* in, value* indices, value* out)
      : op(std::move(name), indices ? std::vector<value*>{in, indices} : std::vector<value*>{in}, out) {}
  void vary(const run& r) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
};

} // namespace cudnn
