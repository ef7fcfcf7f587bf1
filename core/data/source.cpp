// SPDX-License-Identifier: Apache-2.0
#include "data/source.hpp"

#include "base/failure.hpp"
#include "config/experiment.hpp"
#include "data/formats.hpp"

#include <string>
#include <system_error>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

std::unique_ptr<data_source> make_dataset(const data_config& config, std::span<const rg_input> inputs,
                                          std::uint64_t seed, data_split split) {
  const bool train = split == data_split::train;
  const char* const key = train ? "data.path" : "data.evaluation_path";
  const std::filesystem::path path = train ? config.path : config.evaluation_path;
  if (path.empty())
    throw failure(exit_code::usage, fmt::format("{}: missing; the source \"dataset\" needs a folder", key));
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw failure(exit_code::usage, fmt::format("{}: there is no {}", key, path.string()));
  const bool shuffle = train && config.shuffle;
  if (config.format == "cifar10") return make_cifar10(checked_inputs(inputs), path, split, shuffle, seed);
  if (config.format == "npy") return make_npy(checked_inputs(inputs), path, shuffle, seed);
  throw failure(exit_code::usage, fmt::format("data.format: expected cifar10 or npy, got \"{}\"", config.format));
}

} // namespace

std::unique_ptr<data_source> make_source(const data_config& config, std::span<const rg_input> inputs,
                                         std::uint64_t seed) {
  if (config.source == "dataset") return make_dataset(config, inputs, seed, data_split::train);
  if (config.source != "constant" && config.source != "random")
    throw failure(exit_code::usage,
                  fmt::format("data.source: expected constant, random or dataset, got \"{}\"", config.source));
  return make_synthetic(checked_inputs(inputs), config.content, config.source == "constant", seed);
}

std::unique_ptr<data_source> make_evaluation_source(const data_config& config, std::span<const rg_input> inputs,
                                                    std::uint64_t seed) {
  if (config.source != "dataset" || config.evaluation_path.empty()) return nullptr;
  return make_dataset(config, inputs, seed, data_split::evaluation);
}

} // namespace regatta
