// SPDX-License-Identifier: Apache-2.0
//
// RG_DEBUG_SYNC: checks each op of a pass by itself, so that an error is reported at the op that made it. The CPU
// computes the op in double from the same inputs, which are the device's results of earlier ops, so errors of several
// ops do not add up.
#pragma once

#include "runtime/program.hpp"

#include <interpreter.hpp>

#include <map>
#include <vector>

#include <regatta/ext/graph.h>

namespace cudnn {

// [compute] The functions may wait until the device's stream is idle; after_...() always do. They throw rg::error with
// op, layer and pass: RG_E_DEVICE if CUDA reports an error, RG_E_OPERATION if a tensor has an element that is not
// finite, or that differs from the CPU's by more than rounding explains, with the name of the tensor and the element's
// canonical index. Padding samples are ignored. One thread at a time; device and program must outlive this object, the
// graph need not. Call them for every op of a pass, in its order; in a backward pass if its output needs a gradient.
class op_check {
public:
  op_check(const device& d, const program& p, const rg_graph& graph);
  // Reads from the device what no earlier op has computed: the op's weights, and the network's inputs.
  void before_forward(op& o, const run& r);
  // Checks the output and the running statistics; of a loss its sum over the batch, in training only.
  void after_forward(op& o, const run& r);
  // Reads the gradients to which the op adds.
  void before_backward(op& o, const run& r);
  // Checks the gradients of inputs and weights. With precision fp16 it checks the status only, because a loss scale
  // that is too large makes gradients that are not finite, and the step is then skipped.
  void after_backward(op& o, const run& r);

private:
  using numbers = std::vector<double>;
  struct subject; // an op and a pass, for errors
  struct tensor;  // the name of a tensor and its elements per sample, for errors
  // Prepares the reference for a new pass.
  void begin(const run& r);
  // Waits for the device's stream.
  void wait(const subject& s) const;
  // Return the elements of a value, or of a weight, or of the gradient of either, which is at `at`, in canonical order.
  // Throw if one is not finite.
  numbers read(const subject& s, const tensor& t, const value& v, const void* at, std::size_t samples);
  numbers read(const subject& s, const tensor& t, const weight& w, const float* at);
  // Passes v to the reference if it is an input of the network that the reference does not have yet.
  void read_input(const subject& s, const value& v);
  // Throws if an element differs from the expected one by more than rounding explains. `disturbed` is the reference's
  // result for slightly changed inputs: it shows how far rounding of inputs moves an element.
  void compare(const subject& s, const tensor& t, const numbers& actual, const numbers& expected,
               const numbers& disturbed) const;
  // Appends, in the order of the graph, the nodes that must be computed for the value of `node`: itself and nodes that
  // are fused into the same op.
  void find_nodes(std::size_t node, std::vector<std::size_t>& nodes);
  // Set the reference's value, or gradient, of all nodes that share v's memory.
  void set_value(const value& v, const numbers& x);
  void set_gradient(const value& v, const numbers& x);
  // Compares the output of o with the reference's, and passes the device's to the reference; of a loss compares the sum
  // over the batch instead, in training only.
  void check_output(op& o, const subject& s, const run& r, const numbers& disturbed);

  const device& device_;
  const program& program_;
  reference::interpreter reference_;
  reference::batch batch_;
  std::map<const value*, std::vector<std::size_t>> nodes_in_memory_; // by the value that owns the memory
  std::vector<bool> known_;                                // by node: the reference has its value in this pass
  std::map<const op*, std::vector<std::size_t>> nodes_of_; // in this pass: the nodes that an op computes, in order
  bool backward_begins_ = false;
  std::vector<std::byte> copy_;
};

} // namespace cudnn
