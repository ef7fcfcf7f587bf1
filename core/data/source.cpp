// SPDX-License-Identifier: Apache-2.0
#include "data/source.hpp"

#include "base/failure.hpp"
#include "data/formats.hpp"
#include "experiment/experiment.hpp"

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

// Returns how many threads read a dataset. Samples of cifar10 and npy are only copied or converted: one does that
// alone.
std::int64_t dataset_threads(const data_config& config) {
  return config.format == "cifar10" || config.format == "npy" ? 1 : config.threads;
}

std::unique_ptr<data_source> make_dataset(const data_config& config, std::span<const rg_input> inputs,
                                          std::uint64_t seed, data_split split) {
  const bool train = split == data_split::train;
  const char* const key = train ? "data.path" : "data.evaluation_path";
  const std::filesystem::path path = train ? config.path : config.evaluation_path;
  if (path.empty())
    throw failure(exit_code::usage, fmt::format("{}: expected a file or a folder for a dataset, got none", key));
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw failure(exit_code::usage,
                  fmt::format("{}: expected a file or a folder, got {}, which does not exist", key, path.string()));
  const bool shuffle = train && config.shuffle;
  auto checked = checked_inputs(inputs);
  if (config.format == "npy") return make_npy(checked, path, shuffle, seed, config.first_records);
  std::unique_ptr<dataset_format> format;
  if (config.format == "cifar10") format = make_cifar10(checked, path, split, config.first_records);
  if (config.format == "imagenet") format = make_imagenet(checked, config, path, train);
  if (config.format == "criteo") format = make_criteo(checked, config, path);
  if (config.format == "words") format = make_words(checked, config, path);
  if (config.format == "sentences") format = make_sentences(checked, config, path);
  if (config.format == "parallel") format = make_parallel(checked, config, path);
  if (config.format == "queries") format = make_queries(checked, config, path);
  if (config.format.empty())
    throw failure(exit_code::usage, fmt::format("data.format: expected a format for {}, got none", key));
  if (!format)
    throw failure(exit_code::usage,
                  fmt::format("data.format: expected a format that this version knows, got \"{}\"", config.format));
  if (format->size() == 0)
    throw failure(exit_code::run, fmt::format("{}: expected at least one sample, got none", path.string()));
  return make_dataset_source(std::move(checked), std::move(format), dataset_threads(config),
                             config.on_bad_record == "skip", shuffle, seed);
}

std::unique_ptr<data_source> make_kind(const std::string& kind, const data_config& config,
                                       std::span<const rg_input> inputs, std::uint64_t seed) {
  if (kind == "dataset") return make_dataset(config, inputs, seed, data_split::train);
  if (kind == "constant" || kind == "random")
    return make_synthetic(checked_inputs(inputs), config.content, config.zipf, kind == "constant", seed);
  if (kind == "queue")
    return make_queue(checked_inputs(inputs), make_kind(config.queue_source, config, inputs, seed),
                      static_cast<std::uint64_t>(config.prefetch));
  if (kind == "stream") return make_stream(checked_inputs(inputs), config);
  throw failure(exit_code::usage,
                fmt::format("data.source: expected a source that this version knows, got \"{}\"", kind));
}

} // namespace

std::unique_ptr<data_source> make_source(const data_config& config, std::span<const rg_input> inputs,
                                         std::uint64_t seed) {
  return make_kind(config.source, config, inputs, seed);
}

std::size_t input_threads(const data_config& config) {
  const std::int64_t reading = config.sample_source() == "dataset" ? dataset_threads(config) - 1 : 0;
  return static_cast<std::size_t>(reading) + (config.source == "queue" ? 1 : 0);
}

std::unique_ptr<data_source> make_evaluation_source(const data_config& config, std::span<const rg_input> inputs,
                                                    std::uint64_t seed) {
  if (config.evaluation_path.empty()) return nullptr;
  return make_dataset(config, inputs, seed, data_split::evaluation);
}

} // namespace regatta
