// SPDX-License-Identifier: Apache-2.0
//
// What one run of `regatta comm` measures: one transport between so many ranks, several operations, many sizes.
#pragma once

#include "config/experiment.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::comm {

// One exchange's worth: what is done, and how.
struct operation {
  std::string op;        // allreduce | reducescatter | allgather | broadcast | send | push_pull
  std::string algorithm; // one of algorithms_of(op) (patterns.hpp); empty where there are none
};

struct plan {
  component_choice transport;
  std::vector<std::string> files;
  std::string address;
  std::uint32_t ranks = 2;
  std::uint64_t spin_ns = 0;
  std::vector<operation> operations; // those that the transport cannot do are left out
  std::vector<std::uint64_t> counts; // elements of fp32
  double seconds = 0.2;              // to measure each size for, at least
};

nlohmann::json to_json(const plan& p);
plan plan_from_json(const nlohmann::json& j);

// What one rank measured of one operation and size.
struct measurement {
  operation what;
  std::uint64_t bytes = 0;
  std::vector<double> seconds; // by iteration; empty on a rank that takes no part
  std::uint64_t wrong = 0;     // elements, of two checked iterations
  double cpu_seconds = 0;      // of all iterations
};

nlohmann::json to_json(const std::vector<measurement>& all);
std::vector<measurement> measurements_from_json(const nlohmann::json& j);

} // namespace regatta::comm
