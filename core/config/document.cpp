// SPDX-License-Identifier: Apache-2.0
#include "config/document.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include <fmt/format.h>

// TOML++ asserts on some malformed input, and with NDEBUG tells the compiler that it cannot happen. An exception
// becomes a message instead; the assertions cost nothing that counts here.
#undef NDEBUG
#undef TOML_SHARED_LIB
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
namespace regatta {
[[noreturn]] static void malformed() {
  throw std::logic_error("malformed");
}
} // namespace regatta
#define TOML_ASSERT(expression) ((expression) ? void() : regatta::malformed())
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

namespace regatta {
namespace {

constexpr std::size_t largest_file = 1 << 20;
constexpr int deepest_key = 32; // parts of a dotted key: tables within tables, which recursions walk

position of(const toml::source_position& p) {
  return {p.line, p.column};
}

// Counts lines and columns (in characters, as TOML++ does) through a text.
class cursor {
public:
  void pass(unsigned char c) {
    if (c == '\n') {
      ++at_.line;
      at_.column = 1;
    } else if ((c & 0xc0) != 0x80) {
      ++at_.column;
    }
  }
  position at() const { return at_; }

private:
  position at_{1, 1};
};

// Length of the UTF-8 sequence at `s`, 0 where it is none (overlong forms and surrogates included).
std::size_t sequence(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 || s.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

// What the parser takes badly: bytes that are no text, and keys so deep that recursion over them ends the stack.
void check_text(std::string_view text) {
  if (text.size() > largest_file) throw toml_error({}, "larger than 1 MiB: this is no experiment");
  cursor here;
  int dots = 0;
  char previous = 0;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = sequence(text.substr(i));
    if (c == 0) throw toml_error(here.at(), "a NUL byte: this is no text file");
    if (length == 0) throw toml_error(here.at(), "not UTF-8");
    if (c == '.' && previous != '.' && ++dots > deepest_key) throw toml_error(here.at(), "a key of too many parts");
    if (std::string_view(",[]{}=\n#").find(c) != std::string_view::npos) dots = 0;
    previous = c;
    for (std::size_t k = 0; k < length; ++k) here.pass(static_cast<unsigned char>(text[i + k]));
    i += length;
  }
}

toml_node convert(const toml::node& from, position key) {
  toml_node node;
  node.at = of(from.source().begin);
  node.key = key.line ? key : node.at;
  if (const auto* table = from.as_table()) {
    node.is = toml_node::kind::table;
    for (const auto& [name, value] : *table)
      node.members.emplace_back(std::string(name.str()), convert(value, of(name.source().begin)));
    // TOML++ sorts by name, but the order of a sweep is the file's.
    std::stable_sort(node.members.begin(), node.members.end(),
                     [](const auto& a, const auto& b) { return a.second.key < b.second.key; });
  } else if (const auto* array = from.as_array()) {
    node.is = toml_node::kind::array;
    for (const auto& item : *array) node.items.push_back(convert(item, {}));
  } else if (const auto* text = from.as_string()) {
    node.scalar = text->get();
  } else if (const auto* integer = from.as_integer()) {
    node.scalar = integer->get();
  } else if (const auto* number = from.as_floating_point()) {
    node.scalar = number->get();
  } else if (const auto* truth = from.as_boolean()) {
    node.scalar = truth->get();
  }
  return node;
}

std::string escaped(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\u{:04X}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string number_text(double v) {
  if (!std::isfinite(v)) return std::isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", v); // the shortest that reads back the same
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string quoted_value(const toml_node& node) {
  switch (node.is) {
  case toml_node::kind::table: return "a table";
  case toml_node::kind::array: {
    std::vector<std::string> items;
    for (const toml_node& item : node.items) items.push_back(quoted_value(item));
    return fmt::format("[{}]", join(items)); // not by +: GCC 12 warns of it falsely
  }
  case toml_node::kind::scalar: break;
  }
  return node.scalar.is_null() ? "a date or time" : toml_literal(node.scalar);
}

} // namespace

const toml_node* toml_node::find(std::string_view name) const {
  for (const auto& [key_name, value] : members)
    if (key_name == name) return &value;
  return nullptr;
}

nlohmann::json value_of(const toml_node& node) {
  if (node.is == toml_node::kind::scalar) return node.scalar;
  if (node.is == toml_node::kind::table) return nullptr;
  auto array = nlohmann::json::array();
  for (const toml_node& item : node.items) array.push_back(value_of(item));
  return array;
}

std::string quoted(const toml_node& node) {
  constexpr std::size_t longest = 60;
  std::string text = quoted_value(node);
  if (text.size() <= longest) return text;
  std::size_t cut = longest;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut; // not within a character
  return text.substr(0, cut) + "...";
}

toml_node parse_toml(std::string_view text) {
  check_text(text);
  try {
    const toml::table table = toml::parse(text);
    toml_node root = convert(table, {1, 1});
    root.at = root.key = {1, 1};
    return root;
  } catch (const toml::parse_error& e) {
    const position at = of(e.source().begin);
    throw toml_error(at.line ? at : position{1, 1}, one_line(e.description()));
  } catch (const std::logic_error&) {
    throw toml_error({1, 1}, "malformed TOML");
  }
}

std::string read_text(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) throw toml_error({}, "is a folder; give the TOML file in it");
  std::ifstream in(file, std::ios::binary);
  if (!in) throw toml_error({}, std::filesystem::exists(file, ignored) ? "cannot be read" : "no such file");
  std::string text(largest_file + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) throw toml_error({}, "cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string toml_literal(const nlohmann::json& value) {
  if (value.is_string()) return escaped(value.get_ref<const std::string&>());
  if (value.is_number_float()) return number_text(value.get<double>());
  if (!value.is_array()) return value.dump();
  std::vector<std::string> items;
  for (const auto& item : value) items.push_back(toml_literal(item));
  return fmt::format("[{}]", join(items)); // not by +: GCC 12 warns of it falsely
}

} // namespace regatta
