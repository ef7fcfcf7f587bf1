// SPDX-License-Identifier: Apache-2.0
//
// Layers for sequences: the reference's gradients against finite differences, the executor's against the reference's.
#include "layers_cases.hpp"

#include <functional>

#include <regatta/ext/graph.h>

using namespace layers_cases;

namespace {

constexpr std::int64_t length = 7, vocabulary = 11;

struct sequence_case {
  const char* name;
  std::int64_t features;
  // What lies between the embedding of the words and the logits; `words` are their numbers, some of them 0.
  std::function<rg::value(rg::value x, rg::value words)> body;
  rg::token_cross_entropy_options loss = {};
};

const std::vector<sequence_case>& cases() {
  using rg::value;
  static const std::vector<sequence_case> all = {
      {"embedding", 16, [](value x, value) { return x; }},
      {"label smoothing", 16, [](value x, value) { return x; }, {.smoothing = 0.1}},
      {"dense of each position", 13, [](value x, value) { return rg::dense(x, "d", 24); }},
      {"dense without bias", 16, [](value x, value) { return rg::dense(x, "d", 70, {.bias = false}); }},
      {"dense relu dense", 20, [](value x, value) { return rg::dense(rg::relu(rg::dense(x, "a", 33)), "b", 8); }},
      {"dense gelu dense", 20, [](value x, value) { return rg::dense(rg::gelu(rg::dense(x, "a", 33)), "b", 8); }},
      {"gelu without bias", 20, [](value x, value) { return rg::gelu(rg::dense(x, "a", 16, {.bias = false})); }},
      {"functions alone", 18, [](value x, value) { return rg::relu(rg::add(rg::gelu(x), rg::tanh(x))); }},
      {"dense tanh", 16, [](value x, value) { return rg::tanh(rg::dense(x, "a", 19)); }},
      {"layer norm", 24, [](value x, value) { return rg::layer_norm(x, "n"); }},
      {"layer norm of odd features", 21, [](value x, value) { return rg::layer_norm(x, "n", {.epsilon = 1e-3}); }},
      {"dropout", 9, [](value x, value) { return rg::dropout(x, 0.4); }},
      {"dropout, residual, layer norm", 19,
       [](value x, value) { return rg::layer_norm(rg::add(rg::dropout(rg::dense(x, "d", 19), 0.3), x), "n"); }},
      {"the residual on the left", 16,
       [](value x, value) { return rg::layer_norm(rg::add(x, rg::dropout(rg::dense(x, "d", 16), 0.3)), "n"); }},
      {"two dropouts that add up", 16,
       [](value x, value) { return rg::add(rg::dropout(x, 0.5), rg::dropout(rg::dense(x, "d", 16), 0.3)); }},
      {"the same value twice", 16, [](value x, value) { return rg::layer_norm(rg::add(x, x), "n"); }},
      {"three ways from one value", 16,
       [](value x, value) {
         x = rg::dense(x, "a", 16);
         return rg::add(rg::add(rg::dense(x, "b", 16), rg::dense(x, "c", 16)), x);
       }},
      {"attention", 16, [](value x, value w) { return rg::attention(x, x, w, "a", {.heads = 2}); }},
      {"attention of one head, without biases", 12,
       [](value x, value w) { return rg::attention(x, x, w, "a", {.bias = false}); }},
      {"causal attention with dropout", 24,
       [](value x, value w) { return rg::attention(x, x, w, "a", {.heads = 3, .causal = true, .dropout = 0.3}); }},
      {"attention of a value on itself, without projections", 8,
       [](value x, value w) { return rg::attend(x, x, x, w, "a", {.heads = 2}); }},
      {"a function whose gradient comes after that of a wide layer", 16,
       [](value x, value) {
         const value y = rg::tanh(x);
         return rg::add(y, rg::dense(rg::relu(rg::dense(x, "a", 512)), "b", 16));
       }},
      {"a function of a layer whose gradient comes after that of a wide layer", 16,
       [](value x, value) {
         const value y = rg::tanh(rg::dense(x, "t", 16));
         return rg::add(y, rg::dense(rg::relu(rg::dense(x, "a", 512)), "b", 16));
       }},
      {"a layer of an encoder", 16,
       [](value x, value w) {
         x = rg::layer_norm(rg::add(rg::dropout(rg::attention(x, x, w, "a", {.heads = 2}), 0.2), x), "m");
         const value y = rg::dense(rg::relu(rg::dense(x, "b", 32)), "c", 16);
         return rg::layer_norm(rg::add(rg::dropout(y, 0.2), x), "n");
       }},
      {"the first position for all", 16,
       [](value x, value w) {
         return rg::attend(x, rg::first_position(x), rg::first_position(x), w, "a", {.heads = 2});
       }},
  };
  return all;
}

void build(const sequence_case& c, rg::network& net) {
  const rg::value words = net.indices("words", {length}, vocabulary);
  const rg::value ones = net.indices("ones", {1}, vocabulary);
  const rg::value labels = net.indices("labels", {length}, vocabulary);
  const std::uint32_t table = rg::embedding_table(net, "words", vocabulary, c.features);
  const bool one_key = std::string(c.name) == "the first position for all";
  rg::value x = c.body(rg::embedding(words, "e", table, {.scale = 1.5, .sinusoids = true}), one_key ? ones : words);
  x = x.dims()[1] == c.features ? rg::dense_shared(x, "out", table, true) : rg::dense(x, "out", vocabulary);
  rg::token_cross_entropy(x, labels, c.loss);
}

// Masked words and a sentence's class: two losses, all ways to select positions.
void build_masked(rg::network& net, double dropout = 0) {
  const rg::value words = net.indices("words", {length}, vocabulary), sides = net.indices("sides", {length}, 2);
  const rg::value masked = net.indices("masked", {3}, length), labels = net.indices("labels", {3}, vocabulary);
  const rg::value kind = net.index("kind", 2);
  const std::uint32_t table = rg::embedding_table(net, "words", vocabulary, 16);
  rg::value x = rg::add(rg::embedding(words, "e", table, {.positions = rg::embedding_table(net, "positions", 9, 16)}),
                        rg::embedding(sides, "f", rg::embedding_table(net, "sides", 2, 16)));
  x = rg::dropout(rg::layer_norm(x, "n"), dropout);
  x = rg::layer_norm(
      rg::add(rg::dropout(rg::attention(x, x, words, "a", {.heads = 2, .dropout = dropout}), dropout), x), "m");
  const rg::value logits =
      rg::dense_shared(rg::gelu(rg::dense(rg::select_positions(x, masked), "t", 16)), "out", table, true);
  const rg::value pooled = rg::dense(rg::tanh(rg::dense(rg::first_position(x), "pool", 16)), "kind", 2);
  rg::sum_of_losses({rg::token_cross_entropy(logits, labels, {.accuracy = true}),
                     rg::softmax_cross_entropy(rg::flatten(pooled), kind)});
}

} // namespace

TEST_CASE("the reference's gradients are the slopes of its loss, for sequences") {
  for (const auto& c : cases()) {
    CAPTURE(std::string(c.name));
    rg::network net;
    build(c, net);
    check_slopes(*net.graph());
  }
  rg::network net;
  build_masked(net, 0.3);
  check_slopes(*net.graph());
}

TEST_CASE("the executor's layers for sequences compute what the reference does") {
  for (const auto* c : wanted(cases())) {
    CAPTURE(std::string(c->name));
    rg::network net;
    build(*c, net);
    pair one(*net.graph(), {.batch = 5}), threads(*net.graph(), {.batch = 4, .threads = 3});
    compare_step(one);
    compare_step(threads);

    const double loss = one.reference.forward(one.batch, false);
    const auto sums = one.executed.evaluate(one.batch, one.batch.samples);
    REQUIRE(sums.size() == 4); // correct, counted, loss, loss without smoothing
    CHECK(sums[2] / sums[1] == doctest::Approx(loss / 5).epsilon(looser * 1e-5));
    CHECK(one.executed.metric(sums) == doctest::Approx(std::exp(sums[3] / sums[1])));
    if (c->loss.smoothing == 0) CHECK(sums[3] == doctest::Approx(sums[2]));
  }
}

TEST_CASE("logits may be the output of a function") {
  for (const auto function : {rg::relu, rg::tanh, rg::gelu}) {
    rg::network net;
    const rg::value words = net.indices("words", {length}, vocabulary),
                    labels = net.indices("labels", {length}, vocabulary);
    const rg::value x = rg::embedding(words, "e", rg::embedding_table(net, "words", vocabulary, 16));
    rg::token_cross_entropy(function(rg::dense(x, "out", vocabulary)), labels);
    pair p(*net.graph(), {.batch = 4});
    compare_step(p);
  }
}

TEST_CASE("masked words and a class of the whole are two losses of one network") {
  rg::network net;
  build_masked(net, 0.3);
  pair p(*net.graph(), {.batch = 6});
  compare_step(p, 2e-5);
  CHECK(p.executed.info.count_kinds == 1);
  CHECK(std::string(p.executed.info.metric) == "masked_accuracy");
  CHECK(std::string(p.executed.tensors.back().name).find("table") != std::string::npos); // used first, ready last
  const auto sums = p.executed.evaluate(p.batch, 4);
  REQUIRE(sums.size() == 7);
  CHECK(sums[5] == 4);
  CHECK(sums[1] <= 12);
  CHECK(p.executed.metric(sums) == doctest::Approx(sums[0] / sums[1]));
}

TEST_CASE("where nothing is seen, attention gives zeros and no gradient that is not finite") {
  rg::network net;
  const rg::value words = net.indices("words", {length}, vocabulary),
                  labels = net.indices("labels", {length}, vocabulary);
  const std::uint32_t table = rg::embedding_table(net, "words", vocabulary, 16);
  const rg::value x = rg::embedding(words, "e", table);
  rg::token_cross_entropy(rg::dense_shared(rg::attend(x, x, x, words, "a", {.heads = 4}), "out", table), labels);
  pair p(*net.graph(), {.batch = 2});
  std::fill(p.batch.inputs[0].begin(), p.batch.inputs[0].begin() + length, 0.0); // an empty sentence
  compare_step(p);
}

TEST_CASE("two halves of a batch of sequences give the gradients of the whole, dropout included") {
  rg::network net;
  build_masked(net, 0.4);
  const rg_graph& g = *net.graph();
  reference::executed whole(executor_plugin, g, {.batch = 8}), half(executor_plugin, g, {.batch = 4});
  whole.start(3);
  half.start(3);
  reference::batch b = make_batch(g, 8, 5);
  const auto counted = static_cast<std::uint64_t>(
      std::count_if(b.inputs[3].begin(), b.inputs[3].end(), [](double l) { return l != 0; }));
  CHECK(whole.count(b) == std::vector<std::uint64_t>{counted});
  b.global_counts = {counted};
  const auto result = whole.step(b);
  std::vector<std::vector<double>> sums;
  double loss = 0;
  for (const std::size_t first : {0, 4}) {
    const auto part = half.step(part_of(b, first, 4), first ? RG_BATCH_ACCUMULATE | RG_BATCH_LAST : 0);
    loss += part.loss_sum;
    CHECK(part.count == 4);
  }
  CHECK(loss == doctest::Approx(result.loss_sum).epsilon(1e-6));
  for (std::size_t t = 0; t < whole.tensors.size(); ++t) {
    const std::string name = whole.tensors[t].name;
    CAPTURE(name);
    CHECK(distance(half.canonical(half.gradients[t].data(), t), whole.canonical(whole.gradients[t].data(), t),
                   floor_of(name)) < looser * 3e-6);
  }
}

TEST_CASE("indices out of range are refused with their position") {
  rg::network net;
  build(cases()[0], net);
  reference::executed e(executor_plugin, *net.graph(), {.batch = 2});
  e.start(1);
  auto b = make_batch(*net.graph(), 2, 1);
  b.inputs[0][length + 2] = 11;
  CHECK_THROWS_WITH(e.step(b),
                    "sample 1 of step 3 has 11 at position 2 of words, which must be less than 11 and not negative");
  b.inputs[0][length + 2] = 3;
  b.inputs[2][1] = -1;
  CHECK_THROWS_WITH(e.step(b),
                    "sample 0 of step 3 has -1 at position 1 of labels, which must be less than 11 and not negative");
}

TEST_CASE("numbers out of range in padding samples do not end an evaluation") {
  rg::network net;
  build_masked(net);
  // The checks of this mode run the reference on the whole batch.
  reference::executed e(executor_plugin, *net.graph(), {.batch = 4, .debug = RG_DEBUG_NONE});
  e.start(1);
  auto b = make_batch(*net.graph(), 4, 1);
  const auto expected = e.evaluate(b, 3);
  for (auto& input : b.inputs)
    for (std::size_t i = input.size() / 4 * 3; i < input.size(); ++i) input[i] = 1e9;
  CHECK(e.evaluate(b, 3) == expected);
  b.inputs[0][2 * length] = 1e9; // in a sample that counts
  CHECK_THROWS_WITH(e.evaluate(b, 3), doctest::Contains("sample 2 of step"));
}

TEST_CASE("layers for sequences that do not fit are refused while the network is built") {
  rg::network net;
  const rg::value words = net.indices("words", {5}, 9), image = net.values("image", {6});
  const std::uint32_t table = rg::embedding_table(net, "words", 9, 6);
  const rg::value x = rg::embedding(words, "e", table);
  CHECK_THROWS_WITH_AS(rg::attention(x, x, words, "a", {.heads = 4}), "layer a: 6 features do not divide into 4 heads",
                       rg::error);
  CHECK_THROWS_AS(rg::layer_norm(image, "n"), rg::error);
  CHECK_THROWS_AS(rg::dense_shared(rg::dense(x, "d", 4), "s", table), rg::error);
  CHECK_THROWS_AS(rg::token_cross_entropy(x, image), rg::error);
}
