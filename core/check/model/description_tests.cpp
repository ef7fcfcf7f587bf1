// SPDX-License-Identifier: Apache-2.0
//
// Tests of what a model declares about a step: floating-point operations, tokens, and when its backward pass begins.
#include "check/model/model_under_test.hpp"
#include "check/model/operation_counts.hpp"

#include <string_view>

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

constexpr std::uint64_t batch_size = 4;

void flops(const subject& s) {
  const model_under_test m(s, batch_size);
  if (!m.executor()) throw skipped("it computes its own step, whose operations the suite cannot count");
  const double declared = m.info().flops_per_sample;
  if (declared == 0) throw skipped("rg_model_info.flops_per_sample is 0: unknown");
  const operation_counts counted = count_operations(m.graph());
  constexpr double factor = 1.25, an_element = 40;
  const double least = counted.products / factor, most = counted.products * factor + an_element * counted.elements;
  require(declared >= least,
          fmt::format("flops_per_sample is {:.4g}; expected at least {:.4g}: the convolutions, dense "
                      "layers and attention of the graph take {:.4g} in a forward and backward pass, "
                      "where a multiply-add is two operations",
                      declared, least, counted.products));
  if (!counted.unknown.empty())
    return remark(fmt::format("an upper bound is not tested: the suite cannot count op {}", counted.unknown));
  require(
      declared <= most,
      fmt::format("flops_per_sample is {:.4g}; expected at most {:.4g}: the convolutions, dense layers and attention "
                  "of the graph take {:.4g} in a forward and backward pass of one sample, and {:.4g} elements of "
                  "outputs up to {} each",
                  declared, most, counted.products, counted.elements, an_element));
}

void tokens(const subject& s) {
  const model_under_test m(s, batch_size);
  const std::uint32_t declared = m.info().tokens_input;
  if (!declared) throw skipped("it has no tokens (rg_model_info.tokens_input is 0)");
  if (!m.executor()) throw skipped("it computes its own step, whose use of the input the suite cannot see");
  const rg_graph& graph = m.graph();
  const std::uint32_t input = declared - 1;
  std::string uses;
  for (std::uint32_t k = graph.input_count; k < graph.node_count; ++k) {
    const rg_node n = rg::copy_versioned(rg::at_stride(graph.nodes, k));
    const std::string_view op = n.op;
    for (std::uint32_t i = 0; i < n.input_count; ++i) {
      if (n.inputs[i] != input) continue;
      // An op of another's own may take tokens anywhere.
      if (op.find("embedding") != op.npos || (op == "token_cross_entropy" && i == 1) || op.find('.') != op.npos) return;
      uses += fmt::format("{}{} of {}", uses.empty() ? "" : ", ", i, n.name);
    }
  }
  throw failed(fmt::format("tokens_input is {}, 1 + the index of {}; expected the input of an embedding, or the labels "
                           "of token_cross_entropy, whose values are tokens with 0 as padding. The graph uses this one "
                           "as {}",
                           declared, rg::at_stride(graph.inputs, input).name,
                           uses.empty() ? "nothing" : "input " + uses));
}

void backward(const subject& s) {
  model_under_test m(s, batch_size);
  const samples x = m.start();
  std::uint64_t calls = 0, early = 0;
  m.step(x, x.count, RG_BATCH_LAST,
         {.need = {}, .ready = [&](std::uint32_t) { early += calls == 0; }, .backward = [&] { ++calls; }});
  if (calls == 0)
    return remark("step() never calls rg_hooks.backward(): a run counts the whole step as backward pass, and weights "
                  "that arrive late are waited for all at once");
  require(calls == 1, fmt::format("step() calls rg_hooks.backward() {} times; expected once, when the forward pass has "
                                  "ended",
                                  calls));
  require(early == 0,
          fmt::format("step() calls rg_hooks.ready() {} times before rg_hooks.backward(); expected the end of "
                      "the forward pass before the first gradient is final",
                      early));
}

} // namespace

std::vector<test> description_tests() {
  return {
      {"flops", "flops_per_sample is what the graph's ops count, to 25 % and 40 operations for an output's element",
       flops},
      {"tokens", "tokens_input is an input of tokens: of an embedding, or the labels of token_cross_entropy", tokens},
      {"backward", "a step calls rg_hooks.backward() once, before the first ready()", backward},
  };
}

} // namespace regatta::conformance
