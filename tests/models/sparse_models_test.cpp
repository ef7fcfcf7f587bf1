// SPDX-License-Identifier: Apache-2.0
//
// ctr and simnet_bow: their sizes, that they learn, and that a sparse table trains as a dense one does.
#include "layers_cases.hpp"
#include "model_graph.hpp"

#include <functional>

#include <regatta/ext/graph.h>

using namespace layers_cases;
using namespace model_graph;

namespace {

// Trains a graph by plain SGD or by AdaGrad (epsilon 1e-8), with each tensor's own factor on the rate. Either leaves a
// row without a gradient alone, so that sparse and dense tables can be compared.
class trainer {
public:
  trainer(const rg_graph& graph, std::uint64_t batch, double rate, bool adagrad)
      : run(executor_plugin, graph, {.batch = batch}), rate_(rate), adagrad_(adagrad) {
    run.start(1);
    for (const rg_tensor& t : run.tensors) squares_.emplace_back(rg::storage_of(t));
  }

  double step(const reference::batch& b) { // the mean loss
    const rg_step_result result = run.step(b);
    for (std::size_t t = 0; t < run.tensors.size(); ++t) {
      const double rate = rate_ * run.tensors[t].lr_scale;
      for (std::size_t i = 0; i < squares_[t].size(); ++i) {
        const double g = run.gradients[t].data()[i];
        squares_[t][i] += g * g;
        const double scale = adagrad_ ? 1 / (std::sqrt(squares_[t][i]) + 1e-8) : 1;
        run.weights[t].data()[i] -= static_cast<float>(rate * scale * g);
      }
    }
    return result.loss_sum / static_cast<double>(result.count);
  }

  reference::executed run;

private:
  double rate_;
  bool adagrad_;
  std::vector<std::vector<double>> squares_;
};

std::uint32_t draw(std::uint64_t seed, std::uint64_t at, std::uint32_t what, std::uint32_t range) {
  return rg::to_index(rg::random_bits(seed, at, what, 2000)[0], range);
}

// Clicks that follow from what the ids and numbers are worth: a fixed normal number for every id.
reference::batch clicks(std::size_t samples, std::uint64_t seed, std::uint32_t rows, std::size_t slots,
                        std::size_t features) {
  static const std::vector<double> worth = normals(1 << 16, 77);
  reference::batch b = {
      .samples = samples, .inputs = {{}, normals(samples * features, seed), {}}, .global_samples = samples};
  for (std::size_t s = 0; s < samples; ++s) {
    double score = b.inputs[1][s * features];
    for (std::uint32_t i = 0; i < slots; ++i) {
      const std::uint32_t id = draw(seed, s, i, rows);
      b.inputs[0].push_back(id);
      score += worth[id];
    }
    b.inputs[2].push_back(score > 0);
  }
  return b;
}

// Words of a topic share their remainder; the right title is of the query's topic, the wrong one of another. Texts end
// in padding.
reference::batch texts(std::size_t samples, std::uint64_t seed, std::uint32_t vocabulary, std::size_t length) {
  constexpr std::uint32_t topics = 10;
  reference::batch b = {.samples = samples, .inputs = {{}, {}, {}}, .global_samples = samples};
  for (std::size_t s = 0; s < samples; ++s) {
    const std::uint32_t topic = draw(seed, s, 0, topics), other = (topic + 1 + draw(seed, s, 1, topics - 1)) % topics;
    for (std::uint32_t text = 0; text < 3; ++text) {
      const std::size_t words = 2 + draw(seed, s, 10 + text, static_cast<std::uint32_t>(length) - 1);
      for (std::uint32_t i = 0; i < length; ++i) {
        const std::uint32_t word = 1 + draw(seed, s, 100 * (text + 1) + i, (vocabulary - 1) / topics - 1) * topics;
        b.inputs[text].push_back(i < words ? word + (text == 2 ? other : topic) : 0);
      }
    }
  }
  return b;
}

const std::vector<std::int64_t> hidden = {32, 16};

std::vector<graph_of::setting> small_ctr(bool sparse) {
  return {{"rows", whole(300)},   {"dim", whole(6)},        {"slots", whole(5)},
          {"features", whole(3)}, {"hidden", list(hidden)}, {"sparse", whole(sparse)}};
}
std::vector<graph_of::setting> small_simnet(bool sparse) {
  return {{"vocabulary", whole(501)}, {"dim", whole(24)},          {"hidden", whole(20)},
          {"length", whole(8)},       {"embedding_lr", number(5)}, {"sparse", whole(sparse)}};
}

// The same steps with a sparse and with a dense table leave the same weights.
void same_weights(const std::string& file, const std::string& id, const std::string& table,
                  const std::function<std::vector<graph_of::setting>(bool)>& settings,
                  const std::function<reference::batch(std::uint64_t)>& batch) {
  for (const bool adagrad : {false, true}) {
    CAPTURE(adagrad);
    const graph_of sparse(file, id, settings(true)), dense(file, id, settings(false));
    trainer a(*sparse.graph, 50, 0.05, adagrad), b(*dense.graph, 50, 0.05, adagrad);
    CHECK(a.run.tensors[a.run.index_of(table)].kind == RG_TENSOR_ROWS);
    CHECK(b.run.tensors[b.run.index_of(table)].kind == RG_TENSOR_DENSE);
    for (std::uint64_t i = 0; i < 10; ++i) CHECK(a.step(batch(i)) == doctest::Approx(b.step(batch(i))).epsilon(1e-6));
    for (const rg_tensor& t : a.run.tensors) {
      CAPTURE(t.name);
      const std::size_t i = a.run.index_of(t.name), k = b.run.index_of(t.name);
      CHECK(distance(a.run.canonical(a.run.weights[i].data(), i), b.run.canonical(b.run.weights[k].data(), k)) < 1e-6);
    }
  }
}

} // namespace

TEST_CASE("ctr has the parameters of its publication") {
  const graph_of ctr("ctr.so", "ctr", {});
  CHECK(ctr.parameters(RG_TENSOR_ROWS) == 10000010);
  CHECK(ctr.parameters(RG_TENSOR_DENSE) == 431202);
  const reference::executed e(executor_plugin, *ctr.graph, {.batch = 1000, .purpose = RG_PURPOSE_INIT});
  CHECK(e.tensors[e.index_of("table")].max_rows == 26000);
}

TEST_CASE("simnet_bow has the parameters of its publication") {
  const graph_of simnet("simnet.so", "simnet_bow", {});
  CHECK(simnet.parameters(RG_TENSOR_ROWS) == 185804032);
  CHECK(simnet.parameters(RG_TENSOR_DENSE) == 2 * (128 * 128 + 128));
  for (std::uint32_t t = 0; t < simnet.graph->tensor_count; ++t)
    CHECK(simnet.graph->tensors[t].lr_scale == (simnet.graph->tensors[t].kind == RG_TENSOR_ROWS ? 3 : 1));
}

TEST_CASE("ctr learns who clicks: AUC 0.9 within 300 steps") {
  const graph_of ctr("ctr.so", "ctr", small_ctr(true));
  trainer t(*ctr.graph, 100, 0.05, true);
  const reference::batch held_out = clicks(100, 999, 300, 5, 3);
  const double before = t.run.metric(t.run.evaluate(held_out, 100));
  CHECK(before < 0.7);
  for (std::uint64_t i = 0; i < 300; ++i) t.step(clicks(100, i, 300, 5, 3));
  const double after = t.run.metric(t.run.evaluate(held_out, 100));
  CAPTURE(after);
  CHECK(after > 0.9);
}

TEST_CASE("simnet_bow learns which title fits: a pos/neg ratio of 20 within 200 steps") {
  const graph_of simnet("simnet.so", "simnet_bow", small_simnet(true));
  trainer t(*simnet.graph, 100, 0.5, false);
  const reference::batch held_out = texts(100, 999, 501, 8);
  CHECK(t.run.metric(t.run.evaluate(held_out, 100)) < 3);
  for (std::uint64_t i = 0; i < 200; ++i) t.step(texts(100, i, 501, 8));
  const double after = t.run.metric(t.run.evaluate(held_out, 100));
  CAPTURE(after);
  CHECK(after > 20);
}

TEST_CASE("a sparse table trains as a dense one does") {
  same_weights("ctr.so", "ctr", "table", small_ctr, [](std::uint64_t i) { return clicks(50, i, 300, 5, 3); });
  same_weights("simnet.so", "simnet_bow", "embedding", small_simnet,
               [](std::uint64_t i) { return texts(50, i, 501, 8); });
}
