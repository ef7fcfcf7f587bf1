// SPDX-License-Identifier: Apache-2.0
#include "kernels/arithmetic.hpp"

#include "kernels/for_elements.hpp"

namespace cudnn::kernels {
namespace {

// Calls f(first, count) for parts of 0 .. n - 1, because kernels count in 32 bits.
template <class F> void for_parts(std::size_t n, const F& f) {
  constexpr std::size_t most = std::size_t{1} << 31;
  for (std::size_t first = 0; first < n; first += most) f(first, n - first < most ? n - first : most);
}

template <class T> void round_of(cudaStream_t s, T*, float* y, const float* x, std::size_t n, bool add) {
  const auto f = [] REGATTA_DEVICE(index_t, float xi, float& yi) {
    T narrow;
    put(&narrow, xi);
    yi = to_float(narrow);
  };
  for_parts(n, [&](std::size_t first, std::size_t part) {
    for_elements(s, part, f, in<float>{x + first}, out<float>{y + first, add});
  });
}

REGATTA_DEVICE inline bool finite(float x) {
  return fabsf(x) <= 3.4028235e38F;
}

template <int Rule> REGATTA_DEVICE void step(const rg_update& u, float& w, float g, float& a, float& b) {
  const float d = g * u.factor + u.decay * w;
  if constexpr (Rule == RG_SGD) {
    w -= u.lr * d;
  } else if constexpr (Rule == RG_MOMENTUM || Rule == RG_NESTEROV) {
    const float v = u.first * a + d;
    a = v;
    w -= u.lr * (Rule == RG_NESTEROV ? d + u.first * v : v);
  } else if constexpr (Rule == RG_ADAGRAD) {
    const float h = a + d * d;
    a = h;
    w -= u.lr * d / (sqrtf(h) + u.epsilon);
  } else {
    const float m = u.first * a + u.one_minus_first * d;
    const float v = u.second * b + u.one_minus_second * (d * d);
    a = m;
    b = v;
    w -= u.lr * m / (sqrtf(v) + u.epsilon);
  }
}

template <int Rule> void update_by(cudaStream_t s, rg_update u, float* w, const float* g, std::size_t n) {
  const auto f = [u] REGATTA_DEVICE(index_t, float& wi, float gi, float& a, float& b) { step<Rule>(u, wi, gi, a, b); };
  for_parts(n, [&](std::size_t first, std::size_t part) {
    for_elements(s, part, f, in_out<float>{w + first}, in<float>{g + first},
                 in_out<float>{Rule != RG_SGD ? u.a + first : nullptr},
                 in_out<float>{Rule == RG_ADAM ? u.b + first : nullptr});
  });
}

} // namespace

void fill(cudaStream_t s, float* y, float a, std::size_t n) {
  const auto f = [a] REGATTA_DEVICE(index_t, float& yi) { yi = a; };
  for_parts(n, [&](std::size_t first, std::size_t part) { for_elements(s, part, f, out<float>{y + first}); });
}

void fill_at(cudaStream_t s, float* y, std::size_t size, const std::int32_t* indices, float a, std::size_t n) {
  for_each(s, n, [=] REGATTA_DEVICE(index_t i) {
    if (indices[i] >= 0 && static_cast<std::size_t>(indices[i]) < size) y[indices[i]] = a;
  });
}

void axpy(cudaStream_t s, float* y, float a, const float* x, std::size_t n) {
  const auto f = [a] REGATTA_DEVICE(index_t, float& yi, float xi) { yi += a * xi; };
  for_parts(n, [&](std::size_t first, std::size_t part) {
    for_elements(s, part, f, in_out<float>{y + first}, in<float>{x + first});
  });
}

void axpy(cudaStream_t s, double* y, double a, const double* x, std::size_t n) {
  for_parts(n, [&](std::size_t first, std::size_t part) {
    for_each(s, part, [y = y + first, x = x + first, a] REGATTA_DEVICE(index_t i) { y[i] += a * x[i]; });
  });
}

void axpy_at(cudaStream_t s, float* y, std::size_t size, const std::int32_t* indices, float a, const float* x,
             std::size_t n) {
  for_each(s, n, [=] REGATTA_DEVICE(index_t i) {
    if (indices[i] >= 0 && static_cast<std::size_t>(indices[i]) < size) y[indices[i]] += a * x[i];
  });
}

void scale(cudaStream_t s, float* y, float a, std::size_t n) {
  const auto f = [a] REGATTA_DEVICE(index_t, float& yi) { yi *= a; };
  for_parts(n, [&](std::size_t first, std::size_t part) { for_elements(s, part, f, in_out<float>{y + first}); });
}

void accumulate(cudaStream_t s, float* u, float a, const float* g, float* v, std::size_t n) {
  const auto f = [a] REGATTA_DEVICE(index_t, float& ui, float gi, float& vi) {
    ui = a * ui + gi;
    vi += ui;
  };
  for_parts(n, [&](std::size_t first, std::size_t part) {
    for_elements(s, part, f, in_out<float>{u + first}, in<float>{g + first}, in_out<float>{v + first});
  });
}

void round(cudaStream_t s, dtype wire, float* y, const float* x, std::size_t n, bool add) {
  by_type(wire, [&](auto* of) { round_of(s, of, y, x, n, add); });
}

void norm(cudaStream_t s, const float* x, std::size_t n, double* out, bool add, double* scratch) {
  const std::size_t wanted = n / 4096;
  const std::size_t parts = wanted < 1 ? 1 : wanted > 1024 ? 1024 : wanted;
  double* squares = scratch + parts;
  for_rows(s, parts, n / parts, [=] REGATTA_DEVICE(const block& b, index_t k) {
    double wrong = 0, square = 0;
    for (std::size_t i = n * k / parts + b.first(); i < n * (k + 1) / parts; i += b.step()) {
      const float v = x[i];
      if (finite(v))
        square += static_cast<double>(v) * static_cast<double>(v);
      else
        wrong += 1;
    }
    wrong = b.sum(wrong);
    square = b.sum(square);
    if (!b.leads()) return;
    scratch[k] = wrong;
    squares[k] = square;
  });
  for_rows(s, 1, parts, [=] REGATTA_DEVICE(const block& b, index_t) {
    double wrong = 0, square = 0;
    for (std::size_t k = b.first(); k < parts; k += b.step()) {
      wrong += scratch[k];
      square += squares[k];
    }
    wrong = b.sum(wrong);
    square = b.sum(square);
    if (!b.leads()) return;
    out[0] = add ? out[0] + wrong : wrong;
    out[1] = add ? out[1] + square : square;
  });
}

void clip(cudaStream_t s, float* y, double most, std::size_t n, double* scratch) {
  double* of = scratch + norm_scratch - 2;
  norm(s, y, n, of, false, scratch);
  const auto f = [most, of] REGATTA_DEVICE(index_t, float& yi) {
    const double length = sqrt(of[1]);
    if (of[0] == 0 && length > most) yi *= static_cast<float>(most / length);
  };
  for_parts(n, [&](std::size_t first, std::size_t part) { for_elements(s, part, f, in_out<float>{y + first}); });
}

void update(cudaStream_t s, const rg_update& u, float* weights, const float* gradients, std::size_t n) {
  switch (u.rule) {
  case RG_SGD: return update_by<RG_SGD>(s, u, weights, gradients, n);
  case RG_MOMENTUM: return update_by<RG_MOMENTUM>(s, u, weights, gradients, n);
  case RG_NESTEROV: return update_by<RG_NESTEROV>(s, u, weights, gradients, n);
  case RG_ADAGRAD: return update_by<RG_ADAGRAD>(s, u, weights, gradients, n);
  case RG_ADAM: return update_by<RG_ADAM>(s, u, weights, gradients, n);
  default: return;
  }
}

void gather_rows(cudaStream_t s, float* to, const float* from, const std::int64_t* index, std::size_t n,
                 std::size_t row, std::size_t rows) {
  for_rows(s, n, row, [=] REGATTA_DEVICE(const block& b, index_t k) {
    const std::int64_t r = index[k];
    if (r < 0 || static_cast<std::size_t>(r) >= rows) return;
    for (std::size_t i = b.first(); i < row; i += b.step())
      to[k * row + i] = from[static_cast<std::size_t>(r) * row + i];
  });
}

void scatter_rows(cudaStream_t s, float* to, const float* from, const std::int64_t* index, std::size_t n,
                  std::size_t row, std::size_t rows, bool add) {
  for_rows(s, n, row, [=] REGATTA_DEVICE(const block& b, index_t k) {
    const std::int64_t r = index[k];
    if (r < 0 || static_cast<std::size_t>(r) >= rows) return;
    for (std::size_t i = b.first(); i < row; i += b.step())
      put(to + static_cast<std::size_t>(r) * row + i, from[k * row + i], add);
  });
}

} // namespace cudnn::kernels
