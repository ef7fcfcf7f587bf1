// SPDX-License-Identifier: Apache-2.0
//
// plugins/models/resnet: what its networks are made of, and that narrow ones train as the reference does.
#include "layers_cases.hpp"
#include "model_graph.hpp"

#include <cstring>

using namespace layers_cases;
using namespace model_graph;

namespace {

graph_of resnet(const std::vector<graph_of::setting>& given, const std::string& id = "resnet50") {
  return {"resnet.so", id, given};
}

} // namespace

TEST_CASE("residual networks have the parameters of their publications") {
  // As torchvision's definitions have them.
  CHECK(resnet({}).parameters() == 25557032);
  CHECK(resnet({{"depth", whole(18)}}).parameters() == 11689512);
  CHECK(resnet({{"depth", whole(34)}}).parameters() == 21797672);
  CHECK(resnet({{"depth", whole(101)}}).parameters() == 44549160);
  CHECK(resnet({{"depth", whole(152)}}).parameters() == 60192808);
  // Hu et al. 2018: 2 C^2 / 16 weights and C / 16 + C biases more for each block of C channels.
  CHECK(resnet({}, "se_resnet50").parameters() == 28088024);
  // The form for CIFAR-10: a 3x3 stem and ten classes.
  CHECK(resnet({{"input", text("cifar10")}}).parameters() == 23520842);
  CHECK(resnet({{"input", text("cifar10")}, {"depth", whole(18)}}).parameters() == 11173962);
}

TEST_CASE("a depth that was never published is refused") {
  CHECK_THROWS_WITH(resnet({{"depth", whole(42)}}), "depth: expected 18, 34, 50, 101 or 152, got 42");
}

TEST_CASE("resnet50 computes 24.5 GFLOP an image, forward and backward") {
  const graph_of net = resnet({});
  const reference::executed e(executor_plugin, *net.graph, {.purpose = RG_PURPOSE_INIT});
  CHECK(e.info.flops_per_sample == doctest::Approx(24.3e9).epsilon(0.01)); // 3 x 4.1 GMAC x 2, less the stem's gradient
}

TEST_CASE("batch norm is exempt from decay and from compression, and may start blocks as identities") {
  for (const bool zero : {false, true}) {
    const graph_of net = resnet({{"zero_init", whole(zero)}, {"depth", whole(18)}});
    int norms = 0, zeros = 0;
    for (std::uint32_t t = 0; t < net.graph->tensor_count; ++t) {
      const rg_tensor& info = net.graph->tensors[t];
      const bool norm = std::strstr(info.name, "_norm") != nullptr;
      CHECK(info.decay == (norm ? 0 : 1));
      CHECK(info.compressible == (info.ndim > 1));
      if (!std::strstr(info.name, "_norm.scale")) continue;
      ++norms;
      zeros += info.init_a == 0;
    }
    CHECK(norms == 20); // 17 convolutions and 3 shortcuts
    CHECK(zeros == (zero ? 8 : 0));
  }
}

TEST_CASE("narrow residual networks train as the reference does") {
  for (const char* id : {"resnet50", "se_resnet50"})
    for (const std::int64_t depth : {18, 50}) {
      CAPTURE(std::string(id));
      CAPTURE(depth);
      const graph_of net = resnet({{"input", text("cifar10")}, {"depth", whole(depth)}, {"width", whole(4)}}, id);
      // Many layers of batch norm over few samples magnify what floats round.
      compare(*net.graph, {.batch = 3}, 5e-3);
    }
}
