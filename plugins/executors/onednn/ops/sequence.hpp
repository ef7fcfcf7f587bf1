// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

#include <cstdint>
#include <vector>

namespace onednn {

// Selects positions of a sequence: those in the input `indices`, of type RG_I32, or the first ones if `indices` is
// null; as many as the output has. A position may be selected several times. forward() throws RG_E_OPERATION for a
// position that the sequence does not have. In an evaluation, padding samples yield zeros.
class select_positions final : public op {
public:
  select_positions(std::string name, value* in, value* indices, value* out, const device& dev)
      : op(std::move(name), indices ? std::vector<value*>{in, indices} : std::vector<value*>{in}, out), dev_(dev) {}
  void plan(memory_plan&) override;
  void forward(run&) override;
  void backward(run&) override;

private:
  // The position that is the output's position m.
  std::size_t position(std::size_t sample, std::size_t m) const {
    return indices_ ? static_cast<std::size_t>(indices_[sample * output_->positions() + m]) : m;
  }

  const device& dev_;
  std::size_t batch_ = 0;
  const std::int32_t* indices_ = nullptr;
};

} // namespace onednn
