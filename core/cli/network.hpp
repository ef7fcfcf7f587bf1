// SPDX-License-Identifier: Apache-2.0
//
// What a graph model consists of, counted: for `describe`.
#pragma once

#include "registry/registry.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

struct layer_summary {
  std::string name, op;
  std::vector<std::int64_t> shape; // of one sample's output
  std::uint64_t parameters = 0;    // of its dense weights
  double operations = 0;           // a sample, forward and backward
};

struct network_summary {
  std::vector<layer_summary> layers; // in the order in which they run, inputs first
  std::uint64_t parameters = 0;      // of the dense tensors, each counted once
  std::uint64_t state = 0;           // elements without gradients
  double operations = 0;             // a sample, forward and backward, by the direct algorithm
  std::string unit;                  // what a sample is: "images"
};

// Makes the graph with these values and counts: two operations a multiplication and addition in conv2d and dense, once
// forward and twice that backward (the data's gradient and the weights'); other ops are left out, as publications do.
// Throws failure where the model refuses or the graph points outside of itself. `c` is a graph. [main]
network_summary summarise(const component& c, const parameter_values& values);

} // namespace regatta
