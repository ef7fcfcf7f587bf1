// SPDX-License-Identifier: Apache-2.0
//
// TOML as a tree that keeps the position of every key and value. Only toml_document.cpp includes TOML++, because
// TOML++ does not keep the order of keys, and its assertions must not end the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Line and column, counted from 1; columns count Unicode code points. 0:0 means no position.
struct position {
  std::uint32_t line = 0, column = 0;
  auto operator<=>(const position&) const = default; // NOLINT(modernize-use-nullptr): clang-tidy 14 sees a 0 in it
};

struct toml_member;

struct toml_node {
  enum class kind { scalar, array, table };
  kind is = kind::scalar;
  position key;                     // of the key; for an element of an array, the same as `at`
  position at;                      // of the value
  nlohmann::json scalar;            // null: a date or time, which no key accepts
  std::vector<toml_node> items;     // array
  std::vector<toml_member> members; // table, in the file's order

  const toml_node* find(std::string_view name) const; // a table's value of this key; null: no such key, or no table
  toml_node* find(std::string_view name);
};

struct toml_member {
  std::string name;
  toml_node node;
};

// Returns a scalar or array as JSON; a table, also one within an array, becomes null.
nlohmann::json value_of(const toml_node& node);
// Returns the value as messages quote it: `"many"`, `[1, 2]`, `a table`; at most 60 bytes, then "...".
std::string quoted(const toml_node& node);

// A text that is no TOML, or a file that cannot be read; `what` has no position.
class toml_error : public std::runtime_error {
public:
  toml_error(position at, const std::string& what) : std::runtime_error(what), at_(at) {}
  position at() const noexcept { return at_; }

private:
  position at_;
};

// Returns the table of the whole text. Any bytes are safe as input. Throws toml_error if the text is not valid TOML in
// UTF-8, is larger than 1 MiB, or nests too deeply.
toml_node parse_toml(std::string_view text);
// Returns the bytes of a file, cut at one byte more than parse_toml() accepts, so that it rejects a file that is too
// large. Throws toml_error without position (0:0) if the file cannot be read.
std::string read_text(const std::filesystem::path& file);

bool is_utf8(std::string_view text);

// Returns the TOML text of a table, which parse_toml() reads back as the same table. Its tables, its lists of tables
// and the lists of tables in its tables are sections ([a], [[b]], [[a.c]]); tables and lists that lie deeper are
// written in one line. Keys that are no tables come first. Requires that it contains no null.
std::string toml_text(const toml_node& table);

// Returns a scalar or array as TOML text. A float gets a decimal point or an exponent, so that it is read back as a
// float. Requires that `value` contains no null and no object.
std::string toml_literal(const nlohmann::json& value);

} // namespace regatta
