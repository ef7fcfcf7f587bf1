// SPDX-License-Identifier: Apache-2.0
#include "report/stored_document.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

namespace regatta {

namespace fs = std::filesystem;
using nlohmann::json;

std::optional<std::string> content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  try {
    std::string text{std::istreambuf_iterator<char>(in), {}};
    return in.bad() ? std::nullopt : std::optional(std::move(text));
  } catch (const std::ios_base::failure&) { // a folder opens, but cannot be read
    return std::nullopt;
  }
}

stored_document read_stored(const std::string& given, const std::vector<std::string>& schemas) {
  std::error_code error;
  stored_document s;
  s.file = fs::is_directory(given, error) ? fs::path(given) / "result.json" : fs::path(given);
  const auto refuse = [&](const std::string& why) {
    return failure(exit_code::usage, fmt::format("{}: {}", one_line(s.file.string()), why));
  };
  const auto text = content_of(s.file);
  if (!text) throw refuse("cannot be read; expected a file, such as result.json, or the folder of a result");
  try {
    s.document = parse_json(*text);
  } catch (const failure& e) {
    throw refuse(e.what());
  }
  const json schema = s.document.is_object() ? s.document.value("schema", json()) : json();
  if (std::ranges::none_of(schemas, [&](const std::string& known) { return schema == json(known); }))
    throw refuse(fmt::format("expected a document of schema {}, got {}", join(schemas, " or "),
                             one_line(schema.dump(-1, ' ', false, json::error_handler_t::replace))));
  return s;
}

} // namespace regatta
