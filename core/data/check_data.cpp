// SPDX-License-Identifier: Apache-2.0
#include "base/findings.hpp"
#include "data/data_generators.hpp"
#include "data/input.hpp"
#include "data/source.hpp"
#include "experiment/experiment.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr std::uint64_t looked_at = 1000; // number of records that are read

// Prefixes a format's message with the key that it concerns. Messages about the model's inputs get data.format.
std::string with_key(const std::string& text, const std::string& path_key) {
  for (const std::string& key : {path_key, std::string("data.vocabulary"), std::string("data.tokens")})
    if (text.starts_with(key + ": ")) return text;
  const bool of_model = text.starts_with("the model") || text.starts_with("format \"");
  return (of_model ? "data.format: " : path_key + ": ") + text;
}

void read_one(data_source& source, std::span<const rg_input> inputs) {
  std::vector<std::vector<std::uint8_t>> buffers;
  std::vector<void*> targets;
  for (const data_input& input : checked_inputs(inputs)) {
    buffers.emplace_back(input.elements * rg::size_of(input.type));
    targets.push_back(buffers.back().data());
  }
  source.fill(0, 1, 0, 1, targets);
}

} // namespace

void check_data(const data_config& config, std::span<const rg_input> inputs) {
  if (data_to_generate(config)) return; // a run writes the data before it reads it
  data_config first = config;
  first.first_records = looked_at;
  first.shuffle = false;
  const bool any_text_will_do = config.format == "words"; // and reading a pair needs the counts of the whole text
  findings wrong;
  const auto check = [&](const std::string& key, auto&& open) {
    try {
      const auto source = open();
      if (source && !any_text_will_do) read_one(*source, inputs);
    } catch (const failure& e) {
      if (e.code() == exit_code::plugin) throw; // the model's description is invalid
      wrong.add({exit_code::usage, with_key(e.what(), key)});
    }
  };
  first.source = config.sample_source();
  if (first.source == "dataset") check("data.path", [&] { return make_source(first, inputs, 1); });
  check("data.evaluation_path", [&] { return make_evaluation_source(first, inputs, 1); });
  wrong.raise();
}

} // namespace regatta
