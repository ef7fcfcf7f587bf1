// SPDX-License-Identifier: Apache-2.0
#include "ops/cosine.hpp"

#include "runtime/memory_plan.hpp"

#include <cmath>

namespace onednn {

void cosine::plan(memory_plan& m) {
  batch_ = m.batch();
  slot_ = m.request_kept(batch_ * sizeof(sizes));
  for (edge& e : inputs_) e.from->kept = true;
}

void cosine::attach(const memory_plan& m) {
  sizes_ = m.at_slot<sizes>(slot_);
}

void cosine::forward(run&) {
  const value &a = *inputs_[0].from, &b = *inputs_[1].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    float products[3];
    dev_.kernels->elementwise.dot_products(a.data + s * a.stride, b.data + s * b.stride, a.channels(), products);
    const float lengths = std::sqrt(products[1]) * std::sqrt(products[2]);
    if (lengths < 1e-12F)
      sizes_[s] = {};
    else
      sizes_[s] = {products[0] / lengths, products[1], products[2]};
    out.data[s * out.stride] = sizes_[s].cosine;
  });
}

// With c the cosine: dc/da = b / (|a| |b|) - a c / |a|^2, and dc/db by exchanging a and b.
void cosine::backward(run&) {
  const value &a = *inputs_[0].from, &b = *inputs_[1].from, &out = *output_;
  parallel(dev_, batch_, [&](std::size_t s) {
    const sizes z = sizes_[s];
    const float* x[2] = {a.data + s * a.stride, b.data + s * b.stride};
    const float square[2] = {z.a, z.b}, dy = out.gradient[s * out.stride];
    const float across = z.b > 0 ? dy / (std::sqrt(z.a) * std::sqrt(z.b)) : 0.0F;
    for (std::size_t i = 0; i < 2; ++i)
      if (inputs_[i].gradient)
        dev_.kernels->elementwise.combine(across, x[1 - i], z.b > 0 ? -dy * z.cosine / square[i] : 0.0F, x[i],
                                          inputs_[i].gradient + s * a.stride, a.stride);
  });
}

} // namespace onednn
