// SPDX-License-Identifier: Apache-2.0
#include "check/executor/op_cases.hpp"

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

using rg::network;
using rg::value;

value as_vector(value x) {
  return x.dims().size() == 1 ? x : rg::flatten(x);
}

// Classifies body(x) of an image of 2 channels and this size, or of a vector.
template <class F> op_case classified(std::string name, const rg::shape& input, F body) {
  return {std::move(name), [=](network& net) {
            const value x = net.values("x", input), label = net.index("label", 5);
            rg::softmax_cross_entropy(rg::dense(as_vector(body(x)), "classes", 5, {.gain = 1}), label);
          }};
}

// body() gets an image of this shape whose gradient shows in the weights of a layer before it.
template <class F> op_case of_image(std::string name, const rg::shape& image, F body) {
  return classified(std::move(name), {2, image[1], image[2]},
                    [=](value x) { return body(rg::conv2d(x, "before", image[0], {.kernel = 1})); });
}
template <class F> op_case of_vector(std::string name, std::int64_t length, F body) {
  return classified(std::move(name), {6}, [=](value x) { return body(rg::dense(x, "before", length)); });
}

// An op without attributes and weights, on images and vectors.
template <class F> std::vector<op_case> elementwise(F op) {
  return {of_image("an image of 1 channel, 1x1", {1, 1, 1}, op), of_image("an image of 17x5x3", {17, 5, 3}, op),
          of_image("an image of 16x4x4", {16, 4, 4}, op), of_vector("a vector of 1", 1, op),
          of_vector("a vector of 19", 19, op)};
}

struct window {
  std::int64_t channels, height, width, kernel, stride, padding;
};

// Odd sizes, kernels as large as the image and larger than it, strides beyond the kernel, much padding.
constexpr window windows[] = {{1, 5, 5, 3, 1, 0},   {3, 7, 7, 3, 1, 1}, {16, 8, 8, 3, 1, 1}, {17, 9, 7, 3, 2, 1},
                              {5, 4, 4, 4, 1, 0},   {5, 3, 3, 5, 1, 2}, {4, 9, 9, 2, 3, 0},  {4, 9, 7, 1, 2, 0},
                              {2, 11, 11, 7, 2, 3}, {3, 2, 2, 3, 1, 2}, {3, 6, 6, 2, 2, 0},  {3, 5, 7, 2, 2, 0}};

std::string name_of(const window& w) {
  return fmt::format("an image of {}x{}x{}, kernel {}, stride {}, padding {}", w.channels, w.height, w.width, w.kernel,
                     w.stride, w.padding);
}

std::vector<op_case> convolutions() {
  std::vector<op_case> all;
  for (const window& w : windows)
    for (const std::int64_t outputs : {1, 16, 19}) {
      const rg::conv2d_options options{
          .kernel = w.kernel, .stride = w.stride, .padding = w.padding, .bias = outputs != 16};
      const auto convolve = [=](value x) { return rg::conv2d(x, "tested", outputs, options); };
      const std::string name = fmt::format("{}, {} output channels", name_of(w), outputs);
      all.push_back(of_image(name, {w.channels, w.height, w.width}, convolve));
      all.push_back(classified(name + ", of the network's input", {w.channels, w.height, w.width}, convolve));
    }
  return all;
}

std::vector<op_case> pools(value (*pool)(value, const rg::pool_options&)) {
  std::vector<op_case> all;
  for (const window& w : windows)
    all.push_back(of_image(name_of(w), {w.channels, w.height, w.width}, [=](value x) {
      return pool(x, {w.kernel, w.stride, w.padding});
    }));
  return all;
}

std::vector<op_case> dense_layers() {
  std::vector<op_case> all;
  for (const auto& [inputs, outputs] : {std::pair(1, 1), {1, 19}, {7, 16}, {16, 32}, {33, 1}, {33, 17}})
    for (const bool bias : {true, false})
      all.push_back(of_vector(fmt::format("{} to {}{}", inputs, outputs, bias ? "" : " without bias"), inputs,
                              [=, n = outputs](value x) { return rg::dense(x, "tested", n, {.bias = bias}); }));
  for (const bool bias : {true, false})
    all.push_back(
        of_vector(fmt::format("two layers that share weights{}", bias ? "" : " without bias"), 7, [=](value x) {
          const auto shared = rg::dense_weights(x.net(), "tested", 7, 7, {.bias = bias});
          return rg::dense(rg::dense(x, "first", shared), "second", shared);
        }));
  for (const std::int64_t positions : {1, 7})
    all.push_back(classified(fmt::format("{} positions of 6 to 5", positions), {positions, 6},
                             [](value x) { return rg::dense(rg::dense(x, "before", 6), "tested", 5); }));
  return all;
}

// With `sync` sync_batch_norm, of one worker.
std::vector<op_case> batch_norms(bool sync) {
  std::vector<op_case> all;
  for (const auto& [epsilon, momentum] : {std::pair(1e-5, 0.9), {0.1, 0.5}, {1e-3, 0.0}}) {
    const rg::batch_norm_options options{.epsilon = epsilon, .momentum = momentum, .sync = sync};
    const auto norm = [=](value x) { return rg::batch_norm(x, "tested", options); };
    const std::string with = fmt::format(", epsilon {}, momentum {}", epsilon, momentum);
    all.push_back(of_image("1 channel, 5x3" + with, {1, 5, 3}, norm));
    all.push_back(of_image("17 channels, 3x3" + with, {17, 3, 3}, norm));
    all.push_back(of_image("16 channels, 4x4" + with, {16, 4, 4}, norm));
    // One sample has no variance.
    for (const std::int64_t length : {1, 19}) {
      all.push_back(of_vector(fmt::format("a vector of {}{}", length, with), length, norm));
      all.back().batches = {5};
    }
  }
  return all;
}

std::vector<op_case> dropouts() {
  std::vector<op_case> all;
  for (const double p : {0.1, 0.5, 0.9})
    for (op_case& c : elementwise([=](value x) { return rg::dropout(x, p); })) {
      c.name += fmt::format(", p {}", p);
      all.push_back(std::move(c));
    }
  return all;
}

std::vector<op_case> global_averages() {
  std::vector<op_case> all;
  for (const auto& [channels, height, width] : {std::tuple(1, 1, 1), {1, 5, 7}, {17, 7, 7}, {16, 4, 4}})
    all.push_back(of_image(fmt::format("an image of {}x{}x{}", channels, height, width), {channels, height, width},
                           [](value x) { return rg::global_avg_pool(x); }));
  return all;
}

std::vector<op_case> channel_scales() {
  std::vector<op_case> all;
  for (const auto& [channels, height, width] : {std::tuple(1, 1, 1), {1, 5, 7}, {17, 3, 3}, {16, 4, 4}})
    all.push_back({fmt::format("an image of {}x{}x{}", channels, height, width),
                   [c = channels, h = height, w = width](network& net) {
                     const value image = net.values("image", {2, h, w}), vector = net.values("vector", {6}),
                                 label = net.index("label", 5);
                     const value x = rg::conv2d(image, "before", c, {.kernel = 1});
                     const value scaled = rg::scale_channels(x, rg::dense(vector, "factors", c));
                     rg::softmax_cross_entropy(rg::dense(rg::flatten(scaled), "classes", 5), label);
                   }});
  return all;
}

std::vector<op_case> additions() {
  auto all = elementwise([](value x) { return rg::add(x, x); });
  all.push_back(of_image("two layers", {17, 5, 3},
                         [](value x) { return rg::add(x, rg::conv2d(x, "other", 17, {.kernel = 3, .padding = 1})); }));
  all.push_back(of_vector("two vectors", 19, [](value x) { return rg::add(rg::dense(x, "other", 19), x); }));
  return all;
}

std::vector<op_case> cross_entropies() {
  std::vector<op_case> all;
  for (const std::int64_t classes : {2, 3, 16, 19})
    all.push_back({fmt::format("{} classes", classes), [=](network& net) {
                     const value x = net.values("x", {6}), label = net.index("label", classes);
                     rg::softmax_cross_entropy(rg::dense(x, "classes", classes), label);
                   }});
  for (const double mean : {1000.0, -1000.0})
    all.push_back({fmt::format("logits near {}", mean), [=](network& net) {
                     const value x = net.values("x", {6}), label = net.index("label", 19);
                     rg::softmax_cross_entropy(large_logits(x, mean, 19), label);
                   }});
  return all;
}

std::vector<op_case> loss_sums() {
  return {{"of one loss",
           [](network& net) {
             const value x = net.values("x", {6}), label = net.index("label", 5);
             rg::sum_of_losses({rg::softmax_cross_entropy(rg::dense(x, "classes", 5), label)});
           }},
          {"of two losses", [](network& net) {
             const value x = net.values("x", {6}), a = net.index("a", 5), b = net.index("b", 3);
             const value shared = rg::dense(x, "shared", 7);
             const value first = rg::softmax_cross_entropy(rg::dense(shared, "first", 5), a);
             rg::sum_of_losses({first, rg::softmax_cross_entropy(rg::dense(shared, "second", 3), b)});
           }}};
}

} // namespace

std::vector<op_suite> layer_suites() {
  return {
      {"softmax_cross_entropy", "loss and gradients as in fp64: 2 to 19 classes", cross_entropies()},
      {"dense", "loss and gradients as in fp64: 1 to 33 inputs and outputs, with and without bias", dense_layers()},
      {"flatten",
       "loss and gradients as in fp64: images of 1 to 17 channels",
       {classified("1x5x7, of the network's input", {1, 5, 7}, [](value x) { return rg::flatten(x); }),
        of_image("1x5x7", {1, 5, 7}, [](value x) { return rg::flatten(x); }),
        of_image("17x3x3", {17, 3, 3}, [](value x) { return rg::flatten(x); }),
        of_image("16x1x1", {16, 1, 1}, [](value x) { return rg::flatten(x); })}},
      {"conv2d", "loss and gradients as in fp64: odd sizes, kernels as large as the image, stride > kernel, padding",
       convolutions()},
      {"batch_norm", "loss, gradients and states as in fp64: 1 to 19 channels, images and vectors, other epsilons",
       batch_norms(false)},
      {"sync_batch_norm", "the same of a worker alone, which is batch_norm", batch_norms(true)},
      {"relu", "loss and gradients as in fp64: images and vectors", elementwise([](value x) { return rg::relu(x); })},
      {"dropout", "drops the elements that regatta/layers.hpp says; loss and gradients as in fp64", dropouts()},
      {"max_pool", "loss and gradients as in fp64: odd sizes, kernels as large as the image, stride > kernel, padding",
       pools(rg::max_pool)},
      {"avg_pool", "loss and gradients as in fp64: padding does not count as an element", pools(rg::avg_pool)},
      {"global_avg_pool", "loss and gradients as in fp64: images from 1x1", global_averages()},
      {"sigmoid", "loss and gradients as in fp64: images and vectors",
       elementwise([](value x) { return rg::sigmoid(x); })},
      {"scale_channels", "loss and gradients as in fp64, of images and of factors", channel_scales()},
      {"add", "loss and gradients as in fp64: of two layers, and of one layer with itself", additions()},
      {"sum_of_losses", "loss and gradients as in fp64: of one loss and of two", loss_sums()},
  };
}

} // namespace regatta::conformance
