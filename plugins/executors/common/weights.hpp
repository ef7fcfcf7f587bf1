// SPDX-License-Identifier: Apache-2.0
//
// Initial values of a network's tensors, and checks of what the engine passes to an executor; alike for every executor.
#pragma once

#include "graph.hpp"

#include <span>
#include <string>
#include <string_view>

#include <regatta/executor.hpp>

namespace executors {

// Writes the initial values of rows of a sparse table, one row after the other, to `out`, which must have room for
// them; they depend on `seed`, the table and the row's number alone. Throws rg::error: RG_E_PLUGIN if the tensor is no
// sparse table, RG_E_CONFIG for an unknown rg_tensor.init.
inline void start_rows(const graph_tensor& t, std::span<const std::uint64_t> rows, std::uint64_t seed,
                       std::span<float> out) {
  if (!t.sparse) throw rg::error(RG_E_PLUGIN, t.name + " is no table: it has no rows to initialise");
  const std::size_t dim = t.row();
  for (std::size_t i = 0; i < rows.size(); ++i)
    rg::initial_values(t.info, t.graph_index, rows[i] * dim, seed, out.subspan(i * dim, dim));
}

// Throws rg::error, RG_E_PLUGIN, unless `runs`: the call `what` needs an instance that can run, and this one was
// created for shapes and initial values only (RG_PURPOSE_INIT).
inline void check_runs(bool runs, const char* what) {
  if (!runs)
    throw rg::error(RG_E_PLUGIN,
                    std::string(what) +
                        ": the instance was created with RG_PURPOSE_INIT, which has no memory and cannot run");
}

// Throws rg::error, RG_E_PLUGIN, unless `memory` has weights for every tensor but sparse tables, and gradients for
// every dense one. `tensors` are in the order of rg_model_info.
inline void check_memory(const rg_model_memory& memory, std::span<const rg_tensor> tensors) {
  if (memory.tensor_count != tensors.size())
    throw rg::error(RG_E_PLUGIN,
                    "bind: " + std::to_string(memory.tensor_count) + " tensors for " + std::to_string(tensors.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const rg_tensor& t = tensors[i];
    if (t.kind == RG_TENSOR_ROWS) continue; // its rows come with every step
    if (!memory.weights[i] || (t.kind == RG_TENSOR_DENSE && !memory.gradients[i]))
      throw rg::error(RG_E_PLUGIN, std::string("bind: ") + t.name + " has no memory");
  }
}

// Throws rg::error, RG_E_PLUGIN, unless the step or evaluation `what` may start: memory was bound, and the batch has
// exactly `samples` samples and the rows of at least `tables` sparse tables.
inline void check_batch(const rg_batch& batch, bool bound, std::size_t samples, std::size_t tables, const char* what) {
  if (!bound) throw rg::error(RG_E_PLUGIN, std::string(what) + ": called before bind");
  if (batch.samples != samples)
    throw rg::error(RG_E_PLUGIN, std::string(what) + ": a batch of " + std::to_string(batch.samples) +
                                     " samples, but the model was set up for " + std::to_string(samples));
  if (batch.table_count < tables)
    throw rg::error(RG_E_PLUGIN, std::string(what) + ": " + std::to_string(batch.table_count) + " tables of " +
                                     std::to_string(tables));
}

// Returns the batch's indices of input number `input`, called `name`, of type RG_I32 with `each` indices per sample;
// they are valid as long as the batch. Throws rg::error, RG_E_OPERATION, if one of the first `samples` samples has an
// index outside of 0 .. range - 1.
inline const std::int32_t* checked_indices(const rg_batch& b, std::size_t input, std::string_view name,
                                           std::size_t each, std::size_t samples, std::size_t range) {
  const auto* indices = static_cast<const std::int32_t*>(b.inputs[input]);
  for (std::size_t i = 0; i < samples * each; ++i)
    if (indices[i] < 0 || static_cast<std::size_t>(indices[i]) >= range)
      throw rg::error(RG_E_OPERATION, "sample " + std::to_string(i / each) + " of step " + std::to_string(b.step) +
                                          " has " + std::to_string(indices[i]) + " at position " +
                                          std::to_string(i % each) + " of " + std::string(name) +
                                          ", which must be less than " + std::to_string(range) + " and not negative");
  return indices;
}

// Throws rg::error, RG_E_OPERATION, if one of the first `samples` labels is outside of 0 .. classes - 1. `input` is the
// number of an input of type RG_I32 with one label per sample.
inline void check_labels(const rg_batch& b, std::size_t input, std::size_t samples, std::size_t classes) {
  const auto* labels = static_cast<const std::int32_t*>(b.inputs[input]);
  for (std::size_t s = 0; s < samples; ++s)
    if (labels[s] < 0 || static_cast<std::size_t>(labels[s]) >= classes)
      throw rg::error(RG_E_OPERATION, "sample " + std::to_string(s) + " of step " + std::to_string(b.step) +
                                          " has label " + std::to_string(labels[s]) + ", but there are " +
                                          std::to_string(classes) + " classes");
}

} // namespace executors
