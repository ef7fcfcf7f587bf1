// SPDX-License-Identifier: Apache-2.0
//
// Convolution of small images as one GEMM per tap: y[p] += x[q] * w[tap], for all output positions p at which the tap
// falls on an input position q. On an image of 2x2, a 3x3 kernel falls on padding in 20 of 36 cases, which are
// skipped here, while the direct algorithm computes them all.
//
// x and y are unpacked to [position][sample][channel]; weights are [tap][input channel][output channel].
#include "kernels/convolution.hpp"
#include "kernels/gemm.hpp"

#include <cstring>

namespace onednn {
namespace {

class taps_kernel final : public convolution_kernel {
public:
  taps_kernel(const device& dev, const convolution_shape& s, std::size_t batch, direction d)
      : convolution_kernel("taps", "sgemm per tap"), dev_(dev), shape_(s), batch_(batch), direction_(d) {
    const auto signed_of = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
    for (std::size_t kh = 0; kh < s.kernel; ++kh)
      for (std::size_t kw = 0; kw < s.kernel; ++kw)
        for (std::size_t oh = 0; oh < s.out_height; ++oh)
          for (std::size_t ow = 0; ow < s.out_width; ++ow) {
            const std::ptrdiff_t h = signed_of(oh * s.stride + kh) - signed_of(s.padding);
            const std::ptrdiff_t w = signed_of(ow * s.stride + kw) - signed_of(s.padding);
            if (h < 0 || w < 0 || h >= signed_of(s.height) || w >= signed_of(s.width)) continue;
            append({kh * s.kernel + kw, oh * s.out_width + ow,
                    static_cast<std::size_t>(h) * s.width + static_cast<std::size_t>(w), 1});
          }
    x_elements_ = s.height * s.width * batch * s.channels;
    y_elements_ = s.out_height * s.out_width * batch * s.outputs;
  }

  std::size_t scratch_bytes() const override { return (x_elements_ + y_elements_) * sizeof(float); }

  void run(const convolution_operands& data) override {
    auto* x = reinterpret_cast<float*>(data.scratch);
    float* y = x + x_elements_;
    const std::size_t c = shape_.channels, o = shape_.outputs, n = batch_;
    if (direction_ == direction::data)
      std::memset(x, 0, x_elements_ * sizeof(float));
    else
      unpack(static_cast<const float*>(data.x), x, c, shape_.height * shape_.width);
    if (direction_ == direction::forward)
      std::memset(y, 0, y_elements_ * sizeof(float));
    else
      unpack(static_cast<const float*>(data.y), y, o, shape_.out_height * shape_.out_width);

    std::size_t last_tap = ~std::size_t{0};
    for (const tap_gemm& p : gemms_) {
      float* xq = x + p.in * n * c;
      float* yp = y + p.out * n * o;
      float* w = data.w + p.tap * c * o;
      switch (direction_) {
      case direction::forward: sgemm('N', 'N', p.count * n, o, c, xq, c, w, o, 1, yp, o); break;
      case direction::data: sgemm('N', 'T', p.count * n, c, o, yp, o, w, o, 1, xq, c); break;
      case direction::weights:
        sgemm('T', 'N', c, o, p.count * n, xq, c, yp, o, data.add_to_w || p.tap == last_tap ? 1.0F : 0.0F, w, o);
        last_tap = p.tap;
        break;
      }
    }
    if (direction_ == direction::weights) finish_weights(data, y);
    if (direction_ == direction::forward)
      pack(y, static_cast<float*>(data.y), o, shape_.out_height * shape_.out_width, data.bias);
    if (direction_ == direction::data) pack(x, static_cast<float*>(data.x), c, shape_.height * shape_.width, nullptr);
  }

private:
  // At this tap, positions out .. out + count of y read positions in .. in + count of x.
  struct tap_gemm {
    std::size_t tap, out, in, count;
  };

  // Joins adjacent positions into one GEMM with more rows.
  void append(const tap_gemm& p) {
    if (!gemms_.empty()) {
      tap_gemm& last = gemms_.back();
      if (last.tap == p.tap && last.out + last.count == p.out && last.in + last.count == p.in) {
        ++last.count;
        return;
      }
    }
    gemms_.push_back(p);
  }

  // Clears the gradients of taps that never fall on the input, and computes the gradient of the bias.
  void finish_weights(const convolution_operands& data, const float* y) const {
    const std::size_t taps = shape_.kernel * shape_.kernel, size = shape_.channels * shape_.outputs;
    if (!data.add_to_w)
      for (std::size_t t = 0, next = 0; t < taps; ++t) {
        bool used = false;
        for (; next < gemms_.size() && gemms_[next].tap == t; ++next) used = true;
        if (!used) std::memset(data.w + t * size, 0, size * sizeof(float));
      }
    if (!data.bias || !shape_.bias) return;
    if (!data.add_to_bias) std::memset(data.bias, 0, shape_.outputs * sizeof(float));
    for (std::size_t row = 0; row < y_elements_ / shape_.outputs; ++row)
      dev_.kernels->elementwise.add(data.bias, y + row * shape_.outputs, shape_.outputs);
  }

  // Convert [sample][block][position][lane] to [position][sample][channel], and back with a bias added.
  void unpack(const float* blocked, float* rows, std::size_t channels, std::size_t positions) const {
    each_run(channels, positions, [&](std::size_t at, std::size_t row, std::size_t, std::size_t count) {
      std::memcpy(rows + row, blocked + at, count * sizeof(float));
    });
  }
  void pack(const float* rows, float* blocked, std::size_t channels, std::size_t positions, const float* bias) const {
    const std::size_t lanes = dev_.kernels->lanes;
    each_run(channels, positions, [&](std::size_t at, std::size_t row, std::size_t channel, std::size_t count) {
      std::memcpy(blocked + at, rows + row, count * sizeof(float));
      if (bias)
        for (std::size_t l = 0; l < count; ++l) blocked[at + l] += bias[channel + l];
      if (count < lanes) std::memset(blocked + at + count, 0, (lanes - count) * sizeof(float));
    });
  }
  // Calls f(offset in the blocked layout, offset in rows, first channel, channels) for every block of every position.
  template <class F> void each_run(std::size_t channels, std::size_t positions, const F& f) const {
    const std::size_t lanes = dev_.kernels->lanes, blocks = (channels + lanes - 1) / lanes;
    parallel(dev_, batch_, [&](std::size_t n) {
      for (std::size_t b = 0; b < blocks; ++b)
        for (std::size_t p = 0; p < positions; ++p)
          f(((n * blocks + b) * positions + p) * lanes, (p * batch_ + n) * channels + b * lanes, b * lanes,
            std::min(lanes, channels - b * lanes));
    });
  }

  const device& dev_;
  convolution_shape shape_;
  std::size_t batch_, x_elements_, y_elements_;
  direction direction_;
  std::vector<tap_gemm> gemms_; // in order of taps
};

} // namespace

std::unique_ptr<convolution_kernel> make_taps_kernel(const device& dev, const convolution_shape& s, std::size_t batch,
                                                     direction d) {
  return std::make_unique<taps_kernel>(dev, s, batch, d);
}

} // namespace onednn
