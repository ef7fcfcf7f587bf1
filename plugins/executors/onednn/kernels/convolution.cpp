// SPDX-License-Identifier: Apache-2.0
#include "kernels/convolution.hpp"

#include "kernels/primitives.hpp"

#include <algorithm>
#include <array>

namespace onednn {

using dims = dnnl::memory::dims;
using data_type = dnnl::memory::data_type;

namespace {

std::int64_t i64(std::size_t n) {
  return static_cast<std::int64_t>(n);
}

std::size_t round_up(std::size_t n) {
  return (n + 63) / 64 * 64;
}

// Descriptors from which oneDNN makes a kernel. Format tag `any` leaves the layout to oneDNN.
struct layouts {
  dnnl::algorithm algorithm;
  desc x, w, y;
  desc dw; // as w, but always fp32
};

} // namespace

const char* name_of(direction d) {
  switch (d) {
  case direction::forward: return "forward";
  case direction::data: return "data gradient";
  case direction::weights: return "weight gradient";
  }
  return "";
}

dims convolution_shape::x(std::size_t n) const {
  return {i64(n), i64(channels), i64(height), i64(width)};
}
dims convolution_shape::w() const {
  return {i64(outputs), i64(channels), i64(kernel), i64(kernel)};
}
dims convolution_shape::y(std::size_t n) const {
  return {i64(n), i64(outputs), i64(out_height), i64(out_width)};
}

namespace {

// A convolution of oneDNN, with reorders where its layouts differ from the caller's.
class primitive_kernel final : public convolution_kernel {
public:
  primitive_kernel(const device& dev, const convolution_shape& s, const layouts& want, const desc& x, const desc& w,
                   const desc& y, direction d, const char* algorithm)
      : convolution_kernel(algorithm, ""), dev_(dev), direction_(d), bias_elements_(s.outputs) {
    const dims steps = {i64(s.stride), i64(s.stride)}, pads = {i64(s.padding), i64(s.padding)};
    const desc bias = s.bias && d != direction::data ? desc({i64(s.outputs)}, data_type::f32, tag::a) : desc();
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    convolution_description description{want.algorithm, want.x, want.w, bias, want.y, steps, pads};
    const auto forward = forward_of(description, attr, dev.engine);
    desc scratchpad;
    if (d == direction::forward) {
      primitive_ = dnnl::convolution_forward(forward);
      runs_ = forward.impl_info_str();
      scratchpad = forward.scratchpad_desc();
      x_ = input(x, forward.src_desc());
      w_ = input(w, forward.weights_desc());
      y_ = output(forward.dst_desc(), y);
    } else if (d == direction::data) {
      const auto pd = data_gradient_of(description, attr, dev.engine, forward);
      primitive_ = dnnl::convolution_backward_data(pd);
      runs_ = pd.impl_info_str();
      scratchpad = pd.scratchpad_desc();
      x_ = output(pd.diff_src_desc(), x);
      w_ = input(w, pd.weights_desc());
      y_ = input(y, pd.diff_dst_desc());
    } else {
      description.w = want.dw;
      const auto pd = weight_gradient_of(description, attr, dev.engine, forward);
      primitive_ = dnnl::convolution_backward_weights(pd);
      runs_ = pd.impl_info_str();
      scratchpad = pd.scratchpad_desc();
      x_ = input(x, pd.src_desc());
      w_ = output(pd.diff_weights_desc(), w);
      y_ = input(y, pd.diff_dst_desc());
    }
    if (s.bias && d != direction::data) bias_ = dev.wrap(bias);
    weight_elements_ = w.get_size() / sizeof(float);
    scratchpad_ = dev.wrap(scratchpad);
    scratchpad_at_ = scratch_;
    scratch_ += round_up(scratchpad.get_size());
    added_at_ = scratch_; // where gradients are computed before they are added to others
    if (d == direction::weights) scratch_ += round_up(w.get_size()) + round_up(bias.get_size());
  }

  std::size_t scratch_bytes() const override { return scratch_; }

  void run(const convolution_operands& data) override {
    const bool gradients = direction_ == direction::weights;
    const bool add_to_w = gradients && data.add_to_w, add_to_bias = gradients && bias_ && data.add_to_bias;
    auto* added = reinterpret_cast<float*>(data.scratch + added_at_);
    float* bias = add_to_bias ? added + round_up(weight_elements_ * sizeof(float)) / sizeof(float) : data.bias;
    scratchpad_.set_data_handle(data.scratch + scratchpad_at_);
    set_memory(x_, data.x, data.scratch);
    set_memory(w_, add_to_w ? added : data.w, data.scratch);
    set_memory(y_, data.y, data.scratch);
    if (bias_) bias_.set_data_handle(bias);

    before(x_);
    before(w_);
    before(y_);
    const bool forward = direction_ == direction::forward;
    const int x = direction_ == direction::data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC;
    const int w = direction_ == direction::weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS;
    std::array<dnnl_exec_arg_t, 5> args = {{{x, x_.inner.get()},
                                            {w, w_.inner.get()},
                                            {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y_.inner.get()},
                                            {DNNL_ARG_SCRATCHPAD, scratchpad_.get()}}};
    int count = 4;
    if (bias_) args[count++] = {forward ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS, bias_.get()};
    execute(primitive_, args.data(), count);
    after(x_);
    after(w_);
    after(y_);
    if (add_to_w) dev_.kernels->elementwise.add(data.w, added, weight_elements_);
    if (add_to_bias) dev_.kernels->elementwise.add(data.bias, bias, bias_elements_);
  }

private:
  // One of x, w and y: the caller's memory (`outer`), the primitive's (`inner`), and the reorder between them.
  struct port {
    dnnl::memory outer, inner;
    dnnl::primitive reorder; // empty: both have one layout, and inner is the caller's memory
    bool writes = false;
    std::size_t at = 0; // of inner, in the scratch memory
  };

  port make(const desc& from, const desc& to, const desc& outer, const desc& inner, bool writes) {
    port p{dev_.wrap(outer), dev_.wrap(inner), {}, writes, 0};
    if (outer != inner) {
      p.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(dev_.engine, from, dev_.engine, to));
      p.at = scratch_;
      scratch_ += round_up(inner.get_size());
    }
    return p;
  }
  port input(const desc& ours, const desc& theirs) { return make(ours, theirs, ours, theirs, false); }
  port output(const desc& theirs, const desc& ours) { return make(theirs, ours, ours, theirs, true); }

  static void set_memory(port& p, void* data, std::byte* scratch) {
    p.outer.set_data_handle(data);
    p.inner.set_data_handle(p.reorder ? scratch + p.at : data);
  }
  void before(const port& p) const {
    if (p.reorder && !p.writes) convert(p, p.outer, p.inner);
  }
  void after(const port& p) const {
    if (p.reorder && p.writes) convert(p, p.inner, p.outer);
  }
  void convert(const port& p, const dnnl::memory& from, const dnnl::memory& to) const {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
    execute(p.reorder, args, 2);
  }
  // Calls the C function because the C++ one allocates a vector at every call.
  void execute(const dnnl::primitive& p, const dnnl_exec_arg_t* args, int count) const {
    dnnl::error::wrap_c_api(dnnl_primitive_execute(p.get(), dev_.stream.get(), count, args),
                            "a convolution could not be run");
  }

  const device& dev_;
  direction direction_;
  dnnl::primitive primitive_;
  port x_, w_, y_;
  dnnl::memory bias_, scratchpad_;
  std::size_t scratch_ = 0, scratchpad_at_ = 0, added_at_ = 0, weight_elements_ = 0, bias_elements_;
};

// Tries these layouts in turn and returns the first kernel that is not reference code: the caller's layouts; the
// caller's, with weights of any layout; any layouts; plain ones, with which oneDNN unfolds the image and runs a GEMM.
// Returns reference code if there is nothing else, and null if oneDNN does not support the algorithm for this shape.
std::unique_ptr<convolution_kernel> make_primitive(const device& dev, const convolution_shape& s, const desc& w,
                                                   std::size_t batch, direction d, dnnl::algorithm algorithm,
                                                   const char* name, bool half) {
  const data_type type = half ? data_type::bf16 : data_type::f32;
  auto with = [&](tag x, const desc& weights, tag y) {
    return layouts{algorithm, desc(s.x(batch), type, x), weights, desc(s.y(batch), type, y),
                   half ? desc(s.w(), data_type::f32, tag::any) : weights};
  };
  const tag blocked_x = s.plain_input ? tag::nchw : dev.blocked();
  const desc any_w(s.w(), type, tag::any);
  // Types of the caller's memory: an input of the batch and all weights are fp32.
  const data_type held = s.half ? data_type::bf16 : data_type::f32;
  const desc x(s.x(batch), s.plain_input ? data_type::f32 : held, blocked_x), y(s.y(batch), held, dev.blocked());
  const layouts tries[] = {with(blocked_x, half ? any_w : w, dev.blocked()), with(blocked_x, any_w, dev.blocked()),
                           with(tag::any, any_w, tag::any), with(tag::nchw, any_w, tag::nchw)};
  std::unique_ptr<convolution_kernel> slow;
  for (const layouts& want : tries) {
    try {
      auto k = std::make_unique<primitive_kernel>(dev, s, want, x, w, y, d, name);
      if (!k->slow()) return k;
      if (!slow) slow = std::move(k);
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented && e.status != dnnl_invalid_arguments) throw;
    }
  }
  return slow;
}

} // namespace

bool mostly_padding(const convolution_shape& s) {
  auto pairs = [&](std::size_t in, std::size_t out) { // pairs (output index, tap) that fall on the input
    std::size_t n = 0;
    for (std::size_t o = 0; o < out; ++o)
      for (std::size_t k = 0; k < s.kernel; ++k) {
        const std::size_t i = o * s.stride + k;
        n += i >= s.padding && i < in + s.padding;
      }
    return n;
  };
  const std::size_t all = s.out_height * s.out_width * s.kernel * s.kernel;
  return 2 * pairs(s.height, s.out_height) * pairs(s.width, s.out_width) <= all;
}

desc convolution_weight_layout(const device& dev, const convolution_shape& s) {
  if (mostly_padding(s) && !s.plain_input) return {s.w(), data_type::f32, tag::hwio};
  constexpr std::size_t batch = 8; // arbitrary: the layout must not depend on it
  const dims steps = {i64(s.stride), i64(s.stride)}, pads = {i64(s.padding), i64(s.padding)};
  auto kernel_for = [&](const desc& x) {
    return forward_of({dnnl::algorithm::convolution_direct, x, desc(s.w(), data_type::f32, tag::any), desc(),
                       desc(s.y(batch), data_type::f32, dev.blocked()), steps, pads},
                      {}, dev.engine);
  };
  try {
    return kernel_for({s.x(batch), data_type::f32, s.plain_input ? tag::nchw : dev.blocked()}).weights_desc();
  } catch (const dnnl::error&) {
    return {s.w(), data_type::f32, tag::oihw};
  }
}

std::vector<std::unique_ptr<convolution_kernel>> convolution_candidates(const device& dev, const convolution_shape& s,
                                                                        const desc& weights, std::size_t batch,
                                                                        direction d) {
  std::vector<std::unique_ptr<convolution_kernel>> found;
  auto add = [&](std::unique_ptr<convolution_kernel> k) {
    if (!k) return;
    for (const auto& other : found)
      if (other->runs() == k->runs()) return; // `auto` often selects the same kernel as another algorithm
    found.push_back(std::move(k));
  };
  if (weights == desc(s.w(), data_type::f32, tag::hwio) && !s.plain_input && !s.half)
    add(make_taps_kernel(dev, s, batch, d));
  if (s.half && mostly_padding(s)) add(make_matmul_kernel(dev, s, weights, batch, d)); // first: the fixed rule takes it
  auto primitive = [&](dnnl::algorithm a, const char* name, bool half) {
    add(make_primitive(dev, s, weights, batch, d, a, name, half));
  };
  primitive(dnnl::algorithm::convolution_direct, "direct", s.half);
  if (s.half) add(make_matmul_kernel(dev, s, weights, batch, d));
  // Winograd runs in fp32 even if the layer computes in bf16: oneDNN has no Winograd in bf16, and with a quarter of the
  // operations it can still be the fastest.
  primitive(dnnl::algorithm::convolution_winograd, "winograd", false);
  if (!s.half) primitive(dnnl::algorithm::convolution_auto, "auto", false);
  // Reference code is a candidate only if there is nothing else.
  if (std::any_of(found.begin(), found.end(), [](const auto& k) { return !k->slow(); }))
    std::erase_if(found, [](const auto& k) { return k->slow(); });
  if (found.empty()) throw rg::error(RG_E_UNSUPPORTED, "oneDNN has no convolution for this shape");
  return found;
}

} // namespace onednn
