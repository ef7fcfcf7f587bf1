// SPDX-License-Identifier: Apache-2.0
//
// TOML as a tree that keeps the position of every key and value. Only document.cpp includes TOML++, because TOML++ does
// not keep the order of keys, and its assertions must not end the program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// Counted from 1, columns in characters; 0:0 means no position.
struct position {
  std::uint32_t line = 0, column = 0;
  auto operator<=>(const position&) const = default; // NOLINT(modernize-use-nullptr): clang-tidy 14 sees a 0 in it
};

struct toml_member;

struct toml_node {
  enum class kind { scalar, array, table };
  kind is = kind::scalar;
  position key;                     // of the key; for an element of an array the same as `at`
  position at;                      // of the value
  nlohmann::json scalar;            // null: a date or time, which no key accepts
  std::vector<toml_node> items;     // array
  std::vector<toml_member> members; // table, in the file's order

  const toml_node* find(std::string_view name) const; // table: returns null if there is no such key
};

struct toml_member {
  std::string name;
  toml_node node;
};

// Returns a scalar or array as JSON; tables become null.
nlohmann::json value_of(const toml_node& node);
// Returns the value as messages quote it: `"many"`, `[1, 2]`, `a table`; cuts long text.
std::string quoted(const toml_node& node);

class toml_error : public std::runtime_error {
public:
  toml_error(position at, const std::string& what) : std::runtime_error(what), at_(at) {}
  position at() const noexcept { return at_; }

private:
  position at_;
};

// Throws toml_error for any text that is not TOML; accepts any bytes.
toml_node parse_toml(std::string_view text);
// Returns the bytes of a file. Throws toml_error (at 0:0: the file itself) if the file cannot be read. Reads at most
// one byte more than parse_toml accepts.
std::string read_text(const std::filesystem::path& file);

bool is_utf8(std::string_view text);

// Returns a scalar or array as TOML text; a float keeps its decimal point, so that it is read back as a float.
std::string toml_literal(const nlohmann::json& value);

} // namespace regatta
