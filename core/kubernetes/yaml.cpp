// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/yaml.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::ordered_json;

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns true for a text that needs no quotes: it begins with a letter or '/', so it is no number, date or marker, and
// is none of the words that YAML 1.1 takes for a truth value or null.
bool is_plain(const std::string& text) {
  if (text.empty() || text.size() > 200 || !(letter(text[0]) || text[0] == '/')) return false;
  const auto harmless = [](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
  };
  if (!std::ranges::all_of(text, harmless)) return false;
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  constexpr std::string_view taken[] = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  return std::ranges::find(taken, lower) == std::end(taken);
}

// Characters beyond ASCII that YAML does not count as printable, or takes for the end of a line.
constexpr std::string_view special[] = {"\xC2\x85",     "\xE2\x80\xA8", "\xE2\x80\xA9",
                                        "\xEF\xBB\xBF", "\xEF\xBF\xBE", "\xEF\xBF\xBF"};
constexpr std::string_view escaped_special[] = {"\\u0085", "\\u2028", "\\u2029", "\\uFEFF", "\\uFFFE", "\\uFFFF"};

bool is_c1(std::string_view text, std::size_t at) { // U+0080 .. U+009F
  return text[at] == '\xC2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += {'\\', text[i]};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02X}", c);
    } else if (const auto* s =
                   std::ranges::find_if(special, [&](auto one) { return text.compare(i, one.size(), one) == 0; });
               s != std::end(special)) {
      out += escaped_special[s - std::begin(special)];
      i += s->size() - 1;
    } else if (is_c1(text, i)) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[++i]));
    } else {
      out += text[i];
    }
  }
  return out + "\"";
}

// Returns true if a literal block keeps every character of the text: others would be changed, or end a line.
bool fits_block(const std::string& text) {
  if (text.find('\n') == std::string::npos || text.find_first_not_of('\n') == std::string::npos) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F || is_c1(text, i)) return false;
  }
  return std::ranges::all_of(special, [&](auto s) { return text.find(s) == std::string::npos; });
}

class writer {
public:
  explicit writer(const yaml_comments& comments) : comments_(comments) {}

  // Writes the members of an object, or the items of an array, each on lines of its own. If `begun`, the first line
  // begins after the dash of an item, and its comment is written already.
  void members(const ordered_json& value, const std::string& at, std::size_t indent, bool begun = false) {
    for (const auto& entry : value.items()) {
      const std::string here = at + "/" + entry.key();
      if (!std::exchange(begun, false)) {
        comment(value.is_array() ? first_in(entry.value(), here) : here, indent);
        out.append(indent, ' ');
      }
      if (value.is_array()) {
        out += "-";
        item(entry.value(), here, indent + 2);
      } else {
        out += (is_plain(entry.key()) ? entry.key() : quoted(entry.key())) + ":";
        member(entry.value(), here, indent + 2);
      }
    }
  }

  std::string out;

private:
  static std::string first_in(const ordered_json& item, const std::string& at) {
    return item.is_object() && !item.empty() ? at + "/" + item.items().begin().key() : at;
  }

  void comment(const std::string& at, std::size_t indent) {
    if (const auto c = comments_.find(at); c != comments_.end()) out += yaml_comment(c->second, indent);
  }

  void item(const ordered_json& value, const std::string& at, std::size_t indent) { // after "-"
    if (!value.is_object() || value.empty()) return member(value, at, indent);
    out += " ";
    members(value, at, indent, true);
  }

  void member(const ordered_json& value, const std::string& at, std::size_t indent) { // after "key:" or "-"
    if (value.is_structured() && !value.empty()) {
      out += "\n";
      members(value, at, indent);
    } else if (value.is_string() && fits_block(value.get_ref<const std::string&>())) {
      block(value.get_ref<const std::string&>(), indent);
    } else {
      out += " " + scalar(value) + "\n";
    }
  }

  static std::string scalar(const ordered_json& value) {
    if (!value.is_string()) return value.dump(); // numbers, true, false, null, {} and []
    const auto& text = value.get_ref<const std::string&>();
    return is_plain(text) ? text : quoted(text);
  }

  // The indicators after "|": the indentation, if parsers cannot tell it from a first line that begins with blanks or
  // is empty; and how many newlines end the text: "-" none, "+" more than one.
  void block(const std::string& text, std::size_t indent) {
    const bool blank = text[0] == ' ' || text[0] == '\n' || text[0] == '\t';
    out += fmt::format(" |{}{}\n", blank ? "2" : "", text.back() != '\n' ? "-" : text.ends_with("\n\n") ? "+" : "");
    for (const std::string& line : lines_of(text)) out += (line.empty() ? "" : std::string(indent, ' ') + line) + "\n";
  }

  const yaml_comments& comments_;
};

} // namespace

std::string yaml_comment(std::string_view text, std::size_t indent) {
  std::string out;
  for (const std::string& line : lines_of(text)) {
    const std::string clean = cleaned(line);
    out += std::string(indent, ' ') + (clean.empty() ? "#" : "# " + clean) + "\n";
  }
  return out;
}

std::string yaml_text(const ordered_json& value, const yaml_comments& comments) {
  writer w(comments);
  w.members(value, "", 0);
  return std::move(w.out);
}

} // namespace regatta
