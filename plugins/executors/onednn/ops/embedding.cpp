// SPDX-License-Identifier: Apache-2.0
#include "ops/embedding.hpp"

#include "../common/weights.hpp"
#include "ops/sequence.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace onednn {

const std::int32_t* checked_indices(const run& r, const value& input, std::size_t samples, std::size_t range) {
  return executors::checked_indices(*r.batch, static_cast<std::size_t>(input.input), input.name, input.elements(),
                                    samples, range);
}

token_embedding::token_embedding(std::string name, value* indices, value* out, weight* table, weight* places,
                                 double scale, bool sinusoids, const device& dev)
    : op(std::move(name), {indices}, out), dev_(dev), table_(table), places_(places),
      scale_(static_cast<float>(scale)) {
  weights_ = {table};
  if (places) weights_.push_back(places);
  if (sinusoids) sinusoids_.resize(out->elements());
}

void token_embedding::plan(memory_plan& m) {
  batch_ = m.batch();
  const std::size_t size = features(*output_);
  for (std::size_t i = 0; i < sinusoids_.size(); ++i) {
    const std::size_t t = i / size, f = i % size;
    const double angle =
        static_cast<double>(t) / std::pow(10000.0, static_cast<double>(f - f % 2) / static_cast<double>(size));
    sinusoids_[i] = static_cast<float>(f % 2 ? std::cos(angle) : std::sin(angle));
  }
}

void token_embedding::forward(run& r) {
  indices_ = checked_indices(r, *inputs_[0].from, batch_, rows());
  const std::size_t length = places(*output_), size = features(*output_);
  parallel(dev_, batch_, [&](std::size_t s) {
    for (std::size_t t = 0; t < length; ++t) {
      const auto row = static_cast<std::size_t>(indices_[s * length + t]);
      float* y = output_->data + (s * length + t) * size;
      const float* start = !sinusoids_.empty() ? sinusoids_.data() + t * size
                           : places_           ? places_->data + t * size
                                               : nullptr;
      if (start)
        std::memcpy(y, start, size * sizeof(float));
      else
        std::fill_n(y, size, 0.0F);
      if (!sinusoids_.empty() && places_) dev_.kernels->sequence.axpy(y, 1, places_->data + t * size, size);
      dev_.kernels->sequence.axpy(y, scale_, table_->data + row * size, size);
    }
  });
}

// Each thread updates some of the features of all rows, so that sums do not depend on the number of threads.
void token_embedding::backward(run& r) {
  const std::size_t length = places(*output_), size = features(*output_);
  const auto threads = static_cast<std::size_t>(dev_.threads);
  for (weight* w : weights_)
    if (!adds(r, *w)) std::fill_n(w->gradient, rg::storage_of(w->info), 0.0F);
  parallel(dev_, threads, [&](std::size_t part) {
    const std::size_t first = size * part / threads, count = size * (part + 1) / threads - first;
    for (std::size_t i = 0; i < batch_ * length; ++i) {
      const float* g = output_->gradient + i * size + first;
      dev_.kernels->sequence.axpy(table_->gradient + static_cast<std::size_t>(indices_[i]) * size + first, scale_, g,
                                  count);
      if (places_) dev_.kernels->sequence.axpy(places_->gradient + i % length * size + first, 1, g, count);
    }
  });
}

void take_places::plan(memory_plan& m) {
  batch_ = m.batch();
}

void take_places::forward(run& r) {
  const value& in = *inputs_[0].from;
  if (inputs_.size() > 1) indices_ = checked_indices(r, *inputs_[1].from, batch_, places(in));
  const std::size_t size = features(in), taken = places(*output_);
  parallel(dev_, batch_, [&](std::size_t s) {
    for (std::size_t m = 0; m < taken; ++m)
      std::memcpy(output_->data + (s * taken + m) * size, in.data + s * in.stride + place(s, m) * size,
                  size * sizeof(float));
  });
}

void take_places::backward(run&) {
  const edge& e = inputs_[0];
  if (!e.gradient) return;
  const std::size_t size = features(*output_), taken = places(*output_), all = e.from->stride;
  parallel(dev_, batch_, [&](std::size_t s) {
    std::fill_n(e.gradient + s * all, all, 0.0F);
    for (std::size_t m = 0; m < taken; ++m)
      dev_.kernels->add(e.gradient + s * all + place(s, m) * size, output_->gradient + (s * taken + m) * size, size);
  });
}

} // namespace onednn
