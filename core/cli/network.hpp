// SPDX-License-Identifier: Apache-2.0
//
// Counts parameters and operations of a model, for `describe`.
#pragma once

#include "registry/registry.hpp"
#include "registry/run_in_child.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct layer_summary {
  std::string name, op;
  std::vector<std::int64_t> shape; // of the output for one sample
  std::uint64_t parameters = 0;    // of its weights and sparse tables
  double operations = 0;           // for each sample, forward and backward pass
};

struct table_summary { // a sparse table
  std::string name;
  std::uint64_t rows = 0, parameters = 0;
};

struct network_summary {
  std::vector<layer_summary> layers; // in the order in which they run, inputs first; empty for a model without graph
  std::vector<table_summary> tables;
  std::uint64_t parameters = 0; // of weights and sparse tables, each counted once
  std::uint64_t state = 0;      // elements of state tensors, which have no gradient
  double operations = 0;        // for each sample, forward and backward pass, by the direct algorithm; 0: unknown
  std::string unit;             // the name of samples: "images"
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(layer_summary, name, op, shape, parameters, operations)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(table_summary, name, rows, parameters)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(network_summary, layers, tables, parameters, state, operations, unit)

// Creates the model `id` with the parameters `chosen` (the others have their defaults), counts, and destroys it. Runs
// plugin code: call it in a child of run_in_child(), with its `stage` and with registry::loading(). For a graph: a
// multiply-add counts as two operations; conv2d, dense and attention count once for the forward pass and twice for the
// backward pass (gradients of data and of weights). Other ops are not counted, as in publications. A model without
// graph reports its operations itself. Throws failure: usage if a value is wrong, plugin if the description contradicts
// itself, else as the model's status says. [main]
network_summary summarise(const registry& plugins, const std::string& id,
                          const std::map<std::string, nlohmann::json>& chosen, const stage_function& stage);

} // namespace regatta
