// SPDX-License-Identifier: Apache-2.0
//
// The data sources from which source.cpp chooses.
#pragma once

#include "data/dataset.hpp"
#include "data/input.hpp"
#include "data/source.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace regatta {

enum class data_split { train, evaluation };

// Generated input. `content`: zeros | uniform | normal. `constant`: every step gets the samples of step 0. `zipf`:
// exponent for indices of large ranges; 0: uniform.
std::unique_ptr<data_source> make_synthetic(std::vector<data_input> inputs, std::string_view content, double zipf,
                                            bool constant, std::uint64_t seed);
// Runs `of` on a separate thread, `prefetch` micro-batches ahead.
std::unique_ptr<data_source> make_queue(std::vector<data_input> inputs, std::unique_ptr<data_source> of,
                                        std::uint64_t prefetch);
// Batches of another process, which binds a ZeroMQ PUSH socket at data.endpoint; at most data.prefetch of them are
// queued. With data.producer, plan() starts that process and the destructor ends it.
std::unique_ptr<data_source> make_stream(std::vector<data_input> inputs, const data_config& config);
std::unique_ptr<data_source> make_cifar10(std::vector<data_input> inputs, const std::filesystem::path& path,
                                          data_split split, bool shuffle, std::uint64_t seed);
// Checks the indices of all samples, or of the first `first_samples` if that is not 0.
std::unique_ptr<data_source> make_npy(const std::vector<data_input>& inputs, const std::filesystem::path& folder,
                                      bool shuffle, std::uint64_t seed, std::uint64_t first_samples = 0);

// Formats that are read one sample at a time; the files in formats/ describe them. `path` is the data to read.
// Vocabulary and classes always come from the training data at config.path.
std::unique_ptr<dataset_format> make_imagenet(const std::vector<data_input>& inputs, const data_config& config,
                                              const std::filesystem::path& path, bool training);
std::unique_ptr<dataset_format> make_criteo(const std::vector<data_input>& inputs, const data_config& config,
                                            const std::filesystem::path& path);
std::unique_ptr<dataset_format> make_words(const std::vector<data_input>& inputs, const data_config& config,
                                           const std::filesystem::path& path);
std::unique_ptr<dataset_format> make_sentences(const std::vector<data_input>& inputs, const data_config& config,
                                               const std::filesystem::path& path);
std::unique_ptr<dataset_format> make_parallel(const std::vector<data_input>& inputs, const data_config& config,
                                              const std::filesystem::path& path);
std::unique_ptr<dataset_format> make_queries(const std::vector<data_input>& inputs, const data_config& config,
                                             const std::filesystem::path& path);

} // namespace regatta
