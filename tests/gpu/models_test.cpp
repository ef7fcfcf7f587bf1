// SPDX-License-Identifier: Apache-2.0
//
// Whole models on the emulated GPU (emulated/streams.hpp), in every precision, against fp32 on the executor onednn.
#include "models.hpp"
#include "ops/row_order.hpp"
#include "runtime/loss_scale.hpp"
#include "runtime/memory_plan.hpp"

#include <regatta/ext/graph.h>

using namespace models;

namespace {

const std::string on_cpu = REGATTA_PLUGINS "/onednn.so";

} // namespace

TEST_CASE("every model learns on a GPU as on the CPU") {
  for (const model_case& m : cases()) {
    CAPTURE(std::string(m.id));
    const graph_of graph(m.file, m.id, m.settings);
    reference::executed cpu(on_cpu, *graph.graph, {.batch = 4}), gpu(executor_plugin, *graph.graph, {.batch = 4});
    cpu.start(1);
    gpu.start(1);
    for (std::uint64_t step = 0; step < 4; ++step) {
      auto b = make_batch(*graph.graph, 4, 3 + step);
      b.step = step;
      const auto expected = cpu.step(b), got = gpu.step(b);
      CAPTURE(step);
      CHECK(got.count == expected.count);
      // The order of sums differs, so gradients may differ by 1e-4, and so may later losses.
      CHECK(got.loss_sum == doctest::Approx(expected.loss_sum).epsilon(step ? 1e-4 : 1e-5));
      if (step == 0) CHECK(distance(all_gradients(gpu, cpu), all_gradients(cpu, cpu)) < 1e-4);
      update(cpu, 0.01);
      update(gpu, 0.01);
    }
    const auto b = make_batch(*graph.graph, 4, 9);
    const auto expected = cpu.evaluate(b, 3), got = gpu.evaluate(b, 3);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      if (std::string(m.id) != "ctr" || i + 2 >= got.size()) // a sample may fall into the neighbouring bucket
        CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-4));
    CHECK(gpu.info.count_kinds == cpu.info.count_kinds);
    CHECK(std::string(gpu.info.metric) == cpu.info.metric);
  }
}

// The emulated GEMMs do not round, so TF32 only differs by the channels-last layout.
TEST_CASE("with channels last models compute the same") {
  for (const model_case& m : cases()) {
    CAPTURE(std::string(m.id));
    const graph_of graph(m.file, m.id, m.settings);
    reference::executed exact(on_cpu, *graph.graph, {.batch = 4});
    reference::executed gpu(executor_plugin, *graph.graph, {.batch = 4, .precision = RG_TF32});
    exact.start(1);
    gpu.start(1);
    const auto b = make_batch(*graph.graph, 4, 3);
    CHECK(gpu.step(b).loss_sum == doctest::Approx(exact.step(b).loss_sum).epsilon(1e-5));
    CHECK(distance(all_gradients(gpu, exact), all_gradients(exact, exact)) < 1e-4);
  }
}

TEST_CASE("gradients in reduced precision are close to those in fp32") {
  for (const model_case& m : cases())
    for (const auto& [precision, bound] : {std::pair{RG_BF16, m.bf16}, {RG_F16, m.fp16}}) {
      CAPTURE(std::string(m.id));
      CAPTURE(precision);
      const graph_of graph(m.file, m.id, m.settings);
      reference::executed exact(on_cpu, *graph.graph, {.batch = 8});
      reference::executed gpu(executor_plugin, *graph.graph,
                              {.batch = 8, .precision = static_cast<std::uint32_t>(precision)});
      exact.start(1);
      gpu.start(1);
      const auto b = make_batch(*graph.graph, 8, 3);
      const double expected = exact.step(b).loss_sum, got = gpu.step(b).loss_sum;
      CHECK(got == doctest::Approx(expected).epsilon(0.008)); // 2^-7: the distance of neighbouring bf16 values
      const double d = distance(all_gradients(gpu, exact), all_gradients(exact, exact));
      CHECK(d < bound);
      CHECK(d > 1e-5); // it did compute in reduced precision
    }
}

TEST_CASE("a loss scale that is too large comes down until gradients are finite") {
  rg::network net;
  const rg::value x = net.values("x", {4}), label = net.index("label", 3);
  rg::softmax_cross_entropy(rg::dense(x, "out", 3), label);
  // The gradient of this single sample is near 1; times 65536 it exceeds fp16.
  reference::executed e(executor_plugin, *net.graph(), {.batch = 1, .precision = RG_F16});
  e.start(1);
  e.set(e.index_of("out.weight"), {9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0});
  reference::batch b{.samples = 1, .inputs = {{1, 1, 1, 1}, {1}}, .global_samples = 1};
  const auto bias = [&] { return e.gradients[e.index_of("out.bias")].data()[0]; };
  e.step(b);
  CHECK(!std::isfinite(bias()));
  bool finite = false;
  for (int i = 0; i < 8 && !finite; ++i) { // the host learns some steps later that a step was not finite
    e.step(b);
    finite = std::isfinite(bias());
  }
  CHECK(finite);
  CHECK(bias() == doctest::Approx(1).epsilon(1e-3));
}

TEST_CASE("a weight of more elements than kernels count is refused, where a kernel converts it") {
  rg::network net;
  const rg::value x = net.values("x", {65536}), label = net.index("label", 2);
  rg::softmax_cross_entropy(rg::dense(rg::dense(x, "wide", 65536), "out", 2), label);
  CHECK_THROWS_WITH(reference::executed(executor_plugin, *net.graph(), {.batch = 1, .precision = RG_BF16}),
                    "tensor wide.weight: 4294967296 elements, but kernels count in 32 bits");
}

TEST_CASE("algorithms that were timed are told, and taken where they are given") {
  rg::network net;
  const rg::value image = net.values("image", {3, 6, 6}), label = net.index("label", 3);
  const rg::value x = rg::conv2d(rg::conv2d(image, "a", 4), "b", 4);
  rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "out", 3), label);
  reference::execution_options options{.batch = 2, .kernels = RG_KERNELS_TIMED};
  const std::string picked = reference::executed(executor_plugin, *net.graph(), options).kernels();
  // The input has no gradient. The emulated cuDNN's first engine is not deterministic.
  CHECK(picked.starts_with(
      "a forward with bias: 1\na weights: 1\nb forward with bias: 1\nb weights: 1\nb data: 1\nout "));
  // The GEMMs choose among the emulated cuBLASLt's two algorithms.
  CHECK(std::count(picked.begin(), picked.end(), '\n') == 8);
  CHECK(reference::executed(executor_plugin, *net.graph(), options).kernels() == picked); // now from the cache
  options.kernel_choices = picked;
  CHECK(reference::executed(executor_plugin, *net.graph(), options).kernels() == picked);
  options.kernel_choices = "a forward: 1\n"; // without its bias
  CHECK(reference::executed(executor_plugin, *net.graph(), options).kernels().starts_with("a forward: 1\n"));
  options.kernel_choices = "a forward with bias: 0\n";
  CHECK_THROWS_WITH(reference::executed(executor_plugin, *net.graph(), options),
                    "a forward with bias: cuDNN has no deterministic engine for it of number 0");
  options.kernel_choices = "a forward: 0\n";
  CHECK_THROWS_WITH(reference::executed(executor_plugin, *net.graph(), options),
                    "a forward: cuDNN has no deterministic engine for it of number 0");
  options.kernel_choices = "out weights with bias: 1\n";
  CHECK(reference::executed(executor_plugin, *net.graph(), options).kernels().find("out weights with bias: 1\n") !=
        std::string::npos);
  options.kernel_choices = "out weights with bias: 2\n";
  CHECK_THROWS_WITH(reference::executed(executor_plugin, *net.graph(), options),
                    "out weights with bias: cuBLASLt has no algorithm for it of number 2");
  options.kernel_choices = "a forward, one";
  CHECK_THROWS_WITH(reference::executed(executor_plugin, *net.graph(), options),
                    "\"a forward, one\" is not a kernel choice of the executor cudnn: expected \"NAME: NUMBER\"");
}

// The layer functions leave out such a dropout, but a graph may contain it.
TEST_CASE("dropout with probability 0 is the identity in training") {
  rg::network net, plain;
  const auto build = [](rg::network& n, bool drops) {
    const rg::value x = n.values("x", {12}), label = n.index("label", 3);
    const rg::value a = rg::relu(rg::dense(x, "a", 16));
    rg::softmax_cross_entropy(rg::dense(drops ? rg::dropout(a, 0.5) : a, "out", 3), label);
  };
  build(net, true);
  build(plain, false);
  const rg_graph& g = *net.graph();
  std::vector<rg_node> nodes(g.nodes, g.nodes + g.node_count);
  std::vector<rg_attr> attrs;
  for (rg_node& n : nodes)
    if (std::string(n.op) == "dropout") {
      attrs.assign(n.attrs, n.attrs + n.attr_count);
      for (rg_attr& a : attrs)
        if (std::string(a.name) == "p") a.number = 0;
      n.attrs = attrs.data();
    }
  rg_graph zero = g;
  zero.nodes = nodes.data();
  reference::executed with(executor_plugin, zero, {.batch = 5}), without(executor_plugin, *plain.graph(), {.batch = 5});
  with.start(1);
  without.start(1);
  const auto b = make_batch(g, 5, 11);
  for (int step = 0; step < 3; ++step) CHECK(with.step(b).loss_sum == without.step(b).loss_sum);
}

TEST_CASE("activation memory counts what ops keep for their backward passes") {
  using rg::value;
  constexpr std::size_t samples = 3, channels = 4, length = 7, features = 16;
  const auto of = [](rg::network& net) {
    return reference::executed(executor_plugin, *net.graph(), {.batch = samples}).info.activation_bytes;
  };
  const auto of_image = [&](value (*op)(value)) { // of `channels` channels, 4x4
    rg::network net;
    const value image = net.values("image", {3, 8, 8}), label = net.index("label", 5);
    const value x = op(rg::avg_pool(rg::conv2d(image, "before", channels, {.padding = 1})));
    rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "out", 5), label);
    return of(net);
  };
  const auto of_sequence = [&](value (*op)(value)) {
    rg::network net;
    const value words = net.indices("words", {length}, 11), labels = net.indices("labels", {length}, 11);
    const value x = rg::embedding(words, "e", rg::embedding_table(net, "table", 11, features));
    rg::token_cross_entropy(rg::dense(op(x), "out", 11), labels);
    return of(net);
  };
  const auto max = of_image([](value x) { return rg::max_pool(x); });
  const auto average = of_image([](value x) { return rg::avg_pool(x); });
  CHECK(max - average == samples * channels * 2 * 2 * sizeof(std::int32_t));
  const auto norm = of_image([](value x) { return rg::batch_norm(x, "n"); });
  const auto sigmoid = of_image([](value x) { return rg::sigmoid(x); });
  CHECK(norm - sigmoid == 2 * channels * sizeof(float));
  const auto layer_norm = of_sequence([](value x) { return rg::layer_norm(x, "n"); });
  const auto alone = of_sequence([](value x) { return rg::tanh(x); });
  CHECK(layer_norm - alone == 2 * samples * length * sizeof(float));
  const auto gelu = of_sequence([](value x) { return rg::gelu(rg::dense(x, "d", features)); });
  const auto tanh = of_sequence([](value x) { return rg::tanh(rg::dense(x, "d", features)); });
  CHECK(gelu - tanh == samples * length * features * sizeof(float));
}

TEST_CASE("the loss scale halves at once and doubles after 2000 good steps") {
  cudnn::loss_scale s;
  CHECK(s.value() == 65536);
  for (std::uint32_t i = 0; i + 1 < cudnn::loss_scale::steps_to_grow; ++i) s.update(true);
  CHECK(s.value() == 65536);
  s.update(false);
  CHECK(s.value() == 32768);
  for (std::uint32_t i = 0; i + 1 < cudnn::loss_scale::steps_to_grow; ++i) s.update(true);
  CHECK(s.value() == 32768); // the count starts again
  s.update(true);
  CHECK(s.value() == 65536);
  for (int i = 0; i < 100; ++i) s.update(false);
  CHECK(s.value() == 1);
  for (std::uint32_t i = 0; i < 100 * cudnn::loss_scale::steps_to_grow; ++i) s.update(true);
  CHECK(s.value() == cudnn::loss_scale::most);
}

TEST_CASE("buffers that are needed at once never share memory; others may") {
  std::vector<cudnn::lifetime> all;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto bits = rg::random_bits(1, i);
    const std::size_t begin = bits[0] % 50;
    all.push_back({begin, begin + bits[1] % 10, 1 + bits[2] % 5000});
  }
  const std::size_t total = cudnn::plan_memory(all);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum += all[i].bytes;
    CHECK(all[i].offset % 256 == 0);
    CHECK(all[i].offset + all[i].bytes <= total);
    for (std::size_t k = 0; k < i; ++k) {
      const bool at_once = all[i].begin <= all[k].end && all[k].begin <= all[i].end;
      const bool apart = all[i].offset + all[i].bytes <= all[k].offset || all[k].offset + all[k].bytes <= all[i].offset;
      if (at_once && !apart) FAIL("overlap of " << i << " and " << k);
    }
  }
  CHECK(total < sum / 2);
}

TEST_CASE("ids are sorted by row, then by position") {
  const std::vector<std::int32_t> ids = {5, -1, 2, 5, 9, 2, 5};
  cudnn::row_order order(ids.size());
  std::vector<std::int32_t> rows(ids.size()), begin(ids.size() + 1), places(ids.size());
  REQUIRE(order.sort(ids.data(), ids.size(), rows.data(), begin.data(), places.data()) == 3);
  CHECK(std::vector(rows.begin(), rows.begin() + 3) == std::vector<std::int32_t>{2, 5, 9});
  CHECK(std::vector(begin.begin(), begin.begin() + 4) == std::vector<std::int32_t>{0, 2, 5, 6});
  CHECK(std::vector(places.begin(), places.begin() + 6) == std::vector<std::int32_t>{2, 5, 0, 3, 6, 4});
  CHECK(order.sort(ids.data() + 1, 1, rows.data(), begin.data(), places.data()) == 0);
  // The radix sort needs every digit.
  const std::vector<std::int32_t> far = {INT32_MAX, 1 << 22, 0, 1 << 11, INT32_MAX, 1 << 22};
  REQUIRE(order.sort(far.data(), far.size(), rows.data(), begin.data(), places.data()) == 4);
  CHECK(std::vector(rows.begin(), rows.begin() + 4) == std::vector<std::int32_t>{0, 1 << 11, 1 << 22, INT32_MAX});
  CHECK(std::vector(places.begin(), places.begin() + 6) == std::vector<std::int32_t>{2, 3, 1, 5, 0, 4});
}
