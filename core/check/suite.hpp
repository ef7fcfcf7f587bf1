// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite: what a plugin promises by abi.h, as tests that anyone can run against a shared object
// (`regatta check`). docs/conformance.md says what each test is for.
#pragma once

#include "registry/registry.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta::conformance {

// What a test throws where the plugin does not do what was expected: the text says what came instead.
struct failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// ... and where an operation did not end within the time that the test gives it.
struct timed_out : failed {
  using failed::failed;
};
// ... and where it cannot be asked: what it tests is not offered.
struct skipped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool condition, const std::string& otherwise) {
  if (!condition) throw failed(otherwise);
}
// For a text that is not worth making each time.
inline void require(bool condition, const char* otherwise) {
  if (!condition) throw failed(otherwise);
}

// Adds a line to the report of the test that runs, whether it passes or not: "64 of 161 tensors are checked". [main]
void remark(const std::string& text);

// What is tested. The pointers are null while only the file counts.
struct subject {
  std::filesystem::path file;
  const registry* plugins = nullptr; // holds what follows
  const component* what = nullptr;
  std::map<std::string, nlohmann::json> parameters; // over the defaults
  std::vector<std::filesystem::path> others;        // files that `plugins` holds too: executors, transports to nest
  std::filesystem::path reference;                  // of models: a folder with gradients; empty: none
  std::filesystem::path write_to;                   // ... and one for write_reference_test(); empty: none
  std::uint64_t seed = 1;                           // of all that is random in a test
  std::string address = "127.0.0.1";                // where the ranks of a transport listen
  std::uint32_t launched = 0; // processes that an outside launcher has started, of which this is one; 0: none
};

struct test {
  const char* name;     // "fifo": for --only, and in reports
  const char* expected; // what the interface asks for, one line
  void (*run)(const subject& s);
  bool large = false;    // takes gigabytes or minutes: left out by --quick
  bool launched = false; // can also be run by processes that a launcher has started, each one rank of every world
  bool form = false;     // looks at the file and its tables only: passing it says nothing of what the component does
};

// The tests of a shared object as such, and those of a component, in the order in which they run.
std::vector<test> tests_of_file();
std::vector<test> tests_of(const subject& s);

// By concern; tests_of() puts them together.
const std::vector<test>& plugin_tests();      // of the file
const std::vector<test>& parameter_tests();   // of any component
const std::vector<test>& message_tests();     // transports: bytes
const std::vector<test>& add_tests();         // transports: receives that add
const std::vector<test>& traffic_tests();     // transports: everything at once
const std::vector<test>& waiting_tests();     // transports: poll, wake, counters
const std::vector<test>& failure_tests();     // transports: what goes wrong
const std::vector<test>& collective_tests();  // transports: extensions
const std::vector<test>& leftover_tests();    // transports: nothing stays
const std::vector<test>& unconnected_tests(); // transports that connect nobody
const std::vector<test>& model_tests();
const std::vector<test>& reference_tests(); // models, with gradients of somebody else's
const std::vector<test>& strategy_tests();

} // namespace regatta::conformance
