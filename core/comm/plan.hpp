// SPDX-License-Identifier: Apache-2.0
//
// The plan of one run of `regatta comm`: one transport, a number of ranks, several operations, many sizes.
#pragma once

#include "config/experiment.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::comm {

// An operation to measure, and its algorithm.
struct operation {
  std::string op;        // allreduce | reducescatter | allgather | broadcast | send | push_pull
  std::string algorithm; // one of algorithms_of(op) (patterns.hpp); empty if it has only one
};

struct plan {
  component_choice transport;
  std::vector<std::string> files;
  std::string address;
  std::uint32_t ranks = 2;
  std::uint64_t spin_ns = 0;
  std::vector<operation> operations; // operations that the transport lacks are skipped
  std::vector<std::uint64_t> counts; // numbers of fp32 elements
  double seconds = 0.2;              // to measure each size, at least
};

nlohmann::json to_json(const plan& p);
plan plan_from_json(const nlohmann::json& j);

// Measurements of one rank, for one operation and size.
struct measurement {
  operation what;
  std::uint64_t bytes = 0;
  std::vector<double> seconds; // of each iteration; empty on a rank that takes no part
  std::uint64_t wrong = 0;     // wrong elements in two checked iterations
  double cpu_seconds = 0;      // of all iterations together
};

nlohmann::json to_json(const std::vector<measurement>& all);
std::vector<measurement> measurements_from_json(const nlohmann::json& j);

} // namespace regatta::comm
