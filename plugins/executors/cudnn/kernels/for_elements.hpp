// SPDX-License-Identifier: Apache-2.0
//
// Elementwise kernels. for_elements() launches one, given a function of one element and the operands (tensors) whose
// elements the function receives. Included by .cu files only.
#pragma once

#include "kernels/element_functions.hpp"
#include "kernels/launch.hpp"

#include <tuple>

namespace cudnn {

// An operand is a type with these members:
//   value        the type of an element in registers; the kernel's function receives it by reference
//   load(i)      returns element i
//   store(i, v)  writes v to element i
// The store() of an operand that is only read does nothing; the load() of one that is only written returns zero.

// A tensor that is only read; its elements are zero if x is null.
template <class T> struct in {
  using value = float;
  const T* x;
  REGATTA_DEVICE float load(index_t i) const { return x ? to_float(x[i]) : 0; }
  REGATTA_DEVICE void store(index_t, float) const {}
};
// A tensor that is only written, or with `add`: y += value. Nothing is written if y is null.
template <class T> struct out {
  using value = float;
  T* y;
  bool add = false;
  REGATTA_DEVICE float load(index_t) const { return 0; }
  REGATTA_DEVICE void store(index_t i, float v) const {
    if (y) put(y + i, v, add);
  }
};
// A tensor that is read and then written. If x is null, its elements are zero and nothing is written.
template <class T> struct in_out {
  using value = float;
  T* x;
  REGATTA_DEVICE float load(index_t i) const { return in<T>{x}.load(i); }
  REGATTA_DEVICE void store(index_t i, float v) const { out<T>{x}.store(i, v); }
};
// Read only: for each element, N values that belong to its channel, of[t] = tables[t][channel]; zero if that table is
// null. A table has one value per channel, which follows from the layout of the samples.
template <int N> struct of_channel {
  struct value {
    float of[N];
  };
  image_layout layout;
  const float* tables[N];
  REGATTA_DEVICE value load(index_t i) const {
    const index_t channel = position_of(layout, i).channel;
    value v{};
    for (int t = 0; t < N; ++t) v.of[t] = tables[t] ? tables[t][channel] : 0;
    return v;
  }
  REGATTA_DEVICE void store(index_t, const value&) const {}
};

namespace detail {

// An operand with the value of one element.
template <class S> struct loaded {
  S operand;
  typename S::value v;
};
template <class F, class... S> REGATTA_DEVICE void do_element(index_t i, const F& f, loaded<S>... s) {
  f(i, s.v...);
  (s.operand.store(i, s.v), ...);
}
template <class F, class... S> struct element_loop {
  F f;
  std::tuple<S...> operands;
  REGATTA_DEVICE void operator()(index_t i) const {
    std::apply([&](const S&... s) { do_element(i, f, loaded<S>{s, s.load(i)}...); }, operands);
  }
};

} // namespace detail

// Enqueues on the stream a kernel that calls f(i, value of each operand) for every i < n: it loads all operands of
// element i, calls f, and stores them in the order of the arguments. Two operands with the same element type may have
// exactly the same memory; otherwise they must not overlap. Requires n < 2^32, and memory that remains valid until the
// kernel has run.
template <class F, class... S> void for_elements(cudaStream_t s, std::size_t n, F f, S... operands) {
  for_each(s, n, detail::element_loop<F, S...>{f, std::tuple<S...>(operands...)});
}

} // namespace cudnn
