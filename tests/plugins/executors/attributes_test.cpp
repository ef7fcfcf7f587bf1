// SPDX-License-Identifier: Apache-2.0
//
// Executors and the reference refuse an attribute that they do not know, and read every attribute that they know.
#include "layers_cases.hpp"

#include <attributes.hpp>

#include <regatta/ext/graph.h>
#include <regatta/layers_sequence.hpp>
#include <regatta/layers_sparse.hpp>

#include <filesystem>
#include <map>
#include <set>

using namespace layers_cases;

namespace {

// A copy of a graph, whose attributes can be changed. The graph must outlive it.
struct changed_graph {
  explicit changed_graph(const rg_graph& g)
      : nodes(g.nodes, g.nodes + g.node_count), attributes(g.node_count), graph(g) {
    for (std::size_t k = 0; k < nodes.size(); ++k)
      attributes[k].assign(nodes[k].attrs, nodes[k].attrs + nodes[k].attr_count);
  }
  // Returns the graph with the attributes as they are now.
  const rg_graph& get() {
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      nodes[k].attrs = attributes[k].data();
      nodes[k].attr_count = static_cast<std::uint32_t>(attributes[k].size());
    }
    graph.nodes = nodes.data();
    return graph;
  }
  std::size_t node_of(const std::string& op) const {
    for (std::size_t k = 0; k < nodes.size(); ++k)
      if (nodes[k].op == op) return k;
    FAIL("no node with op " << op);
    return 0;
  }
  std::vector<rg_node> nodes;
  std::vector<std::vector<rg_attr>> attributes;
  rg_graph graph;
};

rg_attr number(const char* name, double value) {
  auto a = rg::make_versioned<rg_attr>();
  a.name = name;
  a.number = value;
  return a;
}

// Returns what the executor says against the graph, and checks its status; empty if it compiles.
std::string refusal_of(const rg_graph& g, rg_status expected) {
  const auto& component =
      reference::load_component(executor_plugin, RG_KIND_EXECUTOR, std::filesystem::path(executor_plugin).stem());
  const auto* executor = static_cast<const rg_executor*>(component.functions);
  std::string text;
  auto host = rg::make_versioned<rg_host>();
  host.abi_major = RG_ABI_MAJOR;
  host.abi_minor = RG_ABI_MINOR;
  host.context = &text;
  host.log = [](void*, std::int32_t, const char*) {};
  host.fail = [](void* context, rg_status status, const char* what) {
    *static_cast<std::string*>(context) = what;
    return status;
  };
  host.extension = [](void*, const char*) -> const void* { return nullptr; };
  auto setup = rg::make_versioned<rg_model_setup>();
  setup.purpose = RG_PURPOSE_INIT;
  setup.precision = RG_F32;
  setup.memory = executor->memory;
  setup.threads = 1;
  setup.batch = 2;
  setup.kernels = RG_KERNELS_FIXED;
  void* self = nullptr;
  const rg_status status = executor->compile(&host, nullptr, &g, &setup, &self);
  if (status == RG_OK) {
    executor->model->destroy(self);
    return {};
  }
  CHECK(status == expected);
  return text;
}

std::string refusal_of_reference(const rg_graph& g) {
  try {
    reference::interpreter r(g);
  } catch (const rg::error& e) {
    CHECK(e.status() == RG_E_UNSUPPORTED);
    return e.what();
  }
  return {};
}

// A convolution of an image of 7x7. With a dilation of 2 its output is 3x3, else 5x5.
void build_convolution(rg::network& net, std::int64_t side) {
  const rg::value image = net.values("image", {3, 7, 7}), label = net.index("label", 5);
  const auto weight = net.weight("c.weight", {16, 3, 3, 3}, {.init = RG_INIT_NORMAL, .b = 0.1});
  const rg::value c =
      net.node("conv2d", "c", {image}, {weight}, {{"kernel", 3}, {"stride", 1}, {"padding", 0}}, {16, side, side});
  rg::softmax_cross_entropy(rg::dense(rg::flatten(c), "out", 5), label);
}

// Of Regatta's executors; see the test of the others' refusal.
const bool has_sync_batch_norm = executor_plugin.ends_with("/onednn.so");

// Every op that has attributes, at least once, of those that the executor has.
void build_all(rg::network& net) {
  const rg::value image = net.values("image", {3, 8, 8}), words = net.indices("words", {6}, 20),
                  next = net.indices("next", {6}, 20), ids = net.indices("ids", {3}, 9), label = net.index("label", 2);
  rg::value x = rg::max_pool(rg::batch_norm(rg::conv2d(image, "c", 16, {.padding = 1}), "n"), {3, 2, 1});
  if (has_sync_batch_norm) x = rg::batch_norm(x, "m", {.sync = true});
  x = rg::dropout(rg::flatten(rg::avg_pool(x, {2, 2, 0})), 0.2);
  const auto rows = rg::sparse_table(net, "rows", 9, 4);
  const rg::value bag = rg::embedding_bag(ids, "bag", rows), all = rg::sparse_embedding(ids, "all", rows);
  const rg::value clicked = rg::softmax_cross_entropy_auc(rg::dense(rg::concat({x, bag, all}), "two", 2), label, 8);
  const rg::value hinge = rg::pairwise_hinge(rg::dense(x, "positive", 1), rg::dense(x, "negative", 1), 0.5);
  const auto table = rg::embedding_table(net, "words", 20, 16);
  rg::value s = rg::layer_norm(rg::embedding(words, "e", table), "l");
  s = rg::attend(s, s, s, words, "a", {.heads = 2, .dropout = 0.1});
  rg::sum_of_losses({clicked, hinge, rg::token_cross_entropy(rg::dense_shared(s, "logits", table), next)});
}

} // namespace

TEST_CASE("an unknown attribute is refused with layer, op and attribute") {
  for (const std::int64_t side : {3, 5}) { // whatever shape the attribute leads to
    CAPTURE(side);
    rg::network net;
    build_convolution(net, side);
    changed_graph g(*net.graph());
    g.attributes[g.node_of("conv2d")].push_back(number("dilation", 2));
    const std::string expected = "layer c (conv2d): this executor does not know the attribute dilation";
    CHECK(refusal_of(g.get(), RG_E_UNSUPPORTED) == expected);
    CHECK(refusal_of_reference(g.get()) == expected);
  }
}

TEST_CASE("an attribute of an op without attributes is refused, also if the op is fused") {
  for (const char* op : {"relu", "dense", "flatten", "softmax_cross_entropy"}) {
    CAPTURE(op);
    rg::network net;
    const rg::value image = net.values("image", {3, 4, 4}), label = net.index("label", 5);
    rg::softmax_cross_entropy(rg::relu(rg::dense(rg::flatten(image), "d", 5)), label);
    changed_graph g(*net.graph());
    CHECK(refusal_of(g.get(), RG_OK).empty());
    g.attributes[g.node_of(op)].push_back(number("slope", 0.1));
    const std::string expected = "this executor does not know the attribute slope";
    CHECK(refusal_of(g.get(), RG_E_UNSUPPORTED).find(expected) != std::string::npos);
    CHECK(refusal_of_reference(g.get()).find(expected) != std::string::npos);
  }
}

TEST_CASE("a list or a text in place of a number is refused") {
  rg::network net;
  build_convolution(net, 5);
  const double sides[] = {3, 3};
  changed_graph listed(*net.graph()), written(*net.graph());
  rg_attr& kernel = listed.attributes[listed.node_of("conv2d")][0];
  kernel.numbers = sides;
  kernel.count = 2;
  const std::string expected = "layer c (conv2d): expected a number for the attribute kernel, got a ";
  CHECK(refusal_of(listed.get(), RG_E_UNSUPPORTED) == expected + "list");
  CHECK(refusal_of_reference(listed.get()) == expected + "list");
  written.attributes[written.node_of("conv2d")][2].text = "same";
  CHECK(refusal_of(written.get(), RG_E_UNSUPPORTED).find("attribute padding, got a text") != std::string::npos);
}

TEST_CASE("an executor without synchronised batch norm refuses it with layer and op") {
  rg::network net;
  const rg::value image = net.values("image", {3, 4, 4}), label = net.index("label", 5);
  rg::softmax_cross_entropy(rg::dense(rg::flatten(rg::batch_norm(image, "n", {.sync = true})), "d", 5), label);
  const std::string text = refusal_of(*net.graph(), has_sync_batch_norm ? RG_OK : RG_E_UNSUPPORTED);
  CHECK((text.find("layer n: ") == std::string::npos) == has_sync_batch_norm);
  CHECK((text.find("no op sync_batch_norm") == std::string::npos) == has_sync_batch_norm);
}

// A name that nothing reads would be ignored, as an unknown one was.
TEST_CASE("every attribute of the table is read") {
  rg::network net;
  build_all(net);
  const rg_graph& whole = *net.graph();
  CHECK(refusal_of(whole, RG_OK).empty());
  const reference::batch batch = make_batch(whole, 2, 1);
  std::map<std::string, std::set<std::string>> read;
  for (std::size_t k = 0; k < whole.node_count; ++k)
    for (std::size_t i = 0; i < whole.nodes[k].attr_count; ++i) {
      const std::string op = whole.nodes[k].op, name = whole.nodes[k].attrs[i].name;
      CAPTURE(op);
      CAPTURE(name);
      changed_graph g(whole);
      g.attributes[k].erase(g.attributes[k].begin() + static_cast<std::ptrdiff_t>(i));
      const std::string text = refusal_of(g.get(), RG_E_CONFIG);
      CHECK(text.find(whole.nodes[k].name) != std::string::npos);
      CHECK(text.find("attribute " + name + " is missing") != std::string::npos);
      if (name != "accuracy" && name != "buckets") { // of metrics, which the reference does not compute
        reference::interpreter r(g.get());
        CHECK_THROWS_WITH(r.forward(batch), doctest::Contains(name.c_str()));
      }
      read[op].insert(name);
    }
  for (const rg::op_attributes& known : reference::known_attributes)
    for (const std::string_view name : known.names) {
      if (name.empty() || (known.op == "sync_batch_norm" && !has_sync_batch_norm)) continue;
      CAPTURE(std::string(known.op));
      CHECK(read[std::string(known.op)].contains(std::string(name)));
    }
}
