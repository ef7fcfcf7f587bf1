// SPDX-License-Identifier: Apache-2.0
//
// Which executor compiles a model's graph: train.executor, and the next one if one lacks an op.
#include <doctest/doctest.h>

#include "json.hpp"
#include "program.hpp"

using namespace regatta::test;
using nlohmann::json;

namespace {

const std::string small = R"(
[model]
plugin = "mlp"
hidden = [8]
[train]
batch = 4
[strategy]
plugin = "none"
[transport]
plugin = "null"
[measure]
warmup = 1
steps = 2
repeats = 1
baseline = false
)";

const std::string options = "run x.toml --format json --progress never --plugin-path " REGATTA_PICKY " ";

struct answer {
  outcome o;
  json entries; // of the results; null: no document was printed
};

answer run(const std::string& more) {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  answer a{program(s, options + more), nullptr};
  if (const json document = json::parse(a.o.out, nullptr, false); document.is_object())
    a.entries = document.at("results");
  return a;
}

std::string executor_of(const json& entry) {
  return entry.at("fingerprint").at("executor").get<std::string>();
}

} // namespace

TEST_CASE("Regatta's own executor is asked first, whatever the others are called") {
  const answer a = run("");
  REQUIRE_MESSAGE(a.o.code == 0, a.o.err);
  CHECK(executor_of(a.entries.at(0)) == "onednn");
}

TEST_CASE("an executor that lacks an op leaves the graph to the next one of train.executor") {
  const answer a = run("--set 'train.executor=[\"a_picky_one\", \"onednn\"]'");
  REQUIRE_MESSAGE(a.o.code == 0, a.o.err);
  CHECK(executor_of(a.entries.at(0)) == "onednn");
}

TEST_CASE("a graph that none can compile is skipped, with the reason of each") {
  const answer a = run("--set train.executor=a_picky_one");
  CHECK(a.o.code == 77);
  CHECK(a.o.err.find("model mlp on executor a_picky_one: layer hidden1: no op dense") != std::string::npos);
}

TEST_CASE("executors can be swept") {
  const answer a = run("--sweep train.executor=a_picky_one,onednn");
  REQUIRE(a.entries.is_array());
  REQUIRE(a.entries.size() == 2);
  CHECK(a.entries.at(0).at("status") == "skipped");
  CHECK(a.entries.at(1).at("status") == "ok");
  CHECK(executor_of(a.entries.at(1)) == "onednn");
}

TEST_CASE("an executor that does not exist is an error that names the key and those that do") {
  const answer a = run("--set train.executor=onednm");
  CHECK(a.o.code == 2);
  CHECK(a.o.err.find("train.executor") != std::string::npos);
  CHECK(a.o.err.find("onednn") != std::string::npos);
}

// oneDNN reads ONEDNN_MAX_CPU_ISA, so that any CPU passes for one without AVX-512.
TEST_CASE("bf16 is refused on a CPU that can only emulate it, and where it cannot even do that") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small;
  const auto refused = [&](const std::string& settings) {
    const outcome o =
        program(s, "run x.toml --progress never --set train.precision=bf16 " + settings, "ONEDNN_MAX_CPU_ISA=AVX2");
    CHECK(o.code == 77);
    return o.err;
  };
  CHECK(
      refused("").find("this CPU has no bf16 instructions: set train.precision = \"fp32\", or train.emulate = true") !=
      std::string::npos);
  CHECK(refused("--set train.emulate=true").find("this CPU cannot emulate bf16: that takes AVX-512") !=
        std::string::npos);
}

// The last convolutions of vgg16 have 2 x 2 pixels: the fastest kernel for them needs another layout of weights.
TEST_CASE("kernels are timed for the layout of weights that a strategy asks for, and for its baseline's") {
  const temporary_folder s;
  const std::string vgg = R"(
[model]
plugin = "vgg16"
width = 16
[train]
batch = 8
kernels = "timed"
[cluster]
workers = 2
[strategy]
plugin = "powersgd"
[measure]
warmup = 0
steps = 1
repeats = 1
)";
  for (int run = 0; run < 2; ++run) // the second one finds what the first one has timed
    CHECK(results(s, vgg, "--plugin-path " REGATTA_EXAMPLE_PLUGINS, "XDG_CACHE_HOME=" + (s.path / "cache").string())
              .at(0)
              .at("replicas_identical") == true);
}
