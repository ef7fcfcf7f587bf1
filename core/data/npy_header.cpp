// SPDX-License-Identifier: Apache-2.0
#include "data/npy_header.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace regatta {
namespace {

constexpr std::pair<const char*, npy_type> types[] = {
    {"<f4", npy_type::f4}, {"<f8", npy_type::f8}, {"<i4", npy_type::i4}, {"<i8", npy_type::i8}, {"|u1", npy_type::u1}};

// Parses the dictionary of the header, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (10, 3), }
class dictionary_reader {
public:
  dictionary_reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  npy_header read() {
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !type_)
        read_type();
      else if (key == "fortran_order" && !fortran_)
        fortran_ = boolean();
      else if (key == "shape" && !shape_)
        read_shape();
      else
        throw bad("has an unexpected key in its header");
      if (!take(',') && peek() != '}') throw bad("has a header that is no dictionary");
    }
    if (peek() != '\0') throw bad("has data after the dictionary of its header");
    if (!type_ || !fortran_ || !shape_) throw bad("lacks one of descr, fortran_order and shape in its header");
    if (*fortran_) throw bad("is in Fortran order: write it with numpy.ascontiguousarray");
    return {*type_, *shape_, 0, 0};
  }

private:
  failure bad(const std::string& what) const { return failure(exit_code::run, fmt::format("{}: {}", file_, what)); }

  char peek() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n')) text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_.front();
  }
  bool take(char c) {
    if (peek() != c || text_.empty()) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw bad(fmt::format("has a damaged header: no '{}' where one should be", c));
  }

  std::string_view quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') throw bad("has a damaged header: no string where one should be");
    const auto end = text_.find(quote, 1);
    if (end == std::string_view::npos) throw bad("has a damaged header: a string does not end");
    const auto result = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return result;
  }

  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {"False", false}})
      if (text_.starts_with(word)) {
        text_.remove_prefix(word.size());
        return value;
      }
    throw bad("has a damaged header: fortran_order is neither True nor False");
  }

  void read_type() {
    if (peek() == '[') throw bad("holds structures: save every field as an array of its own");
    const auto name = quoted();
    for (const auto& [text, type] : types)
      if (name == text) type_ = type;
    if (!type_)
      throw bad(fmt::format("has elements of type \"{}\"; expected one of <f4, <f8, <i4, <i8 and |u1",
                            one_line(name.substr(0, 32))));
  }

  void read_shape() {
    expect('(');
    shape_.emplace();
    while (!take(')')) {
      peek();
      std::uint64_t n = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), n);
      if (error != std::errc()) throw bad("has a shape that is no list of sizes");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      take('L'); // written by Python 2
      if (shape_->size() == 32) throw bad("has more dimensions than NumPy allows");
      shape_->push_back(n);
      if (!take(',') && peek() != ')') throw bad("has a shape that is no list of sizes");
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::optional<npy_type> type_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::uint64_t>> shape_;
};

} // namespace

std::uint64_t npy_header::element_bytes() const noexcept {
  switch (type) {
  case npy_type::u1: return 1;
  case npy_type::f4:
  case npy_type::i4: return 4;
  default: return 8;
  }
}

const char* npy_type_name(npy_type type) noexcept {
  for (const auto& [text, t] : types)
    if (t == type) return text + 1;
  return "?";
}

npy_header parse_npy_header(std::span<const std::uint8_t> file, const std::string& name) {
  const auto bad = [&](const std::string& what) { return failure(exit_code::run, fmt::format("{}: {}", name, what)); };
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with("\x93NUMPY")) throw bad("is not a NumPy file: its magic bytes are wrong");
  const unsigned version = text.size() < 8 ? 0 : file[6];
  if (version < 1 || version > 3) throw bad("has a header of an unknown version");
  const std::size_t length_bytes = version == 1 ? 2 : 4, start = 8 + length_bytes;
  if (text.size() < start) throw bad("ends within its header");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::uint64_t{file[8 + i]} << (8 * i);
  if (length > text.size() - start) throw bad("ends within its header");

  npy_header header = dictionary_reader(text.substr(start, length), name).read();
  header.data = start + length;
  // No product can overflow, because each factor is checked first against the bytes in the file.
  const std::uint64_t available = text.size() - header.data, width = header.element_bytes();
  bool empty = false;
  for (const auto n : header.shape) empty |= n == 0;
  header.elements = empty ? 0 : 1;
  for (const auto n : header.shape) {
    if (!empty && n > available / header.elements)
      throw bad(fmt::format("is truncated: its shape asks for more than the {} bytes of data in it", available));
    header.elements *= n;
  }
  if (header.elements > available / width || header.elements * width != available)
    throw bad(fmt::format("{}: {} bytes of data, its header says {} elements of {}",
                          header.elements > available / width ? "is truncated" : "is longer than its shape", available,
                          header.elements, npy_type_name(header.type)));
  return header;
}

} // namespace regatta
