// SPDX-License-Identifier: Apache-2.0
#include "optimizer/kernels.hpp"

#include "memory/vectorised.hpp"

#include <cmath>

namespace regatta::optimizer_kernels {

// The coefficients are taken by value into the loops: read through a reference they could alias the weights.

REGATTA_VECTORISED void sgd(const coefficients& by_reference, float* __restrict w, const float* __restrict g,
                            std::size_t n) noexcept {
  const coefficients c = by_reference;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    w[i] -= c.lr * d;
  }
}

REGATTA_VECTORISED void momentum(const coefficients& by_reference, float* __restrict w, const float* __restrict g,
                                 float* __restrict a, std::size_t n) noexcept {
  const coefficients c = by_reference;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    const float v = c.first * a[i] + d;
    a[i] = v;
    w[i] -= c.lr * v;
  }
}

REGATTA_VECTORISED void nesterov(const coefficients& by_reference, float* __restrict w, const float* __restrict g,
                                 float* __restrict a, std::size_t n) noexcept {
  const coefficients c = by_reference;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    const float v = c.first * a[i] + d;
    a[i] = v;
    w[i] -= c.lr * (d + c.first * v);
  }
}

REGATTA_VECTORISED void adagrad(const coefficients& by_reference, float* __restrict w, const float* __restrict g,
                                float* __restrict a, std::size_t n) noexcept {
  const coefficients c = by_reference;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    const float h = a[i] + d * d;
    a[i] = h;
    w[i] -= c.lr * d / (std::sqrt(h) + c.epsilon);
  }
}

REGATTA_VECTORISED void adam(const coefficients& by_reference, float* __restrict w, const float* __restrict g,
                             float* __restrict a, float* __restrict b, std::size_t n) noexcept {
  const coefficients c = by_reference;
  for (std::size_t i = 0; i < n; ++i) {
    const float d = g[i] * c.factor + c.decay * w[i];
    const float m = c.first * a[i] + c.one_minus_first * d;
    const float v = c.second * b[i] + c.one_minus_second * (d * d);
    a[i] = m;
    b[i] = v;
    w[i] -= c.lr * m / (std::sqrt(v) + c.epsilon);
  }
}

void update(const coefficients& c, float* w, const float* g, std::size_t n) noexcept {
  switch (c.rule) {
  case RG_SGD: sgd(c, w, g, n); break;
  case RG_MOMENTUM: momentum(c, w, g, c.a, n); break;
  case RG_NESTEROV: nesterov(c, w, g, c.a, n); break;
  case RG_ADAGRAD: adagrad(c, w, g, c.a, n); break;
  case RG_ADAM: adam(c, w, g, c.a, c.b, n); break;
  default: break;
  }
}

} // namespace regatta::optimizer_kernels
