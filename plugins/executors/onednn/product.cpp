// SPDX-License-Identifier: Apache-2.0
#include "product.hpp"

#include <array>

namespace onednn {

using data_type = dnnl::memory::data_type;

namespace {

desc desc_of(const matrix& m, data_type type) {
  const auto i = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
  const dnnl::memory::dims strides =
      m.transposed ? dnnl::memory::dims{1, i(m.stride)} : dnnl::memory::dims{i(m.stride), 1};
  return {{i(m.rows), i(m.columns)}, type, strides};
}

} // namespace

half_product::half_product(const device& dev, const matrix& a, const matrix& b, const matrix& c, bool c_half,
                           bool accumulate, bool bias) {
  const desc da = desc_of(a, data_type::bf16), db = desc_of(b, data_type::bf16),
             dc = desc_of(c, c_half ? data_type::bf16 : data_type::f32),
             row({1, static_cast<dnnl_dim_t>(c.columns)}, data_type::f32, tag::ab);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attr.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc pd(bias ? dnnl::matmul::desc(da, db, row, dc) : dnnl::matmul::desc(da, db, dc),
                                        attr, dev.engine);
  primitive_ = dnnl::matmul(pd);
  runs_ = pd.impl_info_str();
  scratch_ = pd.scratchpad_desc().get_size();
  a_ = dev.wrap(da);
  b_ = dev.wrap(db);
  c_ = dev.wrap(dc);
  if (bias) bias_ = dev.wrap(row);
  scratchpad_ = dev.wrap(pd.scratchpad_desc());
}

void half_product::run(const device& dev, const bf16* a, const bf16* b, void* c, const float* bias,
                       std::byte* scratch) {
  a_.set_data_handle(const_cast<bf16*>(a));
  b_.set_data_handle(const_cast<bf16*>(b));
  c_.set_data_handle(c);
  scratchpad_.set_data_handle(scratch);
  if (bias_) bias_.set_data_handle(const_cast<float*>(bias));
  const std::array<dnnl_exec_arg_t, 5> args = {{{DNNL_ARG_SRC, a_.get()},
                                                {DNNL_ARG_WEIGHTS, b_.get()},
                                                {DNNL_ARG_DST, c_.get()},
                                                {DNNL_ARG_SCRATCHPAD, scratchpad_.get()},
                                                {DNNL_ARG_BIAS, bias_ ? bias_.get() : nullptr}}};
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), dev.stream.get(), bias_ ? 5 : 4, args.data()),
                          "a matrix product could not be run");
}

} // namespace onednn
