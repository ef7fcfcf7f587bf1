// SPDX-License-Identifier: Apache-2.0
//
// The experiments under examples/: each is short, begins with a description, and runs as shipped.
#include "program.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

using namespace regatta::test;

namespace {

constexpr std::size_t most_lines = 60; // comments and empty lines included

} // namespace

TEST_CASE("every example is short, and an experiment that could run") {
  const temporary_folder s;
  fs::copy(REGATTA_SOURCE "/examples", s.path / "examples", fs::copy_options::recursive);
  std::set<std::string> models;
  for (const auto& entry : fs::directory_iterator(s.path / "examples")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string name = entry.path().filename().string(), text = read(entry.path());
    CAPTURE(name);
    CHECK(text.starts_with("# ")); // a description, with the source of its figures
    CHECK(static_cast<std::size_t>(std::ranges::count(text, '\n')) <= most_lines);
    // Its plugins are built out of the tree: install_test runs it.
    if (name == "custom.toml") continue;
    const outcome o = program(s, "run examples/" + name + " --dry-run --format json");
    INFO(o.err);
    // 77: no case can run on this machine, because it has no GPU.
    REQUIRE(o.code == (name.ends_with("-gpu.toml") && o.out.find("\"refused\": null") == std::string::npos ? 77 : 0));
    const std::string model = text.substr(text.find("plugin = \"", text.find("[model]")) + 10);
    models.insert(model.substr(0, model.find('"')));
  }
  for (const char* model : {"vgg16", "resnet50", "transformer", "bert", "word2vec", "ctr", "simnet_bow"}) {
    CAPTURE(model);
    CHECK(models.contains(model));
  }
}

TEST_CASE("the example of ResNet50 is one of SE-ResNet50 and of VGG16 with ImageNet's head, too") {
  const temporary_folder s;
  fs::copy(REGATTA_SOURCE "/examples/resnet50.toml", s.path / "x.toml");
  CHECK(program(s, "run x.toml --dry-run --set model.plugin=se_resnet50").code == 0);
  // `depth` is ResNet's alone.
  const outcome o = program(s, "run x.toml --dry-run --set model.plugin=vgg16");
  CHECK(o.code == 2);
  CHECK(o.err.find("model.depth") != std::string::npos);
}

TEST_CASE("every example trains as it is shipped, except for steps, batch and the width of dgc-bandwidth") {
  const temporary_folder s;
  fs::copy(REGATTA_SOURCE "/examples", s.path / "examples", fs::copy_options::recursive);
  // Smaller batches, so that large models take seconds. dgc-bandwidth has four workers with VGG16's 138 million
  // parameters each: narrow models and one of its three bandwidths do. resnet50 trains at full width.
  const std::map<std::string, std::string> smaller = {
      {"vgg16-cifar.toml", " --set train.batch=4"},
      {"resnet50.toml", " --set train.batch=1"},
      {"transformer.toml", " --set train.batch=1"},
      {"time-to-accuracy.toml", " --set measure.target=0"}, // one step does not reach it
      {"bert.toml", " --set train.batch=1"},
      {"dgc-bandwidth.toml", " --set model.width=8 --sweep transport.bandwidth=100Gbit/s"}};
  for (const auto& entry : fs::directory_iterator(s.path / "examples")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".toml" || name == "custom.toml") continue; // install_test builds and runs custom's
    CAPTURE(name);
    const auto less = smaller.find(name);
    const outcome o = program(s, "run examples/" + name + " --format json --progress never --out " + name +
                                     ".out --set measure.steps=1 --set measure.warmup=0 --set measure.repeats=1 "
                                     "--set measure.baseline=false --set train.kernels=fixed" +
                                     (less == smaller.end() ? "" : less->second));
    INFO(o.err);
    // 77: all cases are for a GPU, and there is none.
    const bool needs_gpu = read(entry.path()).find("device = \"cuda\"") != std::string::npos;
    REQUIRE((o.code == 0 || (needs_gpu && o.code == 77)));
    if (o.code != 0) continue;
    const json results = parsed(o.out).at("results");
    REQUIRE(!results.empty());
    for (const json& r : results) CHECK(r.at("status") == "ok");
  }
  CHECK(fs::exists(s.path / "data/criteo/train.tsv")); // generated at first use
}

TEST_CASE("the README shows the strategy of examples/custom_strategy/ring.cpp as it is") {
  const std::string source = read(REGATTA_SOURCE "/examples/custom_strategy/ring.cpp");
  const std::size_t begin = source.find("struct ring");
  REQUIRE(begin != std::string::npos);
  CHECK(read(REGATTA_SOURCE "/README.md").find("```cpp\n" + source.substr(begin) + "```") != std::string::npos);
}
