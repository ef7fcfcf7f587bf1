// SPDX-License-Identifier: Apache-2.0
//
// The experiments under examples/: each is short, begins with a description, and runs as shipped.
#include "program.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

TEST_CASE("every published table and every what-if is simulated by the command that it begins with, and can run") {
  // One small case of each: the keys that are swept, and those that change with them.
  const std::map<std::string, std::vector<std::string>> smaller = {
      {"vgg16-workers.toml", {"cluster.servers=3", "cluster.workers=2", "cluster.hosts=2"}},
      {"vgg16-servers.toml", {"cluster.servers=2", "cluster.workers=4", "cluster.hosts=4"}},
      {"vgg16-batches.toml",
       {"train.batch=32", "strategy.plugin=sync_ps", "cluster.workers=2", "cluster.servers=2", "cluster.hosts=2"}},
      {"collectives-resnet50.toml", {"cluster.workers=4", "cluster.hosts=2", "strategy.algorithm=hierarchical"}},
      {"collectives-vgg16.toml", {"cluster.workers=4", "cluster.hosts=2", "strategy.algorithm=hierarchical"}},
      {"collectives-bert.toml", {"cluster.workers=4", "cluster.hosts=2", "strategy.algorithm=hierarchical"}},
      {"collectives-transformer.toml", {"cluster.workers=4", "cluster.hosts=2", "strategy.algorithm=hierarchical"}},
      {"dgc-bandwidth.toml", {"cluster.workers=2", "transport.bandwidth=1Gbit/s", "strategy.plugin=dgc"}},
      {"multi-gpu.toml", {"cluster.workers=2", "cluster.servers=2", "strategy.plugin=sync_ps"}},
      {"word2vec.toml",
       {"cluster.workers=2", "cluster.servers=2", "cluster.hosts=2", "strategy.plugin=async_ps", "measure.steps=2",
        "measure.warmup=0"}},
      {"ctr.toml",
       {"cluster.workers=2", "cluster.servers=2", "cluster.hosts=2", "strategy.plugin=geo_ps", "strategy.geo_ps.k=2",
        "measure.steps=2", "measure.warmup=0"}},
      {"servers.toml", {"cluster.servers=2", "cluster.workers=4", "cluster.hosts=4"}},
      {"compression.toml",
       {"cluster.workers=4", "cluster.hosts=4", "transport.bandwidth=1Gbit/s", "strategy.plugin=dgc"}},
      {"slow-host.toml",
       {"cluster.workers=4", "cluster.servers=4", "cluster.hosts=4", "cluster.straggler.rank=1",
        "cluster.straggler.factor=2.0", "strategy.plugin=local_sgd"}},
      {"slow-host-allreduce.toml",
       {"cluster.workers=4", "cluster.hosts=2", "cluster.straggler.rank=1", "cluster.straggler.factor=2.0",
        "strategy.algorithm=hierarchical"}},
      {"faster-network.toml",
       {"cluster.workers=4", "cluster.servers=4", "cluster.hosts=4", "transport.bandwidth=1Gbit/s",
        "model.plugin=resnet50", "strategy.plugin=allreduce"}},
  };
  const temporary_folder s;
  fs::copy(REGATTA_SOURCE "/examples", s.path / "examples", fs::copy_options::recursive);
  std::size_t experiments = 0;
  for (const char* folder : {"published", "what-if"})
    for (const auto& entry : fs::directory_iterator(s.path / "examples" / folder)) {
      const std::string name = entry.path().filename().string(), text = read(entry.path());
      if (text.find("[experiment]") == std::string::npos) continue; // a machine or a network
      CAPTURE(name);
      const std::string begin = "#   regatta simulate " + name + " ";
      const std::size_t at = text.find(begin);
      REQUIRE(at != std::string::npos);
      std::string settings = " --set measure.baseline=false";
      REQUIRE(smaller.contains(name));
      for (const std::string& setting : smaller.at(name)) settings += " --set " + setting;
      const std::string files = text.substr(at + begin.size(), text.find('\n', at) - at - begin.size());
      const std::string path = std::string("examples/") + folder + "/";
      // The command is meant for the folder of the file.
      std::string machines;
      for (std::string_view word_of = files; !word_of.empty();) {
        const std::size_t end = std::min(word_of.find(' '), word_of.size());
        const std::string_view word = word_of.substr(0, end);
        machines += " " + (word.starts_with("--") ? std::string(word) : path + std::string(word));
        word_of.remove_prefix(std::min(end + 1, word_of.size()));
      }
      const outcome o = program(s, "simulate " + path + name + machines + " --format json --progress never --out " +
                                       name + ".out" + settings);
      INFO(o.err);
      REQUIRE(o.code == 0);
      const json results = parsed(o.out).at("results");
      REQUIRE(results.size() == 1);
      CHECK(results.at(0).at("status") == "ok");
      CHECK(results.at(0).at("samples_per_second").at("median").get<double>() > 0);
      // Full models may need more memory than this machine has; everything else is checked before.
      const outcome dry = program(s, "run " + path + name + " --dry-run --set train.batch=1" + settings);
      INFO(dry.out);
      CHECK((dry.code == 0 || dry.out.find("more memory than is free") != std::string::npos));
      ++experiments;
    }
  CHECK(experiments == smaller.size());
}

TEST_CASE("the README shows the strategy of examples/custom_strategy/ring.cpp as it is") {
  const std::string source = read(REGATTA_SOURCE "/examples/custom_strategy/ring.cpp");
  const std::size_t begin = source.find("struct ring");
  REQUIRE(begin != std::string::npos);
  CHECK(read(REGATTA_SOURCE "/README.md").find("```cpp\n" + source.substr(begin) + "```") != std::string::npos);
}
