// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

namespace regatta::test {

// A new folder, removed with its files by the destructor.
struct temporary_folder {
  const std::filesystem::path path;

  explicit temporary_folder(const std::filesystem::path& parent = std::filesystem::temp_directory_path())
      : path(created_in(parent)) {}
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  // Writes a file, creates its folder if it is missing, and returns the file's path.
  std::filesystem::path write(const std::filesystem::path& name, std::string_view bytes) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << bytes;
    return path / name;
  }
  // Returns the content of a file; "" if there is none.
  std::string read(const std::filesystem::path& name) const {
    std::ifstream file(path / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

private:
  static std::filesystem::path created_in(const std::filesystem::path& parent) {
    std::string name = (parent / "regatta-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder in " + parent.string());
    return name;
  }
};

} // namespace regatta::test
