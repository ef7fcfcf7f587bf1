// SPDX-License-Identifier: Apache-2.0
//
// The input of steps: counts over all workers, evaluation between steps, queues, batches of tokens.
#include "program.hpp"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace regatta::test;

namespace {

const std::string counting = R"(
[experiment]
plugin_path = [")" REGATTA_BUILD R"(/tests/counting"]
[model]
plugin = "counting"
[data]
source = "random"
[train]
batch = 24
scaling = "strong"
[measure]
warmup = 2
steps = 6
repeats = 1
baseline = false
)";

const std::string alone = "--set strategy.plugin=none --set transport.plugin=null ";

std::vector<double> curve(const json& results) {
  return results.at(0).at("loss").at("curve").get<std::vector<double>>();
}

// NumPy's format, version 1. `shape` as in Python; by default rows of three.
template <class T>
void write_npy(const fs::path& file, const std::vector<T>& numbers, const char* type = "<i4", std::string shape = "") {
  if (shape.empty()) shape = "(" + std::to_string(numbers.size() / 3) + ", 3)";
  std::string head = "{'descr': '" + std::string(type) + "', 'fortran_order': False, 'shape': " + shape + ", }";
  head.resize(118 - 1, ' ');
  head += '\n';
  std::ofstream out(file, std::ios::binary);
  out << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(head.size()) << '\0' << head;
  out.write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * 4));
}

} // namespace

TEST_CASE("no part of a step is negative, also if the model reports no phases") {
  const temporary_folder s;
  const json r = results(s, counting,
                         "--set strategy.plugin=sync_ps --set transport.plugin=tcp --set cluster.workers=2 "
                         "--set cluster.servers=1",
                         "COUNTING_WITHOUT_PHASES=1");
  for (const auto& [name, seconds] : r.at(0).at("time").items()) {
    CAPTURE(name);
    CHECK(seconds.get<double>() >= 0);
  }
}

TEST_CASE("one process times kernels for all ranks, also if there is nothing to choose") {
  const temporary_folder s;
  const std::string file = (s.path / "timed").string();
  results(
      s, counting,
      "--set strategy.plugin=allreduce --set cluster.workers=2 --set train.kernels=timed --set measure.baseline=false",
      "COUNTING_TIMED=" + file);
  CHECK(std::filesystem::file_size(file) == 1);
}

TEST_CASE("counts are those of the global batch, however workers share it and in however many parts") {
  const temporary_folder s;
  const json one = results(s, counting, alone);
  const auto expected = curve(one);
  REQUIRE(expected.size() == 8);
  CHECK(expected[0] > 100000); // both kinds are there
  CHECK(expected[0] != expected[1]);
  // tokens/s are the first count's: of 72 numbers from 0 to 9, some 324 a step
  const json& e = one.at(0);
  CHECK(e.at("throughput").at("unit") == "tokens/s");
  const double ratio = e.at("throughput").at("median").get<double>() / e.at("batches_per_second").get<double>();
  double mean = 0;
  for (std::size_t i = 2; i < 8; ++i) mean += std::fmod(expected[i], 100000.0) / 6;
  CHECK(ratio == doctest::Approx(mean).epsilon(1e-9));
  for (const char* options :
       {"--set strategy.plugin=allreduce --set cluster.workers=2", "--set train.accumulate=3 --set cluster.workers=1",
        "--set strategy.plugin=sync_ps --set cluster.workers=3 --set cluster.servers=2 --set train.accumulate=2",
        "--set strategy.plugin=sync_ps --set cluster.workers=2 --set cluster.servers=1 --set cluster.colocate=true",
        "--set strategy.plugin=allreduce --set cluster.workers=2 --set measure.warmup=0 --set measure.steps=8",
        "--set strategy.plugin=allreduce --set cluster.workers=2 --set data.source=queue --set data.prefetch=2"}) {
    CAPTURE(options);
    CHECK(curve(results(s, counting, options)) == expected);
  }
}

TEST_CASE("counts of the first step are those of the global batch even where workers do not wait for each other") {
  const temporary_folder s;
  const auto expected = curve(results(s, counting, alone));
  for (const char* options :
       {"--set strategy.plugin=none --set transport.plugin=null --set cluster.workers=2",
        "--set strategy.plugin=async_ps --set cluster.workers=2 --set cluster.servers=1",
        "--set strategy.plugin=async_ps --set cluster.workers=2 --set cluster.servers=2 --set cluster.colocate=true",
        "--set strategy.plugin=async_ps --set cluster.workers=3 --set cluster.servers=1 --set measure.warmup=0",
        "--set strategy.plugin=local_sgd --set cluster.workers=2 --set train.accumulate=2"}) {
    CAPTURE(options);
    CHECK(curve(results(s, counting, options))[0] == expected[0]);
  }
}

TEST_CASE("evaluation between steps is on all of the data, and on no clock") {
  const temporary_folder s;
  std::vector<std::int32_t> numbers(3 * 50);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i * i % 10);
  write_npy(s.path / "label.npy", numbers);
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
  for (const char* options : {"--set strategy.plugin=none --set transport.plugin=null",
                              "--set strategy.plugin=allreduce --set cluster.workers=2",
                              "--set strategy.plugin=sync_ps --set cluster.workers=3 --set cluster.servers=2"}) {
    CAPTURE(options);
    const json r = results(s, counting,
                           std::string(options) + " --set data.format=npy --set data.evaluation_path=. --set "
                                                  "measure.evaluate_every=3 --set measure.steps=7");
    const json& metric = r.at(0).at("metric");
    CHECK(metric.at("name") == "mean");
    CHECK(metric.at("value").get<double>() == doctest::Approx(mean));
    std::vector<int> steps;
    for (const json& point : metric.at("curve")) {
      steps.push_back(point.at("step").get<int>());
      CHECK(point.at("value").get<double>() == doctest::Approx(mean));
    }
    CHECK(steps == std::vector<int>{3, 6, 9});
    // Time between steps belongs to no step and not to the timed region.
    double parts = 0;
    for (const auto& [name, seconds] : r.at(0).at("time").items()) parts += seconds.get<double>();
    CHECK(parts * r.at(0).at("batches_per_second").get<double>() <= 1.000001);
  }
}

TEST_CASE("a model without evaluate() cannot be evaluated, and says so") {
  const temporary_folder s;
  write_npy(s.path / "value.npy", std::vector<float>(3, 0), "<f4", "(3,)");
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"null\"\n[data]\nformat = \"npy\"\nevaluation_path = \".\"\n"
                                      "[strategy]\nplugin = \"none\"\n[transport]\nplugin = \"null\"\n";
  const outcome o = program(s, "run x.toml --out result --progress never");
  CHECK(o.code != 0);
  INFO(o.err);
  CHECK((o.err + o.out).find("model null cannot evaluate") != std::string::npos);
}

TEST_CASE("a batch of tokens is as many samples as have that many positions") {
  const temporary_folder s;
  const std::string tokens = "--set train.batch_unit=tokens ";
  // A sample of the counting model has 3 places; 24 samples are 72 to 74 of them.
  const json r = results(s, counting, alone + tokens + "--set train.batch=74");
  CHECK(r.at(0).at("global_batch") == 24);
  CHECK(curve(r) == curve(results(s, counting, alone)));
  const json two = results(s, counting, tokens + "--set train.batch=72 --set cluster.workers=2");
  CHECK(two.at(0).at("batch_per_worker") == 12);
  std::ofstream(s.path / "x.toml") << counting;
  const outcome o = program(s, "run x.toml --out other --progress never " + alone + tokens + "--set train.batch=2");
  CHECK(o.code == 2);
  CHECK((o.err + o.out).find("one sample of 3 for each of") != std::string::npos);
}

TEST_CASE("throughput of a batch of tokens is in tokens, without padding") {
  const temporary_folder s;
  // Four samples, of 3, 1, 2 and 3 tokens to be predicted.
  write_npy<std::int32_t>(s.path / "source.npy", {5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7});
  write_npy<std::int32_t>(s.path / "target_in.npy", {2, 5, 6, 2, 5, 0, 2, 5, 6, 2, 5, 6});
  write_npy<std::int32_t>(s.path / "target_out.npy", {5, 6, 3, 3, 0, 0, 5, 3, 0, 5, 6, 3});
  const std::string transformer = R"(
[model]
plugin = "transformer"
layers = 1
hidden = 16
heads = 2
vocabulary = 10
sequence = 3
[data]
source = "dataset"
format = "npy"
path = "."
[train]
batch = 12
batch_unit = "tokens"
kernels = "fixed"
[measure]
warmup = 1
steps = 6
repeats = 1
baseline = false
)";
  for (const std::string& options : {alone, "--set cluster.workers=2 " + alone, alone + "--set train.accumulate=2"}) {
    CAPTURE(options);
    const json r = results(s, transformer, options).at(0);
    CHECK(r.at("batch_per_worker") == 4);
    CHECK(r.at("throughput").at("unit") == "tokens/s");
    CHECK(r.at("throughput").at("median").get<double>() ==
          doctest::Approx(9.0 / 4 * r.at("samples_per_second").at("median").get<double>()));
  }
  const json by_samples =
      results(s, transformer, alone + "--set train.batch_unit=samples --set train.batch=4").at(0).at("throughput");
  CHECK(by_samples.at("unit") == "sentences/s");
}
