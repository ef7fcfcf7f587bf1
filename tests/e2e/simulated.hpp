// SPDX-License-Identifier: Apache-2.0
//
// An experiment and a machine file for tests of simulations.
#pragma once

#include "program.hpp"

#include <fstream>
#include <string>

namespace regatta::test {

inline const std::string experiment = R"(
[model]
plugin = "null"
tensors = 4
bytes = "1MiB"
compute = "6ms"
busy = false
[strategy]
plugin = "allreduce"
algorithm = "ring"
[transport]
plugin = "tcp"
[measure]
warmup = 1
steps = 4
repeats = 2
[sweep]
"cluster.workers" = [1, 2]
)";

inline const std::string machine = R"(
[compute]
batch = 32
samples_per_second = 1000
variation = 0.05
[transport.tcp]
latency = "20us"
overhead = "5us"
overhead_per_byte = 0.1
)";

// A folder with both, as x.toml and m.toml.
struct experiment_folder : temporary_folder {
  experiment_folder() {
    std::ofstream(path / "x.toml") << experiment;
    std::ofstream(path / "m.toml") << machine;
  }
};

// As experiment_folder, for one case of any number of workers, whose steps are all equal: simulations fold it.
struct equal_steps_folder : experiment_folder {
  equal_steps_folder() {
    std::string equal = machine;
    equal.replace(equal.find("variation = 0.05"), 16, "variation = 0");
    std::ofstream(path / "x.toml") << experiment.substr(0, experiment.find("[sweep]"));
    std::ofstream(path / "m.toml") << equal;
  }
};

// Returns the results of `regatta simulate x.toml`, which must end without a failure.
inline json simulated(const experiment_folder& s, const std::string& options) {
  const outcome o = program(s, "simulate x.toml --format json --progress never " + options);
  INFO(o.err);
  REQUIRE(o.code == 0);
  return parsed(o.out);
}

} // namespace regatta::test
