// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling.hpp"

#include "kernels/primitives.hpp"
#include "runtime/memory_plan.hpp"

#include <algorithm>
#include <cstring>

namespace onednn {
namespace {

dnnl::memory::dims dims_of(const value& v, std::size_t batch) {
  const auto i = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
  return {i(batch), i(v.channels()), i(v.height()), i(v.width())};
}
dnnl::memory::dims both(std::size_t n) {
  return {static_cast<dnnl_dim_t>(n), static_cast<dnnl_dim_t>(n)};
}

void execute(const device& dev, const dnnl::primitive& p, const dnnl_exec_arg_t* args, int count) {
  dnnl::error::wrap_c_api(dnnl_primitive_execute(p.get(), dev.stream.get(), count, args), "pooling could not be run");
}

} // namespace

pooling::pooling(std::string name, value* in, value* out, const pool_shape& s, const device& dev)
    : op(std::move(name), {in}, out), dev_(dev), shape_(s) {}

void pooling::prepare(const preparation& p) {
  const value &in = *inputs_[0].from, &out = *output_;
  const auto type = in.half ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  const desc x(dims_of(in, p.batch), type, dev_.blocked()), y(dims_of(out, p.batch), type, dev_.blocked());
  const auto algorithm = shape_.average ? dnnl::algorithm::pooling_avg_exclude_padding : dnnl::algorithm::pooling_max;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const pooling_description description{algorithm,           x, y, both(shape_.stride), both(shape_.kernel),
                                        both(shape_.padding)};
  const auto forward = forward_of(description, attr, dev_.engine);
  const auto backward = gradient_of(description, attr, dev_.engine, forward);
  forward_ = dnnl::pooling_forward(forward);
  backward_ = dnnl::pooling_backward(backward);
  x_ = dev_.wrap(x);
  dx_ = dev_.wrap(x);
  y_ = dev_.wrap(y);
  dy_ = dev_.wrap(y);
  if (!shape_.average) workspace_ = dev_.wrap(forward.workspace_desc());
  scratchpad_forward_ = dev_.wrap(forward.scratchpad_desc());
  scratchpad_backward_ = dev_.wrap(backward.scratchpad_desc());
  scratch_ = std::max(forward.scratchpad_desc().get_size(), backward.scratchpad_desc().get_size());
  if (std::strstr(forward.impl_info_str(), "ref"))
    dev_.log.warning("oneDNN has only reference code for " + name_ + ": it will be slow");
}

void pooling::plan(memory_plan& m) {
  if (workspace_) slot_ = m.request_kept(workspace_.get_desc().get_size());
}

void pooling::attach(const memory_plan& m) {
  if (workspace_) workspace_.set_data_handle(m.at_slot<std::byte>(slot_));
  x_.set_data_handle(inputs_[0].from->data);
  dx_.set_data_handle(inputs_[0].gradient);
  y_.set_data_handle(output_->data);
  dy_.set_data_handle(output_->gradient);
  scratchpad_forward_.set_data_handle(dev_.scratch);
  scratchpad_backward_.set_data_handle(dev_.scratch);
}

void pooling::forward(run&) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, x_.get()},
                                  {DNNL_ARG_DST, y_.get()},
                                  {DNNL_ARG_SCRATCHPAD, scratchpad_forward_.get()},
                                  {DNNL_ARG_WORKSPACE, workspace_ ? workspace_.get() : nullptr}};
  execute(dev_, forward_, args, workspace_ ? 4 : 3);
}

void pooling::backward(run&) {
  if (!inputs_[0].gradient) return;
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_SRC, dx_.get()},
                                  {DNNL_ARG_DIFF_DST, dy_.get()},
                                  {DNNL_ARG_SCRATCHPAD, scratchpad_backward_.get()},
                                  {DNNL_ARG_WORKSPACE, workspace_ ? workspace_.get() : nullptr}};
  execute(dev_, backward_, args, workspace_ ? 4 : 3);
}

void global_average::plan(memory_plan& m) {
  batch_ = m.batch();
}

void global_average::forward(run&) {
  const value& in = *inputs_[0].from;
  const std::size_t lanes = dev_.kernels->lanes;
  const float inverse_count = 1.0F / static_cast<float>(in.spatial());
  for_channel_blocks(dev_, batch_, in, [&](std::size_t at, std::size_t channel) {
    const float* x = in.data + at;
    float* y = output_->data + channel;
    std::fill_n(y, lanes, 0.0F);
    for (std::size_t i = 0; i < in.spatial(); ++i)
      for (std::size_t l = 0; l < lanes; ++l) y[l] += x[i * lanes + l];
    for (std::size_t l = 0; l < lanes; ++l) y[l] *= inverse_count;
  });
}

void global_average::backward(run&) {
  if (!inputs_[0].gradient) return;
  const value& in = *inputs_[0].from;
  const std::size_t lanes = dev_.kernels->lanes;
  const float inverse_count = 1.0F / static_cast<float>(in.spatial());
  for_channel_blocks(dev_, batch_, in, [&](std::size_t at, std::size_t channel) {
    float* dx = inputs_[0].gradient + at;
    const float* dy = output_->gradient + channel;
    for (std::size_t i = 0; i < in.spatial(); ++i)
      for (std::size_t l = 0; l < lanes; ++l) dx[i * lanes + l] = dy[l] * inverse_count;
  });
}

} // namespace onednn
