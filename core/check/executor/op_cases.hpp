// SPDX-License-Identifier: Apache-2.0
//
// Small graphs around each op of regatta/layers.hpp, with several attributes and with shapes at the edges.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <regatta/layers.hpp>

namespace regatta::conformance {

// A graph that has the op. In most cases layers with weights lie before it, so that gradients of its inputs show in
// theirs.
struct op_case {
  std::string name; // "3x7x7 to 17 channels, kernel 3": for messages
  // Adds the whole graph, with inputs and loss, to an empty network.
  std::function<void(rg::network& net)> build;
  std::vector<std::uint64_t> batches = {1, 5}; // the graph is tested with each of these numbers of samples
};

struct op_suite {
  const char* op;       // "conv2d": rg_node.op, and the name of the test
  const char* expected; // what the interface requires of the op, one line
  std::vector<op_case> cases;
};

// Returns logits of random numbers around `mean`: a dense layer of x with random weights and the bias `mean`. With a
// mean of 1000 exp() of a logit overflows in fp64, and with -1000 it is 0, so the result of a softmax that does not
// subtract the largest logit is not finite.
inline rg::value large_logits(rg::value x, double mean, std::int64_t classes) {
  rg::network& net = x.net();
  const auto weight = net.weight("large.weight", {classes, x.dims().back()}, {.init = RG_INIT_NORMAL, .b = 0.4});
  return rg::dense(x, "large", {weight, net.weight("large.bias", {classes}, {.a = mean})});
}

// Each returns the suites of the ops of one header.
std::vector<op_suite> layer_suites();    // regatta/layers.hpp
std::vector<op_suite> sequence_suites(); // regatta/layers_sequence.hpp
std::vector<op_suite> sparse_suites();   // regatta/layers_sparse.hpp

// Returns the suites of all ops: layer_suites(), sequence_suites() and sparse_suites(), in this order.
std::vector<op_suite> op_suites();

} // namespace regatta::conformance
