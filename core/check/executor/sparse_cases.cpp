// SPDX-License-Identifier: Apache-2.0
#include "check/executor/op_cases.hpp"

#include <fmt/format.h>
#include <regatta/layers_sparse.hpp>

namespace regatta::conformance {
namespace {

using rg::network;
using rg::value;

constexpr std::int64_t table_rows = 11; // few, so that samples share some

std::vector<op_case> lookups(value (*look_up)(value, const std::string&, std::uint32_t, std::int64_t)) {
  std::vector<op_case> all;
  for (const std::int64_t ids : {1, 7})
    for (const std::int64_t columns : {1, 16, 19})
      for (const std::int64_t padding : {rg::no_padding, std::int64_t{0}})
        for (const bool sparse : {true, false})
          all.push_back({fmt::format("{} ids, {} columns, padding {}, a {} table", ids, columns, padding,
                                     sparse ? "sparse" : "dense"),
                         [=](network& net) {
                           const value in = net.indices("ids", {ids}, table_rows), label = net.index("label", 5);
                           const auto table = rg::sparse_table(net, "tested", table_rows, columns, {.sparse = sparse});
                           const value x = look_up(in, "lookup", table, padding);
                           rg::softmax_cross_entropy(rg::dense(x, "classes", 5), label);
                         }});
  return all;
}

// Classifies body(a, b) of two dense layers.
template <class F> op_case of_two(std::string name, std::int64_t a, std::int64_t b, F body) {
  return {std::move(name), [=](network& net) {
            const value x = net.values("x", {6}), y = net.values("y", {6}), label = net.index("label", 5);
            const value joined = body(rg::dense(x, "first", a), rg::dense(y, "second", b));
            rg::softmax_cross_entropy(rg::dense(joined, "classes", 5), label);
          }};
}

std::vector<op_case> concatenations() {
  std::vector<op_case> all;
  for (const auto& [a, b] : {std::pair(1, 1), {16, 16}, {3, 19}, {19, 1}})
    all.push_back(of_two(fmt::format("{} and {}", a, b), a, b, [](value x, value y) { return rg::concat({x, y}); }));
  // The gradients of a tower's layers are live while the other tower's functions wait for their own backward pass.
  for (const bool wide_first : {true, false})
    all.push_back({fmt::format("two towers, the {} one wide", wide_first ? "first" : "second"), [=](network& net) {
                     const value x = net.values("x", {6}), y = net.values("y", {6}), label = net.index("label", 5);
                     const auto tower = [](value v, const std::string& name, std::int64_t width) {
                       return rg::relu(rg::dense(rg::relu(rg::dense(v, name + "1", width)), name + "2", 64));
                     };
                     const value a = tower(x, "a", wide_first ? 1024 : 64);
                     const value b = tower(y, "b", wide_first ? 64 : 1024);
                     rg::softmax_cross_entropy(rg::dense(rg::concat({a, b}), "classes", 5), label);
                   }});
  all.push_back(of_two("one part", 7, 7, [](value x, value y) { return rg::concat({rg::add(x, y)}); }));
  all.push_back(of_two("one part twice", 5, 3, [](value x, value y) { return rg::concat({x, y, x}); }));
  return all;
}

std::vector<op_case> cosines() {
  std::vector<op_case> all;
  for (const std::int64_t length : {2, 16, 19})
    all.push_back(of_two(fmt::format("vectors of {}", length), length, length,
                         [](value x, value y) { return rg::cosine(x, y); }));
  return all;
}

std::vector<op_case> softsigns() {
  std::vector<op_case> all;
  for (const std::int64_t length : {1, 16, 19})
    all.push_back({fmt::format("a vector of {}", length), [=](network& net) {
                     const value x = net.values("x", {6}), label = net.index("label", 5);
                     const value y = rg::softsign(rg::dense(x, "before", length));
                     rg::softmax_cross_entropy(rg::dense(y, "classes", 5), label);
                   }});
  return all;
}

std::vector<op_case> click_losses() {
  std::vector<op_case> all;
  for (const std::int64_t buckets : {2, 4096})
    all.push_back({fmt::format("{} buckets", buckets), [=](network& net) {
                     const value x = net.values("x", {6}), label = net.index("label", 2);
                     rg::softmax_cross_entropy_auc(rg::dense(x, "logits", 2), label, buckets);
                   }});
  for (const double mean : {1000.0, -1000.0})
    all.push_back({fmt::format("logits near {}", mean), [=](network& net) {
                     const value x = net.values("x", {6}), label = net.index("label", 2);
                     rg::softmax_cross_entropy_auc(large_logits(x, mean, 2), label, 4);
                   }});
  return all;
}

std::vector<op_case> hinges() {
  std::vector<op_case> all;
  for (const double margin : {0.0, 0.1, 3.0})
    all.push_back({fmt::format("margin {}", margin), [=](network& net) {
                     const value x = net.values("x", {6}), y = net.values("y", {6});
                     rg::pairwise_hinge(rg::dense(x, "positive", 1), rg::dense(y, "negative", 1), margin);
                   }});
  return all;
}

} // namespace

std::vector<op_suite> sparse_suites() {
  return {
      {"sparse_embedding", "loss and gradients of rows as in fp64: padding, ids that repeat, sparse and dense tables",
       lookups(rg::sparse_embedding)},
      {"embedding_bag", "loss and gradients of rows as in fp64: padding, ids that repeat, sparse and dense tables",
       lookups(rg::embedding_bag)},
      {"concat", "loss and gradients as in fp64: parts of 1 to 64 elements, one part twice, and two towers",
       concatenations()},
      {"softsign", "loss and gradients as in fp64", softsigns()},
      {"cosine", "loss and gradients as in fp64: vectors of 2 to 19 elements", cosines()},
      {"softmax_cross_entropy_auc", "loss and gradients as in fp64, for any number of buckets", click_losses()},
      {"pairwise_hinge", "loss and gradients as in fp64, on both sides of the margin", hinges()},
  };
}

} // namespace regatta::conformance
