// SPDX-License-Identifier: Apache-2.0
//
// The kinds of source that source.cpp chooses from.
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

// `content`: zeros | uniform | normal. `constant`: step 0 for ever. `zipf`: exponent of large ranges' indices; 0: even.
std::unique_ptr<data_source> make_synthetic(std::vector<data_input> inputs, std::string_view content, double zipf,
                                            bool constant, std::uint64_t seed);
// What `of` makes, `prefetch` micro-batches ahead on a thread of its own.
std::unique_ptr<data_source> make_queue(std::vector<data_input> inputs, std::unique_ptr<data_source> of,
                                        std::uint64_t prefetch);
// Batches of another process, which binds a ZeroMQ PUSH socket at data.endpoint; data.prefetch of them wait at most. With
// data.producer the source starts that process in plan() and ends it.
std::unique_ptr<data_source> make_stream(std::vector<data_input> inputs, const data_config& config);
std::unique_ptr<data_source> make_cifar10(std::vector<data_input> inputs, const std::filesystem::path& path,
                                          data_split split, bool shuffle, std::uint64_t seed);
// Indices of all samples are checked; `first_samples`, where it is not 0: of so many.
std::unique_ptr<data_source> make_npy(const std::vector<data_input>& inputs, const std::filesystem::path& folder,
                                      bool shuffle, std::uint64_t seed, std::uint64_t first_samples = 0);

// Formats that are read a sample at a time: each in formats/, where its files are described. `path` is what to read;
// what is learned of the training text or its folders (vocabulary, classes) is taken from config.path always.
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
