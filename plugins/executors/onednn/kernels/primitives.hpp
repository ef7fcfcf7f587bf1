// SPDX-License-Identifier: Apache-2.0
//
// The differences between oneDNN 2 (Debian 12 has 2.6) and oneDNN 3 (Debian 13 has 3.7), in one place. Version 3
// dropped operation descriptors, whose members became arguments of the primitive descriptors' constructors, and it has
// functions to query a layout. The functions that return a primitive descriptor throw dnnl::error, with status
// dnnl_unimplemented if oneDNN has no implementation.
#pragma once

#include <cstddef>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

namespace onednn {

// A two-dimensional convolution without dilation. An empty `bias` means none.
struct convolution_description {
  dnnl::algorithm algorithm;
  dnnl::memory::desc x, w, bias, y;
  dnnl::memory::dims strides, padding; // padding is the same on both sides
};

// A two-dimensional pooling without dilation.
struct pooling_description {
  dnnl::algorithm algorithm;
  dnnl::memory::desc x, y;
  dnnl::memory::dims strides, kernel, padding; // padding is the same on both sides
};

// Returns the numbers that determine where an element of a blocked layout lies, one list after the other: padded
// dimensions, strides, sizes of the inner blocks, and the dimensions that these blocks divide.
inline std::vector<dnnl_dim_t> layout_numbers(const dnnl::memory::desc& d);

#if DNNL_VERSION_MAJOR >= 3

// Whether matmul takes the elements of a matrix with one column, or of a transposed one with one row, for contiguous,
// whatever the stride between them. oneDNN 3.7's brgemm does: seen with 3.7.2 on AVX-512 for a, b and c; its sgemm and
// its reference implementation are right.
inline constexpr bool matmul_ignores_vector_strides = true;

inline std::vector<dnnl_dim_t> layout_numbers(const dnnl::memory::desc& d) {
  std::vector<dnnl_dim_t> all;
  for (const auto& part : {d.get_padded_dims(), d.get_strides(), d.get_inner_blks(), d.get_inner_idxs()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

inline dnnl::convolution_forward::primitive_desc
forward_of(const convolution_description& c, const dnnl::primitive_attr& attr, const dnnl::engine& engine) {
  return {
      engine, dnnl::prop_kind::forward_training, c.algorithm, c.x, c.w, c.bias, c.y, c.strides, c.padding, c.padding,
      attr};
}

inline dnnl::convolution_backward_data::primitive_desc
data_gradient_of(const convolution_description& c, const dnnl::primitive_attr& attr, const dnnl::engine& engine,
                 const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine, c.algorithm, c.x, c.w, c.y, c.strides, c.padding, c.padding, forward, attr};
}

inline dnnl::convolution_backward_weights::primitive_desc
weight_gradient_of(const convolution_description& c, const dnnl::primitive_attr& attr, const dnnl::engine& engine,
                   const dnnl::convolution_forward::primitive_desc& forward) {
  return {engine, c.algorithm, c.x, c.w, c.bias, c.y, c.strides, c.padding, c.padding, forward, attr};
}

inline dnnl::pooling_forward::primitive_desc forward_of(const pooling_description& p, const dnnl::primitive_attr& attr,
                                                        const dnnl::engine& engine) {
  const dnnl::memory::dims dilation(p.kernel.size(), 0);
  return {engine,      dnnl::prop_kind::forward_training,
          p.algorithm, p.x,
          p.y,         p.strides,
          p.kernel,    dilation,
          p.padding,   p.padding,
          attr};
}

inline dnnl::pooling_backward::primitive_desc gradient_of(const pooling_description& p,
                                                          const dnnl::primitive_attr& attr, const dnnl::engine& engine,
                                                          const dnnl::pooling_forward::primitive_desc& forward) {
  const dnnl::memory::dims dilation(p.kernel.size(), 0);
  return {engine, p.algorithm, p.x, p.y, p.strides, p.kernel, dilation, p.padding, p.padding, forward, attr};
}

// An empty `bias` means none.
inline dnnl::matmul::primitive_desc matmul_of(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                              const dnnl::memory::desc& bias, const dnnl::memory::desc& c,
                                              const dnnl::primitive_attr& attr, const dnnl::engine& engine) {
  return {engine, a, b, bias, c, attr};
}

#else

inline constexpr bool matmul_ignores_vector_strides = false;

inline std::vector<dnnl_dim_t> layout_numbers(const dnnl::memory::desc& d) {
  const auto n = static_cast<std::size_t>(d.data.ndims);
  const auto& b = d.data.format_desc.blocking;
  const auto inner = static_cast<std::size_t>(b.inner_nblks);
  std::vector<dnnl_dim_t> all(d.data.padded_dims, d.data.padded_dims + n);
  all.insert(all.end(), b.strides, b.strides + n);
  all.insert(all.end(), b.inner_blks, b.inner_blks + inner);
  all.insert(all.end(), b.inner_idxs, b.inner_idxs + inner);
  return all;
}

inline dnnl::convolution_forward::primitive_desc
forward_of(const convolution_description& c, const dnnl::primitive_attr& attr, const dnnl::engine& engine) {
  return {{dnnl::prop_kind::forward_training, c.algorithm, c.x, c.w, c.bias, c.y, c.strides, c.padding, c.padding},
          attr,
          engine};
}

inline dnnl::convolution_backward_data::primitive_desc
data_gradient_of(const convolution_description& c, const dnnl::primitive_attr& attr, const dnnl::engine& engine,
                 const dnnl::convolution_forward::primitive_desc& forward) {
  return {{c.algorithm, c.x, c.w, c.y, c.strides, c.padding, c.padding}, attr, engine, forward};
}

inline dnnl::convolution_backward_weights::primitive_desc
weight_gradient_of(const convolution_description& c, const dnnl::primitive_attr& attr, const dnnl::engine& engine,
                   const dnnl::convolution_forward::primitive_desc& forward) {
  return {{c.algorithm, c.x, c.w, c.bias, c.y, c.strides, c.padding, c.padding}, attr, engine, forward};
}

inline dnnl::pooling_forward::primitive_desc forward_of(const pooling_description& p, const dnnl::primitive_attr& attr,
                                                        const dnnl::engine& engine) {
  return {{dnnl::prop_kind::forward_training, p.algorithm, p.x, p.y, p.strides, p.kernel, p.padding, p.padding},
          attr,
          engine};
}

inline dnnl::pooling_backward::primitive_desc gradient_of(const pooling_description& p,
                                                          const dnnl::primitive_attr& attr, const dnnl::engine& engine,
                                                          const dnnl::pooling_forward::primitive_desc& forward) {
  return {{p.algorithm, p.x, p.y, p.strides, p.kernel, p.padding, p.padding}, attr, engine, forward};
}

// An empty `bias` means none.
inline dnnl::matmul::primitive_desc matmul_of(const dnnl::memory::desc& a, const dnnl::memory::desc& b,
                                              const dnnl::memory::desc& bias, const dnnl::memory::desc& c,
                                              const dnnl::primitive_attr& attr, const dnnl::engine& engine) {
  return {{a, b, bias, c}, attr, engine};
}

#endif

} // namespace onednn
