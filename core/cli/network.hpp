// SPDX-License-Identifier: Apache-2.0
//
// What a model consists of, counted: for `describe`.
#pragma once

#include "registry/ask.hpp"
#include "registry/registry.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct layer_summary {
  std::string name, op;
  std::vector<std::int64_t> shape; // of one sample's output
  std::uint64_t parameters = 0;    // of its weights and tables
  double operations = 0;           // a sample, forward and backward
};

struct table_summary { // a sparse table
  std::string name;
  std::uint64_t rows = 0, parameters = 0;
};

struct network_summary {
  std::vector<layer_summary> layers; // in the order in which they run, inputs first; none where it is no graph
  std::vector<table_summary> tables;
  std::uint64_t parameters = 0; // of weights and tables, each counted once
  std::uint64_t state = 0;      // elements without gradients
  double operations = 0;        // a sample, forward and backward, by the direct algorithm; 0: unknown
  std::string unit;             // what a sample is: "images"
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(layer_summary, name, op, shape, parameters, operations)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(table_summary, name, rows, parameters)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(network_summary, layers, tables, parameters, state, operations, unit)

// Makes the model with these values and counts: for a child of ask(). Of a graph: two operations a multiplication and addition in conv2d, dense
// and attention, once forward and twice that backward (the data's gradient and the weights'); other ops are left out, as
// publications do. What is no graph says itself how many operations a sample takes. Throws failure where the model
// refuses or describes what cannot be. `plugins` loads what find() returns. [main]
network_summary summarise(const registry& plugins, const std::string& id,
                          const std::map<std::string, nlohmann::json>& chosen, const stage_function& stage);

} // namespace regatta
