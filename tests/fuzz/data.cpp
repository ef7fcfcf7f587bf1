// SPDX-License-Identifier: Apache-2.0
//
// Files of data sets: the first byte chooses the format. Indices must be within their ranges.
#include "base/failure.hpp"
#include "data/npy_header.hpp"
#include "data/source.hpp"
#include "experiment/experiment.hpp"
#include "input.hpp"

#define DOCTEST_CONFIG_IMPLEMENT
#include "../core/config/config_catalogue.hpp"
#include "../core/data/data_fixture.hpp"

using namespace regatta;

namespace {

struct format {
  const char* name;
  const char* file; // of the data; parallel has two
  std::vector<rg_input> inputs;
};

const std::vector<format>& formats() {
  using data_fixture::inputs_of;
  static const std::vector<format> all{
      {"criteo", "data.tsv", inputs_of("criteo")},       {"words", "data.txt", inputs_of("words")},
      {"sentences", "data.txt", inputs_of("sentences")}, {"parallel", "source.txt", inputs_of("parallel")},
      {"queries", "data.tsv", inputs_of("queries")},     {"npy", "x.npy", {data_fixture::index("x", RG_I32, {}, 100)}}};
  return all;
}

void check_ranges(const format& f, const data_fixture::filled& data, std::uint64_t samples) {
  for (std::size_t i = 0; i < f.inputs.size(); ++i) {
    if (f.inputs[i].kind != RG_INPUT_INDEX) continue;
    const std::size_t count = data.bytes[i].size() / rg::size_of(f.inputs[i].type);
    for (std::size_t k = 0; k < count && samples > 0; ++k)
      if (const std::int64_t id = data.integer(i, k); id < 0 || id >= f.inputs[i].range) __builtin_trap();
  }
}

void read_all(const format& f, const std::filesystem::path& path, const std::string& vocabulary) {
  data_config c;
  c.source = "dataset";
  c.format = f.name;
  c.path = path.string();
  c.vocabulary = vocabulary;
  const auto source = make_source(c, f.inputs, 1);
  const std::uint64_t samples = std::min<std::uint64_t>(source->size(), 64);
  if (samples > 0) check_ranges(f, data_fixture::fill(*source, f.inputs, 0, samples, 0, samples), samples);
}

} // namespace

// First byte: format, and from 128 on the rest is a vocabulary's file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const auto choice = in.number<std::uint8_t>();
  const format& f = formats()[choice % 6];
  const scratch_folder folder;
  try {
    if (choice >= 128) {
      const auto text = folder.write(f.file, "a b c\td e\nb c\td\n");
      if (std::string_view(f.name) == "parallel") folder.write("target.txt", "x y\nz\n");
      read_all(f, std::string_view(f.name) == "parallel" ? folder.path : text,
               folder.write("given", in.text()).string());
      return 0;
    }
    const bool parallel = std::string_view(f.name) == "parallel", npy = std::string_view(f.name) == "npy";
    const auto length = parallel ? in.number<std::uint8_t>() : 0;
    if (parallel) {
      const auto first = in.take(length);
      folder.write("source.txt", std::string(first.begin(), first.end()));
    }
    const auto file = folder.write(parallel ? "target.txt" : f.file, in.text());
    read_all(f, parallel || npy ? folder.path : file, "");
  } catch (const failure& e) {
    if (e.what()[0] == '\0') __builtin_trap();
  }
  return 0;
}
