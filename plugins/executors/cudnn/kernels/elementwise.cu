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
    dxi = dyi * slope_of<F>(xi, yi);
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
void finish_with(cudaStream_t s, F f, const float* bias, picture p, T* y, T* before, std::size_t samples) {
  const auto finished = [f] REGATTA_DEVICE(index_t, float& yi, const of_channel<1>::value& c, float& x) {
    x = yi + c.of[0];
    yi = f(x);
  };
  for_elements(s, samples * p.elements(), finished, in_out<T>{y}, of_channel<1>{p, {bias}}, out<T>{before});
}

template <class A, class B>
void relayout_of(cudaStream_t s, picture p, const A* x, picture q, B* y, std::size_t samples, bool add) {
  if (p.channels == q.channels && (p.last == q.last || p.channels == 1 || p.spatial == 1)) { // same order of elements
    const auto f = [] REGATTA_DEVICE(index_t, float xi, float& yi) { yi = xi; };
    for_elements(s, samples * p.elements(), f, in<A>{x}, out<B>{y, add});
  } else {
    for_each(s, samples * p.elements(),
             [=] REGATTA_DEVICE(index_t i) { put(y + i, to_float(x[offset_of(p, place_of(q, i))]), add); });
  }
}

// Whether dropout keeps an element. If the elements are in canonical layout, a pack draws one block of random bits.
struct drawn {
  using number = float;
  using value = bool;
  dropping d;
  picture p;
  bool aligned() const { return true; }
  template <index_t W> REGATTA_DEVICE void load(index_t first, bool (&v)[W]) const {
    static_assert(8 % W == 0);
    const index_t size = p.channels * p.spatial;
    if ((!p.last || p.spatial == 1) && size % W == 0) {
      const index_t element = first % size;
      const rg::bits4 bits = dropout_bits(*d.seed, *d.first + first / size, element);
      REGATTA_UNROLL
      for (index_t k = 0; k < W; ++k) v[k] = keeps(bits, element + k, d.threshold);
    } else {
      REGATTA_UNROLL
      for (index_t k = 0; k < W; ++k) {
        const place at = place_of(p, first + k);
        v[k] = keeps(*d.seed, *d.first + at.sample, at.channel * p.spatial + at.at, d.threshold);
      }
    }
  }
  template <index_t W> REGATTA_DEVICE void store(index_t, const bool (&)[W]) const {}
};
template <class T>
void dropout_of(cudaStream_t s, dropping d, picture p, const T* x, T* y, std::size_t samples, bool add) {
  const auto f = [scale = d.scale] REGATTA_DEVICE(index_t, bool kept, float xi, float& yi) {
    yi = kept ? xi * scale : 0;
  };
  for_elements(s, samples * p.elements(), f, drawn{d, p}, in<T>{x}, out<T>{y, add});
}

} // namespace

void map(cudaStream_t s, number t, function f, const void* x, void* y, std::size_t n) {
  by_type(t, [&](auto* of) { by_function(f, [&](auto c) { map_with<c.value>(s, as(of, x), as(of, y), n); }); });
}

void map_gradient(cudaStream_t s, number t, function f, const void* x, const void* y, const void* dy, void* dx,
                  std::size_t n, bool add) {
  by_type(t, [&](auto* of) {
    by_function(f,
                [&](auto c) { map_gradient_with<c.value>(s, as(of, x), as(of, y), as(of, dy), as(of, dx), n, add); });
  });
}

void sum(cudaStream_t s, number t, const void* a, const void* b, void* y, std::size_t n) {
  by_type(t, [&](auto* of) { sum_of(s, as(of, a), as(of, b), as(of, y), n); });
}

void relayout(cudaStream_t s, number from, const picture& p, const void* x, number to, const picture& q, void* y,
              std::size_t samples, bool add) {
  by_type(from,
          [&](auto* a) { by_type(to, [&](auto* b) { relayout_of(s, p, as(a, x), q, as(b, y), samples, add); }); });
}

void copy(cudaStream_t s, number t, const void* x, void* y, std::size_t n, bool add) {
  relayout(s, t, {}, x, t, {}, y, n, add);
}

void convert(cudaStream_t s, number from, const void* x, number to, void* y, std::size_t n) {
  relayout(s, from, {}, x, to, {}, y, n, false);
}

void copy_columns(cudaStream_t s, number t, const columns& c, const void* x, void* y, std::size_t rows, bool add) {
  by_type(t, [&](auto* of) { columns_of(s, c, as(of, x), as(of, y), rows, add); });
}

void finish(cudaStream_t s, number t, const finishing& f, void* y, void* before, std::size_t samples) {
  by_type(t, [&](auto* of) {
    if (!f.f) return finish_with(s, nothing(), f.bias, f.lies, as(of, y), as(of, before), samples);
    by_function(
        *f.f, [&](auto c) { finish_with(s, applied<c.value>(), f.bias, f.lies, as(of, y), as(of, before), samples); });
  });
}

void dropout(cudaStream_t s, number t, const dropping& d, const picture& p, const void* x, void* y, std::size_t samples,
             bool add) {
  by_type(t, [&](auto* of) { dropout_of(s, d, p, as(of, x), as(of, y), samples, add); });
}

void make_values(cudaStream_t s, const making& m, float* out, std::size_t samples) {
  const index_t each = m.kind == RG_MADE_LOOKED_UP ? 8 : 4; // elements per block of random bits
  const index_t blocks = (m.elements + each - 1) / each;
  for_each(s, samples * blocks, [=] REGATTA_DEVICE(index_t i) {
    const index_t block = i % blocks, begin = block * each;
    const index_t end = m.elements - begin < each ? m.elements : begin + each;
    float* const sample = out + std::size_t{i / blocks} * m.elements;
    const rg::bits4 bits =
        m.kind == RG_MADE_ZEROS ? rg::bits4{} : rg::random_bits(m.seed, m.first + i / blocks, block, rg::stream_data);
    for (index_t e = begin; e < end; ++e) {
      const index_t k = e - begin;
      sample[e] = m.kind == RG_MADE_LOOKED_UP ? m.table[bits[k / 2] >> (k % 2 * 16) & 0xffff] : rg::to_uniform(bits[k]);
    }
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
