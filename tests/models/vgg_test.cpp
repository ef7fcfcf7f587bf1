// SPDX-License-Identifier: Apache-2.0
//
// The models vgg16, mlp and null: their layers and parameters, and that a reduced vgg16 trains as the reference does.
#include "layers_cases.hpp"
#include "model_graph.hpp"

#include <regatta/ext/graph.h>

using namespace layers_cases;
using namespace model_graph;

TEST_CASE("vgg16 has the parameters of its publications") {
  CHECK(graph_of("vgg.so", "vgg16", {}).parameters() == 15254602);
  CHECK(graph_of("vgg.so", "vgg16", {{"input", text("flowers")}}).parameters() == 27884710);
  CHECK(graph_of("vgg.so", "vgg16", {{"batch_norm", whole(0)}}).parameters() == 15245130);
  CHECK(graph_of("vgg.so", "vgg16", {{"input", text("imagenet")}}).parameters() == 138357544);
}

TEST_CASE("vgg16 computes 1.88 GFLOP a sample of cifar10, forward and backward") {
  const graph_of vgg("vgg.so", "vgg16", {});
  const reference::executed e(executor_plugin, *vgg.graph, {.purpose = RG_PURPOSE_INIT});
  CHECK(e.info.flops_per_sample == doctest::Approx(1.88e9).epsilon(0.01));
}

TEST_CASE("every dropout of vgg16 can be turned off, and draws numbers of its own") {
  auto dropouts = [](const rg_graph& g) {
    std::vector<double> layers;
    for (std::uint32_t k = 0; k < g.node_count; ++k)
      if (std::string(g.nodes[k].op) == "dropout") layers.push_back(g.nodes[k].attrs[1].number);
    return layers;
  };
  const graph_of on("vgg.so", "vgg16", {}), off("vgg.so", "vgg16", {{"dropout", number(0)}});
  const auto layers = dropouts(*on.graph);
  CHECK(layers.size() == 10); // 8 between convolutions, 2 before dense layers
  for (std::size_t i = 0; i < layers.size(); ++i) CHECK(layers[i] == static_cast<double>(i));
  CHECK(dropouts(*off.graph).empty());
}

TEST_CASE("mlp is as its parameters say") {
  const std::vector<std::int64_t> input = {1, 4, 4}, hidden = {20, 30};
  const graph_of m("mlp.so", "mlp",
                   {{"input", list(input)}, {"hidden", list(hidden)}, {"classes", whole(7)}, {"dropout", number(0.2)}});
  CHECK(m.parameters() == 16 * 20 + 20 + 20 * 30 + 30 + 30 * 7 + 7);
  compare(*m.graph, {.batch = 6});
}

TEST_CASE("a narrow vgg16 trains as the reference does") {
  const graph_of net("vgg.so", "vgg16", {{"width", whole(8)}});
  // Sixteen layers of batch norm over few samples magnify what floats round.
  compare(*net.graph, {.batch = 8}, 2e-3);
  compare(*net.graph, {.batch = 8, .kernels = RG_KERNELS_TIMED}, 5e-3);
}

TEST_CASE("the null model says that gradients are ready one by one") {
  const rg_component& c = reference::load_component(REGATTA_PLUGINS "/null_model.so", RG_KIND_MODEL, "null");
  const auto& f = *static_cast<const rg_model*>(c.functions);
  const rg_value values[] = {whole(3), whole(10), whole(0), whole(1)}; // tensors, bytes, compute, busy
  auto setup = rg::make_versioned<rg_model_setup>();
  setup.batch = 4;
  void* self = nullptr;
  REQUIRE(f.create(nullptr, values, &setup, &self) == RG_OK);
  auto info = rg::make_versioned<rg_model_info>();
  REQUIRE(f.describe(self, &info) == RG_OK);
  REQUIRE(info.tensor_count == 3);
  CHECK(rg::storage_of(info.tensors[0]) == 3);

  std::vector<int> events;
  rg_hooks hooks = {.struct_size = sizeof hooks, .context = &events};
  hooks.need = [](void* e, std::uint32_t t) -> rg_status {
    static_cast<std::vector<int>*>(e)->push_back(-1 - static_cast<int>(t));
    return RG_OK;
  };
  hooks.ready = [](void* e, std::uint32_t t) { static_cast<std::vector<int>*>(e)->push_back(static_cast<int>(t)); };
  auto batch = rg::make_versioned<rg_batch>();
  batch.flags = RG_BATCH_LAST;
  auto result = rg::make_versioned<rg_step_result>();
  CHECK(f.step(self, &batch, &hooks, &result) == RG_OK);
  CHECK(events == std::vector<int>{-3, -2, -1, 0, 1, 2});
  CHECK(result.loss_sum / static_cast<double>(result.count) == 1);

  hooks.need = [](void*, std::uint32_t) -> rg_status { return RG_E_CANCELLED; };
  CHECK(f.step(self, &batch, &hooks, &result) == RG_E_CANCELLED);
  f.destroy(self);
}
