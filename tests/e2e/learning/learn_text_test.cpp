// SPDX-License-Identifier: Apache-2.0
//
// The transformer and BERT, tiny ones, learn from text files in the formats that feed them, in bf16 as in fp32; and
// workers with different counts of words train as one.
#include "learning.hpp"

#include <vector>

using namespace regatta::test;

TEST_CASE("a tiny transformer translates 40 words with a perplexity below 2 after 300 steps of 32") {
  const temporary_folder s;
  regatta::generate_parallel_like(s.path / "data", 20'000, 1);
  const std::vector<double> perplexities =
      learnt(s, {.model = "plugin = \"transformer\"\nlayers = 1\nhidden = 64\nheads = 4\nvocabulary = 100\n"
                          "sequence = 12\ndropout = 0\n",
                 .data = "format = \"parallel\"\npath = \"data/train\"\nevaluation_path = \"data/test\"\n",
                 .steps = 300,
                 .batch = 32,
                 .lr = 0.005,
                 .metric = "perplexity"});
  for (const double perplexity : perplexities) {
    CHECK(perplexity < 2); // of 40 words and the end
    CHECK(std::abs(perplexity - perplexities[0]) < 0.3);
  }
}

TEST_CASE("a tiny bert finds 35 % of masked words after 300 steps of 32") {
  const temporary_folder s;
  regatta::generate_sentences_like(s.path / "data", 2'000, 1);
  const std::vector<double> accuracies =
      learnt(s, {.model = "plugin = \"bert\"\nlayers = 1\nhidden = 64\nheads = 4\nvocabulary = 200\npositions = 24\n"
                          "sequence = 24\npredictions = 4\ndropout = 0\n",
                 .data = "format = \"sentences\"\npath = \"data/train.txt\"\nevaluation_path = \"data/test.txt\"\n",
                 .steps = 300,
                 .batch = 32,
                 .lr = 0.005,
                 .metric = "masked_accuracy"});
  for (const double accuracy : accuracies) {
    CHECK(accuracy >= 0.35); // a guess is right one time in 192, one that knows the topic one time in 12
    CHECK(std::abs(accuracy - accuracies[0]) < 0.05);
  }
}

// Each loss is a mean over all words that count in the global batch: a worker with short sentences, or few masked
// words, weighs less than the other one. Means of workers' or of micro-batches' means would be something else.
TEST_CASE("workers whose shares differ in words train as one worker does, in however many parts") {
  const temporary_folder s;
  regatta::generate_parallel_like(s.path / "parallel", 100, 1);
  regatta::generate_sentences_like(s.path / "sentences", 50, 1);
  const std::string transformer = R"(
[model]
plugin = "transformer"
layers = 1
hidden = 16
heads = 2
vocabulary = 100
sequence = 12
dropout = 0.1
[data]
source = "dataset"
format = "parallel"
path = "parallel/train"
)",
                    bert = R"(
[model]
plugin = "bert"
layers = 1
hidden = 16
heads = 2
vocabulary = 200
positions = 24
sequence = 24
predictions = 4
dropout = 0.1
[data]
source = "dataset"
format = "sentences"
path = "sentences/train.txt"
)",
                    rest = R"(
[train]
batch = 8
scaling = "strong"
kernels = "fixed"
[optimizer]
plugin = "momentum"
lr = 0.2
weight_decay = 0.01
[measure]
warmup = 0
steps = 10
repeats = 1
baseline = false
)";
  for (const std::string& model : {transformer, bert}) {
    CAPTURE(model);
    const auto curve = [&](const std::string& options) {
      const json r = results(s, model + rest, options).at(0);
      if (r.at("workers") > 1) CHECK(r.at("replicas_identical") == true);
      return r.at("loss").at("curve").get<std::vector<double>>();
    };
    const auto one = curve("--set strategy.plugin=none --set transport.plugin=null");
    REQUIRE(one.size() == 10);
    // Weights that stay where they start come to other losses: steps after the first tell what gradients were added.
    const auto at_rest = curve("--set strategy.plugin=none --set transport.plugin=null --set optimizer.lr=1e-9");
    double apart = 0;
    for (std::size_t i = 0; i < one.size(); ++i) apart = std::max(apart, std::abs(at_rest[i] - one[i]));
    CHECK(apart > 0.05);
    for (const char* options : {"--set cluster.workers=4", "--set cluster.workers=2 --set train.accumulate=2",
                                "--set cluster.workers=2 --set strategy.plugin=sync_ps --set cluster.servers=2 --set "
                                "cluster.colocate=true"}) {
      CAPTURE(options);
      const auto several = curve(options);
      REQUIRE(several.size() == one.size());
      for (std::size_t i = 0; i < one.size(); ++i) CHECK(several[i] == doctest::Approx(one[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("bert's throughput counts words, not masks, where batches are counted in tokens") {
  const temporary_folder s;
  regatta::generate_sentences_like(s.path / "data", 50, 1);
  const json r = results(s, R"(
[model]
plugin = "bert"
layers = 1
hidden = 16
heads = 2
vocabulary = 200
positions = 32
sequence = 32
predictions = 4
[data]
source = "dataset"
format = "sentences"
path = "data/train.txt"
[train]
batch = 256
batch_unit = "tokens"
kernels = "fixed"
[strategy]
plugin = "none"
[transport]
plugin = "null"
[measure]
warmup = 0
steps = 20
repeats = 1
baseline = false
)")
                     .at(0);
  CHECK(r.at("global_batch") == 8);
  CHECK(r.at("throughput").at("unit") == "tokens/s");
  const double tokens =
      r.at("throughput").at("median").get<double>() / r.at("samples_per_second").at("median").get<double>();
  CHECK(tokens > 13); // two sentences of 5 to 10 words, a begin and two ends
  CHECK(tokens < 23);
  CHECK(tokens == doctest::Approx(18).epsilon(0.1));
}
