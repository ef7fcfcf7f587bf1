// SPDX-License-Identifier: Apache-2.0
//
// Sequences: values [places, features]; and lookups in tables.
#include "attention.hpp"
#include "compiler.hpp"
#include "sequence.hpp"

#include <cmath>

namespace cudnn {
namespace {

value* sequence(compiler& c, const node& n, std::size_t i) {
  n.expect(c.source(n, i).shape.size() == 2, "takes a sequence: places and features");
  return c.input(n, i);
}

void compile_embedding(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  n.expect(c.source(n, 0).shape.size() == 1 && n.shape.size() == 2, "makes a sequence of one of indices");
  const std::size_t length = c.source(n, 0).shape[0], size = n.shape[1];
  n.expect(n.shape[0] == length, "makes as many places as there are indices");
  value* indices = c.indices(n, 0, length);
  const auto matrix = [&](std::size_t i) {
    weight* w = c.table(n, i);
    n.expect(w->row() == size && w->info.kind == RG_TENSOR_DENSE, "has a weight of the wrong kind or shape");
    return w;
  };
  weight *table = matrix(0), *of_places = n.weights.size() > 1 ? matrix(1) : nullptr;
  n.expect(!of_places || static_cast<std::size_t>(of_places->info.shape[0]) >= length,
           "has too few rows for its places");
  c.emit<token_embedding>(n.name, indices, c.make_output(k), table, of_places, n.attr("scale"),
                          n.attr("sinusoids") != 0);
}

void compile_layer_norm(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = sequence(c, n, 0);
  n.expect(n.shape == in->shape, "its output has not the shape of its input");
  weight *scale = c.tensor(n, 0, {n.shape[1]}), *bias = c.tensor(n, 1, {n.shape[1]});
  c.emit<layer_norm>(n.name, in, c.make_output(k), scale, bias, n.attr("epsilon"));
}

void compile_attention(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value *query = sequence(c, n, 0), *key = sequence(c, n, 1), *values = sequence(c, n, 2);
  value* indices = c.indices(n, 3, places(*key));
  const attention::shape s{n.count("heads"), n.attr("causal") != 0, n.attr("p"),
                           static_cast<std::uint32_t>(n.count("layer"))};
  n.expect(n.shape == query->shape && key->shape == values->shape && features(*query) == features(*key),
           "queries, keys and values do not fit together");
  n.expect(s.heads >= 1 && features(*query) % s.heads == 0, "its features do not divide into heads");
  n.expect(s.dropout >= 0 && s.dropout < 1, "p must be at least 0 and less than 1");
  c.emit<attention>(n.name, query, key, values, indices, c.make_output(k), s);
}

void compile_take_places(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  value* in = sequence(c, n, 0);
  n.expect(n.shape.size() == 2 && n.shape[1] == features(*in), "its output has not the features of its input");
  value* indices = n.op == "take_places" ? c.indices(n, 1, n.shape[0]) : nullptr;
  n.expect(indices || n.shape[0] == 1, "makes one place");
  c.emit<take_places>(n.name, in, indices, c.make_output(k));
}

void compile_lookup(compiler& c, std::size_t k) {
  const node& n = c.at(k);
  const std::vector<std::size_t> ids = c.source(n, 0).shape;
  n.expect(ids.size() == 1 && n.shape.size() == 1, "takes and makes one dimension");
  weight* table = c.table(n, 0);
  const bool sum = n.op == "embedding_bag";
  n.expect(n.shape[0] == (sum ? table->row() : ids[0] * table->row()),
           "its output has not the size that ids and table give");
  const double padding = n.attr("padding");
  n.expect(padding == std::floor(padding) && padding >= -1 && padding < static_cast<double>(table->info.shape[0]),
           "the id for padding is no row of the table");
  value* in = c.indices(n, 0, ids[0]);
  c.emit<lookup>(n.name, in, c.make_output(k), table, static_cast<std::int64_t>(padding), sum);
}

constexpr compile_rule rules[] = {
    {"embedding", compile_embedding},     {"layer_norm", compile_layer_norm},   {"attention", compile_attention},
    {"take_places", compile_take_places}, {"first_place", compile_take_places}, {"sparse_embedding", compile_lookup},
    {"embedding_bag", compile_lookup},
};

} // namespace

std::span<const compile_rule> sequence_rules() {
  return rules;
}

} // namespace cudnn
