// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite: tests of the guarantees in abi.h, which anyone can run against a shared object (`regatta
// check`). docs/conformance.md describes each test.
#pragma once

#include "registry/registry.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::conformance {

// Thrown by a test if the plugin does not behave as expected. The text says what was expected
// and what the plugin did.
struct failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Thrown if an operation did not end within its time limit; the report counts the test as hung.
struct timed_out : failed {
  using failed::failed;
};
// Thrown if a test cannot run, because the plugin does not offer what it tests or cannot run on this machine.
struct skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws failed with the text `otherwise` unless the condition holds.
inline void require(bool condition, std::string_view otherwise) {
  if (!condition) throw failed(std::string(otherwise));
}

// Adds a line to the report of the running test, whether it passes or fails: "64 of 161 tensors are checked". [main]
void remark(const std::string& text);

// A component under test. The pointers are null if only the file is tested; otherwise `plugins` must outlive the
// subject and all that a test creates with it.
struct subject {
  std::filesystem::path file;
  const registry* plugins = nullptr; // holds `tested`
  const component* tested = nullptr;
  std::map<std::string, nlohmann::json> parameters; // values by name; the others keep their defaults
  std::vector<std::filesystem::path> other_files;   // other files in `plugins`: executors, transports to nest
  std::filesystem::path reference;                  // gradients to compare with: a folder; empty: none
  std::filesystem::path write_to;                   // for write_reference_test(): the folder to write; empty: none
  std::uint64_t seed = 1;                           // seed of all random numbers in a test
  std::vector<std::string> addresses{"127.0.0.1"};  // rg_world.addresses of every rank
  std::uint32_t launcher_ranks = 0; // number of processes of a launcher (mpirun), this one included; 0: no launcher
};

struct test {
  const char* name;                          // "fifo": for --only and in reports
  const char* expected;                      // what the interface requires, one line
  std::function<void(const subject& s)> run; // throws failed, timed_out or skipped; returns if the test passes
  bool large = false;                        // takes gigabytes or minutes; --quick leaves it out
  bool under_launcher = false; // can also run in processes of a launcher, each with one rank in every rank group
  bool metadata = false;       // only reads the file and its tables: does not test behaviour
};

// Returns the tests of the component s.tested, or of the shared object if it is null, in the order in which they run.
// Tests that lack a launcher, or cannot run under one, are included; they throw skipped.
std::vector<test> tests_of(const subject& s);

// Tests by subject, from which tests_of() builds its list.
std::vector<test> plugin_tests();           // shared objects
std::vector<test> parameter_tests();        // any component
std::vector<test> message_tests();          // transports: bytes
std::vector<test> reducing_receive_tests(); // transports: receives that add
std::vector<test> random_traffic_tests();   // transports: random traffic
std::vector<test> polling_tests();          // transports: poll, wake, counters
std::vector<test> connecting_tests();       // transports: connect
std::vector<test> failure_tests();          // transports: errors and dead peers
std::vector<test> collective_tests();       // transports: extensions
std::vector<test> one_sided_tests();        // transports: put and get
std::vector<test> leak_tests();             // transports: resources that stay after the ranks
std::vector<test> unconnected_tests();      // transports that connect no ranks
std::vector<test> model_tests();            // models and executors
std::vector<test> instance_tests();         // models and executors: several instances, threads
std::vector<test> refusal_tests();          // executors: unknown ops and attributes
std::vector<test> gemm_tests();             // executors for devices: matrix products
std::vector<test> description_tests();      // models and executors: what they say of a step
std::vector<test> graph_tests();            // models with a graph: refusals of the executor that compiles it
std::vector<test> executor_tests();         // executors: ops, and what a compiled model says of itself
std::vector<test> reference_tests();        // models and executors: gradients against subject::reference
std::vector<test> strategy_tests();         // strategies
std::vector<test> compressor_tests();       // strategies: what their compressor promises

} // namespace regatta::conformance
