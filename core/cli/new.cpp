// SPDX-License-Identifier: Apache-2.0
#include "cli/new.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "cli/standard_output.hpp"
#include "registry/registry.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

// The name is an id and, in CMake, a target beside the predefined ones.
void require_identifier(const std::string& name) {
  constexpr std::array taken{
      // targets of CMake
      "all", "clean", "edit_cache", "help", "install", "package", "rebuild_cache", "test",
      // namespaces, and words of C++
      "rg", "regatta", "std", "main", "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool",
      "break", "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept", "const",
      "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await", "co_return", "co_yield", "decltype",
      "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false",
      "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not",
      "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast",
      "requires", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
      "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned",
      "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq"};
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool right = !name.empty() && name.size() <= 64 && letter(name[0]) &&
                     std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
  if (!right || std::ranges::count(taken, std::string_view(name)))
    throw failure(exit_code::usage,
                  fmt::format("regatta: new: expected a NAME of lower-case letters, digits and '_' that begins with a "
                              "letter and is no word of C++ or target of CMake's, got \"{}\"",
                              one_line(name)));
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

} // namespace

int new_verb(const std::string& what, const std::string& name) {
  require_identifier(name);
  const fs::path prefix = (built_in_folder() / "../..").lexically_normal().parent_path(), // ends with a slash before
      templates = prefix / "share/regatta/templates" / what;
  const std::string placeholder = "my_" + what;
  std::error_code error;
  if (!fs::is_directory(templates, error))
    throw failure(exit_code::run,
                  fmt::format("regatta: new: {} is missing: the installation is incomplete", templates.string()));
  const bool is_new = fs::create_directory(name, error);
  if (error) throw failure(exit_code::run, fmt::format("regatta: new: {}: {}", name, error.message()));
  if (!is_new && !fs::is_empty(name, error))
    throw failure(exit_code::usage, fmt::format("regatta: new: {}: is not empty: choose another NAME", name));
  for (const auto& file : fs::directory_iterator(templates)) {
    const fs::path to = fs::path(name) / replaced(file.path().filename().string(), placeholder, name);
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    std::ofstream out(to);
    out << replaced(text.str(), placeholder, name) << std::flush;
    if (!out) throw failure(exit_code::run, fmt::format("regatta: new: {} cannot be written", to.string()));
  }
  std::string installed = prefix.string(), text = fmt::format("{0} {1} is in {1}/{1}.cpp. Next:\n", what, name);
  if (!fs::exists(prefix / "lib/cmake/regatta", error)) { // a build tree
    text += fmt::format("  cmake --install {} --prefix ~/regatta\n", installed);
    installed = "~/regatta";
  }
  print_output(text + fmt::format("  cmake -S {0} -B {0}/build -DCMAKE_PREFIX_PATH={1} && cmake --build {0}/build\n"
                                  "  {1}/bin/regatta run {0}/{0}.toml\n"
                                  "  ctest --test-dir {0}/build --output-on-failure    # regatta check of it\n",
                                  name, installed));
  return 0;
}

} // namespace regatta
