// SPDX-License-Identifier: Apache-2.0
//
// Runs the program in a temporary folder, reads its output and parses its result.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "json.hpp"
#include "temporary_folder.hpp"
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::test {

namespace fs = std::filesystem;
using nlohmann::json;

struct outcome {
  int code;
  std::string out, err;
};

inline std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// `environment`: "NAME=value", before the program.
inline outcome program(const temporary_folder& s, const std::string& arguments, const std::string& environment = "") {
  const std::string command =
      "cd " + s.path.string() + " && " + environment + " " REGATTA_PROGRAM " " + arguments + " >out 2>err </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(s.path / "out"), read(s.path / "err")};
}

// Returns an experiment that trains a small MLP on generated data for some steps, with a global batch of 24.
inline std::string small_experiment(int steps, bool baseline = false) {
  return R"(
[model]
plugin = "mlp"
hidden = [32, 16]
[data]
source = "random"
[train]
batch = 24
scaling = "strong"
kernels = "fixed"
[measure]
warmup = 0
steps = )" +
         std::to_string(steps) + "\nrepeats = 1\nbaseline = " + (baseline ? "true" : "false") + "\n";
}

// Runs the experiment in `toml` with options and returns its results. Requires exit code 0.
inline json results(const temporary_folder& s, const std::string& toml, const std::string& options = "",
                    const std::string& environment = "") {
  std::ofstream(s.path / "x.toml") << toml;
  fs::remove_all(s.path / "result");
  const outcome o = program(s, "run x.toml --out result --progress never --format json " + options, environment);
  INFO(o.err);
  REQUIRE(o.code == 0);
  return parsed(o.out).at("results");
}

} // namespace regatta::test
