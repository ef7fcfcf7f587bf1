// SPDX-License-Identifier: Apache-2.0
//
// ctr, simnet_bow and word2vec learn from files in the formats that they were published with, their tables sparse.
#include "precisions.hpp"
#include "program.hpp"

#include "data/generate_datasets.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace regatta::test;

namespace {

// The result of a run of `model` on files of `format` in the folder data.
json trained(const temporary_folder& s, const std::string& model, const std::string& format, const std::string& rest) {
  return results(s, "[model]\n" + model + "[data]\nsource = \"dataset\"\nformat = \"" + format +
                        "\"\npath = \"data/train.tsv\"\nevaluation_path = \"data/test.tsv\"\n" + rest)
      .at(0);
}

} // namespace

TEST_CASE("ctr tells clicks of unseen lines with an AUC of 0.75 after 300 steps of 100") {
  const temporary_folder s;
  regatta::generate_criteo_like(s.path / "data", 10000, 1);
  std::vector<double> reached;
  for (const char* precision : precisions()) {
    const json r = trained(s, "plugin = \"ctr\"\nrows = 20011\nhidden = [64, 32]\n", "criteo", R"(
[train]
batch = 100
emulate = true
precision = ")" + std::string(precision) + R"("
[optimizer]
plugin = "adam"
lr = 0.005
[strategy]
plugin = "none"
[transport]
plugin = "null"
[measure]
warmup = 0
steps = 300
repeats = 1
baseline = false
)");
    CHECK(r.at("metric").at("name") == "auc");
    CHECK(r.at("metric").at("value").get<double>() >= 0.75);
    CHECK(r.at("metric").at("value").get<double>() < 1);
    reached.push_back(r.at("metric").at("value"));
  }
  CHECK(std::abs(reached.back() - reached[0]) < 0.01); // in bf16 as in fp32
}

TEST_CASE("simnet_bow puts 20 pairs in order for one that it does not, after 400 steps of 100") {
  const temporary_folder s;
  regatta::generate_queries_like(s.path / "data", 40000, 1);
  std::vector<double> reached;
  for (const char* precision : precisions()) {
    const json r =
        trained(s, "plugin = \"simnet_bow\"\nvocabulary = 2000\ndim = 32\nhidden = 32\nlength = 8\n", "queries", R"(
[train]
batch = 100
emulate = true
precision = ")" + std::string(precision) + R"("
[optimizer]
plugin = "sgd"
lr = 4
[strategy]
plugin = "none"
[transport]
plugin = "null"
[measure]
warmup = 0
steps = 400
repeats = 1
baseline = false
)");
    CHECK(r.at("metric").at("name") == "pos_neg_ratio");
    CHECK(r.at("metric").at("value").get<double>() >= 20);
    reached.push_back(r.at("metric").at("value"));
  }
  CHECK(reached.back() == doctest::Approx(reached[0]).epsilon(0.3)); // of the few pairs in the wrong order
}

TEST_CASE("word2vec brings words nearer to their neighbours than to noise, by 0.6, after 400 steps of 200") {
  const temporary_folder s;
  regatta::generate_words_like(s.path / "data", 5000, 100, 1);
  const json r = results(s, R"(
[model]
plugin = "word2vec"
vocabulary = 1000
dim = 32
[data]
source = "dataset"
format = "words"
path = "data/train.txt"
evaluation_path = "data/test.txt"
min_count = 1
[train]
batch = 200
[optimizer]
plugin = "sgd"
lr = 20
[strategy]
plugin = "none"
[transport]
plugin = "null"
[measure]
warmup = 0
steps = 400
repeats = 1
baseline = false
)")
                     .at(0);
  CHECK(r.at("metric").at("name") == "similarity");
  CHECK(r.at("metric").at("value").get<double>() >= 0.6); // without training 0
  CHECK(r.at("loss").at("last").get<double>() < 0.5 * r.at("loss").at("first").get<double>());
}

TEST_CASE("two workers train ctr as one does, whoever brings the rows") {
  const temporary_folder s;
  regatta::generate_criteo_like(s.path / "data", 2000, 1);
  const auto run = [&](const std::string& cluster) {
    return trained(s, "plugin = \"ctr\"\nrows = 5003\nhidden = [32]\n", "criteo", cluster + R"(
[train]
batch = 200
scaling = "strong"
kernels = "fixed"
[optimizer]
plugin = "adam"
lr = 0.005
[measure]
warmup = 0
steps = 20
repeats = 1
baseline = false
)");
  };
  const json one = run("[strategy]\nplugin = \"none\"\n[transport]\nplugin = \"null\"\n");
  for (const char* strategy : {"allreduce", "sync_ps"})
    for (const char* transport : {"shm", "tcp"}) {
      CAPTURE(strategy);
      CAPTURE(transport);
      const json two = run("[cluster]\nworkers = 2\nservers = 2\ncolocate = true\n[strategy]\nplugin = \"" +
                           std::string(strategy) + "\"\n[transport]\nplugin = \"" + transport + "\"\n");
      CHECK(two.at("replicas_identical") == true);
      // The same sums in another order, twenty steps of Adam later.
      for (const char* when : {"first", "last"})
        CHECK(two.at("loss").at(when).get<double>() ==
              doctest::Approx(one.at("loss").at(when).get<double>()).epsilon(1e-4));
      CHECK(two.at("metric").at("value").get<double>() ==
            doctest::Approx(one.at("metric").at("value").get<double>()).epsilon(1e-3));
    }
}
