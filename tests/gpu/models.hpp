// SPDX-License-Identifier: Apache-2.0
//
// Small versions of all models, and helpers for tests of them on the emulated GPU (emulated/streams.hpp).
#pragma once

#include "layers_cases.hpp"
#include "model_graph.hpp"

namespace models {

using namespace layers_cases;
using namespace model_graph;

struct model_case {
  const char *file, *id;
  std::vector<graph_of::setting> settings;
  double bf16, fp16; // bounds of the relative distance of all gradients, as one vector, from fp32's
};

// The bounds of bf16 are those of the CPU; bf16_test.cpp explains their differences. fp16 has 3 bits more. Measured in
// fp16: mlp 0.0007, resnet50 0.09, se_resnet50 0.07, ctr 0.0005, simnet_bow 0.0007, transformer 0.018 (a ReLU that
// passes in one precision only), bert 0.0009.
inline std::vector<model_case> cases() {
  static const std::vector<std::int64_t> hidden = {48, 32};
  const std::vector<graph_of::setting> narrow = {{"input", text("cifar10")}, {"depth", whole(18)}, {"width", whole(4)}};
  const std::vector<graph_of::setting> sequences = {{"layers", whole(2)},
                                                    {"hidden", whole(40)},
                                                    {"heads", whole(4)},
                                                    {"vocabulary", whole(30)},
                                                    {"dropout", number(0.1)}};
  auto transformer = sequences, bert = sequences;
  // A head size of 8, so that attention in 16 bits runs by cuDNN's graphs.
  const std::vector<graph_of::setting> whole_heads = {{"layers", whole(2)},     {"hidden", whole(32)},
                                                      {"heads", whole(4)},      {"vocabulary", whole(30)},
                                                      {"dropout", number(0.1)}, {"sequence", whole(9)}};
  auto flash_bert = whole_heads;
  for (const auto& s : {graph_of::setting{"positions", whole(9)}, {"predictions", whole(3)}}) flash_bert.push_back(s);
  transformer.push_back({"sequence", whole(9)});
  for (const char* key : {"positions", "sequence"}) bert.push_back({key, whole(9)});
  bert.push_back({"predictions", whole(3)});
  return {
      {"mlp.so", "mlp", {{"hidden", list(hidden)}, {"dropout", number(0.3)}}, 0.02, 0.005},
      {"resnet.so", "resnet50", narrow, 0.4, 0.15},
      {"resnet.so", "se_resnet50", narrow, 0.4, 0.15},
      {"ctr.so", "ctr", {{"rows", whole(101)}, {"hidden", list(hidden)}}, 0.06, 0.02},
      {"simnet.so", "simnet_bow", {{"vocabulary", whole(50)}, {"dim", whole(32)}, {"hidden", whole(32)}}, 0.02, 0.005},
      {"transformer.so", "transformer", transformer, 0.06, 0.03},
      {"transformer.so", "transformer", whole_heads, 0.1, 0.03}, // with scores in memory it is 0.087, too
      {"bert.so", "bert", bert, 0.03, 0.005},
      {"bert.so", "bert", flash_bert, 0.03, 0.005}};
}

inline std::vector<double> all_gradients(const reference::executed& e, const reference::executed& order) {
  std::vector<double> all;
  for (const rg_tensor& t : order.tensors) {
    if (t.kind == RG_TENSOR_STATE) continue;
    const std::size_t i = e.index_of(t.name);
    const auto one = e.canonical(e.gradients[i].data(), i);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// Plain SGD, so that a wrong gradient shows in later losses.
inline void update(reference::executed& e, double lr) {
  for (std::size_t t = 0; t < e.tensors.size(); ++t) {
    if (e.tensors[t].kind == RG_TENSOR_STATE) continue;
    auto w = e.canonical(e.weights[t].data(), t);
    const auto g = e.canonical(e.gradients[t].data(), t);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= lr * g[i];
    e.set(t, w);
  }
}

} // namespace models
