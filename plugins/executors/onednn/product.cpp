// SPDX-License-Identifier: Apache-2.0
#include "product.hpp"

#include <array>

namespace onednn {

namespace {

dnnl_dim_t dim(std::size_t n) {
  return static_cast<dnnl_dim_t>(n);
}

desc desc_of(const matrix& m, bool half) {
  const auto strides = m.transposed ? dnnl::memory::dims{1, dim(m.stride)} : dnnl::memory::dims{dim(m.stride), 1};
  return {{dim(m.rows), dim(m.columns)}, half ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32, strides};
}

} // namespace

product::product(const device& dev, const matrix& a, const matrix& b, const matrix& c, const product_options& o) {
  const desc da = desc_of(a, o.half), db = desc_of(b, o.half), dc = desc_of(c, o.half_result),
             row({1, dim(c.columns)}, dnnl::memory::data_type::f32, tag::ab);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (o.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attr.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc pd(o.bias ? dnnl::matmul::desc(da, db, row, dc) : dnnl::matmul::desc(da, db, dc),
                                        attr, dev.engine);
  primitive_ = dnnl::matmul(pd);
  runs_ = pd.impl_info_str();
  scratch_ = pd.scratchpad_desc().get_size();
  a_ = dev.wrap(da);
  b_ = dev.wrap(db);
  c_ = dev.wrap(dc);
  if (o.bias) bias_ = dev.wrap(row);
  scratchpad_ = dev.wrap(pd.scratchpad_desc());
}

void product::run(const device& dev, const void* a, const void* b, void* c, const float* bias, std::byte* scratch) {
  a_.set_data_handle(const_cast<void*>(a)); // read only
  b_.set_data_handle(const_cast<void*>(b));
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
