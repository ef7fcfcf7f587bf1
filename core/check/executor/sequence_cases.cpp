// SPDX-License-Identifier: Apache-2.0
#include "check/executor/op_cases.hpp"

#include <cmath>

#include <fmt/format.h>
#include <regatta/layers_sequence.hpp>

namespace regatta::conformance {
namespace {

using rg::network;
using rg::value;

constexpr std::int64_t vocabulary = 23;

// Predicts a token at each position of body(x, tokens); x is the embedding of `length` tokens.
template <class F> op_case predicted(std::string name, std::int64_t length, std::int64_t features, F body) {
  return {std::move(name), [=](network& net) {
            const value tokens = net.indices("tokens", {length}, vocabulary),
                        labels = net.indices("labels", {length}, vocabulary);
            const auto table = rg::embedding_table(net, "before", vocabulary, features);
            const value x = body(rg::embedding(tokens, "embedded", table), tokens);
            rg::token_cross_entropy(rg::dense(x, "logits", vocabulary, {.gain = 1}), labels);
          }};
}

// An op of sequences, of 1 to 19 features. Those of layers that normalise features begin at 2.
template <class F> std::vector<op_case> of_features(F op, std::int64_t least = 1) {
  std::vector<op_case> all;
  for (const std::int64_t features : {least, std::int64_t{16}, std::int64_t{19}})
    for (const std::int64_t length : {7, 16})
      all.push_back(predicted(fmt::format("{} positions of {} features", length, features), length, features,
                              [=](value x, value) { return op(x); }));
  return all;
}

std::vector<op_case> embeddings() {
  std::vector<op_case> all;
  for (const bool sinusoids : {false, true})
    for (const bool positions : {false, true})
      for (const std::int64_t features : {2, 16, 19})
        all.push_back(
            {fmt::format("{} features{}{}", features, sinusoids ? ", sinusoids" : "", positions ? ", positions" : ""),
             [=](network& net) {
               const value tokens = net.indices("tokens", {7}, vocabulary),
                           labels = net.indices("labels", {7}, vocabulary);
               const auto table = rg::embedding_table(net, "tested", vocabulary, features);
               rg::embedding_options o{.scale = sinusoids ? 2.5 : 1, .sinusoids = sinusoids};
               if (positions) o.positions = rg::embedding_table(net, "positions", 9, features);
               const value x = rg::embedding(tokens, "embedded", table, o);
               rg::token_cross_entropy(rg::dense(x, "logits", vocabulary, {.gain = 1}), labels);
             }});
  return all;
}

// A dense layer whose outputs are near `mean`.
value around(value x, const std::string& name, double mean) {
  rg::network& net = x.net();
  const std::int64_t features = x.dims().back();
  const auto weight = net.weight(name + ".weight", {features, features}, {.init = RG_INIT_NORMAL, .b = 0.1});
  return rg::dense(x, name, {weight, net.weight(name + ".bias", {features}, {.a = mean})});
}

std::vector<op_case> attentions() {
  std::vector<op_case> all;
  const auto attend = [](const rg::attention_options& o) {
    return [=](value x, value tokens) {
      return rg::attend(rg::dense(x, "query", x.dims()[1]), rg::dense(x, "key", x.dims()[1]),
                        rg::dense(x, "value", x.dims()[1]), tokens, "tested", o);
    };
  };
  for (const auto& [length, features, heads] : {std::tuple(7, 6, 1), {7, 6, 3}, {16, 32, 2}, {9, 3, 3}, {5, 40, 2}})
    for (const bool causal : {false, true})
      for (const double p : {0.0, 0.3})
        all.push_back(predicted(fmt::format("{} positions of {} features, {} heads{}, p {}", length, features, heads,
                                            causal ? ", causal" : "", p),
                                length, features, attend({.heads = heads, .causal = causal, .dropout = p})));
  // exp() of these overflows in fp64, or is 0: a softmax that does not subtract the largest is not finite, or 0.
  for (const double mean : {20.0, -20.0})
    all.push_back(
        predicted(fmt::format("logits around {:.0f}", mean * 20 * 6 / std::sqrt(6.0)), 7, 6, [=](value x, value words) {
          return rg::attend(around(x, "query", 20), around(x, "key", mean), rg::dense(x, "value", x.dims()[1]), words,
                            "tested", {.heads = 1});
        }));
  all.push_back({"7 queries, 5 keys", [](network& net) {
                   const value tokens = net.indices("tokens", {7}, vocabulary),
                               other = net.indices("other", {5}, vocabulary),
                               labels = net.indices("labels", {7}, vocabulary);
                   const auto table = rg::embedding_table(net, "before", vocabulary, 12);
                   const value x = rg::embedding(tokens, "x", table), y = rg::embedding(other, "y", table);
                   const value found = rg::attend(x, rg::dense(y, "key", 12), y, other, "tested", {.heads = 2});
                   rg::token_cross_entropy(rg::dense(found, "logits", vocabulary), labels);
                 }});
  return all;
}

std::vector<op_case> selections() {
  std::vector<op_case> all;
  for (const std::int64_t taken : {1, 5, 11}) // more than there are: some twice
    for (const std::int64_t features : {1, 19})
      all.push_back({fmt::format("{} of 7 positions of {} features", taken, features), [=](network& net) {
                       const value tokens = net.indices("tokens", {7}, vocabulary),
                                   chosen = net.indices("chosen", {taken}, 7), label = net.index("label", 5);
                       const auto table = rg::embedding_table(net, "before", vocabulary, features);
                       const value x = rg::select_positions(rg::embedding(tokens, "embedded", table), chosen);
                       rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "classes", 5), label);
                     }});
  return all;
}

std::vector<op_case> first_positions() {
  std::vector<op_case> all;
  for (const std::int64_t features : {1, 16, 19})
    all.push_back({fmt::format("of {} features", features), [=](network& net) {
                     const value tokens = net.indices("tokens", {7}, vocabulary), label = net.index("label", 5);
                     const auto table = rg::embedding_table(net, "before", vocabulary, features);
                     const value x = rg::first_position(rg::embedding(tokens, "embedded", table));
                     rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "classes", 5), label);
                   }});
  return all;
}

std::vector<op_case> token_losses() {
  std::vector<op_case> all;
  for (const double smoothing : {0.0, 0.1, 0.9})
    for (const auto& [length, words] : {std::pair(7, 3), {9, 16}, {16, 37}})
      all.push_back({fmt::format("{} positions, {} words, smoothing {}", length, words, smoothing),
                     [=, t = length, v = words](network& net) {
                       const value tokens = net.indices("tokens", {t}, v), labels = net.indices("labels", {t}, v);
                       const value x = rg::embedding(tokens, "x", rg::embedding_table(net, "before", v, 6));
                       rg::token_cross_entropy(rg::dense(x, "logits", v), labels,
                                               {.smoothing = smoothing, .accuracy = smoothing > 0});
                     }});
  for (const double mean : {1000.0, -1000.0})
    all.push_back({fmt::format("logits near {}", mean), [=](network& net) {
                     const value tokens = net.indices("tokens", {7}, 16), labels = net.indices("labels", {7}, 16);
                     const value x = rg::embedding(tokens, "x", rg::embedding_table(net, "before", 16, 6));
                     rg::token_cross_entropy(large_logits(x, mean, 16), labels);
                   }});
  for (const auto& [name, function] : {std::pair("a ReLU", &rg::relu), {"tanh", &rg::tanh}})
    all.push_back({fmt::format("logits that {} computes", name), [f = function](network& net) {
                     const value tokens = net.indices("tokens", {7}, 16), labels = net.indices("labels", {7}, 16);
                     const value x = rg::embedding(tokens, "x", rg::embedding_table(net, "before", 16, 6));
                     rg::token_cross_entropy(f(rg::dense(x, "logits", 16)), labels);
                   }});
  return all;
}

} // namespace

std::vector<op_suite> sequence_suites() {
  return {
      {"token_cross_entropy", "loss and gradients as in fp64: labels of 0 do not count, any smoothing", token_losses()},
      {"embedding", "loss and gradients as in fp64: scale, positions, sinusoids, 2 to 19 features", embeddings()},
      {"layer_norm", "loss and gradients as in fp64: 2 to 19 features",
       of_features([](value x) { return rg::layer_norm(x, "tested", {.epsilon = 1e-3}); }, 2)},
      {"gelu", "loss and gradients as in fp64, not the approximation by tanh",
       of_features([](value x) { return rg::gelu(x); })},
      {"tanh", "loss and gradients as in fp64", of_features([](value x) { return rg::tanh(x); })},
      {"attention", "loss and gradients as in fp64: 1 to 3 heads, causal, dropout, keys that are padding",
       attentions()},
      {"select_positions", "loss and gradients as in fp64: a position may be chosen more than once", selections()},
      {"first_position", "loss and gradients as in fp64: 1 to 19 features", first_positions()},
  };
}

} // namespace regatta::conformance
