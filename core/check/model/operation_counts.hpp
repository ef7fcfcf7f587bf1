// SPDX-License-Identifier: Apache-2.0
//
// The floating-point operations of a training step, counted from the ops of a graph.
#pragma once

#include <string>

#include <regatta/ext/graph.h>

namespace regatta::conformance {

// Of one sample, forward and backward pass, by the direct algorithm; a multiply-add is two.
struct operation_counts {
  // Operations of conv2d, dense and attention: their outputs, gradients of weights, and gradients of inputs that depend
  // on weights.
  double products = 0;
  double elements = 0; // number of elements of all nodes' outputs; the other ops take some operations for each
  std::string unknown; // an op that Regatta does not have, whose operations are not counted; else empty
};
operation_counts count_operations(const rg_graph& graph);

} // namespace regatta::conformance
