// SPDX-License-Identifier: Apache-2.0
//
// The plan of one run of `regatta comm` or `regatta preflight`, as one of its ranks gets it: one transport, a number of
// ranks, several operations, many sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::comm {

// An operation to measure, and its algorithm.
struct operation {
  std::string op;        // allreduce | reducescatter | allgather | alltoall | broadcast | send | push_pull
  std::string algorithm; // one of algorithms_of(op) (patterns.hpp); empty if it has only one
};

// The measurements between pairs of ranks, instead of operations of all ranks (comm/pairs.hpp).
struct pair_plan {
  unsigned repeats = 0;  // 0: no pairs. Else pairs that are far off the others are measured so often in all
  bool alone = false;    // each pair while the others wait
  bool at_once = false;  // disjoint pairs at the same time
  bool many = false;     // so many ranks that only some pairs are measured alone (comm/survey.hpp); instead of both
  double seconds = 0.02; // about: for a pair's latency, and as long again for its bandwidth in each direction
  bool hosts = false;    // one rank is on each host: measure its CPUs and its path MTU, too
  unsigned threads = 1;  // with `hosts`: the number of CPUs of this rank's host, all of which are measured at once
};

// The executor by which the devices of one kind are timed.
struct device_executor {
  std::string kind, id, file; // rg_executor.device; its id; the plugin's path, the same on all hosts
};

struct plan {
  std::string transport;                            // its id
  std::map<std::string, nlohmann::json> parameters; // of the transport
  std::vector<std::string> files;                   // plugin files of the transport, and of transports that it nests
  std::vector<std::vector<std::string>> addresses;  // IP addresses by host of host_of, at least one of each
  std::vector<std::uint32_t> host_of;               // by rank, counted from 0
  std::uint32_t ranks = 2;
  std::uint64_t spin_ns = 0;            // how long a waiting rank polls before it sleeps
  std::vector<operation> operations;    // native ones that the transport lacks are skipped
  std::vector<std::uint64_t> counts;    // sizes of the messages, in fp32 elements; at least one
  double seconds = 0.2;                 // to measure each size, about, after a tenth of warm-up: 5 to 5000 iterations
  pair_plan pairs;                      // with counts of two sizes: for latency, for bandwidth
  std::vector<device_executor> devices; // with pair_plan::hosts: how devices are timed (comm/device_checks.hpp)
};

// Measurements of one rank, for one operation and size.
struct measurement {
  operation what;
  std::uint64_t bytes = 0;      // size of the messages: an element of plan::counts in bytes
  std::vector<std::int64_t> ns; // of each iteration, for `send` half of it; empty on a rank that takes no part
  std::uint64_t wrong = 0;      // wrong elements in two checked iterations, before and after the measured ones
  double cpu_seconds = 0;       // of this rank's process, all measured iterations together; `send`: both messages
};

// Conversions from JSON throw nlohmann::json::exception if a member is missing or has another type.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(operation, op, algorithm)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(pair_plan, repeats, alone, at_once, many, seconds, hosts, threads)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(device_executor, kind, id, file)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(plan, transport, parameters, files, addresses, host_of, ranks, spin_ns, operations,
                                   counts, seconds, pairs, devices)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(measurement, what, bytes, ns, wrong, cpu_seconds)

} // namespace regatta::comm
