// SPDX-License-Identifier: Apache-2.0
//
// CSV with the quoting of RFC 4180, and lines that end in a newline alone. One row per element; the headers are the
// paths of its members, first those of the case's settings, then the number of the repeat. An array is one cell of
// JSON, so that the number of columns does not depend on the number of ranks or steps.
#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/render.hpp"
#include "results/entry_members.hpp"

namespace regatta {
namespace {

using nlohmann::json;
using flat_row = std::map<std::string, json>;

std::size_t place_of(const std::string& path) {
  const std::string top = path.substr(0, path.find('.'));
  if (top == "repeat") return 0; // beside "case", and behind it by name
  return static_cast<std::size_t>(std::find(std::begin(entry_members), std::end(entry_members), top) - entry_members);
}

// The kernels stay one cell: their names depend on the model, and there are as many as it has layers.
void flatten(const json& value, const std::string& path, flat_row& row) {
  // The samples behind the figures are in result.json only; documents of other schemas have a number of repeats.
  if (path == "repeats" && !value.is_number()) return;
  if (!value.is_object() || path == "kernels") {
    row[path] = value;
    return;
  }
  for (const auto& [name, member] : value.items()) {
    std::string inner = path;
    if (!inner.empty()) inner += '.';
    flatten(member, inner += name, row);
  }
}

// Returns a text that is safe in a cell: without control characters except line ends, and with ' before characters that
// a spreadsheet takes for the begin of a formula.
std::string safe(const std::string& text) {
  std::string out = !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos ? "'" : "";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += (byte < 0x20 && c != '\n') || byte == 0x7f ? ' ' : c;
  }
  return out;
}

std::string cell(const json& value) {
  if (value.is_null()) return "";
  std::string text =
      value.is_string() ? safe(value.get<std::string>()) : value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.find_first_of(",;\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

} // namespace

std::string render_csv(const json& result) {
  std::vector<flat_row> rows;
  std::vector<std::string> headers;
  for (const json& entry : result.at("results")) {
    flatten(entry, "", rows.emplace_back());
    for (const auto& [path, value] : rows.back()) headers.push_back(path);
  }
  std::sort(headers.begin(), headers.end(), [](const std::string& a, const std::string& b) {
    return std::pair(place_of(a), a) < std::pair(place_of(b), b);
  });
  headers.erase(std::unique(headers.begin(), headers.end()), headers.end());
  // A member that is null in one case and an object in another only has columns for the object's members.
  const std::vector<std::string> all = headers;
  std::erase_if(headers, [&](const std::string& path) {
    return std::any_of(all.begin(), all.end(), [&](const auto& other) { return other.starts_with(path + "."); });
  });
  std::string out;
  const auto add_line = [&](auto text) {
    for (std::size_t i = 0; i < headers.size(); ++i) out += (i == 0 ? "" : ",") + text(headers[i]);
    out += "\n";
  };
  add_line([](const std::string& header) { return cell(header); });
  for (const flat_row& row : rows)
    add_line([&](const std::string& header) {
      const auto found = row.find(header);
      return found == row.end() ? std::string() : cell(found->second);
    });
  return out;
}

} // namespace regatta
