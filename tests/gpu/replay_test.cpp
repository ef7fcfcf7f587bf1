// SPDX-License-Identifier: Apache-2.0
//
// Whole models on the emulated GPU: replayed steps against launched ones.
#include "models.hpp"

using namespace models;

// A graph is launched in its first pass, captured in the second and replayed from the third. Passes that add to
// gradients have backward graphs of their own.
TEST_CASE("a step that is replayed is the one that was launched") {
  for (const model_case& m : cases()) {
    const std::string id = m.id;
    if (id == "se_resnet50") continue; // has no op that the other models lack
    CAPTURE(id);
    const std::uint32_t precision = id == "resnet50" ? RG_F32 : id == "bert" ? RG_BF16 : RG_F16;
    const graph_of graph(m.file, m.id, m.settings);
    reference::execution_options options{.batch = 4, .precision = precision};
    reference::executed replayed(executor_plugin, *graph.graph, options);
    options.plain = true;
    reference::executed launched(executor_plugin, *graph.graph, options);
    options.plain = false;
    const auto dense =
        static_cast<std::uint32_t>(std::count_if(replayed.tensors.begin(), replayed.tensors.end(),
                                                 [](const rg_tensor& t) { return t.kind == RG_TENSOR_DENSE; }));
    options.awaited = {dense / 2 - 1, dense - 1}; // two buckets
    reference::executed in_two(executor_plugin, *graph.graph, options);
    for (reference::executed* e : {&replayed, &launched, &in_two}) e->start(1);
    for (std::uint64_t step = 0; step < 3; ++step) {
      CAPTURE(step);
      auto b = make_batch(*graph.graph, 4, 3 + step);
      b.step = step;
      for (const auto flags : {0U, static_cast<std::uint32_t>(RG_BATCH_ACCUMULATE | RG_BATCH_LAST)}) {
        const double expected = launched.step(b, flags).loss_sum;
        CHECK(replayed.step(b, flags).loss_sum == expected);
        CHECK(in_two.step(b, flags).loss_sum == expected);
      }
      CHECK(all_gradients(replayed, launched) == all_gradients(launched, launched));
      CHECK(all_gradients(in_two, launched) == all_gradients(launched, launched));
      CHECK(replayed.evaluate(b, 3) == launched.evaluate(b, 3));
      for (reference::executed* e : {&replayed, &launched, &in_two}) update(*e, 0.01);
    }
    CHECK(launched.kernels().find("graphs") == std::string::npos);
    CHECK(in_two.kernels().find("graphs: 4\n") != std::string::npos);
  }
}
