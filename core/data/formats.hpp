// SPDX-License-Identifier: Apache-2.0
//
// The data sources and formats from which source.cpp chooses. All functions are [main] and open and check their files.
// They throw failure: usage if the configuration, a path or the model's inputs (their shape or type) do not fit the
// format or the files; run if data is damaged or an index is out of range, or a file or thread cannot be made.
// `inputs` comes from checked_inputs(); fill() takes its buffers in that order.
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

// Generated input, a function of seed, step, sample and input alone. `content`: zeros | uniform | normal, for values.
// `constant`: every step gets the samples of step 0. `zipf`: Zipf exponent for indices with ranges from 4096; 0:
// uniform.
std::unique_ptr<data_source> make_synthetic(std::vector<data_input> inputs, std::string_view content, double zipf,
                                            bool constant, std::uint64_t seed);
// Calls fill() of `of` on a separate thread, up to `prefetch` (at least 1) micro-batches ahead; plan() starts the
// thread. Its own fill() throws failure (plugin) for any other call than the next that was planned.
std::unique_ptr<data_source> make_queue(std::vector<data_input> inputs, std::unique_ptr<data_source> of,
                                        std::uint64_t prefetch);
// Micro-batches from another process, which binds a ZeroMQ PUSH socket at data.endpoint; at most data.prefetch of them
// wait here. plan() connects and, with data.producer, starts that process (worker 0 only, unless data.endpoint contains
// "{worker}"); the destructor kills it. fill() ignores step and position: it takes the next message, and throws failure
// (run) if none comes within data.timeout, the message does not fit `inputs`, or the started process ended.
std::unique_ptr<data_source> make_stream(std::vector<data_input> inputs, const data_config& config);
// `path` is a file, or a folder with data_batch_*.bin (train) or test_batch*.bin (evaluation). `first_records`: how
// many records are used; 0: all.
std::unique_ptr<dataset_format> make_cifar10(const std::vector<data_input>& inputs, const std::filesystem::path& path,
                                             data_split split, std::uint64_t first_records);
// Reads NAME.npy in `folder` for each input NAME. Checks the indices of all samples here, or of the first
// `first_samples` if that is not 0.
std::unique_ptr<data_source> make_npy(const std::vector<data_input>& inputs, const std::filesystem::path& folder,
                                      bool shuffle, std::uint64_t seed, std::uint64_t first_samples = 0);

// Formats that are read one sample at a time; the files in formats/ describe them. `path` is the data to read, for
// training or evaluation. Vocabulary and classes always come from the training data at config.path. `training`: crop
// and mirror images at random; else crop the centre.
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
