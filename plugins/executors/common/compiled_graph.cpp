// SPDX-License-Identifier: Apache-2.0
#include "compiled_graph.hpp"

namespace executors {

void compiled_graph::add(measured& loss) {
  loss.number = losses.size();
  loss.first_sum = metric_sums;
  metric_sums += loss.measured_by.sums;
  if (loss.counts()) loss.count_kind = static_cast<int>(count_kinds++);
  losses.push_back(&loss);
}

void compiled_graph::add(graph_tensor& t) {
  t.index = static_cast<std::uint32_t>(tensors.size());
  t.info.name = t.name.c_str();
  if (t.sparse) {
    t.info.max_rows = t.sparse->most_rows(batch, t.info);
    tables.push_back(&t);
  }
  tensors.push_back(t.info);
}

rg_model_info compiled_graph::describe() const {
  rg_model_info info{};
  info.tensor_count = static_cast<std::uint32_t>(tensors.size());
  info.tensors = tensors.data();
  info.inputs = inputs.data();
  info.input_count = static_cast<std::uint32_t>(inputs.size());
  info.metric_sums = static_cast<std::uint32_t>(metric_sums);
  info.metric = losses.front()->measured_by.name;
  info.count_kinds = count_kinds;
  info.unit = unit.c_str();
  info.tokens_input = tokens_input;
  return info;
}

void compiled_graph::rows(const rg_batch& b, std::span<rg_rows> out) const {
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const graph_tensor& t = *tables[i];
    t.sparse->collect(t.info, b);
    out[i].tensor = t.index;
    out[i].rows = t.sparse->touched.data();
    out[i].count = t.sparse->touched.size();
  }
}

double compiled_graph::metric(std::span<const double> sums) const {
  const measured& first = *losses.front();
  return first.measured_by.value(sums.data() + first.first_sum);
}

void compiled_graph::count(const rg_batch& b, std::span<std::uint64_t> counts) const {
  for (const measured* l : losses)
    if (l->counts()) counts[static_cast<std::size_t>(l->count_kind)] += l->count(b);
}

} // namespace executors
