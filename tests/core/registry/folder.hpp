// SPDX-License-Identifier: Apache-2.0
//
// Plugin folders put together for one test.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

// A temporary folder, removed by the destructor. Plugins are copied into it, so that the loader sees separate files.
class folder {
public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "regatta-abi-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() {
    std::error_code ec;
    std::filesystem::remove_all(path_, ec);
  }
  const std::filesystem::path& path() const { return path_; }

  // The test plugin of this name, under the same or another one.
  std::filesystem::path add(const std::string& name, const std::string& as = {}) const {
    const auto to = path_ / ((as.empty() ? name : as) + ".so");
    std::filesystem::copy_file(std::filesystem::path(ABI_PLUGINS) / (name + ".so"), to);
    return to;
  }
  std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    const auto to = path_ / name;
    std::ofstream(to, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return to;
  }

private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::string& plugin) {
  std::ifstream in(std::filesystem::path(ABI_PLUGINS) / (plugin + ".so"), std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}
