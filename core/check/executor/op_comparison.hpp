// SPDX-License-Identifier: Apache-2.0
//
// Compiles a graph with the executor under test, and compares a step of it with the reference in fp64.
#pragma once

#include "check/harness/suite.hpp"

#include <cstdint>
#include <string>

#include <regatta/ext/graph.h>

namespace regatta::conformance {

// How rg_executor.compile() ended.
struct compilation {
  rg_status status;
  std::string text; // the reason that the executor passed to rg_host.fail(); empty if it passed none
};

// Compiles the graph for training in fp32 with s.tested, the executor under test, and destroys the model. [main]
compilation try_compile(const subject& s, const rg_graph& graph, std::uint64_t batch);
// Compiles the graph for training in fp32 with `executor`, whose parameters get these values by name (others keep
// their defaults), and destroys the model. [main]
compilation try_compile(const component& executor, const std::map<std::string, nlohmann::json>& parameters,
                        const rg_graph& graph, std::uint64_t batch);

// Computes one step with the executor s.tested and with the reference, from the same random weights and samples. The
// reference computes `graph`; the executor compiles `same`, a copy of the network in other structs (graph_changes.hpp).
// Throws failed if a call fails, if the loss L differs by more than 1e-3 * (0.01 + |L|), or if the L2 norm of the
// difference of a gradient or state exceeds 1e-3 of its own L2 norm; that of a gradient counts as at least 0.01 of the
// largest one. Throws skipped if the executor does not compile it. [main]
void compare_with_reference(const subject& s, const rg_graph& graph, const rg_graph& same, std::uint64_t batch);
inline void compare_with_reference(const subject& s, const rg_graph& graph, std::uint64_t batch) {
  compare_with_reference(s, graph, graph, batch);
}

// Compares the initial values that init() of the compiled graph writes with rg::initial_values(), for each tensor but
// sparse tables. Throws failed if an element e differs by more than 1e-5 * (|e| + 0.001), room for the last bits of C
// libraries' log and cos; skipped if the executor does not compile the graph. [main]
void compare_initial_values(const subject& s, const rg_graph& graph, std::uint64_t batch);

// Compares describe() of the compiled graph with the graph: number of tensors; kind, decay, lr_scale, compressible and
// shape of each; unit and tokens_input. Does not compare the inputs. Throws failed if they differ; skipped if the
// executor does not compile the graph. [main]
void compare_description(const subject& s, const rg_graph& graph, std::uint64_t batch);

// Evaluates the graph, whose last node is softmax_cross_entropy, and compares the metric "top1" with the share of
// samples in which the label has the largest logit by the reference. Throws failed if the metric has another name or
// value; skipped if the executor does not compile the graph or computes no metric. [main]
void compare_metric(const subject& s, const rg_graph& graph, std::uint64_t batch);

} // namespace regatta::conformance
