// SPDX-License-Identifier: Apache-2.0
//
// `./dev data KIND DIR`: writes a data set for trying things out where the real one cannot be had.
#include "base/failure.hpp"
#include "data/generate.hpp"

#include <filesystem>
#include <string_view>

#include <fmt/format.h>

namespace {

struct kind {
  const char *name, *what;
  void (*make)(const std::filesystem::path& dir);
};

constexpr kind kinds[] = {
    {"cifar10-like", "images of ten classes in CIFAR-10's binary format, 60,000 of them (184 MB)",
     [](const std::filesystem::path& dir) { regatta::make_cifar10_like(dir, 10'000, 1); }},
    {"imagenet-like", "folders of JPEG files, 10 classes of 130 (train) and 26 (test), 256 pixels high (60 MB)",
     [](const std::filesystem::path& dir) { regatta::make_imagenet_like(dir, 10, 130, 256, 1); }},
    {"criteo-like", "train.tsv with 500,000 lines, test.tsv with 100,000 (150 MB)",
     [](const std::filesystem::path& dir) { regatta::make_criteo_like(dir, 500'000, 1); }},
    {"words-like", "train.txt with 200,000 lines of 12 words, twins in 100 topics, for word2vec (13 MB)",
     [](const std::filesystem::path& dir) { regatta::make_words_like(dir, 200'000, 100, 1); }},
    {"sentences-like", "train.txt with 20,000 documents of some 9 sentences, for BERT (5 MB)",
     [](const std::filesystem::path& dir) { regatta::make_sentences_like(dir, 20'000, 1); }},
    {"parallel-like", "train/source.txt and target.txt with 200,000 lines, for the transformer (10 MB)",
     [](const std::filesystem::path& dir) { regatta::make_parallel_like(dir, 200'000, 1); }},
    {"queries-like", "train.tsv with 200,000 queries, right and wrong titles, for simnet_bow (20 MB)",
     [](const std::filesystem::path& dir) { regatta::make_queries_like(dir, 200'000, 1); }},
};

int usage() {
  fmt::print(stderr, "usage: regatta-data KIND DIR\n\nLearnable data, always the same:\n\n");
  for (const kind& k : kinds) fmt::print(stderr, "  {:<15} {}\n", k.name, k.what);
  return static_cast<int>(regatta::exit_code::usage);
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) return usage();
  for (const kind& k : kinds) {
    if (std::string_view(argv[1]) != k.name) continue;
    try {
      k.make(argv[2]);
      fmt::print("{}: {}\n", argv[2], k.what);
      return 0;
    } catch (const regatta::failure& e) {
      fmt::print(stderr, "regatta-data: {}\n", e.what());
      return static_cast<int>(e.code());
    }
  }
  return usage();
}
