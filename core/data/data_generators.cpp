// SPDX-License-Identifier: Apache-2.0
#include "data/data_generators.hpp"

#include "base/failure.hpp"
#include "data/generate_datasets.hpp"
#include "experiment/experiment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <stdlib.h>

namespace regatta {
namespace {

namespace fs = std::filesystem;

constexpr data_generator known[] = {
    {"cifar10", "60,000 images of ten classes, in CIFAR-10's binary format (184 MB)", "",
     [](const fs::path& folder) { generate_cifar10_like(folder, 10'000, 1); }},
    {"imagenet", "folders of JPEG files, 10 classes of 130 (train) and 26 (test), 256 pixels high (60 MB)", "train",
     [](const fs::path& folder) { generate_imagenet_like(folder, 10, 130, 256, 1); }},
    {"criteo", "train.tsv with 500,000 lines, test.tsv with 100,000 (150 MB)", "train.tsv",
     [](const fs::path& folder) { generate_criteo_like(folder, 500'000, 1); }},
    {"words", "train.txt with 200,000 lines of 12 words, for word2vec (13 MB)", "train.txt",
     [](const fs::path& folder) { generate_words_like(folder, 200'000, 100, 1); }},
    {"sentences", "train.txt with 20,000 documents of some 9 sentences, for BERT (5 MB)", "train.txt",
     [](const fs::path& folder) { generate_sentences_like(folder, 20'000, 1); }},
    {"parallel", "train/source.txt and target.txt with 200,000 lines, for the transformer (10 MB)", "train",
     [](const fs::path& folder) { generate_parallel_like(folder, 200'000, 1); }},
    {"queries", "train.tsv with 200,000 queries, right and wrong titles, for simnet_bow (20 MB)", "train.tsv",
     [](const fs::path& folder) { generate_queries_like(folder, 200'000, 1); }},
};

} // namespace

std::span<const data_generator> all_data_generators() {
  return known;
}

const data_generator* find_data_generator(std::string_view format) {
  const auto* const found = std::ranges::find(known, format, [](const data_generator& d) { return d.format; });
  return found == std::end(known) ? nullptr : found;
}

void write_generated_data(const data_generator& data, const fs::path& where) {
  const fs::path folder = where.has_filename() ? where : where.parent_path(); // "data/criteo/" means data/criteo
  std::error_code error;
  const bool exists = fs::exists(folder, error), empty = exists && fs::is_empty(folder, error);
  if (error) throw failure(exit_code::usage, fmt::format("cannot read {}: {}", folder.string(), error.message()));
  if (exists && !empty)
    throw failure(exit_code::usage, fmt::format("{} is not empty: choose another folder", folder.string()));
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  fs::create_directories(parent, error);
  // Written beside the folder and then renamed, so that data cut short by a signal or a full disk is never taken for
  // complete.
  std::string partial = (parent / ("." + folder.filename().string() + ".XXXXXX")).string();
  if (error || !::mkdtemp(partial.data()))
    throw failure(exit_code::run, fmt::format("cannot write into {}: {}", parent.string(),
                                              error ? error.message() : std::strerror(errno)));
  try {
    data.generate(partial);
    fs::permissions(partial,
                    fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec,
                    fs::perm_options::add);
    fs::rename(partial, folder, error);
    // Another campaign may have made the same data in the meantime.
    if (std::error_code none; error && (!fs::exists(folder, none) || fs::is_empty(folder, none)))
      throw failure(exit_code::run, folder.string() + ": " + error.message());
    if (error) fs::remove_all(partial);
  } catch (...) {
    fs::remove_all(partial, error);
    throw;
  }
}

std::optional<missing_data> data_to_generate(const data_config& config) {
  std::error_code error;
  if (!config.generate || config.sample_source() != "dataset" || fs::exists(config.path, error)) return std::nullopt;
  const data_generator* const data = find_data_generator(config.format);
  if (!data)
    throw failure(exit_code::usage,
                  fmt::format("data.generate: there is no generator for data.format = \"{}\"", config.format));
  fs::path path(config.path);
  if (!path.has_filename()) path = path.parent_path(); // "data/train/" means data/train
  const fs::path folder = *data->train ? path.parent_path() : path;
  if (*data->train && path.filename() != data->train)
    throw failure(exit_code::usage, fmt::format("data.generate: expected a data.path that ends in {}, as that of "
                                                "generated {} data does, got {}",
                                                data->train, data->format, path.string()));
  return missing_data{data, folder};
}

} // namespace regatta
