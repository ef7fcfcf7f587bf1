// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;

// Parses without building a value, and stops at excessive depth.
class depth_gate final : public json::json_sax_t {
public:
  explicit depth_gate(int max_depth) : left_(max_depth) {}
  bool too_deep() const { return left_ < 0; }
  const std::string& error() const { return error_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return --left_ >= 0; }
  bool end_object() override {
    ++left_;
    return true;
  }
  bool start_array(std::size_t) override { return --left_ >= 0; }
  bool end_array() override {
    ++left_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    const std::string text = e.what(); // "[json.exception.parse_error.101] parse error at line 1, ..."
    error_ = one_line(text.substr(text.starts_with('[') ? text.find(']') + 1 : 0));
    return false;
  }

private:
  int left_;
  std::string error_;
};

template <class Bytes>
void require_shallow(const Bytes& bytes, json::input_format_t format, int max_depth, const char* name) {
  depth_gate gate(max_depth);
  if (json::sax_parse(bytes.begin(), bytes.end(), &gate, format)) return;
  throw failure(exit_code::run, gate.too_deep() ? fmt::format("{} nested more than {} deep", name, max_depth)
                                                : fmt::format("no {}: {}", name, gate.error()));
}

} // namespace

json parse_json(std::string_view text, int max_depth) {
  require_shallow(text, json::input_format_t::json, max_depth, "JSON");
  return json::parse(text);
}

json parse_cbor(std::span<const std::uint8_t> bytes, int max_depth) {
  require_shallow(bytes, json::input_format_t::cbor, max_depth, "CBOR");
  return json::from_cbor(bytes.begin(), bytes.end());
}

} // namespace regatta
