// SPDX-License-Identifier: Apache-2.0
//
// Tests of executors: each op against the reference in fp64, initial values, and the refusal of ops and attributes that
// it does not know.
#include "check/executor/op_cases.hpp"
#include "check/executor/op_comparison.hpp"
#include "check/harness/progress.hpp"

#include <set>
#include <string_view>

#include <fmt/format.h>
#include <regatta/ext/graph.h>

namespace regatta::conformance {
namespace {

// Returns the other ops of the graph, "conv2d, dense": if they are wrong, so is this graph.
std::string other_ops(const rg_graph& graph, std::string_view tested) {
  std::set<std::string> ops;
  for (std::uint32_t k = graph.input_count; k < graph.node_count; ++k) ops.insert(graph.nodes[k].op);
  ops.erase(std::string(tested));
  return fmt::format("{}", fmt::join(ops, ", "));
}

// Tests all graphs of an op. A graph that the executor does not take is left out, with a remark; if it takes none, the
// test is skipped.
void check_op(const subject& s, const op_suite& suite) {
  std::size_t compiled = 0, refused = 0;
  std::string refusal; // the first
  for (const op_case& c : suite.cases)
    for (const std::uint64_t batch : c.batches) {
      rg::network net;
      c.build(net);
      const rg_graph& graph = *net.graph();
      const compilation tried = try_compile(s, graph, batch);
      report_progress();
      if (tried.status == RG_E_UNSUPPORTED) {
        if (!refused++) refusal = fmt::format("{}: {}", c.name, tried.text);
        continue;
      }
      ++compiled;
      try {
        compare_with_reference(s, graph, batch);
      } catch (const failed& e) {
        throw failed(fmt::format("{}, batch {}: {} (other ops of the graph: {})", c.name, batch, e.what(),
                                 other_ops(graph, suite.op)));
      }
    }
  if (!compiled) throw skipped(fmt::format("it compiles no graph with op {} ({})", suite.op, refusal));
  if (refused)
    remark(fmt::format("{} of {} graphs were not compiled, the first is {}", refused, refused + compiled, refusal));
}

// ------------------------------------------------------------------------------------------------------- refusals ---

// A copy of a graph, whose attributes and ops can be changed. The graph must outlive it.
struct changed_graph {
  explicit changed_graph(const rg_graph& g)
      : nodes(g.nodes, g.nodes + g.node_count), attributes(g.node_count), graph(g) {
    for (std::size_t k = 0; k < nodes.size(); ++k)
      attributes[k].assign(nodes[k].attrs, nodes[k].attrs + nodes[k].attr_count);
  }
  const rg_graph& get() {
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      nodes[k].attrs = attributes[k].data();
      nodes[k].attr_count = static_cast<std::uint32_t>(attributes[k].size());
    }
    graph.nodes = nodes.data();
    return graph;
  }
  std::vector<rg_node> nodes;
  std::vector<std::vector<rg_attr>> attributes;
  rg_graph graph;
};

// Requires that the executor refuses the graph, and with a text that has `name`.
void expect_refused(const subject& s, const rg_graph& graph, const std::string& what, std::string_view name) {
  const compilation c = try_compile(s, graph, 2);
  report_progress();
  require(c.status == RG_E_UNSUPPORTED,
          c.status == RG_OK
              ? fmt::format("it compiles a graph with {}; expected RG_E_UNSUPPORTED", what)
              : fmt::format("compile() returns status {}, \"{}\", for a graph with {}; expected RG_E_UNSUPPORTED, with "
                            "which the engine asks the next executor",
                            c.status, c.text, what));
  require(c.text.find(name) != std::string::npos,
          fmt::format("it refuses a graph with {} and says \"{}\"; expected a text that names {}", what, c.text, name));
}

// Calls f(suite, node of its op, graph) for the first graph of each op that the executor compiles. Throws skipped if it
// compiles none.
template <class F> void for_each_op(const subject& s, const F& f) {
  bool any = false;
  std::string refusal;
  for (const op_suite& suite : op_suites()) {
    const op_case& c = suite.cases.front();
    rg::network net;
    c.build(net);
    const rg_graph& graph = *net.graph();
    const compilation tried = try_compile(s, graph, c.batches.back());
    if (tried.status != RG_OK) {
      refusal = tried.text;
      continue;
    }
    any = true;
    std::size_t k = graph.node_count - 1;
    while (k > 0 && std::string_view(graph.nodes[k].op) != suite.op) --k;
    f(suite, k, graph);
  }
  if (!any) throw skipped("it compiles no graph of this suite: " + refusal);
}

void initial_values(const subject& s) {
  for_each_op(s, [&](const op_suite& suite, std::size_t, const rg_graph& graph) {
    compare_initial_values(s, graph, suite.cases.front().batches.back());
    report_progress();
  });
}

void unknown_op(const subject& s) {
  for_each_op(s, [&](const op_suite& suite, std::size_t k, const rg_graph& graph) {
    changed_graph changed(graph);
    changed.nodes[k].op = "regatta_check_op";
    expect_refused(s, changed.get(), fmt::format("the unknown op regatta_check_op in place of {}", suite.op),
                   "regatta_check_op");
  });
}

void unknown_attribute(const subject& s) {
  for_each_op(s, [&](const op_suite& suite, std::size_t k, const rg_graph& graph) {
    changed_graph more(graph);
    auto a = rg::make_versioned<rg_attr>();
    a.name = "regatta_check_attribute";
    a.number = 1;
    more.attributes[k].push_back(a);
    expect_refused(s, more.get(), fmt::format("the unknown attribute {} of op {}", a.name, suite.op), a.name);
    for (std::size_t i = 0; i < graph.nodes[k].attr_count; ++i) {
      const char* const name = graph.nodes[k].attrs[i].name;
      const double two[] = {1, 2};
      changed_graph listed(graph), written(graph);
      listed.attributes[k][i].numbers = two;
      listed.attributes[k][i].count = 2;
      expect_refused(s, listed.get(), fmt::format("a list as attribute {} of op {}", name, suite.op), name);
      written.attributes[k][i].text = "regatta_check";
      expect_refused(s, written.get(), fmt::format("a text as attribute {} of op {}", name, suite.op), name);
    }
  });
}

} // namespace

std::vector<op_suite> op_suites() {
  std::vector<op_suite> all = layer_suites();
  for (auto& more : {sequence_suites(), sparse_suites()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<test> executor_tests() {
  std::vector<test> all = {
      {"initial-values", "init() gives the tensors of a graph the values that ext/graph.h says", initial_values},
      {"unknown-op", "a graph with an op that it does not have is refused with RG_E_UNSUPPORTED and the op's name",
       unknown_op},
      {"unknown-attribute",
       "an attribute that it does not know, or that is a list or a text in place of a number, is refused with "
       "RG_E_UNSUPPORTED and the attribute's name",
       unknown_attribute},
  };
  for (const op_suite& suite : op_suites())
    all.push_back({suite.op, suite.expected, [suite](const subject& s) { check_op(s, suite); }});
  return all;
}

} // namespace regatta::conformance
