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
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::test {

namespace fs = std::filesystem;
using nlohmann::json;

// A temporary folder, removed by the destructor.
struct scratch {
  fs::path path;
  scratch() {
    std::string name = (fs::temp_directory_path() / "regatta-run-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~scratch() { fs::remove_all(path); }
};

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
inline outcome program(const scratch& s, const std::string& arguments, const std::string& environment = "") {
  const std::string command =
      "cd " + s.path.string() + " && " + environment + " " REGATTA_PROGRAM " " + arguments + " >out 2>err </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(s.path / "out"), read(s.path / "err")};
}

// Runs the experiment in `toml` with options and returns its results. Requires exit code 0.
inline json results(const scratch& s, const std::string& toml, const std::string& options = "",
                    const std::string& environment = "") {
  std::ofstream(s.path / "x.toml") << toml;
  fs::remove_all(s.path / "result");
  const outcome o = program(s, "run x.toml --out result --progress never --format json " + options, environment);
  INFO(o.err);
  REQUIRE(o.code == 0);
  return parsed(o.out).at("results");
}

} // namespace regatta::test
