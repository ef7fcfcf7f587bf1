// SPDX-License-Identifier: Apache-2.0
//
// Elementwise kernels. for_elements() launches one, given a function of one element and the operands (tensors) whose
// elements the function receives. A thread loads and stores a pack of elements, at least 16 bytes of each tensor, where
// the tensors' addresses allow: loads of two bytes per thread leave a part of the memory bandwidth unused. Included by
// .cu files only.
#pragma once

#include "kernels/element_functions.hpp"
#include "kernels/launch.hpp"

#include <tuple>
#include <type_traits>

#ifdef __CUDACC__
#define REGATTA_UNROLL _Pragma("unroll") // the elements of a pack stay in registers
#else
#define REGATTA_UNROLL
#endif

namespace cudnn {

// Consecutive elements of a tensor, aligned so that the compiler moves them 16 bytes at a time.
template <class T, index_t W> struct alignas(W == 1 ? alignof(T) : 16) pack { T of[W]; };

// An operand is a type with these members:
//   number             the element type in memory. A kernel's pack has as many elements as fit into 16 bytes of the
//                      smallest `number` among its operands.
//   value              the type of an element in registers; the kernel's function receives it by reference
//   aligned()          whether packs may be used: the address is a multiple of 16 bytes, or null
//   load<W>(first, v)  sets v[0 .. W), which the caller has set to zero, from the W elements that begin at `first`
//   store<W>(first, v) writes v[0 .. W) to these elements
// If W > 1, `first` is a multiple of W. An operand that is only read has an empty store(), one that is only written an
// empty load().

// A tensor that is only read; its elements are zero if x is null.
template <class T> struct in {
  using number = T;
  using value = float;
  const T* x;
  bool aligned() const { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; }
  template <index_t W> REGATTA_DEVICE void load(index_t first, float (&v)[W]) const {
    if (!x) return;
    const auto p = *reinterpret_cast<const pack<T, W>*>(x + first);
    REGATTA_UNROLL
    for (index_t k = 0; k < W; ++k) v[k] = to_float(p.of[k]);
  }
  template <index_t W> REGATTA_DEVICE void store(index_t, const float (&)[W]) const {}
};
// A tensor that is only written, or with `add`: y += value. Nothing is written if y is null.
template <class T> struct out {
  using number = T;
  using value = float;
  T* y;
  bool add = false;
  bool aligned() const { return reinterpret_cast<std::uintptr_t>(y) % 16 == 0; }
  template <index_t W> REGATTA_DEVICE void load(index_t, float (&)[W]) const {}
  template <index_t W> REGATTA_DEVICE void store(index_t first, const float (&v)[W]) const {
    if (!y) return;
    auto* const at = reinterpret_cast<pack<T, W>*>(y + first);
    pack<T, W> p;
    if (add) p = *at; // not in load(): an earlier operand with the same memory may have stored there since
    REGATTA_UNROLL
    for (index_t k = 0; k < W; ++k) put(p.of + k, v[k], add);
    *at = p;
  }
};
// A tensor that is read and then written. If x is null, its elements are zero and nothing is written.
template <class T> struct in_out {
  using number = T;
  using value = float;
  T* x;
  bool aligned() const { return in<T>{x}.aligned(); }
  template <index_t W> REGATTA_DEVICE void load(index_t first, float (&v)[W]) const { in<T>{x}.load(first, v); }
  template <index_t W> REGATTA_DEVICE void store(index_t first, const float (&v)[W]) const {
    out<T>{x}.store(first, v);
  }
};
// Read only: for each element, N values that belong to its channel, of[t] = tables[t][channel]; zero if that table is
// null. A table has one value per channel; `p` is the layout of the samples, from which an element's channel follows.
template <int N> struct of_channel {
  using number = float;
  struct value {
    float of[N];
  };
  picture p;
  const float* tables[N];
  bool aligned() const {
    for (const float* t : tables)
      if (!in<float>{t}.aligned()) return false;
    return true;
  }
  template <index_t W> REGATTA_DEVICE void load(index_t first, value (&v)[W]) const {
    if (p.last && p.channels % W == 0) { // consecutive elements are consecutive channels
      REGATTA_UNROLL
      for (int t = 0; t < N; ++t) {
        float numbers[W]{};
        in<float>{tables[t]}.load(first % p.channels, numbers);
        REGATTA_UNROLL
        for (index_t k = 0; k < W; ++k) v[k].of[t] = numbers[k];
      }
    } else {
      REGATTA_UNROLL
      for (index_t k = 0; k < W; ++k) {
        const index_t c = place_of(p, first + k).channel;
        REGATTA_UNROLL
        for (int t = 0; t < N; ++t) v[k].of[t] = tables[t] ? tables[t][c] : 0;
      }
    }
  }
  template <index_t W> REGATTA_DEVICE void store(index_t, const value (&)[W]) const {}
};

namespace detail {

// Returns the number of elements of a pack: how many of the operands' smallest type fit into 16 bytes.
template <class... S> constexpr index_t pack_size() {
  std::size_t least = 16;
  ((least = sizeof(typename S::number) < least ? sizeof(typename S::number) : least), ...);
  return static_cast<index_t>(16 / least);
}

// An operand with its values of W elements.
template <index_t W, class S> struct loaded {
  S operand;
  typename S::value v[W];
};
// Loads all operands of W elements from `first` on, calls f for each element, and stores all operands.
template <index_t W, class F, class... S> REGATTA_DEVICE void pass(index_t first, const F& f, loaded<W, S>... s) {
  (s.operand.load(first, s.v), ...);
  REGATTA_UNROLL
  for (index_t k = 0; k < W; ++k) f(first + k, s.v[k]...);
  (s.operand.store(first, s.v), ...);
}
// Call i of a kernel's loop: handles pack i if i < packs, else one of the elements behind the last pack. With packs = 0
// it handles element i.
template <index_t W, class F, class... S> struct passing {
  index_t packs;
  F f;
  std::tuple<S...> operands;
  REGATTA_DEVICE void operator()(index_t i) const {
    const auto by = [&](auto width, index_t first) {
      constexpr index_t w = width;
      std::apply([&](const S&... s) { pass<w>(first, f, loaded<w, S>{s, {}}...); }, operands);
    };
    if (i < packs)
      by(std::integral_constant<index_t, W>(), i * W);
    else
      by(std::integral_constant<index_t, 1>(), packs * (W - 1) + i);
  }
};

} // namespace detail

// Enqueues on the stream a kernel that calls f(i, value of each operand) for every i < n. For a pack, it loads all
// operands, calls f for each element, and then stores all operands, in the order of the arguments. Two operands of one
// `number` may have exactly the same memory; otherwise they must not overlap. Requires n < 2^32, and memory that
// remains valid until the kernel has run.
template <class F, class... S> void for_elements(cudaStream_t s, std::size_t n, F f, S... operands) {
  constexpr index_t width = detail::pack_size<S...>();
  const auto packs = static_cast<index_t>((operands.aligned() && ...) ? n / width : 0);
  for_each(s, n - packs * std::size_t{width - 1},
           detail::passing<width, F, S...>{packs, f, std::tuple<S...>(operands...)});
}

} // namespace cudnn
