// SPDX-License-Identifier: Apache-2.0
//
// The attributes that Regatta's executors and the reference read, by op: those of the tables in regatta/layers.hpp,
// layers_sequence.hpp and layers_sparse.hpp. Add a name here only with the code that reads it, in every executor:
// tests/plugins/executors/attributes_test.cpp checks that none is ignored.
#pragma once

#include <regatta/executor.hpp>

namespace reference {

inline constexpr rg::op_attributes known_attributes[] = {
    {"input", {}},
    {"conv2d", {"kernel", "stride", "padding"}},
    {"dense", {}},
    {"batch_norm", {"epsilon", "momentum"}},
    {"sync_batch_norm", {"epsilon", "momentum"}},
    {"relu", {}},
    {"dropout", {"p", "layer"}},
    {"max_pool", {"kernel", "stride", "padding"}},
    {"avg_pool", {"kernel", "stride", "padding"}},
    {"global_avg_pool", {}},
    {"sigmoid", {}},
    {"scale_channels", {}},
    {"add", {}},
    {"flatten", {}},
    {"softmax_cross_entropy", {}},
    {"sum_of_losses", {}},
    {"embedding", {"scale", "sinusoids"}},
    {"layer_norm", {"epsilon"}},
    {"gelu", {}},
    {"tanh", {}},
    {"attention", {"heads", "causal", "p", "layer"}},
    {"select_positions", {}},
    {"first_position", {}},
    {"token_cross_entropy", {"smoothing", "accuracy"}},
    {"sparse_embedding", {"padding"}},
    {"embedding_bag", {"padding"}},
    {"concat", {}},
    {"softsign", {}},
    {"cosine", {}},
    {"softmax_cross_entropy_auc", {"buckets"}},
    {"pairwise_hinge", {"margin"}},
};

} // namespace reference
