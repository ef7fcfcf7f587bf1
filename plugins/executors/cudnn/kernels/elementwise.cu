// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.hpp"

#include "kernels/for_elements.hpp"

#include <regatta/abi.h>

namespace cudnn::kernels {
namespace {

template <function F, class T> void map_with(cudaStream_t s, const T* x, T* y, std::size_t n) {
  const auto f = [] REGATTA_DEVICE(index_t, float xi, float& yi) { yi = value_of<F>(xi); };
  for_elements(s, n, f, in<T>{x}, out<T>{y});
}
template <function F, class T>
void map_gradient_with(cudaStream_t s, const T* x, const T* y, const T* dy, T* dx, std::size_t n, bool add) {
  const auto f = [] REGATTA_DEVICE(index_t, float xi, float yi, float dyi, float& dxi) {
    dxi = dyi * derivative_of<F>(xi, yi);
  };
  for_elements(s, n, f, in<T>{x}, in<T>{y}, in<T>{dy}, out<T>{dx, add});
}

// Calls g with an object whose type contains the function as a constant.
template <function F> struct constant { static constexpr function value = F; };
template <class G> void by_function(function f, const G& g) {
  switch (f) {
  case function::relu: return g(constant<function::relu>());
  case function::gelu: return g(constant<function::gelu>());
  case function::tanh: return g(constant<function::tanh>());
  case function::sigmoid: return g(constant<function::sigmoid>());
  case function::softsign: return g(constant<function::softsign>());
  }
}

template <class T> void sum_of(cudaStream_t s, const T* a, const T* b, T* y, std::size_t n) {
  const auto f = [] REGATTA_DEVICE(index_t, float ai, float bi, float& yi) { yi = ai + bi; };
  for_elements(s, n, f, in<T>{a}, in<T>{b}, out<T>{y});
}

template <class T> void columns_of(cudaStream_t s, columns c, const T* x, T* y, std::size_t rows, bool add) {
  for_each(s, rows * c.width, [=] REGATTA_DEVICE(index_t i) {
    const index_t row = i / c.width, in = i % c.width;
    put(y + row * c.y_width + c.y_first + in, to_float(x[row * c.x_width + c.x_first + in]), add);
  });
}

struct nothing {
  REGATTA_DEVICE float operator()(float x) const { return x; }
};
template <function F> struct applied {
  REGATTA_DEVICE float operator()(float x) const { return value_of<F>(x); }
};
template <class F, class T>
void finish_with(cudaStream_t s, F f, const float* bias, image_layout p, T* y, T* before, std::size_t samples) {
  const auto finished = [f] REGATTA_DEVICE(index_t, float& yi, const of_channel<1>::value& c, float& x) {
    x = yi + c.of[0];
    yi = f(x);
  };
  for_elements(s, samples * p.elements(), finished, in_out<T>{y}, of_channel<1>{p, {bias}}, out<T>{before});
}

template <class A, class B>
void relayout_of(cudaStream_t s, image_layout p, const A* x, image_layout q, B* y, std::size_t samples, bool add) {
  if (p.channels == q.channels &&
      (p.channels_last == q.channels_last || p.channels == 1 || p.spatial == 1)) { // same order of elements
    const auto f = [] REGATTA_DEVICE(index_t, float xi, float& yi) { yi = xi; };
    for_elements(s, samples * p.elements(), f, in<A>{x}, out<B>{y, add});
  } else {
    for_each(s, samples * p.elements(),
             [=] REGATTA_DEVICE(index_t i) { put(y + i, to_float(x[offset_of(p, position_of(q, i))]), add); });
  }
}

} // namespace

void map(cudaStream_t s, dtype t, function f, const void* x, void* y, std::size_t n) {
  by_type(t, [&](auto* of) { by_function(f, [&](auto c) { map_with<c.value>(s, as(of, x), as(of, y), n); }); });
}

void map_gradient(cudaStream_t s, dtype t, function f, const void* x, const void* y, const void* dy, void* dx,
                  std::size_t n, bool add) {
  by_type(t, [&](auto* of) {
    by_function(f,
                [&](auto c) { map_gradient_with<c.value>(s, as(of, x), as(of, y), as(of, dy), as(of, dx), n, add); });
  });
}

void sum(cudaStream_t s, dtype t, const void* a, const void* b, void* y, std::size_t n) {
  by_type(t, [&](auto* of) { sum_of(s, as(of, a), as(of, b), as(of, y), n); });
}

void relayout(cudaStream_t s, dtype from, const image_layout& p, const void* x, dtype to, const image_layout& q,
              void* y, std::size_t samples, bool add) {
  by_type(from,
          [&](auto* a) { by_type(to, [&](auto* b) { relayout_of(s, p, as(a, x), q, as(b, y), samples, add); }); });
}

void copy(cudaStream_t s, dtype t, const void* x, void* y, std::size_t n, bool add) {
  relayout(s, t, {}, x, t, {}, y, n, add);
}

void convert(cudaStream_t s, dtype from, const void* x, dtype to, void* y, std::size_t n) {
  relayout(s, from, {}, x, to, {}, y, n, false);
}

void copy_columns(cudaStream_t s, dtype t, const columns& c, const void* x, void* y, std::size_t rows, bool add) {
  by_type(t, [&](auto* of) { columns_of(s, c, as(of, x), as(of, y), rows, add); });
}

void epilogue(cudaStream_t s, dtype t, const epilogue_args& f, void* y, void* before, std::size_t samples) {
  by_type(t, [&](auto* of) {
    if (!f.f) return finish_with(s, nothing(), f.bias, f.layout, as(of, y), as(of, before), samples);
    by_function(*f.f, [&](auto c) {
      finish_with(s, applied<c.value>(), f.bias, f.layout, as(of, y), as(of, before), samples);
    });
  });
}

void unscale(cudaStream_t s, const float* scaled, const float* factor, float* out, std::size_t n, bool add,
             std::uint32_t* not_finite) {
  const auto f = [=] REGATTA_DEVICE(index_t, float x, float& g) {
    g = x * *factor;
    if (!(fabsf(g) <= 3.4028235e38F)) *not_finite = 1; // a race is harmless: all writers store 1
  };
  for_elements(s, n, f, in<float>{scaled}, cudnn::out<float>{out, add});
}

} // namespace cudnn::kernels
