// SPDX-License-Identifier: Apache-2.0
//
// The transformer and BERT, tiny ones, learn from text files in the formats that feed them, in bf16 as in fp32.
#include "learning.hpp"

using namespace regatta::test;

TEST_CASE("a tiny transformer translates 40 words with a perplexity below 2 after 300 steps of 32") {
  const scratch s;
  regatta::make_parallel_like(s.path / "data", 20'000, 1);
  const auto [fp32, bf16] =
      learnt(s, {.model = "plugin = \"transformer\"\nlayers = 1\nhidden = 64\nheads = 4\nvocabulary = 100\n"
                          "sequence = 12\ndropout = 0\n",
                 .data = "format = \"parallel\"\npath = \"data/train\"\nevaluation_path = \"data/test\"\n",
                 .steps = 300,
                 .batch = 32,
                 .lr = 0.005,
                 .metric = "perplexity"});
  CHECK(fp32 < 2); // of 40 words and the end
  CHECK(bf16 < 2);
  CHECK(std::abs(bf16 - fp32) < 0.3);
}

TEST_CASE("a tiny bert finds 35 % of masked words after 300 steps of 32") {
  const scratch s;
  regatta::make_sentences_like(s.path / "data", 2'000, 1);
  const auto [fp32, bf16] =
      learnt(s, {.model = "plugin = \"bert\"\nlayers = 1\nhidden = 64\nheads = 4\nvocabulary = 200\npositions = 24\n"
                          "sequence = 24\npredictions = 4\ndropout = 0\n",
                 .data = "format = \"sentences\"\npath = \"data/train.txt\"\nevaluation_path = \"data/test.txt\"\n",
                 .steps = 300,
                 .batch = 32,
                 .lr = 0.005,
                 .metric = "masked_accuracy"});
  CHECK(fp32 >= 0.35); // a guess is right one time in 192, one that knows the topic one time in 12
  CHECK(bf16 >= 0.35);
  CHECK(std::abs(bf16 - fp32) < 0.05);
}
