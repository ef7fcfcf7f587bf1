// SPDX-License-Identifier: Apache-2.0
//
// Every layer: the reference's gradients against finite differences, the executor's against the reference's.
#include "layers_cases.hpp"

#include <functional>

#include <regatta/ext/graph.h>

using namespace layers_cases;

namespace {

struct layer_case {
  const char* name;
  rg::shape image;
  std::int64_t classes;
  // What lies between the image and the dense layer before the loss.
  std::function<rg::value(rg::value)> body;
};

rg::value vector_of(rg::value x) {
  return x.dims().size() == 1 ? x : rg::flatten(x);
}

const std::vector<layer_case>& cases() {
  using rg::value;
  static const std::vector<layer_case> all = {
      {"dense", {7}, 5, [](value x) { return rg::dense(x, "d", 19); }},
      {"dense without bias", {16}, 3, [](value x) { return rg::dense(x, "d", 32, {.bias = false}); }},
      {"dense of one feature", {9}, 4, [](value x) { return rg::dense(rg::dense(x, "a", 1), "b", 19); }},
      {"dense relu dropout", {24}, 3, [](value x) { return rg::dropout(rg::relu(rg::dense(x, "d", 40)), 0.4); }},
      {"dense batch norm relu", {9}, 4, [](value x) { return rg::relu(rg::batch_norm(rg::dense(x, "d", 21), "n")); }},
      {"two hidden layers",
       {3, 4, 4},
       4,
       [](value x) {
         x = rg::relu(rg::dense(rg::flatten(x), "a", 33));
         return rg::dropout(rg::relu(rg::dense(x, "b", 20)), 0.25);
       }},
      {"conv 3x3 of an image", {3, 8, 8}, 4, [](value x) { return rg::conv2d(x, "c", 16, {.padding = 1}); }},
      {"conv 3x3 relu conv",
       {3, 8, 8},
       4,
       [](value x) {
         x = rg::relu(rg::conv2d(x, "a", 32, {.padding = 1}));
         return rg::relu(rg::conv2d(x, "b", 16, {.padding = 1}));
       }},
      {"conv stride 2",
       {3, 9, 9},
       4,
       [](value x) {
         x = rg::relu(rg::conv2d(x, "a", 16, {.padding = 1}));
         return rg::conv2d(x, "b", 32, {.stride = 2, .padding = 1});
       }},
      {"conv 7x7 stride 2",
       {3, 21, 21},
       4,
       [](value x) {
         return rg::conv2d(x, "c", 16, {7, 2, 3});
       }},
      {"conv 5x5, odd channels",
       {2, 9, 7},
       3,
       [](value x) {
         x = rg::relu(rg::conv2d(x, "a", 12, {5, 1, 2}));
         return rg::conv2d(x, "b", 20, {5, 1, 0});
       }},
      {"conv 1x1",
       {5, 6, 6},
       3,
       [](value x) {
         return rg::conv2d(rg::relu(rg::conv2d(x, "a", 32, {1, 1, 0})), "b", 16, {1, 2, 0});
       }},
      {"conv of many row-major channels",
       {32, 6, 6},
       3,
       [](value x) { return rg::conv2d(x, "c", 16, {.padding = 1}); }},
      {"conv on 2x2: mostly padding",
       {3, 2, 2},
       3,
       [](value x) {
         x = rg::relu(rg::conv2d(x, "a", 24, {.padding = 1}));
         return rg::conv2d(x, "b", 40, {.padding = 1});
       }},
      {"conv on 1x1: taps that meet nothing",
       {3, 2, 2},
       3,
       [](value x) {
         x = rg::max_pool(rg::conv2d(x, "a", 16, {.padding = 1}));
         return rg::conv2d(x, "b", 16, {.padding = 1});
       }},
      {"conv batch norm relu",
       {3, 8, 8},
       4,
       [](value x) {
         x = rg::relu(rg::batch_norm(rg::conv2d(x, "a", 16, {.padding = 1}), "n"));
         return rg::batch_norm(rg::conv2d(x, "b", 24, {.padding = 1, .bias = false}), "m", {.momentum = 0.5});
       }},
      {"conv batch norm relu dropout",
       {3, 8, 8},
       4,
       [](value x) {
         x = rg::dropout(rg::relu(rg::batch_norm(rg::conv2d(x, "a", 16, {.padding = 1}), "n")), 0.3);
         return rg::conv2d(x, "b", 16, {.padding = 1});
       }},
      {"conv batch norm relu pool",
       {3, 8, 8},
       4,
       [](value x) { return rg::max_pool(rg::relu(rg::batch_norm(rg::conv2d(x, "a", 40, {.padding = 1}), "n"))); }},
      {"conv relu pool", {3, 6, 6}, 4, [](value x) { return rg::max_pool(rg::relu(rg::conv2d(x, "a", 16))); }},
      {"pool alone", {3, 6, 6}, 4, [](value x) { return rg::max_pool(rg::conv2d(x, "a", 16, {.padding = 1})); }},
      {"max pool 3x3 stride 2",
       {3, 9, 9},
       4,
       [](value x) {
         return rg::max_pool(rg::conv2d(x, "a", 16, {.padding = 1}), {3, 2, 1});
       }},
      {"average pool, global",
       {3, 6, 6},
       4,
       [](value x) {
         return rg::avg_pool(rg::conv2d(x, "a", 20, {.padding = 1}), {6, 1, 0});
       }},
      {"average pool with padding",
       {3, 7, 7},
       4,
       [](value x) {
         return rg::avg_pool(rg::conv2d(x, "a", 16, {.padding = 1}), {3, 2, 1});
       }},
      {"dropout on 2x2",
       {3, 2, 2},
       4,
       [](value x) {
         return rg::dropout(rg::conv2d(x, "a", 24, {1, 1, 0}), 0.5);
       }},
      {"dropout of the input",
       {3, 4, 4},
       4,
       [](value x) { return rg::dense(rg::flatten(rg::dropout(x, 0.5)), "d", 8); }},
      {"dropout of a flat input", {3, 5, 5}, 4, [](value x) { return rg::dropout(rg::flatten(x), 0.5); }},
      {"batch norm of the input", {3, 4, 4}, 4, [](value x) { return rg::batch_norm(x, "n"); }},
      {"residual",
       {3, 6, 6},
       4,
       [](value x) {
         x = rg::relu(rg::conv2d(x, "a", 16, {.padding = 1}));
         value y = rg::batch_norm(rg::conv2d(x, "b", 16, {.padding = 1}), "n");
         return rg::relu(rg::add(y, x));
       }},
      {"global average pool", {3, 6, 5}, 4, [](value x) { return rg::global_avg_pool(rg::conv2d(x, "a", 20)); }},
      {"sigmoid", {9}, 4, [](value x) { return rg::sigmoid(rg::dense(x, "a", 21)); }},
      {"sigmoid of a map", {3, 5, 5}, 4, [](value x) { return rg::sigmoid(rg::conv2d(x, "a", 20)); }},
      {"scaled channels",
       {3, 6, 6},
       4,
       [](value x) {
         const value factors = rg::dense(rg::flatten(x), "f", 20);
         return rg::scale_channels(rg::conv2d(x, "a", 20), factors);
       }},
      {"scaled channels of an input",
       {20, 6, 6},
       4,
       [](value x) {
         const value factors = rg::dense(rg::flatten(x), "f", 20);
         return rg::scale_channels(x, factors);
       }},
      {"scaled channels of an image that is read later, too",
       {3, 6, 6},
       4,
       [](value x) {
         x = rg::conv2d(x, "a", 20);
         const value factors = rg::dense(rg::global_avg_pool(x), "f", 20);
         return rg::add(rg::scale_channels(x, factors), x);
       }},
      {"a gradient behind channels that fill no vector",
       {3, 6, 6},
       4,
       [](value x) {
         x = rg::relu(rg::batch_norm(rg::conv2d(x, "a", 20, {.bias = false}), "n"));
         return rg::dense(rg::global_avg_pool(rg::conv2d(x, "b", 20)), "d", 4);
       }},
      {"squeeze and excitation",
       {3, 6, 6},
       4,
       [](value x) {
         x = rg::batch_norm(rg::conv2d(x, "a", 32, {.bias = false}), "n", {.scale = 0.5});
         const value s = rg::relu(rg::dense(rg::global_avg_pool(x), "squeeze", 3));
         return rg::scale_channels(x, rg::sigmoid(rg::dense(s, "excite", 32)));
       }},
      {"residual with a shortcut made first",
       {3, 6, 6},
       4,
       [](value x) {
         const value shortcut = rg::batch_norm(rg::conv2d(x, "s", 20, {1, 2, 0, false}), "sn");
         const value y = rg::batch_norm(rg::conv2d(x, "a", 20, {3, 2, 1, false}), "an");
         return rg::relu(rg::add(y, shortcut));
       }},
      {"residual blocks in a row",
       {3, 6, 6},
       4,
       [](value x) {
         x = rg::relu(rg::conv2d(x, "stem", 20, {3, 1, 1, false}));
         for (const std::string name : {"a", "b"}) {
           value y = rg::relu(rg::batch_norm(rg::conv2d(x, name, 20, {3, 1, 1, false}), name + "n"));
           y = rg::batch_norm(rg::conv2d(y, name + "2", 20, {3, 1, 1, false}), name + "2n");
           x = rg::relu(rg::add(x, y));
         }
         return rg::add(x, rg::batch_norm(rg::conv2d(x, "c", 20, {1, 1, 0, false}), "cn"));
       }},
      {"three ways from one value",
       {3, 6, 6},
       4,
       [](value x) {
         x = rg::conv2d(x, "a", 16, {.padding = 1});
         value y = rg::relu(rg::conv2d(x, "b", 16, {.padding = 1}));
         return rg::add(rg::add(rg::relu(x), y), rg::conv2d(x, "c", 16, {1, 1, 0}));
       }},
      {"the same value twice",
       {10},
       4,
       [](value x) {
         x = rg::dense(x, "a", 16);
         return rg::add(x, x);
       }},
  };
  return all;
}

void build(const layer_case& c, rg::network& net) {
  const rg::value image = net.values("image", c.image);
  const rg::value label = net.index("label", c.classes);
  rg::softmax_cross_entropy(rg::dense(vector_of(c.body(image)), "out", c.classes), label);
}

} // namespace

TEST_CASE("the reference's gradients are the slopes of its loss") {
  for (const auto& c : cases()) {
    CAPTURE(std::string(c.name));
    rg::network net;
    build(c, net);
    check_slopes(*net.graph());
  }
}

TEST_CASE("the executor's layers compute what the reference does") {
  for (const auto* c : wanted(cases())) {
    CAPTURE(std::string(c->name));
    rg::network net;
    build(*c, net);
    compare(*net.graph(), {.batch = 5});
    compare(*net.graph(), {.batch = 4, .threads = 3});
    compare(*net.graph(), {.batch = 4, .kernels = RG_KERNELS_TIMED, .host_memory = true}, 3e-5);
    compare(*net.graph(), {.batch = 5, .row_major = true});
  }
}

// Large maps, where sums of floats would go astray: numbers far from zero, of one sign, their first one far from the
// rest.
TEST_CASE("batch norm's statistics and gradients over 224 x 224 are as exact as floats are") {
  const double more = looser;
  for (const bool pool : {false, true}) {
    CAPTURE(pool);
    rg::network net;
    const rg::value image = net.values("image", {2, 224, 224}), label = net.index("label", 3);
    rg::value x = rg::batch_norm(image, "n", {.momentum = 0});
    if (pool) x = rg::max_pool(rg::relu(x));
    rg::softmax_cross_entropy(rg::dense(rg::flatten(rg::avg_pool(x, {16, 16})), "out", 3), label);
    const rg_graph& g = *net.graph();
    const std::size_t samples = 3;
    reference::batch b = make_batch(g, samples, 5);
    for (double& v : b.inputs[0]) v = static_cast<float>(1.7 + 0.3 * v);
    for (std::size_t i = 0; i < b.inputs[0].size(); i += 224 * 224) b.inputs[0][i] = 3.0;
    reference::interpreter r(g);
    fill(r, g);
    reference::executed e(executor_plugin, g, {.batch = samples});
    copy(r, g, e);
    r.forward(b);
    r.backward(b);
    e.step(b);
    for (std::uint32_t t = 0; t < g.tensor_count; ++t) {
      CAPTURE(std::string(g.tensors[t].name));
      const std::size_t i = e.index_of(g.tensors[t].name);
      if (g.tensors[t].kind == RG_TENSOR_STATE) {
        const auto state = e.canonical(e.weights[i].data(), i);
        for (std::size_t c = 0; c < 2; ++c) CHECK(state[c] == doctest::Approx(r.tensors[t][c]).epsilon(5e-7 * more));
      } else if (g.tensors[t].ndim == 1) {
        CHECK(distance(e.canonical(e.gradients[i].data(), i), r.gradients[t]) < 2e-6 * more);
      }
    }
  }
}

TEST_CASE("a tied weight is ready where its last contribution falls") {
  rg::network net;
  const rg::value image = net.values("image", {16});
  const rg::value label = net.index("label", 16);
  const auto shared = net.weight("tied", {16, 16}, {.init = RG_INIT_NORMAL, .b = 0.3});
  rg::value x = net.node("dense", "first", {image}, {shared}, {}, {16});
  x = rg::dense(rg::relu(x), "middle", 16);
  x = net.node("dense", "last", {x}, {shared}, {}, {16});
  rg::softmax_cross_entropy(x, label);
  compare(*net.graph(), {.batch = 6});

  reference::executed e(executor_plugin, *net.graph(), {.batch = 2});
  REQUIRE(e.tensors.size() == 3);
  CHECK(std::string(e.tensors.back().name) == "tied");
  e.start(1);
  e.step(make_batch(*net.graph(), 2, 1));
  const std::vector<std::string> expected = {"need tied", "need middle.weight", "need middle.bias",
                                             "backward",  "ready middle.bias",  "ready tied"};
  CHECK(e.events == expected);
}

TEST_CASE("two convolutions may share a weight but not a bias, or a bias but not a weight") {
  for (const std::int64_t size : {2, 6}) // of 2 x 2, most of a 3x3 window is padding: other kernels run
    for (const bool same_weight : {true, false})
      for (const std::uint32_t kernels : {RG_KERNELS_FIXED, RG_KERNELS_TIMED}) {
        CAPTURE(size);
        CAPTURE(same_weight);
        CAPTURE(kernels);
        rg::network net;
        const rg::value image = net.values("image", {3, size, size}), label = net.index("label", 4);
        auto weight = [&](const char* name) {
          return net.weight(name, {16, 16, 3, 3}, {.init = RG_INIT_NORMAL, .b = 0.1});
        };
        auto bias = [&](const char* name) { return net.weight(name, {16}, {.init = RG_INIT_CONSTANT}); };
        const auto first_weight = weight("first.weight"), first_bias = bias("first.bias");
        const auto second_weight = same_weight ? first_weight : weight("second.weight");
        const auto second_bias = same_weight ? bias("second.bias") : first_bias;
        auto convolve = [&](rg::value x, const char* name, std::uint32_t w, std::uint32_t b) {
          return net.node("conv2d", name, {x}, {w, b}, {{"kernel", 3}, {"stride", 1}, {"padding", 1}},
                          {16, size, size});
        };
        rg::value x = rg::conv2d(image, "stem", 16, {.padding = 1});
        x = rg::relu(convolve(x, "first", first_weight, first_bias));
        x = convolve(x, "second", second_weight, second_bias);
        rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "out", 4), label);
        pair p(*net.graph(), {.batch = 5, .kernels = kernels});
        compare_step(p, 3e-5);
        compare_step(p, 3e-5); // a second step, before which all gradients hold those of the first
      }
}

TEST_CASE("two losses add up, and the metric is the first one's") {
  rg::network net;
  const rg::value image = net.values("image", {12}), a = net.index("a", 5), b = net.index("b", 3);
  const rg::value x = rg::relu(rg::dense(image, "shared", 16));
  const rg::value first = rg::softmax_cross_entropy(rg::dense(x, "first", 5), a);
  rg::sum_of_losses({first, rg::softmax_cross_entropy(rg::dense(x, "second", 3), b)});
  pair p(*net.graph(), {.batch = 6});
  compare_step(p);
  CHECK(p.executed.info.metric_sums == 6);
  CHECK(p.executed.info.count_kinds == 0);
  CHECK(p.executed.metric({3, 6, 0, 5, 6, 0}) == doctest::Approx(0.5));
}

TEST_CASE("an instance for initial values refuses steps and evaluations") {
  rg::network net;
  const rg::value image = net.values("image", {12}), label = net.index("label", 5);
  rg::softmax_cross_entropy(rg::dense(rg::relu(rg::dense(image, "a", 16)), "out", 5), label);
  reference::executed e(executor_plugin, *net.graph(), {.batch = 2, .purpose = RG_PURPOSE_INIT});
  const auto b = make_batch(*net.graph(), 2, 1);
  CHECK_THROWS_WITH_AS(e.step(b), "step: called before bind", std::runtime_error);
  CHECK_THROWS_WITH_AS(e.evaluate(b, 2), "evaluate: called before bind", std::runtime_error);
}

TEST_CASE("a graph that contradicts itself is refused with the layer's name") {
  auto refuse = [](const std::function<void(rg::network&)>& make, const std::string& what) {
    rg::network net;
    make(net);
    try {
      reference::executed e(executor_plugin, *net.graph(), {});
      FAIL("accepted: " << what);
    } catch (const std::runtime_error& e) {
      CHECK_MESSAGE(std::string(e.what()).find(what) != std::string::npos, std::string(e.what()));
    }
  };
  refuse([](rg::network&) {}, "softmax_cross_entropy");
  refuse(
      [](rg::network& net) {
        auto x = net.values("image", {4});
        auto y = net.index("label", 4);
        rg::softmax_cross_entropy(x, y);
        rg::softmax_cross_entropy(x, y);
      },
      "is a loss, but neither the last layer nor an input of sum_of_losses");
  refuse(
      [](rg::network& net) {
        auto x = net.values("image", {4});
        auto y = net.index("label", 4);
        rg::sum_of_losses({rg::softmax_cross_entropy(x, y), x});
      },
      "has an input that is not a loss");
  for (const char* op : {"flatten", "relu", "sigmoid", "softsign"})
    refuse(
        [op](rg::network& net) {
          auto x = net.values("image", {4});
          auto y = net.index("label", 4);
          x = net.node(op, "odd", {rg::sum_of_losses({rg::softmax_cross_entropy(x, y)})}, {}, {}, {1});
          rg::softmax_cross_entropy(x, y);
        },
        "layer odd (" + std::string(op) + "): "); // executors check shape and value in different orders
  refuse(
      [](rg::network& net) {
        auto x = net.values("image", {4});
        auto y = net.index("label", 4);
        x = net.node("swirl", "odd", {x}, {}, {}, {4});
        rg::softmax_cross_entropy(x, y);
      },
      "DNN executor has no op swirl");
  refuse(
      [](rg::network& net) {
        auto x = net.values("image", {3, 8, 8});
        auto y = net.index("label", 4);
        const auto w = net.weight("w", {16, 3, 3, 3}, {});
        x = net.node("conv2d", "odd", {x}, {w}, {{"kernel", 3}, {"stride", 1}, {"padding", 1}}, {16, 9, 8});
        rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "out", 4), y);
      },
      "layer odd (conv2d): its output's size does not");
  refuse(
      [](rg::network& net) {
        auto x = net.values("image", {3, 8, 8});
        auto y = net.index("label", 4);
        x = net.node("avg_pool", "odd", {x}, {}, {{"kernel", 2}, {"stride", 2}, {"padding", 0}}, {4, 4, 4});
        rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "out", 4), y);
      },
      "layer odd (avg_pool): must have as many output channels as input channels");
  refuse(
      [](rg::network& net) {
        auto x = net.values("image", {4});
        auto y = net.index("label", 4);
        x = net.node("relu", "odd", {x}, {net.weight("idle", {4}, {})}, {}, {4});
        rg::softmax_cross_entropy(x, y);
      },
      "tensor idle: no layer uses it");
  refuse(
      [](rg::network& net) {
        auto x = net.values("image", {4});
        auto y = net.index("label", 4);
        const auto w = net.weight("w", {5, 4}, {});
        x = net.node("dense", "odd", {x}, {w}, {}, {4});
        rg::softmax_cross_entropy(x, y);
      },
      "layer odd (dense): has a weight of the wrong kind or shape");
  refuse(
      [](rg::network& net) {
        auto x = net.values("image", {4});
        auto y = net.index("label", 4);
        x = net.node("dropout", "odd", {x}, {}, {{"p", 0.5}}, {4});
        rg::softmax_cross_entropy(x, y);
      },
      "attribute layer is missing");
}

TEST_CASE("layers that do not fit are refused while the network is built") {
  rg::network net;
  const rg::value x = net.values("image", {3, 4, 4});
  CHECK_THROWS_WITH_AS(rg::dense(x, "d", 3), "layer d: takes 1 dimensions, got 3", rg::error);
  CHECK_THROWS_AS(rg::conv2d(x, "c", 8, {.kernel = 7}), rg::error);
  CHECK_THROWS_AS(rg::dropout(x, 1.0), rg::error);
  CHECK_THROWS_AS(rg::add(x, rg::flatten(x)), rg::error);
  CHECK_THROWS_AS(net.values("late", {1}), rg::error);
}
