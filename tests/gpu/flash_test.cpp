// SPDX-License-Identifier: Apache-2.0
//
// Attention by graphs of cuDNN, on the emulated GPU, whose cuDNN executes graphs operation by operation
// (emulated/dnn.cpp). It must be as close to the reference as attention with scores in memory, and drop the same
// probabilities as the reference. planning_test checks that cuDNN itself accepts the graphs.
#include "layers_cases.hpp"

#include <regatta/layers.hpp>

using namespace layers_cases;
using rg::value;

namespace {

constexpr std::int64_t length = 9, vocabulary = 11;
// Bound of the relative distance of all gradients, as one vector, from the reference's. With scores in memory the
// distance was 0.0028 to 0.0042 in bf16 and 0.00034 to 0.00037 in fp16, with and without dropout.
double bound(std::uint32_t precision) {
  return precision == RG_BF16 ? 0.005 : 0.0005;
}

struct attention_case {
  const char* name;
  std::function<value(value x, value other, value words, value others, double dropout)> body;
};
const std::vector<attention_case>& cases() {
  static const std::vector<attention_case> all = {
      {"of itself", [](value x, value, value words, value,
                       double p) { return rg::attention(x, x, words, "a", {.heads = 2, .dropout = p}); }},
      {"causal", [](value x, value, value words, value,
                    double p) { return rg::attention(x, x, words, "a", {.heads = 2, .causal = true, .dropout = p}); }},
      {"of another, shorter sequence",
       [](value x, value other, value, value others, double p) {
         return rg::attention(x, other, others, "a", {.heads = 4, .dropout = p});
       }},
      {"queries, keys and values the same, their gradients added up",
       [](value x, value, value words, value, double p) {
         return rg::attend(x, x, x, words, "a", {.heads = 1, .causal = true, .dropout = p});
       }},
  };
  return all;
}

// Two sequences with padding at any position; one of the samples is all padding.
void build(const attention_case& c, rg::network& net, double dropout) {
  const value words = net.indices("words", {length}, vocabulary), others = net.indices("others", {5}, vocabulary);
  const value labels = net.indices("labels", {length}, vocabulary);
  const std::uint32_t table = rg::embedding_table(net, "words", vocabulary, 32);
  const value x = rg::embedding(words, "e", table), other = rg::embedding(others, "f", table);
  value y = c.body(x, other, words, others, dropout);
  if (std::string(c.name).find("another") == std::string::npos) // all inputs must be read
    y = rg::add(y, rg::attention(x, other, others, "b", {.heads = 2, .dropout = dropout}));
  rg::token_cross_entropy(rg::dense(y, "out", vocabulary), labels);
}

struct outcome {
  double loss = 0, distance = 0;
  std::vector<double> evaluated;
  std::string kernels;
  std::uint64_t activations = 0;
};
outcome train(const attention_case& c, double dropout, std::uint32_t precision) {
  rg::network net;
  build(c, net, dropout);
  pair p(*net.graph(), {.batch = 5, .precision = precision});
  std::fill_n(p.batch.inputs[0].begin() + length, length, 0.0);
  std::fill_n(p.batch.inputs[1].begin() + 5, 5, 0.0);
  p.batch.inputs[0][0] = 0; // with a causal mask the first query then has no visible key
  const double expected = p.reference.forward(p.batch);
  p.reference.backward(p.batch);
  const rg_step_result got = p.executed.step(p.batch);
  std::vector<double> a, b;
  for (std::uint32_t t = 0; t < p.graph.tensor_count; ++t) {
    const std::size_t i = p.executed.index_of(p.graph.tensors[t].name);
    const auto made = p.executed.canonical(p.executed.gradients[i].data(), i);
    a.insert(a.end(), made.begin(), made.end());
    b.insert(b.end(), p.reference.gradients[t].begin(), p.reference.gradients[t].end());
  }
  const double loss = got.loss_sum / static_cast<double>(got.count),
               meant = expected / static_cast<double>(p.batch.samples);
  return {std::abs(loss - meant) / std::abs(meant), distance(a, b), p.executed.evaluate(p.batch, p.batch.samples),
          p.executed.kernels(), p.executed.info.activation_bytes};
}

} // namespace

TEST_CASE("attention by cuDNN's graphs is as near to the reference as with scores of our own, with dropout, too") {
  for (const auto& c : cases())
    for (const std::uint32_t precision : {RG_BF16, RG_F16}) {
      CAPTURE(std::string(c.name));
      CAPTURE(precision);
      const outcome whole = train(c, 0, precision), dropped = train(c, 0.3, precision);
      for (const outcome* o : {&whole, &dropped}) {
        CHECK(o->kernels.find("a flash: 1\n") != std::string::npos);
        CHECK(o->loss < 0.01);
        CHECK(o->distance < bound(precision));
        CHECK(o->distance > 0);
        CHECK(o->activations == whole.activations); // the dropout mask takes no activation memory
      }
      CHECK(dropped.evaluated == whole.evaluated); // evaluation has no dropout
    }
}

TEST_CASE("where cuDNN has no engine for it, attention makes its scores") {
  CHECK(train(cases()[0], 0, RG_F32).kernels.find("a flash: 0\n") != std::string::npos);
  CHECK(train(cases()[0], 0, RG_F32).distance < 1e-5);
  // The flash kernel keeps one value per row instead of the probabilities, and values have half the bytes.
  CHECK(train(cases()[0], 0, RG_BF16).activations < train(cases()[0], 0, RG_F32).activations / 2);
  rg::network net;
  const value words = net.indices("words", {length}, vocabulary), labels = net.indices("labels", {length}, vocabulary);
  const value x = rg::embedding(words, "e", rg::embedding_table(net, "words", vocabulary, 12));
  rg::token_cross_entropy(rg::dense(rg::attend(x, x, x, words, "a", {}), "out", vocabulary), labels);
  CHECK(reference::executed(executor_plugin, *net.graph(), {.precision = RG_BF16})
            .kernels()
            .starts_with("a flash: 0\n")); // head size 12 is no multiple of 8
}
