// SPDX-License-Identifier: Apache-2.0
//
// precision = "bf16": how far gradients and losses are from fp32's, that it learns as well, and who is refused.
#include "layers_cases.hpp"
#include "model_graph.hpp"
#include "precisions.hpp"

#include <regatta/ext/graph.h>

using namespace layers_cases;
using namespace model_graph;

namespace {

reference::execution_options half(std::uint64_t batch, std::uint32_t kernels = RG_KERNELS_FIXED) {
  return {.batch = batch, .kernels = kernels, .precision = RG_BF16, .emulate = true};
}

// The refusal where it is missing is tested with the program, which can be told to do without: see
// executor_choice_test.cpp.
const doctest::skip needs_avx512(!regatta::test::computes_bf16());

struct differences {
  double loss, gradients; // relative; of all gradients as one vector
};

// The same step in both precisions.
differences compare_precisions(const rg_graph& g, std::uint64_t batch, std::uint32_t kernels) {
  reference::executed exact(executor_plugin, g, {.batch = batch}), rounded(executor_plugin, g, half(batch, kernels));
  exact.start(1);
  rounded.start(1);
  const auto b = make_batch(g, batch, 3);
  const double expected = exact.step(b).loss_sum, got = rounded.step(b).loss_sum;
  std::vector<double> gradients, rounded_gradients;
  for (std::size_t t = 0; t < exact.tensors.size(); ++t) {
    if (exact.tensors[t].kind != RG_TENSOR_DENSE) continue;
    const auto one = exact.canonical(exact.gradients[t].data(), t),
               other = rounded.canonical(rounded.gradients[t].data(), t);
    gradients.insert(gradients.end(), one.begin(), one.end());
    rounded_gradients.insert(rounded_gradients.end(), other.begin(), other.end());
  }
  return {std::abs(got - expected) / expected, distance(rounded_gradients, gradients)};
}

} // namespace

// A number rounded to 8 bits is off by up to 2^-8, and a ReLU near zero lets a gradient through in one precision and
// not in the other; layers add this up. The yardstick for the bounds of resnet50 is PyTorch 1.13: gradients of the same
// narrow network under torch.autocast in bf16 lie 0.27 (batch 8) and 0.31 (batch 32) from those in fp32. Measured here:
// mlp 0.004, vgg16 0.19 (0.21 with oneDNN 3.7, which adds in another order), resnet50 0.30, se_resnet50 0.19, ctr 0.048
// (one flip among its 8 samples and 32 last units is worth as much), simnet_bow 0.004, transformer 0.040, bert 0.004.
TEST_CASE("gradients in bf16 are close to those in fp32" * needs_avx512) {
  const std::vector<std::int64_t> hidden = {48, 32};
  struct bound {
    const char *file, *id;
    std::vector<graph_of::setting> settings;
    double loss, gradients;
  };
  const bound bounds[] = {
      {"mlp.so", "mlp", {{"hidden", list(hidden)}, {"dropout", number(0)}}, 0.005, 0.01},
      {"vgg.so", "vgg16", {{"batch_norm", whole(0)}, {"dropout", number(0)}}, 0.01, 0.25},
      {"resnet.so", "resnet50", {{"input", text("cifar10")}, {"depth", whole(18)}, {"width", whole(16)}}, 0.02, 0.4},
      {"resnet.so",
       "se_resnet50",
       {{"input", text("cifar10")}, {"depth", whole(18)}, {"width", whole(16)}},
       0.02,
       0.25},
      {"ctr.so", "ctr", {{"rows", whole(101)}, {"hidden", list(hidden)}}, 0.005, 0.06},
      {"simnet.so", "simnet_bow", {{"vocabulary", whole(50)}, {"dim", whole(32)}, {"hidden", whole(32)}}, 0.005, 0.01},
      {"transformer.so",
       "transformer",
       {{"layers", whole(2)},
        {"hidden", whole(40)},
        {"heads", whole(4)},
        {"vocabulary", whole(30)},
        {"sequence", whole(9)}},
       0.005,
       0.05},
      {"bert.so",
       "bert",
       {{"layers", whole(2)},
        {"hidden", whole(40)},
        {"heads", whole(4)},
        {"vocabulary", whole(30)},
        {"positions", whole(9)},
        {"sequence", whole(9)},
        {"predictions", whole(3)}},
       0.005,
       0.01},
  };
  for (const bound& b : bounds)
    for (const std::uint32_t kernels : {RG_KERNELS_FIXED, RG_KERNELS_TIMED}) {
      const graph_of net(b.file, b.id, b.settings);
      CAPTURE(std::string(b.id));
      const differences d = compare_precisions(*net.graph, 8, kernels);
      CHECK(d.loss < b.loss);
      CHECK(d.gradients < b.gradients);
      CHECK(d.gradients > 1e-4); // it did compute in bf16
    }
}

TEST_CASE("every way to convolve in bf16 gives the same but for rounding" * needs_avx512) {
  for (const std::int64_t stride : {1, 2})
    for (const std::int64_t kernel : {1, 3})
      for (const std::int64_t size : {2, 9}) {
        CAPTURE(stride);
        CAPTURE(kernel);
        CAPTURE(size);
        rg::network net;
        const rg::value image = net.values("image", {16, size, size});
        const rg::value label = net.index("label", 4);
        rg::value x = rg::conv2d(image, "a", 32, {kernel, stride, kernel / 2});
        x = rg::conv2d(x, "b", 48, {kernel, 1, kernel / 2});
        rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "out", 4, {.gain = 0.1}), label);
        const rg_graph& g = *net.graph();
        reference::interpreter r(g);
        fill(r, g);
        const auto b = make_batch(g, 5, 1);
        r.forward(b);
        r.backward(b);
        for (const char* algorithm : {"direct", "matmul"}) {
          CAPTURE(std::string(algorithm));
          std::string chosen;
          for (const char* name : {"a", "b"})
            for (const char* d : {" forward: ", " data gradient: ", " weight gradient: "})
              chosen += std::string(name) + d + algorithm + "\n";
          reference::execution_options options = half(5, RG_KERNELS_TIMED);
          options.kernel_choices = chosen;
          reference::executed e(executor_plugin, g, options);
          CHECK(e.kernels().find("ref") == std::string::npos);
          copy(r, g, e);
          for (int accumulated = 1; accumulated <= 2; ++accumulated) {
            e.step(b, accumulated == 1 ? RG_BATCH_LAST : RG_BATCH_LAST | RG_BATCH_ACCUMULATE);
            for (const char* name : {"a.weight", "a.bias", "b.weight", "b.bias"}) {
              CAPTURE(std::string(name));
              const std::size_t t = e.index_of(name);
              std::size_t number = 0;
              while (std::string(g.tensors[number].name) != name) ++number;
              auto expected = r.gradients[number];
              for (double& v : expected) v *= accumulated;
              CHECK(distance(e.canonical(e.gradients[t].data(), t), expected) < 0.015);
            }
          }
        }
      }
}

TEST_CASE("a step in bf16 gives the same numbers every time" * needs_avx512) {
  const graph_of net("resnet.so", "resnet50", {{"input", text("cifar10")}, {"depth", whole(18)}, {"width", whole(16)}});
  reference::executed e(executor_plugin, *net.graph, half(4));
  e.start(1);
  const auto b = make_batch(*net.graph, 4, 3);
  const double first = e.step(b).loss_sum;
  const std::size_t t = e.index_of("stem.weight");
  const auto gradients = e.canonical(e.gradients[t].data(), t);
  CHECK(e.step(b).loss_sum == first);
  CHECK(e.canonical(e.gradients[t].data(), t) == gradients);
}

TEST_CASE("a NaN stays a NaN in bf16" * needs_avx512) {
  rg::network net;
  const rg::value image = net.values("image", {16, 4, 4});
  const rg::value label = net.index("label", 4);
  rg::value x = rg::batch_norm(rg::conv2d(image, "a", 16, {.padding = 1}), "n");
  rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "out", 4), label);
  reference::executed e(executor_plugin, *net.graph(), half(2));
  e.start(1);
  auto b = make_batch(*net.graph(), 2, 3);
  b.inputs[0][0] = std::nan("");
  CHECK(std::isnan(e.step(b).loss_sum));
}
