// SPDX-License-Identifier: Apache-2.0
//
// The transformer and BERT: their parameters, that reduced ones compute what the reference does, and that they learn.
#include "layers_cases.hpp"
#include "model_graph.hpp"
#include "precisions.hpp"

using namespace layers_cases;
using namespace model_graph;

namespace {

const std::vector<graph_of::setting> tiny_transformer = {{"layers", whole(1)},
                                                         {"hidden", whole(32)},
                                                         {"heads", whole(4)},
                                                         {"vocabulary", whole(12)},
                                                         {"sequence", whole(8)}};
const std::vector<graph_of::setting> tiny_bert = {
    {"layers", whole(1)},     {"hidden", whole(32)},   {"heads", whole(4)},       {"vocabulary", whole(20)},
    {"positions", whole(12)}, {"sequence", whole(12)}, {"predictions", whole(3)}, {"dropout", number(0)}};

std::vector<graph_of::setting> with(std::vector<graph_of::setting> all, const graph_of::setting& one) {
  all.push_back(one);
  return all;
}

// Adam (Kingma and Ba 2015, algorithm 1) on every element of an instance's weights.
class adam {
public:
  adam(reference::executed& e, double rate) : model_(e), rate_(rate) {
    for (const auto& t : e.tensors) {
      first_.emplace_back(rg::storage_of(t));
      second_.emplace_back(rg::storage_of(t));
    }
  }
  void step() {
    ++steps_;
    const double bias1 = 1 - std::pow(0.9, steps_), bias2 = 1 - std::pow(0.999, steps_);
    for (std::size_t t = 0; t < first_.size(); ++t)
      for (std::size_t i = 0; i < first_[t].size(); ++i) {
        const double g = model_.gradients[t].data()[i];
        first_[t][i] += 0.1 * (g - first_[t][i]);
        second_[t][i] += 0.001 * (g * g - second_[t][i]);
        model_.weights[t].data()[i] -=
            static_cast<float>(rate_ * first_[t][i] / bias1 / (std::sqrt(second_[t][i] / bias2) + 1e-8));
      }
  }

private:
  reference::executed& model_;
  double rate_;
  int steps_ = 0;
  std::vector<std::vector<double>> first_, second_;
};

std::uint32_t draw(std::uint64_t batch, std::size_t a, std::size_t b, std::uint32_t range) {
  return rg::to_index(rg::random_bits(batch, a, static_cast<std::uint32_t>(b), 1026)[0], range);
}

reference::batch empty_batch(std::size_t samples, std::uint64_t number) {
  reference::batch b;
  b.samples = b.global_samples = samples;
  b.step = number;
  return b;
}

// Sentences of 3 to 7 words, 0 behind them; the target is the source backwards. Word 1 begins a target, 2 ends it.
reference::batch sentences(std::size_t samples, std::uint64_t number) {
  constexpr std::size_t length = 8;
  reference::batch b = empty_batch(samples, number);
  b.inputs.assign(3, std::vector<double>(samples * length));
  for (std::size_t s = 0; s < samples; ++s) {
    const std::size_t words = 3 + draw(number, s, 0, 5), at = s * length;
    b.inputs[1][at] = 1;
    b.inputs[2][at + words] = 2;
    for (std::size_t i = 0; i < words; ++i) {
      const double word = 3 + draw(number, s, i + 1, 9);
      b.inputs[0][at + i] = word;
      b.inputs[1][at + words - i] = b.inputs[2][at + words - 1 - i] = word;
    }
  }
  return b;
}

// Words count up, from 4 to 19 and around; word 1 masks some. The second half goes on where the first ends, or starts
// elsewhere.
reference::batch patterns(std::size_t samples, std::uint64_t number) {
  constexpr std::size_t length = 12, masked = 3;
  reference::batch b = empty_batch(samples, number);
  for (const std::size_t n : {length, length, masked, masked, std::size_t{1}}) b.inputs.emplace_back(samples * n);
  for (std::size_t s = 0; s < samples; ++s) {
    const std::uint32_t follows = draw(number, s, 0, 2);
    std::uint32_t word = draw(number, s, 1, 16);
    for (std::size_t t = 0; t < length; ++t, ++word) {
      if (t == length / 2 && !follows) word += 8;
      b.inputs[0][s * length + t] = 4 + word % 16;
      b.inputs[1][s * length + t] = t >= length / 2 ? 1 : 0;
    }
    for (std::size_t m = 0; m < masked; ++m) { // one in each third
      const std::size_t t = 4 * m + draw(number, s, 2 + m, 4);
      b.inputs[2][s * masked + m] = static_cast<double>(t);
      b.inputs[3][s * masked + m] = b.inputs[0][s * length + t];
      b.inputs[0][s * length + t] = 1;
    }
    b.inputs[4][s] = follows;
  }
  return b;
}

} // namespace

TEST_CASE("the transformer has the parameters of its publication, with a vocabulary of 32,000") {
  // Vaswani et al., table 3, give 65 and 213 million for 37,000 words.
  CHECK(graph_of("transformer.so", "transformer", {}).parameters() == 60485632);
  CHECK(graph_of("transformer.so", "transformer", {{"size", text("big")}}).parameters() == 209051648);
  CHECK(graph_of("transformer.so", "transformer", {{"vocabulary", whole(37000)}}).parameters() == 63045632);
  CHECK(graph_of("transformer.so", "transformer", {{"size", text("big")}, {"vocabulary", whole(37000)}}).parameters() ==
        214171648);
}

TEST_CASE("bert has the parameters of its publication") {
  // 109,482,240 and 335,141,888 with the pooler; what predicts adds a transformation, its norm and a bias for masked
  // words, and two classes for the next sentence.
  auto heads = [](std::uint64_t hidden) { return hidden * hidden + 3 * hidden + 30522 + 2 * hidden + 2; };
  CHECK(graph_of("bert.so", "bert", {}).parameters() == 109482240 + heads(768));
  CHECK(graph_of("bert.so", "bert", {{"size", text("large")}}).parameters() == 335141888 + heads(1024));
  CHECK_THROWS_WITH(graph_of("bert.so", "bert", {{"sequence", whole(513)}}),
                    "sequence: expected at most positions = 512, got 513");
}

TEST_CASE("a tiny transformer and a tiny bert train as the reference does") {
  const graph_of transformer("transformer.so", "transformer", tiny_transformer), bert("bert.so", "bert", tiny_bert);
  pair t(*transformer.graph, {.batch = 3}), b(*bert.graph, {.batch = 3, .threads = 2});
  compare_step(t, 5e-5);
  compare_step(b, 5e-5);
}

TEST_CASE("a tiny transformer learns to turn sentences around in 300 steps") {
  const graph_of g("transformer.so", "transformer", with(tiny_transformer, {"dropout", number(0)}));
  std::vector<double> reached;
  for (const std::string name : regatta::test::precisions()) {
    const std::uint32_t precision = name == "bf16" ? RG_BF16 : RG_F32;
    reference::executed e(executor_plugin, *g.graph, {.batch = 32, .precision = precision, .emulate = true});
    CHECK(std::string(e.info.metric) == "perplexity");
    e.start(1);
    adam optimizer(e, 3e-3);
    for (std::uint64_t i = 0; i < 300; ++i) {
      e.step(sentences(32, i));
      optimizer.step();
    }
    const auto sums = e.evaluate(sentences(32, 1000), 32); // never seen
    CHECK(e.metric(sums) < 1.5);                           // of 12 words
    CHECK(sums[0] / sums[1] > 0.9);
    reached.push_back(e.metric(sums));
  }
  CHECK(reached.back() == doctest::Approx(reached[0]).epsilon(0.1)); // in bf16 as in fp32
}

TEST_CASE("a tiny bert learns a pattern of words in 300 steps") {
  const graph_of g("bert.so", "bert", with(tiny_bert, {"hidden", whole(64)}));
  std::vector<double> reached;
  for (const std::string name : regatta::test::precisions()) {
    const std::uint32_t precision = name == "bf16" ? RG_BF16 : RG_F32;
    reference::executed e(executor_plugin, *g.graph, {.batch = 32, .precision = precision, .emulate = true});
    e.start(1);
    adam optimizer(e, 3e-3);
    for (std::uint64_t i = 0; i < 300; ++i) {
      e.step(patterns(32, i));
      optimizer.step();
    }
    const auto sums = e.evaluate(patterns(32, 1000), 32); // never seen
    CHECK(e.metric(sums) > 0.9);
    CHECK(sums[4] / sums[5] > 0.9); // next sentence
    reached.push_back(e.metric(sums));
  }
  CHECK(reached.back() == doctest::Approx(reached[0]).epsilon(0.05)); // in bf16 as in fp32
}
