// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of data sources: inputs, buffers to fill, temporary folders.
#pragma once

#include "base/failure.hpp"
#include "data/source.hpp"
#include "experiment/experiment.hpp"
#include "temporary_folder.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>
#include <stdlib.h>

namespace data_fixture {

inline rg_input values(const char* name, std::uint32_t type, std::initializer_list<std::int64_t> shape) {
  auto in = rg::make_versioned<rg_input>();
  in.kind = RG_INPUT_VALUES;
  in.name = name;
  in.type = type;
  static std::deque<std::vector<std::int64_t>> shapes; // what the inputs of all tests point to
  in.ndim = static_cast<std::uint32_t>(shape.size());
  in.shape = shapes.emplace_back(shape).data();
  return in;
}
inline rg_input index(const char* name, std::uint32_t type, std::initializer_list<std::int64_t> shape,
                      std::int64_t range) {
  rg_input in = values(name, type, shape);
  in.kind = RG_INPUT_INDEX;
  in.range = range;
  return in;
}

// One buffer for each input.
struct filled {
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<std::uint32_t> types;

  filled(const std::vector<rg_input>& inputs, std::uint64_t samples) {
    for (const auto& in : inputs) {
      std::uint64_t size = rg::size_of(in.type) * samples;
      for (std::uint32_t d = 0; d < in.ndim; ++d) size *= static_cast<std::uint64_t>(in.shape[d]);
      bytes.emplace_back(size);
      types.push_back(in.type);
    }
  }
  void append(const filled& more) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i].insert(bytes[i].end(), more.bytes[i].begin(), more.bytes[i].end());
  }
  template <class T> std::vector<T> as(std::size_t input) const {
    std::vector<T> v(bytes[input].size() / sizeof(T));
    if (!v.empty()) std::memcpy(v.data(), bytes[input].data(), v.size() * sizeof(T));
    return v;
  }
  std::int64_t integer(std::size_t input, std::size_t i) const {
    switch (types[input]) {
    case RG_U8: return bytes[input][i];
    case RG_I32: return as_one<std::int32_t>(input, i);
    default: return as_one<std::int64_t>(input, i);
    }
  }

private:
  template <class T> T as_one(std::size_t input, std::size_t i) const {
    T v;
    std::memcpy(&v, bytes[input].data() + i * sizeof v, sizeof v);
    return v;
  }
};

inline filled fill(regatta::data_source& source, const std::vector<rg_input>& inputs, std::uint64_t step,
                   std::uint64_t global_batch, std::uint64_t first, std::uint64_t samples) {
  filled result(inputs, samples);
  std::vector<void*> out;
  for (auto& b : result.bytes) out.push_back(b.data());
  source.fill(step, global_batch, first, samples, out);
  return result;
}

// Returns the text of the failure that f throws. Fails the test unless it has this code and is one line.
template <class F> std::string failure_of(F f, regatta::exit_code code) {
  try {
    f();
  } catch (const regatta::failure& e) {
    std::string what = e.what();
    CHECK(e.code() == code);
    CHECK(what.find('\n') == std::string::npos);
    return what;
  }
  FAIL_CHECK("nothing was thrown");
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("\"" << text << "\" lacks \"" << part << "\"");
  return found;
}

using regatta::test::temporary_folder;

// A format of lines and the inputs that it feeds.
struct text_format {
  const char* name;
  std::vector<rg_input> inputs;
};

inline const std::vector<text_format>& text_formats() {
  static const std::vector<text_format> all{
      {"criteo", {index("label", RG_I32, {}, 2), values("features", RG_F32, {13}), index("ids", RG_I64, {26}, 1000)}},
      {"words", {index("word", RG_I32, {}, 300), index("context", RG_I32, {}, 300)}},
      {"sentences",
       {index("tokens", RG_I32, {24}, 500), index("segments", RG_I32, {24}, 2),
        index("masked_positions", RG_I32, {5}, 24), index("masked_labels", RG_I32, {5}, 500),
        index("next_sentence", RG_I32, {}, 2)}},
      {"parallel",
       {index("source", RG_I32, {12}, 100), index("target_in", RG_I32, {12}, 100),
        index("target_out", RG_I32, {12}, 100)}},
      {"queries",
       {index("query", RG_I32, {8}, 2000), index("positive", RG_I32, {8}, 2000), index("negative", RG_I32, {8}, 2000)}},
  };
  return all;
}

inline const std::vector<rg_input>& inputs_of(const std::string& format) {
  return std::ranges::find(text_formats(), format, [](const text_format& f) { return std::string(f.name); })->inputs;
}

inline regatta::data_config dataset(const char* format, const std::filesystem::path& path) {
  regatta::data_config c;
  c.source = "dataset";
  c.format = format;
  c.path = path.string();
  return c;
}

inline std::unique_ptr<regatta::data_source> open(const regatta::data_config& c, const std::vector<rg_input>& inputs) {
  return regatta::make_source(c, inputs, 1);
}

// All samples of the first epoch.
inline filled all(regatta::data_source& source, const std::vector<rg_input>& inputs) {
  return fill(source, inputs, 0, source.size(), 0, source.size());
}

// The rest of a line in Criteo's format, after the label: all values are missing.
inline const std::string line_tail = std::string(13, '\t') + std::string(26, '\t');

} // namespace data_fixture
