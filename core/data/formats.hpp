// SPDX-License-Identifier: Apache-2.0
//
// The kinds of source that source.cpp chooses from.
#pragma once

#include "data/input.hpp"
#include "data/source.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

namespace regatta {

enum class data_split { train, evaluation };

// `content`: zeros | uniform | normal. `constant`: step 0 for ever.
std::unique_ptr<data_source> make_synthetic(std::vector<data_input> inputs, std::string_view content, bool constant,
                                            std::uint64_t seed);
std::unique_ptr<data_source> make_cifar10(std::vector<data_input> inputs, const std::filesystem::path& path,
                                          data_split split, bool shuffle, std::uint64_t seed);
std::unique_ptr<data_source> make_npy(const std::vector<data_input>& inputs, const std::filesystem::path& folder,
                                      bool shuffle, std::uint64_t seed);

} // namespace regatta
