// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta::bench {

// Runs experiments by the program of a build tree, in a temporary folder.
class runs {
public:
  explicit runs(const std::filesystem::path& build) : program_(build / "bin" / "regatta") {
    std::string name = (std::filesystem::temp_directory_path() / "regatta-bench-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for temporary files");
    scratch_ = name;
  }
  ~runs() {
    std::error_code ignored;
    std::filesystem::remove_all(scratch_, ignored);
  }
  runs(const runs&) = delete;
  runs& operator=(const runs&) = delete;

  // The entries of the result, one a case. Throws where the run fails.
  nlohmann::json results(const std::string& toml) {
    const std::filesystem::path file = scratch_ / "bench.toml", out = scratch_ / "out";
    std::ofstream(file) << toml;
    std::filesystem::remove_all(out);
    const auto text =
        output_of(fmt::format("{} run {} --out {} --format json", program_.string(), file.string(), out.string()));
    if (!text) throw std::runtime_error("a run failed");
    return nlohmann::json::parse(*text).at("results");
  }

private:
  std::filesystem::path program_, scratch_;
};

} // namespace regatta::bench
