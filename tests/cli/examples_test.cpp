// SPDX-License-Identifier: Apache-2.0
//
// The experiments under examples/: each is one that the program takes as it is, and that says so within some lines.
#include "program.hpp"

#include <algorithm>
#include <set>
#include <string>

using namespace regatta::test;

namespace {

constexpr std::size_t most_lines = 60; // comments and empty lines included

} // namespace

TEST_CASE("every example is short, and an experiment that could run") {
  const scratch s;
  fs::copy(REGATTA_SOURCE "/examples", s.path / "examples", fs::copy_options::recursive);
  std::set<std::string> models;
  for (const auto& entry : fs::directory_iterator(s.path / "examples")) {
    if (entry.path().extension() != ".toml") continue;
    const std::string name = entry.path().filename().string(), text = read(entry.path());
    CAPTURE(name);
    CHECK(text.starts_with("# ")); // what it is, and where its numbers are from
    CHECK(static_cast<std::size_t>(std::ranges::count(text, '\n')) <= most_lines);
    // Its plugins are built out of the tree: install_test runs it.
    if (name == "custom.toml") continue;
    const outcome o = program(s, "run examples/" + name + " --dry-run --format json");
    INFO(o.err);
    REQUIRE(o.code == 0);
    const std::string model = text.substr(text.find("plugin = \"", text.find("[model]")) + 10);
    models.insert(model.substr(0, model.find('"')));
  }
  for (const char* model : {"vgg16", "resnet50", "transformer", "bert", "word2vec", "ctr", "simnet_bow"}) {
    CAPTURE(model);
    CHECK(models.contains(model));
  }
}

TEST_CASE("the example of ResNet50 is one of SE-ResNet50 and of VGG16 with ImageNet's head, too") {
  const scratch s;
  fs::copy(REGATTA_SOURCE "/examples/resnet50.toml", s.path / "x.toml");
  CHECK(program(s, "run x.toml --dry-run --set model.plugin=se_resnet50").code == 0);
  // `depth` is ResNet's alone.
  const outcome o = program(s, "run x.toml --dry-run --set model.plugin=vgg16");
  CHECK(o.code == 2);
  CHECK(o.err.find("model.depth") != std::string::npos);
}
