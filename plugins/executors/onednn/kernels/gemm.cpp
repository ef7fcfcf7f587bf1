// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm.hpp"

#include "kernels/primitives.hpp"

#include <array>

namespace onednn {

namespace {

dnnl_dim_t dim(std::size_t n) {
  return static_cast<dnnl_dim_t>(n);
}

// Returns whether oneDNN's matmul would read or write the wrong elements of `m`.
bool misread(const matrix& m) {
  return matmul_ignores_vector_strides && m.stride > 1 && (m.transposed ? m.rows : m.columns) == 1;
}

desc desc_of(const matrix& m, bool half) {
  auto strides = m.transposed ? dnnl::memory::dims{1, dim(m.stride)} : dnnl::memory::dims{dim(m.stride), 1};
  // Without a stride of 1 oneDNN falls back to its reference implementation. The stride that replaces the 1 is never
  // used, since this dimension has one element.
  if (misread(m)) strides[m.transposed ? 0 : 1] = dim(m.stride * m.rows * m.columns);
  return {{dim(m.rows), dim(m.columns)}, half ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32, strides};
}

} // namespace

gemm::gemm(const device& dev, const matrix& a, const matrix& b, const matrix& c, const gemm_options& o)
    : shape_a_(a), shape_b_(b), shape_c_(c), options_(o) {
  if (!o.half && !o.half_result && (misread(a) || misread(b) || misread(c))) options_.sgemm = true;
  if (options_.sgemm && c.transposed) // dnnl_sgemm writes rows only
    throw dnnl::error(dnnl_unimplemented,
                      "a GEMM with a transposed result needs matmul, which would write wrong elements");
  if (options_.sgemm) {
    runs_ = "gemm dnnl_sgemm";
    return;
  }
  const desc da = desc_of(a, o.half), db = desc_of(b, o.half), dc = desc_of(c, o.half_result),
             row({1, dim(c.columns)}, dnnl::memory::data_type::f32, tag::ab);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (o.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1);
    attr.set_post_ops(sum);
  }
  const auto pd = matmul_of(da, db, o.bias ? row : desc(), dc, attr, dev.engine);
  primitive_ = dnnl::matmul(pd);
  runs_ = std::string("matmul ") + pd.impl_info_str();
  scratch_ = pd.scratchpad_desc().get_size();
  a_ = dev.wrap(da);
  b_ = dev.wrap(db);
  c_ = dev.wrap(dc);
  if (o.bias) bias_ = dev.wrap(row);
  scratchpad_ = dev.wrap(pd.scratchpad_desc());
}

void gemm::run(const device& dev, const void* a, const void* b, void* c, const float* bias, std::byte* scratch) {
  if (options_.sgemm)
    return run_sgemm(dev, static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(c), bias);
  a_.set_data_handle(const_cast<void*>(a)); // oneDNN only reads it
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
                          "a GEMM could not be run");
}

void gemm::run_sgemm(const device& dev, const float* a, const float* b, float* c, const float* bias) const {
  auto letter = [](const matrix& m) { return m.transposed ? 'T' : 'N'; };
  sgemm(letter(shape_a_), letter(shape_b_), shape_c_.rows, shape_c_.columns, shape_a_.columns, a, shape_a_.stride, b,
        shape_b_.stride, options_.accumulate ? 1.0F : 0.0F, c, shape_c_.stride);
  if (options_.bias)
    parallel(dev, shape_c_.rows,
             [&](std::size_t r) { dev.kernels->elementwise.add(c + r * shape_c_.stride, bias, shape_c_.columns); });
}

} // namespace onednn
