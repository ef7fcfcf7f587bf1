// SPDX-License-Identifier: Apache-2.0
//
// Convolution in bf16 as a GEMM ("im2col"): for many shapes oneDNN 2.6 runs a GEMM several times as fast as a
// convolution, above all with AMX. Rows are unfolded in groups that are still in the cache when the GEMM reads them.
//
//   forward          y [position, O]   = x unfolded [position, tap C]      * w [tap C, O]
//   data gradient    dx [position, C]  = dy unfolded [position, tap O]     * w [tap O, C]
//   weight gradient  dw [tap C, O]    += (x unfolded)^T [tap C, position]  * dy [position, O]
#include "kernels/convolution.hpp"
#include "kernels/gemm.hpp"

#include <algorithm>
#include <cstring>

namespace onednn {

namespace {

constexpr std::size_t lanes = 16; // of a channel block; instruction sets with other blocks have no fast bf16

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

// The shape of an activation in blocks: x or y of the convolution.
struct map {
  std::size_t channels, height, width;
  std::size_t positions() const { return height * width; }
};

class matmul_kernel final : public convolution_kernel {
public:
  matmul_kernel(const device& dev, const convolution_shape& s, const desc& weights, std::size_t batch, direction d)
      : convolution_kernel("matmul", ""), dev_(dev), shape_(s),
        direction_(d), x_{s.channels, s.height, s.width}, y_{s.outputs, s.out_height, s.out_width},
        unfolded_(d == direction::data ? y_ : x_), rows_(d == direction::data ? x_ : y_), taps_(s.kernel * s.kernel),
        all_(batch * rows_.positions()) {
    const std::size_t depth = taps_ * unfolded_.channels, width = rows_.channels;
    constexpr std::size_t cached = std::size_t{1} << 20;
    group_ = std::min(round_up(all_, 16), std::max<std::size_t>(256, cached / (depth * sizeof(bf16)) / 16 * 16));
    const bool gradient = d == direction::weights;
    const matrix a{group_, depth, depth}, b{depth, width, width}, c{group_, width, width};
    gemm_ = gradient
                ? gemm(dev, a.across(), c, b, {.half = true, .accumulate = true})
                : gemm(dev, a, b, c, {.half = true, .half_result = true, .bias = s.bias && d == direction::forward});
    runs_ = "unfolded, " + gemm_.runs();

    // Inner weights are [tap][from][to]; the columns of the GEMM are `to`.
    const auto i = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
    const auto o_stride = i(d == direction::data ? s.channels : 1), c_stride = i(d == direction::data ? 1 : s.outputs);
    const dnnl_dim_t tap = i(s.channels * s.outputs);
    const desc inner(s.w(), gradient ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16,
                     {o_stride, c_stride, tap * i(s.kernel), tap});
    outer_ = dev.wrap(weights);
    inner_ = dev.wrap(inner);
    weight_elements_ = weights.get_size() / sizeof(float);
    reorder_ = gradient ? dnnl::reorder(inner_, outer_) : dnnl::reorder(outer_, inner_);

    auto take = [&](std::size_t bytes) { return std::exchange(scratch_, scratch_ + round_up(bytes, 64)); };
    unfolded_at_ = take(group_ * depth * sizeof(bf16));
    rows_at_ = take(group_ * width * sizeof(bf16));
    weights_at_ = take(inner.get_size());
    added_at_ = take(gradient ? weights.get_size() : 0);
    gemm_scratch_at_ = take(gemm_.scratch_bytes());
  }

  std::size_t scratch_bytes() const override { return scratch_; }

  void run(const convolution_operands& data) override {
    auto* unfolded = reinterpret_cast<bf16*>(data.scratch + unfolded_at_);
    auto* rows = reinterpret_cast<bf16*>(data.scratch + rows_at_);
    std::byte* weights = data.scratch + weights_at_;
    inner_.set_data_handle(weights);
    const bool gradient = direction_ == direction::weights, data_side = direction_ == direction::data;
    if (gradient) {
      std::memset(weights, 0, inner_.get_desc().get_size());
      if (data.bias && !data.add_to_bias) std::memset(data.bias, 0, shape_.outputs * sizeof(float));
    } else {
      convert(data.w, outer_, inner_);
    }
    const auto* from = static_cast<const bf16*>(data_side ? data.y : data.x);
    auto* to = static_cast<bf16*>(data_side ? data.x : data.y);
    for (std::size_t first = 0; first < all_; first += group_) {
      const std::size_t count = std::min(group_, all_ - first);
      unfold(from, first, count, unfolded);
      if (gradient) {
        deal(first, count, [&](std::size_t row, std::size_t at) { gather(to + at, rows + row * rows_.channels); });
        if (count < group_)
          std::memset(static_cast<void*>(rows + count * rows_.channels), 0,
                      (group_ - count) * rows_.channels * sizeof(bf16));
        if (data.bias && shape_.bias) add_rows(rows, count, data.bias);
        gemm_.run(dev_, unfolded, rows, weights, nullptr, data.scratch + gemm_scratch_at_);
      } else {
        gemm_.run(dev_, unfolded, reinterpret_cast<const bf16*>(weights), rows, data.bias,
                  data.scratch + gemm_scratch_at_);
        deal(first, count, [&](std::size_t row, std::size_t at) { scatter(rows + row * rows_.channels, to + at); });
      }
    }
    if (!gradient) return;
    auto* added = reinterpret_cast<float*>(data.scratch + added_at_);
    convert(data.add_to_w ? added : data.w, inner_, outer_);
    if (data.add_to_w) dev_.kernels->elementwise.add(data.w, added, weight_elements_);
  }

private:
  void convert(float* weights, const dnnl::memory& from, const dnnl::memory& to) {
    outer_.set_data_handle(weights);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
    dnnl::error::wrap_c_api(dnnl_primitive_execute(reorder_.get(), dev_.stream.get(), 2, args),
                            "weights could not be converted");
  }

  // Calls f(row of the group, offset of its first channels) for positions first .. first + count, counted over all
  // samples.
  template <class F> void deal(std::size_t first, std::size_t count, const F& f) const {
    const std::size_t positions = rows_.positions(), sample = positions * rows_.channels;
    parallel(dev_, count, [&](std::size_t row) {
      const std::size_t p = first + row;
      f(row, p / positions * sample + p % positions * lanes);
    });
  }
  void gather(const bf16* blocked, bf16* row) const {
    for (std::size_t b = 0; b < rows_.channels; b += lanes)
      std::memcpy(row + b, blocked + b * rows_.positions(), lanes * sizeof(bf16));
  }
  void scatter(const bf16* row, bf16* blocked) const {
    for (std::size_t b = 0; b < rows_.channels; b += lanes)
      std::memcpy(blocked + b * rows_.positions(), row + b, lanes * sizeof(bf16));
  }

  // Fills a row per position with the elements under its taps, and with zeros where a tap falls on padding. The rows
  // from `count` to the group's end become zero.
  void unfold(const bf16* from, std::size_t first, std::size_t count, bf16* to) const {
    const std::size_t channels = unfolded_.channels, depth = taps_ * channels, positions = rows_.positions();
    parallel(dev_, count, [&](std::size_t row) {
      const std::size_t p = (first + row) % positions, h = p / rows_.width, w = p % rows_.width;
      const bf16* sample = from + (first + row) / positions * unfolded_.positions() * channels;
      bf16* out = to + row * depth;
      for (std::size_t kh = 0; kh < shape_.kernel; ++kh)
        for (std::size_t kw = 0; kw < shape_.kernel; ++kw, out += channels) {
          const std::ptrdiff_t at_h = meets(h, kh, unfolded_.height), at_w = meets(w, kw, unfolded_.width);
          if (at_h < 0 || at_w < 0) {
            std::memset(static_cast<void*>(out), 0, channels * sizeof(bf16));
            continue;
          }
          const bf16* in =
              sample + (static_cast<std::size_t>(at_h) * unfolded_.width + static_cast<std::size_t>(at_w)) * lanes;
          for (std::size_t b = 0; b < channels; b += lanes)
            std::memcpy(out + b, in + b * unfolded_.positions(), lanes * sizeof(bf16));
        }
    });
    if (count < group_) std::memset(static_cast<void*>(to + count * depth), 0, (group_ - count) * depth * sizeof(bf16));
  }

  // Returns the index on the unfolded side that tap k of index i reads, in one dimension; -1 if there is none.
  std::ptrdiff_t meets(std::size_t i, std::size_t k, std::size_t size) const {
    const auto n = [](std::size_t v) { return static_cast<std::ptrdiff_t>(v); };
    std::ptrdiff_t at = 0;
    if (direction_ == direction::data) { // y at `at` read x at i through this tap
      at = n(i + shape_.padding) - n(k);
      if (at < 0 || at % n(shape_.stride) != 0) return -1;
      at /= n(shape_.stride);
    } else {
      at = n(i * shape_.stride + k) - n(shape_.padding);
    }
    return at < n(size) ? at : -1;
  }

  void add_rows(const bf16* rows, std::size_t count, float* bias) const {
    for (std::size_t row = 0; row < count; ++row)
      for (std::size_t o = 0; o < rows_.channels; ++o) bias[o] += static_cast<float>(rows[row * rows_.channels + o]);
  }

  const device& dev_;
  convolution_shape shape_;
  direction direction_;
  map x_, y_, unfolded_, rows_;
  std::size_t taps_, all_, group_ = 0, weight_elements_ = 0;
  gemm gemm_;
  dnnl::memory outer_, inner_; // weights: in the model's layout, and in the GEMM's
  dnnl::primitive reorder_;
  std::size_t scratch_ = 0, unfolded_at_ = 0, rows_at_ = 0, weights_at_ = 0, added_at_ = 0, gemm_scratch_at_ = 0;
};

} // namespace

std::unique_ptr<convolution_kernel> make_matmul_kernel(const device& dev, const convolution_shape& s,
                                                       const desc& weights, std::size_t batch, direction d) {
  if (s.plain_input || dev.kernels->lanes != lanes || s.channels % lanes != 0 || s.outputs % lanes != 0) return nullptr;
  return std::make_unique<matmul_kernel>(dev, s, weights, batch, d);
}

} // namespace onednn
