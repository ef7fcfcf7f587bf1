// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense.hpp"

#include "runtime/memory_plan.hpp"
#include "tuning/kernel_choices.hpp"

#include <cstring>
#include <span>

namespace onednn {

namespace {

std::size_t elements(const matrix& m) {
  return (m.transposed ? m.columns : m.rows) * m.stride;
}

std::string text_of(const matrix& m) {
  return std::to_string(m.rows) + 'x' + std::to_string(m.columns) + '/' + std::to_string(m.stride) +
         (m.transposed ? "t " : " ");
}

// Returns `o` with the faster implementation chosen, matmul or gemm.
gemm_options choose_implementation(const preparation& p, const std::string& name, const matrix& a, const matrix& b,
                                   const matrix& c, gemm_options o) {
  if (o.half) return o;
  std::vector<gemm> trials;
  float* work = nullptr;
  const auto even = [](std::size_t n) { return (n + 15) / 16 * 16; };
  auto set_up = [&] {
    std::size_t scratch = 0;
    for (const bool sgemm : {false, true}) {
      o.sgemm = sgemm;
      trials.emplace_back(p.dev, a, b, c, o);
      scratch = std::max(scratch, trials.back().scratch_bytes());
    }
    work = p.choices.workspace(
        (even(elements(a)) + even(elements(b)) + even(elements(c)) + even(c.columns)) * sizeof(float) + scratch);
  };
  auto seconds = [&](std::size_t i) {
    if (trials.empty()) set_up();
    float *wb = work + even(elements(a)), *wc = wb + even(elements(b)), *bias = wc + even(elements(c));
    return seconds_of(
        [&] { trials[i].run(p.dev, work, wb, wc, bias, reinterpret_cast<std::byte*>(bias + even(c.columns))); });
  };
  const std::string shape = "gemm " + text_of(a) + text_of(b) + text_of(c) + std::to_string(o.bias);
  o.sgemm = p.choices.choose(name, shape, {"matmul", "gemm"}, seconds) == 1;
  return o;
}

} // namespace

void dense_gemms::prepare(const preparation& p, const std::string& name, const dense_shape& s) {
  dev_ = &p.dev;
  shape_ = s;
  const matrix x{s.rows, s.inputs, s.x_stride}, y{s.rows, s.outputs, s.y_stride}, w{s.outputs, s.inputs, s.inputs};
  const bool half = dev_->half;
  auto make = [&](const char* what, const matrix& a, const matrix& b, const matrix& c, bool c_half, bool bias,
                  std::span<gemm> made) { // of two, the second accumulates
    gemm_options o =
        choose_implementation(p, name + what, a, b, c, {.half = half, .half_result = c_half, .bias = bias});
    for (gemm& one : made) {
      one = gemm(p.dev, a, b, c, o);
      gemm_scratch_bytes_ = std::max(gemm_scratch_bytes_, one.scratch_bytes());
      o.accumulate = true;
    }
  };
  make(" forward", x, w.across(), y, s.y_half, s.bias, {&forward_, 1});
  make(" weight gradient", y.across(), x, w, false, false, weight_gradient_);
  if (s.data_gradient) make(" data gradient", y, w, x, s.x_half, false, data_gradient_);
  if (copies_y()) gemm_scratch_at_ = (s.rows * s.y_stride * sizeof(bf16) + 63) / 64 * 64;
}

void dense_gemms::plan(memory_plan& m) {
  if (copies_x()) x_slot_ = m.request_kept(shape_.rows * shape_.x_stride * sizeof(bf16));
  if (dev_->half) w_slot_ = m.request_kept(shape_.outputs * shape_.inputs * sizeof(bf16));
}

void dense_gemms::attach(const memory_plan& m) {
  x_ = m.at_slot<bf16>(x_slot_);
  w_ = m.at_slot<bf16>(w_slot_);
}

void dense_gemms::narrow(bf16* to, const void* from, std::size_t count) const {
  constexpr std::size_t slice = 4096;
  parallel(*dev_, (count + slice - 1) / slice, [&](std::size_t i) {
    dev_->kernels->elementwise.narrow(to + i * slice, static_cast<const float*>(from) + i * slice,
                                      std::min(slice, count - i * slice));
  });
}

void dense_gemms::forward(const void* x, const float* w, const float* bias, void* y) {
  if (copies_x()) narrow(x_, x, shape_.rows * shape_.x_stride);
  if (dev_->half) narrow(w_, w, shape_.outputs * shape_.inputs);
  forward_.run(*dev_, copies_x() ? x_ : x, dev_->half ? static_cast<const void*>(w_) : w, y, bias,
               dev_->scratch + gemm_scratch_at_);
}

void dense_gemms::weight_gradient(const void* x, const void* dy, float* dw, bool add) {
  if (copies_y()) narrow(reinterpret_cast<bf16*>(dev_->scratch), dy, shape_.rows * shape_.y_stride);
  weight_gradient_[add].run(*dev_, copies_y() ? dev_->scratch : dy, copies_x() ? x_ : x, dw, nullptr,
                            dev_->scratch + gemm_scratch_at_);
}

void dense_gemms::data_gradient(const float* w, const void* dy, void* dx, bool add) {
  // Lanes behind the last input would keep what another tensor left there, and a convolution before reads them.
  const std::size_t size = shape_.x_half ? sizeof(bf16) : sizeof(float);
  for (std::size_t r = 0; !add && shape_.x_stride > shape_.inputs && r < shape_.rows; ++r)
    std::memset(static_cast<std::byte*>(dx) + (r * shape_.x_stride + shape_.inputs) * size, 0,
                (shape_.x_stride - shape_.inputs) * size);
  data_gradient_[add].run(*dev_, copies_y() ? dev_->scratch : dy, dev_->half ? static_cast<const void*>(w_) : w, dx,
                          nullptr, dev_->scratch + gemm_scratch_at_);
}

void dense_gemms::report(const std::string& name, std::string& text) const {
  text += name + " forward: " + forward_.runs() + '\n';
  if (shape_.data_gradient) text += name + " data gradient: " + data_gradient_[0].runs() + '\n';
  text += name + " weight gradient: " + weight_gradient_[0].runs() + '\n';
}

} // namespace onednn
