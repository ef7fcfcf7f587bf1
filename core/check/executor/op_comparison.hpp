// SPDX-License-Identifier: Apache-2.0
//
// Compiles a graph with the executor under test, and compares a step of it with the reference in fp64.
#pragma once

#include "check/harness/suite.hpp"

#include <cstdint>
#include <string>

#include <regatta/ext/graph.h>

namespace regatta::conformance {

// The answer of rg_executor.compile().
struct compilation {
  rg_status status;
  std::string text; // of rg_host.fail(); empty if there was none
};

// Compiles the graph for training in fp32 with the executor s.tested, and destroys the model. [main]
compilation try_compile(const subject& s, const rg_graph& graph, std::uint64_t batch);
// The same with another executor and these parameters of it.
compilation try_compile(const component& executor, const std::map<std::string, nlohmann::json>& parameters,
                        const rg_graph& graph, std::uint64_t batch);

// Computes one step of the graph with the executor s.tested and with the reference, from the same weights and samples.
// Throws failed if the loss, a gradient or a state differs, or if a call fails; skipped if the executor does not
// compile the graph. The reference gets `graph`; the executor gets `same`, the same network in other structs. [main]
void compare_with_reference(const subject& s, const rg_graph& graph, const rg_graph& same, std::uint64_t batch);
inline void compare_with_reference(const subject& s, const rg_graph& graph, std::uint64_t batch) {
  compare_with_reference(s, graph, graph, batch);
}

// Compares what init() of the compiled graph gives for each tensor but sparse tables with rg::initial_values(). Throws
// failed if an element differs by more than the last bits of a C library's log and cos; skipped if the executor does
// not compile the graph. [main]
void compare_initial_values(const subject& s, const rg_graph& graph, std::uint64_t batch);

// Compares describe() of the compiled graph with the graph: number of tensors; kind, decay, lr_scale, compressible and
// shape of each; unit and tokens_input. Does not compare the inputs. Throws failed if they differ; skipped if the
// executor does not compile the graph. [main]
void compare_description(const subject& s, const rg_graph& graph, std::uint64_t batch);

// Evaluates the graph, whose last node is softmax_cross_entropy, and compares the metric top1 with the part of the
// samples in which the reference finds the label's logit the largest. Throws failed if the metric has another name or
// value; skipped if the executor does not compile the graph or computes no metric. [main]
void compare_metric(const subject& s, const rg_graph& graph, std::uint64_t batch);

} // namespace regatta::conformance
