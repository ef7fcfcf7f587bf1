// SPDX-License-Identifier: Apache-2.0
//
// Sparse tables in real processes train the same weights as dense tensors, with rows on workers or on servers.
#include "program.hpp"

#include <vector>

using namespace regatta::test;

namespace {

const std::string tiny = R"(
[experiment]
plugin_path = [")" SPARSE_PLUGINS R"("]
[model]
plugin = "bags"
[data]
source = "random"
[train]
batch = 24
scaling = "strong"
[optimizer]
lr = 0.5
[measure]
warmup = 0
steps = 20
repeats = 1
baseline = false
)";

std::vector<double> curve_of(const json& r) {
  return r.at(0).at("loss").at("curve").get<std::vector<double>>();
}

void same_curve(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(relative));
}

const std::string alone = "--set strategy.plugin=none --set transport.plugin=null ";

} // namespace

TEST_CASE("a sparse table trains as a dense one does, with every optimiser whose untouched rows stay as they are") {
  const temporary_folder s;
  // Momentum and Adam move a dense row on in steps that do not touch it; sparse, they wait.
  for (const char* optimizer : {"optimizer.plugin=sgd", "optimizer.plugin=adagrad"})
    for (const char* accumulate : {"1", "3"}) {
      CAPTURE(optimizer);
      CAPTURE(accumulate);
      const std::string options =
          alone + "--set " + optimizer + " --set train.accumulate=" + accumulate + " --set model.sparse=";
      const auto sparse = curve_of(results(s, tiny, options + "true"));
      const auto dense = curve_of(results(s, tiny, options + "false"));
      same_curve(sparse, dense, 1e-6);
      CHECK(sparse.back() < 0.7 * sparse.front());
    }
}

TEST_CASE("a model of tables alone trains") {
  const temporary_folder s;
  const auto curve = curve_of(results(s, tiny, alone + "--set model.bias=false --set optimizer.plugin=sgd"));
  CHECK(curve.back() < 0.7 * curve.front());
}

TEST_CASE("tokens of a batch are counted once, with sparse tables too") {
  const temporary_folder s;
  const auto tokens_of_sample = [&](const std::string& options) {
    const json r = results(s, tiny, alone + "--set train.batch_unit=tokens --set train.batch=96 " + options).at(0);
    CHECK(r.at("throughput").at("unit") == "tokens/s");
    return r.at("throughput").at("median").get<double>() / r.at("samples_per_second").at("median").get<double>();
  };
  for (const std::string accumulate : {"--set train.accumulate=1 ", "--set train.accumulate=3 "}) {
    CAPTURE(accumulate);
    const double dense = tokens_of_sample(accumulate + "--set model.sparse=false");
    CHECK(dense > 3.9); // a sample has 4 words, and word 0 of 500 is padding
    CHECK(dense <= 4);
    CHECK(tokens_of_sample(accumulate + "--set model.sparse=true") == doctest::Approx(dense));
  }
}

TEST_CASE("clipping takes the norm over tables and dense tensors together") {
  const temporary_folder s;
  const std::string options = alone + "--set optimizer.plugin=sgd --set optimizer.clip_norm=0.3 --set model.sparse=";
  same_curve(curve_of(results(s, tiny, options + "true")), curve_of(results(s, tiny, options + "false")), 1e-6);
}

TEST_CASE("N workers train tables as one does, whoever holds the rows, over tcp and shm") {
  const temporary_folder s;
  for (const std::string with : {"--set optimizer.plugin=adam --set optimizer.lr=0.05 ",
                                 "--set optimizer.plugin=momentum --set train.accumulate=2 --set model.bias=false ",
                                 "--set optimizer.plugin=sgd --set optimizer.clip_norm=0.3 "}) {
    CAPTURE(with);
    const auto expected = curve_of(results(s, tiny, alone + with));
    for (const std::string cluster :
         {"strategy.plugin=allreduce --set transport.plugin=tcp --set cluster.workers=2",
          "strategy.plugin=allreduce --set transport.plugin=shm --set cluster.workers=3",
          "strategy.plugin=sync_ps --set transport.plugin=tcp --set cluster.workers=2 --set cluster.servers=1",
          "strategy.plugin=sync_ps --set transport.plugin=shm --set cluster.workers=3 --set cluster.servers=2",
          "strategy.plugin=sync_ps --set transport.plugin=tcp --set cluster.workers=2 --set cluster.servers=3 --set "
          "cluster.colocate=true"}) {
      CAPTURE(cluster);
      const json r = results(s, tiny, with + "--set " + cluster);
      // Of tables alone that lie on servers a worker keeps nothing to compare.
      const bool held = with.find("bias=false") == std::string::npos || cluster.find("sync_ps") == std::string::npos;
      CHECK(r.at(0).at("replicas_identical") == (held ? json(true) : json()));
      same_curve(curve_of(r), expected, 1e-5);
    }
  }
}
