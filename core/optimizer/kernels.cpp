// SPDX-License-Identifier: Apache-2.0
#include "optimizer/kernels.hpp"

#include <regatta/simd.hpp>

#include <cmath>

namespace regatta::optimizer_kernels {
namespace {

// The coefficients are passed by value: through a reference they could alias the weights.
#define OPTIMIZER_LOOP inline __attribute__((always_inline))

OPTIMIZER_LOOP void sgd(coefficients c, float* __restrict w, const float* __restrict g, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    w[i] -= c.lr * d;
  }
}

template <bool Nesterov>
OPTIMIZER_LOOP void momentum(coefficients c, float* __restrict w, const float* __restrict g, float* __restrict a,
                             std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    const float v = c.first * a[i] + d;
    a[i] = v;
    w[i] -= c.lr * (Nesterov ? d + c.first * v : v);
  }
}

OPTIMIZER_LOOP void adagrad(coefficients c, float* __restrict w, const float* __restrict g, float* __restrict a,
                            std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    const float h = a[i] + d * d;
    a[i] = h;
    w[i] -= c.lr * d / (std::sqrt(h) + c.epsilon);
  }
}

OPTIMIZER_LOOP void adam(coefficients c, float* __restrict w, const float* __restrict g, float* __restrict a,
                         float* __restrict b, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    const float m = c.first * a[i] + c.one_minus_first * d;
    const float v = c.second * b[i] + c.one_minus_second * (d * d);
    a[i] = m;
    b[i] = v;
    w[i] -= c.lr * m / (std::sqrt(v) + c.epsilon);
  }
}

OPTIMIZER_LOOP void by_rule(const coefficients& c, float* w, const float* g, float* a, float* b,
                            std::size_t n) noexcept {
  switch (c.rule) {
  case RG_SGD: sgd(c, w, g, n); break;
  case RG_MOMENTUM: momentum<false>(c, w, g, a, n); break;
  case RG_NESTEROV: momentum<true>(c, w, g, a, n); break;
  case RG_ADAGRAD: adagrad(c, w, g, a, n); break;
  case RG_ADAM: adam(c, w, g, a, b, n); break;
  default: break;
  }
}

void update_loop(const coefficients& c, float* w, const float* g, std::size_t n) noexcept {
  by_rule(c, w, g, c.a, c.b, n);
}

void update_rows_loop(const coefficients& c, float* const* rows, const float* g, std::size_t n,
                      std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) by_rule(c, rows[i], g + i * n, rows[i] + n, rows[i] + 2 * n, n);
}

} // namespace

void update(const coefficients& c, float* w, const float* g, std::size_t n) noexcept {
  rg::simd::widest<update_loop>(c, w, g, n);
}

void update_rows(const coefficients& c, float* const* rows, const float* g, std::size_t n, std::size_t count) noexcept {
  rg::simd::widest<update_rows_loop>(c, rows, g, n, count);
}

} // namespace regatta::optimizer_kernels
