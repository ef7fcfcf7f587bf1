// SPDX-License-Identifier: Apache-2.0
//
// RG_DEBUG_SYNC: checks each op of a pass by itself, so that an error is reported at the op that made it.
#pragma once

#include "runtime/program.hpp"

#include <vector>

namespace cudnn {

// [compute] Each function waits until the device's stream is idle. Throws rg::error with op, layer and pass:
// RG_E_DEVICE if CUDA reports an error, RG_E_OPERATION if a tensor has an element that is not finite, with the name
// of the tensor and the element's index. One thread at a time; device and program must outlive this object.
class op_check {
public:
  op_check(const device& d, const program& p) : device_(d), program_(p) {}
  // Checks the values that an op reads and no earlier op has computed: its weights, and the network's inputs.
  void before_forward(op& o, const run& r);
  // Checks the output, or the loss in training, and the running statistics.
  void after_forward(op& o, const run& r);
  // Checks the gradients of inputs and weights. With precision fp16 it checks the status only, because a loss scale
  // that is too large makes gradients that are not finite, and the step is then skipped.
  void after_backward(op& o, const run& r);

private:
  struct tensor_name; // for errors
  void wait(const op& o, const char* pass) const;
  void check_weight(const op& o, const char* pass, const weight& w, const float* at, const char* prefix);
  void check_value(const tensor_name& name, const value& v, const void* at, std::size_t samples);
  void expect_finite(const tensor_name& name, const value& v, std::size_t i, double x) const;

  const device& device_;
  const program& program_;
  std::vector<std::byte> copy_;
};

} // namespace cudnn
