// SPDX-License-Identifier: Apache-2.0
#include "ops/loss.hpp"

#include "../common/weights.hpp"

namespace cudnn {

void cross_entropy::prepare(device& d) {
  loss::prepare(d);
  losses_.reserve(rows(batch) * sizeof(double));
  plain_.reserve(rows(batch) * sizeof(double));
  shifts_.reserve(rows(batch) * sizeof(float));
  right_.reserve(rows(batch) * sizeof(std::int32_t));
}

void cross_entropy::vary(const run& r) {
  loss::vary(r);
  executors::check_labels(r.batch, static_cast<std::size_t>(inputs_[1].from->input), r.samples(),
                          inputs_[0].from->elements());
}

void cross_entropy::forward(device& d, const run& r) {
  const std::size_t n = rows(r.samples());
  kernels::cross_entropy(d.stream, inputs_[0].from->type, what(r.samples()), x(),
                         {losses_.get<double>(), plain_.get<double>(), shifts_.get(), right_.get<std::int32_t>()});
  if (r.training) {
    kernels::total(d.stream, losses_.get<double>(), n, r.losses + number, false);
    return;
  }
  double* sums = r.sums + first_sum;
  kernels::total(d.stream, right_.get<std::int32_t>(), n, sums, true);
  kernels::count_labels(d.stream, inputs_[1].from->indices(), ignored_, n, sums + 1);
  kernels::total(d.stream, losses_.get<double>(), n, sums + 2, true);
}

void cross_entropy::backward(device& d, const run&) {
  if (dx())
    kernels::cross_entropy_gradient(d.stream, inputs_[0].from->type, what(batch), x(), shifts_.get(), share_.device(),
                                    dx(), inputs_[0].add);
}

void token_cross_entropy::vary(const run& r) {
  set_share(r);
  const value& in = *inputs_[1].from;
  executors::checked_indices(r.batch, static_cast<std::size_t>(in.input), in.name, in.elements(), r.samples(),
                             classes_);
}

void token_cross_entropy::forward(device& d, const run& r) {
  cross_entropy::forward(d, r);
  if (!r.training) kernels::total(d.stream, plain_.get<double>(), rows(r.samples()), r.sums + first_sum + 3, true);
}

// ------------------------------------------------------------------------------------------ area under the curve ---

void auc_cross_entropy::prepare(device& d) {
  loss::prepare(d);
  losses_.reserve(batch * sizeof(double));
  wrong_.reserve(batch * sizeof(float));
  histogram_.reserve(2 * std::size_t{buckets_} * sizeof(unsigned long long));
}

void auc_cross_entropy::vary(const run& r) {
  loss::vary(r);
  executors::check_labels(r.batch, static_cast<std::size_t>(inputs_[1].from->input), r.samples(), 2);
}

void auc_cross_entropy::forward(device& d, const run& r) {
  const std::size_t n = r.samples();
  auto* histogram = r.training ? nullptr : histogram_.get<unsigned long long>();
  if (histogram) d.clear(histogram, histogram_.bytes());
  kernels::two_classes(d.stream, inputs_[0].from->type, {n, buckets_, inputs_[1].from->indices()}, x(),
                       losses_.get<double>(), wrong_.get(), histogram);
  if (r.training) {
    kernels::total(d.stream, losses_.get<double>(), n, r.losses + number, false);
    return;
  }
  double* sums = r.sums + first_sum;
  kernels::add_counts(d.stream, histogram, 2 * std::size_t{buckets_}, sums);
  kernels::count_labels(d.stream, inputs_[1].from->indices(), -1, n, sums + 2 * std::size_t{buckets_});
  kernels::total(d.stream, losses_.get<double>(), n, sums + 2 * std::size_t{buckets_} + 1, true);
}

void auc_cross_entropy::backward(device& d, const run&) {
  if (dx())
    kernels::two_classes_gradient(d.stream, inputs_[0].from->type, {batch, buckets_, inputs_[1].from->indices()},
                                  wrong_.get(), share_.device(), dx(), inputs_[0].add);
}

// -------------------------------------------------------------------------------------------------------- hinge ---

void pairwise_hinge::prepare(device& d) {
  loss::prepare(d);
  losses_.reserve(batch * sizeof(double));
  right_.reserve(batch * sizeof(std::int32_t));
}

void pairwise_hinge::forward(device& d, const run& r) {
  const std::size_t n = r.samples();
  kernels::hinge(d.stream, inputs_[0].from->type, x(0), x(1), margin_, losses_.get<double>(),
                 right_.get<std::int32_t>(), n);
  if (r.training) {
    kernels::total(d.stream, losses_.get<double>(), n, r.losses + number, false);
    return;
  }
  double* sums = r.sums + first_sum;
  kernels::total(d.stream, right_.get<std::int32_t>(), n, sums, true);
  kernels::add_number(d.stream, static_cast<double>(n), sums + 1);
  kernels::total(d.stream, losses_.get<double>(), n, sums + 2, true);
}

void pairwise_hinge::backward(device& d, const run&) {
  for (std::size_t i = 0; i < 2; ++i)
    if (dx(i))
      kernels::hinge_gradient(d.stream, inputs_[0].from->type, x(0), x(1), margin_, i == 0 ? -1.0F : 1.0F,
                              share_.device(), dx(i), batch, inputs_[i].add);
}

} // namespace cudnn
