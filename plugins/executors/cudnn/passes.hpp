// SPDX-License-Identifier: Apache-2.0
//
// Passes over whole tensors, element by element, 16 bytes at a time where the tensors' addresses allow: loads of two
// bytes a thread leave a part of the memory's bandwidth unused. What a kernel computes is said once, for one element;
// what it reads and writes, as operands, which load and store packs of elements around it. Included by .cu files only.
#pragma once

#include "elements.hpp"
#include "launch.hpp"

#include <tuple>
#include <type_traits>

#ifdef __CUDACC__
#define REGATTA_UNROLL _Pragma("unroll") // what a pack holds lies in registers
#else
#define REGATTA_UNROLL
#endif

namespace cudnn {

// Elements that lie one after the other, loaded or stored at once.
template <class T, index_t W> struct alignas(W == 1 ? alignof(T) : 16) pack { T of[W]; };

// Operands. number: what lies in memory, of which 16 bytes make a pack; value: what the kernel is given of it for an
// element, by reference; aligned(): whether it may be had in packs. They load and store the W elements from `first` on;
// where W > 1, `first` is a multiple of it.

// Only read; zeros where x is null.
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
// Only written, or, `add`, added to; not at all where y is null.
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
    if (add) p = *at; // only now: the operand before may have written it
    REGATTA_UNROLL
    for (index_t k = 0; k < W; ++k) put(p.of + k, v[k], add);
    *at = p;
  }
};
// Read and written; zeros, and not at all, where x is null.
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
// N numbers of an element's channel; zeros where a table is null.
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
    if (p.last && p.channels % W == 0) { // channel after channel
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

// As many of the smallest numbers as 16 bytes hold.
template <class... S> constexpr index_t pack_size() {
  std::size_t least = 16;
  ((least = sizeof(typename S::number) < least ? sizeof(typename S::number) : least), ...);
  return static_cast<index_t>(16 / least);
}

template <index_t W, class S> struct loaded {
  S operand;
  typename S::value v[W];
};
template <index_t W, class F, class... S> REGATTA_DEVICE void pass(index_t first, const F& f, loaded<W, S>... s) {
  (s.operand.load(first, s.v), ...);
  REGATTA_UNROLL
  for (index_t k = 0; k < W; ++k) f(first + k, s.v[k]...);
  (s.operand.store(first, s.v), ...);
}
// What one thread does: a pack, or one element of what the packs leave, or of all.
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

// f(i, value of each operand) for every i < n; operands are stored in their order. Each may be another's memory, whole,
// but must not overlap it otherwise.
template <class F, class... S> void for_elements(cudaStream_t s, std::size_t n, F f, S... operands) {
  constexpr index_t width = detail::pack_size<S...>();
  const auto packs = static_cast<index_t>((operands.aligned() && ...) ? n / width : 0);
  for_each(s, n - packs * std::size_t{width - 1},
           detail::passing<width, F, S...>{packs, f, std::tuple<S...>(operands...)});
}

} // namespace cudnn
