// SPDX-License-Identifier: Apache-2.0
//
// The layers of regatta/layers_sparse.hpp: the reference's gradients against finite differences, the executor's against
// the reference's, the rows that a batch touches, what evaluation makes of a batch.
#include "layers_cases.hpp"

#include <regatta/layers_sparse.hpp>

#include <functional>
#include <set>

using namespace layers_cases;

namespace {

struct network_case {
  const char* name;
  std::function<void(rg::network&)> build;
};

const std::vector<network_case>& cases() {
  using rg::value;
  static const std::vector<network_case> all = {
      {"slots beside numbers",
       [](rg::network& net) {
         const value ids = net.indices("ids", {5}, 40), features = net.values("features", {3});
         const value label = net.index("label", 2);
         const auto table = rg::sparse_table(net, "table", 40, 10);
         value x = rg::concat({rg::sparse_embedding(ids, "e", table), features});
         x = rg::relu(rg::dense(x, "a", 20));
         rg::softmax_cross_entropy_auc(rg::dense(x, "out", 2), label);
       }},
      {"two lookups in one table, and a dense one",
       [](rg::network& net) {
         const value ids = net.indices("ids", {2}, 70), words = net.indices("words", {9}, 70);
         const value label = net.index("label", 4);
         const auto table = rg::sparse_table(net, "table", 70, 19);
         const auto dense = rg::sparse_table(net, "dense", 70, 3, {.sparse = false});
         const value x = rg::concat({rg::sparse_embedding(ids, "e", table, 0), rg::embedding_bag(words, "b", table),
                                     rg::sparse_embedding(words, "d", dense, 3)});
         rg::softmax_cross_entropy(rg::dense(x, "out", 4), label);
       }},
      {"bags of words, matched",
       [](rg::network& net) {
         const value query = net.indices("query", {6}, 30), right = net.indices("right", {4}, 30);
         const value wrong = net.indices("wrong", {4}, 30);
         const auto table = rg::sparse_table(net, "table", 30, 140);
         auto bag = [&](value words, const char* name) {
           return rg::softsign(rg::embedding_bag(words, name, table, 0));
         };
         const auto title = rg::dense_weights(net, "title", 140, 24);
         const value q = rg::dense(bag(query, "qb"), "q", 24);
         const value a = rg::dense(bag(right, "ab"), "a", title), b = rg::dense(bag(wrong, "bb"), "b", title);
         rg::pairwise_hinge(rg::cosine(q, a), rg::cosine(q, b), 0.1);
       }},
      // Between the backward passes of the join and of a tower's last layer, which reads its own output, runs the whole
      // backward pass of the other tower, whose gradients are wide.
      {"two towers",
       [](rg::network& net) {
         const value left = net.values("left", {6}), right = net.values("right", {6}), label = net.index("label", 3);
         const value a = rg::relu(rg::dense(rg::relu(rg::dense(left, "a1", 64)), "a2", 64));
         const value b = rg::relu(rg::dense(rg::relu(rg::dense(right, "b1", 1024)), "b2", 64));
         rg::softmax_cross_entropy(rg::dense(rg::concat({a, b}), "out", 3), label);
       }},
      {"two tables",
       [](rg::network& net) {
         const value users = net.indices("users", {1}, 9), things = net.indices("things", {3}, 200);
         const value label = net.index("label", 2);
         const auto user = rg::sparse_table(net, "user", 9, 16), thing = rg::sparse_table(net, "thing", 200, 16);
         const value x = rg::add(rg::sparse_embedding(users, "u", user), rg::embedding_bag(things, "t", thing));
         rg::softmax_cross_entropy_auc(rg::dense(rg::relu(x), "out", 2), label, 64);
       }},
  };
  return all;
}

} // namespace

TEST_CASE("the reference's gradients are the slopes of its loss") {
  for (const auto& c : cases()) {
    CAPTURE(std::string(c.name));
    rg::network net;
    c.build(net);
    check_slopes(*net.graph());
  }
}

TEST_CASE("the executor's layers compute what the reference does") {
  for (const auto* c : wanted(cases())) {
    CAPTURE(std::string(c->name));
    rg::network net;
    c->build(net);
    for (const std::uint32_t threads : {1U, 3U}) {
      pair p(*net.graph(), {.batch = 7, .threads = threads});
      compare_step(p);
    }
  }
}

TEST_CASE("gradients of rows add up over micro-batches") {
  rg::network net;
  cases()[1].build(net);
  pair p(*net.graph(), {.batch = 4});
  compare_step(p);
  reference::executed& e = p.executed;
  const std::size_t table = e.index_of("table");
  const auto once = e.canonical(e.gradients[table].data(), table);
  e.step(p.batch, RG_BATCH_LAST | RG_BATCH_ACCUMULATE);
  const auto twice = e.canonical(e.gradients[table].data(), table);
  for (std::size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == doctest::Approx(2 * once[i]).epsilon(1e-5));
}

TEST_CASE("a batch touches each row once, ascending, over all lookups, without padding") {
  rg::network net;
  const rg::value a = net.indices("a", {3}, 100000), b = net.indices("b", {2}, 100000), label = net.index("label", 2);
  const auto table = rg::sparse_table(net, "table", 100000, 4);
  rg::softmax_cross_entropy_auc(
      rg::dense(rg::concat({rg::sparse_embedding(a, "x", table, 5), rg::embedding_bag(b, "y", table)}), "out", 2),
      label);
  reference::executed e(executor_plugin, *net.graph(), {.batch = 2});
  const reference::batch batch = {
      .samples = 2, .inputs = {{7, 5, 99999, 64, 63, 7}, {0, 7, 4096, 0}, {0, 1}}, .global_samples = 2};
  CHECK(e.rows(batch).at(0) == std::vector<std::uint64_t>{0, 7, 63, 64, 4096, 99999});
  CHECK(e.tensors[e.index_of("table")].max_rows == 10);
  CHECK(std::string(e.tensors.back().name) == "table"); // behind the dense ones

  reference::batch other = batch;
  other.inputs[0] = {5, 5, 5, 5, 5, 5};
  CHECK(e.rows(other).at(0) == std::vector<std::uint64_t>{0, 7, 4096}); // nothing is left of the last one
  other.inputs[1] = {5, 5, 5, 5};
  CHECK(e.rows(other).at(0) == std::vector<std::uint64_t>{5}); // padding is the lookup's own

  other.inputs[0][4] = 100000;
  CHECK_THROWS_WITH_AS(e.rows(other), "sample 1 of step 0 has id 100000, but table has 100000 rows",
                       std::runtime_error);
  other.inputs[0][4] = -1;
  CHECK_THROWS_AS(e.step(other), std::runtime_error);
}

TEST_CASE("rows start as the whole table does, wherever they are made") {
  auto table_of = [](bool sparse, std::int64_t dim, reference::executed*& out) {
    static std::vector<std::unique_ptr<rg::network>> nets;
    nets.push_back(std::make_unique<rg::network>());
    rg::network& net = *nets.back();
    const rg::value ids = net.indices("ids", {1}, 50), label = net.index("label", 2);
    const auto table = rg::sparse_table(net, "table", 50, dim, {.sparse = sparse});
    rg::softmax_cross_entropy_auc(rg::dense(rg::sparse_embedding(ids, "e", table), "out", 2), label);
    out = new reference::executed(executor_plugin, *net.graph(), {.batch = 1});
  };
  for (const std::int64_t dim : {4, 10, 7}) {
    reference::executed *raw_sparse = nullptr, *raw_dense = nullptr;
    table_of(true, dim, raw_sparse);
    const std::unique_ptr<reference::executed> sparse(raw_sparse);
    table_of(false, dim, raw_dense);
    const std::unique_ptr<reference::executed> dense(raw_dense);
    dense->start(3);
    const std::size_t at = sparse->index_of("table");
    const auto whole = dense->canonical(dense->weights[dense->index_of("table")].data(), dense->index_of("table"));
    const std::vector<std::uint64_t> rows = {0, 3, 4, 49};
    const std::vector<float> some = sparse->start_rows(at, rows, 3);
    const auto d = static_cast<std::size_t>(dim);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t i = 0; i < d; ++i) CHECK(some[r * d + i] == whole[rows[r] * d + i]);
    CHECK(std::set<double>(whole.begin(), whole.end()).size() > whole.size() / 2);
    CHECK(*std::max_element(whole.begin(), whole.end()) <= 1 / std::sqrt(static_cast<double>(dim)));
  }
}

TEST_CASE("a vector without length has no cosine and no gradient") {
  rg::network net;
  cases()[2].build(net);
  pair p(*net.graph(), {.batch = 3});
  std::fill_n(p.batch.inputs[0].begin(), 6, 0.0); // the first query is padding alone
  for (std::uint32_t t = 0; t < p.graph.tensor_count; ++t)
    if (std::string(p.graph.tensors[t].name) == "q.bias") p.reference.tensors[t].assign(24, 0.0);
  copy(p.reference, p.graph, p.executed);
  compare_step(p);
}

TEST_CASE("the area under the curve is how often a positive ranks above a negative") {
  rg::network net;
  const rg::value x = net.values("x", {2}), label = net.index("label", 2);
  rg::softmax_cross_entropy_auc(x, label, 1000);
  reference::executed e(executor_plugin, *net.graph(), {.batch = 6});
  // Logits of class 1 by sample; those of class 0 are 0.
  const std::vector<double> score = {0.9, -1, 2, 0.5, -0.2, 9}, labels = {1, 0, 1, 0, 1, 0};
  reference::batch b = {.samples = 6, .inputs = {{}, labels}, .global_samples = 6};
  for (double s : score) b.inputs[0].insert(b.inputs[0].end(), {0.0, s});
  auto area = [&](std::size_t count) { // over the first `count` samples
    double right = 0, pairs = 0;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = 0; j < count; ++j)
        if (labels[i] == 1 && labels[j] == 0) {
          pairs += 1;
          right += score[i] > score[j];
        }
    return right / pairs;
  };
  const auto five = e.evaluate(b, 5), six = e.evaluate(b, 6);
  REQUIRE(six.size() == 2002);
  CHECK(e.metric(five) == doctest::Approx(area(5)).epsilon(1e-12));
  CHECK(e.metric(six) == doctest::Approx(area(6)).epsilon(1e-12));
  CHECK(six[2000] == 6);
  auto sum = five; // of two ranks
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += six[i];
  CHECK(sum[2000] == 11);
  CHECK(e.metric(sum) > 0);
  CHECK(std::isnan(e.metric(std::vector<double>(2002, 0.0)))); // undefined
  CHECK(std::string(e.info.metric) == "auc");

  b.inputs[0].assign(12, 0.5); // all alike
  CHECK(e.metric(e.evaluate(b, 6)) == 0.5);
  b.inputs[1][2] = 2;
  CHECK_THROWS_WITH_AS(e.step(b), "sample 2 of step 0 has label 2, but there are 2 classes", std::runtime_error);
}

TEST_CASE("the pos/neg ratio counts the pairs that are in order") {
  rg::network net;
  const rg::value a = net.values("a", {1}), b = net.values("b", {1});
  rg::pairwise_hinge(a, b, 0.1);
  reference::executed e(executor_plugin, *net.graph(), {.batch = 5});
  const reference::batch batch = {
      .samples = 5, .inputs = {{0.5, 0.2, 0.9, -0.1, 0.3}, {0.1, 0.4, 0.85, -0.1, -0.3}}, .global_samples = 5};
  const auto sums = e.evaluate(batch, 5);
  CHECK(sums[0] == 3);
  CHECK(sums[1] == 5);
  CHECK(sums[2] == doctest::Approx(0.3 + 0.05 + 0.1));
  CHECK(e.metric(sums) == doctest::Approx(1.5));
  CHECK(e.metric({4, 4, 0}) == 4); // no pair is wrong
  CHECK(e.metric(e.evaluate(batch, 1)) == 1);
  CHECK(std::string(e.info.metric) == "pos_neg_ratio");
}

TEST_CASE("layers that do not fit are refused") {
  rg::network net;
  const rg::value ids = net.indices("ids", {2}, 9), x = net.values("x", {3}), y = net.values("y", {4});
  CHECK_THROWS_AS(rg::cosine(x, y), rg::error);
  CHECK_THROWS_AS(rg::concat({}), rg::error);
  CHECK_THROWS_AS(rg::pairwise_hinge(x, y, 0.1), rg::error);
  CHECK_THROWS_AS(rg::softmax_cross_entropy_auc(x, ids), rg::error);
  CHECK_THROWS_AS(rg::sparse_table(net, "none", 0, 4), rg::error);
  CHECK_THROWS_WITH_AS(rg::dense(x, "d", rg::dense_weights(net, "w", 4, 2)),
                       "layer d: its weights take 4 elements, got 3", rg::error);

  auto refuse = [](const std::function<void(rg::network&)>& make, const std::string& what) {
    rg::network bad;
    make(bad);
    try {
      reference::executed e(executor_plugin, *bad.graph(), {});
      FAIL("accepted: " << what);
    } catch (const std::runtime_error& e) {
      CHECK_MESSAGE(std::string(e.what()).find(what) != std::string::npos, e.what());
    }
  };
  refuse(
      [](rg::network& bad) {
        const rg::value i = bad.indices("ids", {2}, 9), label = bad.index("label", 2);
        const auto t = rg::sparse_table(bad, "table", 9, 4);
        const rg::value e = bad.node("sparse_embedding", "odd", {i}, {t}, {{"padding", -1}}, {9});
        rg::softmax_cross_entropy_auc(rg::dense(e, "out", 2), label);
      },
      "layer odd (sparse_embedding): its output's size does not");
  refuse(
      [](rg::network& bad) {
        const rg::value i = bad.indices("ids", {2}, 9), label = bad.index("label", 2);
        const auto t = rg::sparse_table(bad, "table", 9, 4);
        rg::softmax_cross_entropy_auc(rg::dense(rg::embedding_bag(i, "odd", t, 9), "out", 2), label);
      },
      "layer odd (embedding_bag): the padding id must be -1 or a row of the table");
  refuse(
      [](rg::network& bad) {
        const rg::value i = bad.values("ids", {2}), label = bad.index("label", 2);
        const auto t = rg::sparse_table(bad, "table", 9, 4);
        rg::softmax_cross_entropy_auc(rg::dense(rg::embedding_bag(i, "odd", t), "out", 2), label);
      },
      "layer odd (embedding_bag)");
}
