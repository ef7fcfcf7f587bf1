// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct stored_document {
  std::filesystem::path file;
  nlohmann::json document;
};

// [any] Reads a JSON document whose "schema" is one of `schemas`. `given` is its file, or a folder with a result.json.
// Throws failure (usage) if the file cannot be read or holds no such document.
stored_document read_stored(const std::string& given, const std::vector<std::string>& schemas);

// [any] Returns the bytes of a file; std::nullopt if it cannot be read, such as a folder.
std::optional<std::string> content_of(const std::filesystem::path& file);

} // namespace regatta
