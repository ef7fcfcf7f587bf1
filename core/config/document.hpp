// SPDX-License-Identifier: Apache-2.0
//
// TOML as a tree that knows where everything stood. The only door to TOML++, which is compiled into document.cpp alone:
// it keeps no order of keys, and its assertions must not end the program.
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

// From 1, columns in characters; 0: nowhere.
struct position {
  std::uint32_t line = 0, column = 0;
  auto operator<=>(const position&) const = default; // NOLINT(modernize-use-nullptr): clang-tidy 14 sees a 0 in it
};

struct toml_member;

struct toml_node {
  enum class kind { scalar, array, table };
  kind is = kind::scalar;
  position key;                     // of the name before it; in an array the same as `at`
  position at;                      // of the value
  nlohmann::json scalar;            // null: a date or time, which nothing here takes
  std::vector<toml_node> items;     // array
  std::vector<toml_member> members; // table, in the file's order

  const toml_node* find(std::string_view name) const; // table: null where there is none
};

struct toml_member {
  std::string name;
  toml_node node;
};

// A scalar or array as JSON; tables in it become null.
nlohmann::json value_of(const toml_node& node);
// As a message quotes it: `"many"`, `[1, 2]`, `a table`; long ones are cut.
std::string quoted(const toml_node& node);

class toml_error : public std::runtime_error {
public:
  toml_error(position at, const std::string& what) : std::runtime_error(what), at_(at) {}
  position at() const noexcept { return at_; }

private:
  position at_;
};

// Throws toml_error, whatever the bytes are.
toml_node parse_toml(std::string_view text);
// The bytes of a file. Throws toml_error (at 0:0: the file itself) where it cannot be read.
std::string read_text(const std::filesystem::path& file);

bool is_utf8(std::string_view text);

// A scalar or array as TOML writes it; floats keep a point, so that they stay floats.
std::string toml_literal(const nlohmann::json& value);

} // namespace regatta
