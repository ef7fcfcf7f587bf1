// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/pooling_window.hpp"
#include "runtime/program.hpp"

namespace cudnn {

// Max pooling, or with `average` average pooling, of each channel. w.step need not be set: the kernels set it.
class pooling : public op {
public:
  pooling(std::string name, value* in, value* out, const window& w, bool average)
      : op(std::move(name), {in}, out), window_(w), average_(average) {}
  void prepare(device& d) override;
  void forward(device& d, const run& r) override;
  void backward(device& d, const run& r) override;
  std::size_t held() const override { return positions_.bytes(); }

private:
  window window_;
  bool average_;
  buffer positions_; // max pooling: positions of the maxima
};

} // namespace cudnn
