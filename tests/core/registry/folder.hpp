// SPDX-License-Identifier: Apache-2.0
//
// Plugin folders put together for one test.
#pragma once

#include "temporary_folder.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

// A folder into which plugins are copied, so that the loader sees separate files.
struct folder : regatta::test::temporary_folder {
  // Copies the test plugin of this name, under the same or another one.
  std::filesystem::path add(const std::string& name, const std::string& as = {}) const {
    const auto to = path / ((as.empty() ? name : as) + ".so");
    std::filesystem::copy_file(std::filesystem::path(ABI_PLUGINS) / (name + ".so"), to);
    return to;
  }
};

inline std::string bytes_of(const std::string& plugin) {
  std::ifstream in(std::filesystem::path(ABI_PLUGINS) / (plugin + ".so"), std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}
