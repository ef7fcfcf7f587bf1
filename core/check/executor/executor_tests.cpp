// SPDX-License-Identifier: Apache-2.0
//
// Tests of executors: each op against the reference in fp64, initial values, descriptions, and the refusal of ops and
// attributes that it does not know; of the latter also with the graph of a model.
#include "check/executor/graph_changes.hpp"
#include "check/executor/op_cases.hpp"
#include "check/executor/op_comparison.hpp"
#include "check/harness/progress.hpp"
#include "check/model/model_under_test.hpp"

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

// Returns NAME of the words "no op NAME", which rg_executor.compile() requires; "" if the text lacks them.
std::string_view missing_op(std::string_view text) {
  const auto at = text.rfind("no op ");
  return at == std::string_view::npos ? "" : text.substr(at + 6, text.find_first_of(" ,;:\"'", at + 6) - (at + 6));
}

// Tests all graphs of an op. A graph that the executor does not take is left out, with a remark; if it takes none, the
// test is skipped.
void check_op(const subject& s, const op_suite& suite) {
  std::size_t compiled = 0, refused = 0;
  std::string refusal, own_refusal; // the first; the first that names the op itself
  for (const op_case& c : suite.cases)
    for (const std::uint64_t batch : c.batches) {
      rg::network net;
      c.build(net);
      const rg_graph& graph = *net.graph();
      const compilation tried = try_compile(s, graph, batch);
      report_progress();
      if (tried.status == RG_E_UNSUPPORTED) {
        const std::string text = fmt::format("{}: {}", c.name, tried.text);
        if (!refused++) refusal = text;
        if (own_refusal.empty() && missing_op(tried.text) == suite.op) own_refusal = text;
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
  const std::string_view other = missing_op(refusal);
  if (!compiled && own_refusal.empty() && !other.empty())
    throw skipped(fmt::format("it compiles no graph with op {}: the suite's also have op {}, which it lacks ({})",
                              suite.op, other, refusal));
  if (!own_refusal.empty()) refusal = own_refusal;
  if (!compiled) throw skipped(fmt::format("it compiles no graph with op {} ({})", suite.op, refusal));
  if (refused)
    remark(fmt::format("{} of {} graphs were not compiled, the first is {}", refused, refused + compiled, refusal));
}

// ------------------------------------------------------------------------------------------------------- refusals ---

// An executor with the values of its parameters.
struct compiler {
  const component& executor;
  std::map<std::string, nlohmann::json> parameters;
};

// Requires that the executor refuses the graph, and with a text that has `name`.
void expect_refused(const compiler& c, const rg_graph& graph, const std::string& what, std::string_view name) {
  const compilation tried = try_compile(c.executor, c.parameters, graph, 2);
  report_progress();
  require(tried.status == RG_E_UNSUPPORTED,
          tried.status == RG_OK
              ? fmt::format("{} compiles a graph with {}; expected RG_E_UNSUPPORTED", c.executor.id, what)
              : fmt::format("compile() of {} returns status {}, \"{}\", for a graph with {}; expected "
                            "RG_E_UNSUPPORTED, with which the engine asks the next executor",
                            c.executor.id, tried.status, tried.text, what));
  require(tried.text.find(name) != std::string::npos,
          fmt::format("{} refuses a graph with {} and says \"{}\"; expected a text that has \"{}\"", c.executor.id,
                      what, tried.text, name));
}

// Requires that the executor refuses other attributes of node k than those of the graph, which it compiles.
void expect_attributes_refused(const compiler& c, const rg_graph& graph, std::size_t k) {
  changed_graph more(graph);
  const std::string op = more.nodes[k].op;
  auto a = rg::make_versioned<rg_attr>();
  a.name = "regatta_check_attribute";
  a.number = 1;
  more.attributes[k].push_back(a);
  expect_refused(c, more.get(), fmt::format("the unknown attribute {} of op {}", a.name, op), a.name);
  for (std::size_t i = 0; i + 1 < more.attributes[k].size(); ++i) {
    const rg_attr& own = more.attributes[k][i];
    const double two[] = {1, 2};
    changed_graph listed(graph), written(graph), plain(graph);
    listed.attributes[k][i].numbers = two;
    listed.attributes[k][i].count = 2;
    listed.attributes[k][i].text = nullptr;
    if (!own.numbers)
      expect_refused(c, listed.get(), fmt::format("a list as attribute {} of op {}", own.name, op), own.name);
    plain.attributes[k][i].numbers = nullptr;
    plain.attributes[k][i].text = nullptr;
    plain.attributes[k][i].count = 0;
    if (own.numbers || own.text)
      expect_refused(c, plain.get(), fmt::format("a number as attribute {} of op {}", own.name, op), own.name);
    written.attributes[k][i].text = "regatta_check";
    written.attributes[k][i].numbers = nullptr;
    written.attributes[k][i].count = 0;
    if (!own.text)
      expect_refused(c, written.get(), fmt::format("a text as attribute {} of op {}", own.name, op), own.name);
  }
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
    const std::uint64_t batch = suite.cases.front().batches.back();
    compare_initial_values(s, graph, batch);
    // The layers of this suite do not use each RG_INIT_*.
    for (const std::uint32_t init : {RG_INIT_UNIFORM, RG_INIT_NORMAL, RG_INIT_CONSTANT}) {
      changed_graph changed(graph);
      for (rg_tensor& t : changed.tensors)
        if (t.kind == RG_TENSOR_DENSE) t.init = init, t.init_a = -0.25, t.init_b = 0.75;
      compare_initial_values(s, changed.get(), batch);
    }
    report_progress();
  });
}

void descriptions(const subject& s) {
  for_each_op(s, [&](const op_suite& suite, std::size_t, const rg_graph& graph) {
    changed_graph changed(graph);
    float number = 0;
    for (rg_tensor& t : changed.tensors) {
      ++number; // each tensor has values of its own
      t.decay = number / 8;
      t.lr_scale = 1 + number / 4;
      t.compressible = !t.compressible;
    }
    compare_description(s, changed.get(), suite.cases.front().batches.back());
    report_progress();
  });
}

void longer_structs(const subject& s) {
  for_each_op(s, [&](const op_suite& suite, std::size_t, const rg_graph& graph) {
    const longer_graph longer(graph);
    try {
      compare_with_reference(s, graph, longer.get(), suite.cases.front().batches.back());
    } catch (const std::exception& e) {
      throw failed(
          fmt::format("a graph with op {} whose structs are longer, as of a later interface: {} (expected that "
                      "struct_size of the first is the distance of two: rg::at_stride())",
                      suite.op, e.what()));
    }
    report_progress();
  });
}

void metric(const subject& s) {
  constexpr std::uint64_t batch = 32;
  for (const std::int64_t classes : {3, 19}) {
    rg::network net;
    const rg::value x = net.values("x", {6}), label = net.index("label", classes);
    rg::softmax_cross_entropy(rg::dense(x, "classes", classes), label);
    compare_metric(s, *net.graph(), batch);
  }
}

void unknown_op(const subject& s) {
  for_each_op(s, [&](const op_suite& suite, std::size_t k, const rg_graph& graph) {
    changed_graph changed(graph);
    changed.nodes[k].op = "regatta_check_op";
    expect_refused({*s.tested, s.parameters}, changed.get(),
                   fmt::format("the unknown op regatta_check_op in place of {}", suite.op), "no op regatta_check_op");
  });
}

void unknown_attribute(const subject& s) {
  remark(
      fmt::format("ops of its own are tested by a model that has them: regatta check MODEL.so --plugin-path {}; their "
                  "formula by --reference",
                  s.file.string()));
  for_each_op(s, [&](const op_suite&, std::size_t k, const rg_graph& graph) {
    expect_attributes_refused({*s.tested, s.parameters}, graph, k);
  });
}

// Of the ops of a model's graph, some of which may be the executor's own.
void unknown_attribute_of_a_model(const subject& s) {
  const model_under_test m(s, 2);
  const rg_graph& graph = m.graph();
  std::set<std::string> seen;
  for (std::size_t k = graph.input_count; k < graph.node_count; ++k)
    if (seen.insert(rg::at_stride(graph.nodes, k).op).second) expect_attributes_refused({*m.executor(), {}}, graph, k);
}

} // namespace

std::vector<op_suite> op_suites() {
  std::vector<op_suite> all = layer_suites();
  for (auto& more : {sequence_suites(), sparse_suites()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<test> refusal_tests() {
  return {
      {"unknown-op",
       "a graph with an op that it does not have is refused with RG_E_UNSUPPORTED and the words \"no op NAME\"",
       unknown_op},
      {"unknown-attribute",
       "an attribute that it does not know, or that is a list or a text in place of a number, is refused with "
       "RG_E_UNSUPPORTED and the attribute's name",
       unknown_attribute},
  };
}

std::vector<test> graph_tests() {
  return {
      {"unknown-attribute",
       "its executor refuses an attribute of each op of the graph that it does not know, with RG_E_UNSUPPORTED",
       unknown_attribute_of_a_model},
  };
}

std::vector<test> executor_tests() {
  std::vector<test> all = {
      {"initial-values", "init() gives the tensors of a graph the values that ext/graph.h says", initial_values},
      {"description", "describe() repeats tensors, unit and tokens of the graph: decay, lr_scale, compressible",
       descriptions},
      {"longer-structs", "a graph in longer structs, as of a later interface, gives the same loss and gradients",
       longer_structs},
      {"metric", "top1 of softmax_cross_entropy is the part of samples whose label has the largest logit", metric},
  };
  for (const op_suite& suite : op_suites())
    all.push_back({suite.op, suite.expected, [suite](const subject& s) { check_op(s, suite); }});
  return all;
}

} // namespace regatta::conformance
