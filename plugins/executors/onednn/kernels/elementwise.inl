// SPDX-License-Identifier: Apache-2.0
//
// Implements elementwise.hpp.

// Phi(x) and e = exp(-x^2 / 2), by Abramowitz and Stegun 7.1.26: absolute error 1e-7.
inline vec normal_cdf(vec x, vec& e) {
  const vec zero = splat(0), one = splat(1);
  e = exp_of(mul(mul(x, x), splat(-0.5F)));
  const vec z = mul(max(x, sub(zero, x)), splat(0.70710678F));
  const vec t = div(one, fma(z, splat(0.3275911F), one));
  vec p = splat(1.061405429F);
  p = fma(p, t, splat(-1.453152027F));
  p = fma(p, t, splat(1.421413741F));
  p = fma(p, t, splat(-0.284496736F));
  p = fma(p, t, splat(0.254829592F));
  const vec tail = mul(mul(mul(p, t), e), splat(0.5F)); // Phi(-|x|)
  return add(keep(greater(x, zero), sub(one, add(tail, tail))), tail);
}

template <elementwise_function F> inline vec function_of(vec x) {
  // With operands in this order a NaN stays a NaN.
  if constexpr (F == elementwise_function::relu) return max(splat(0), x);
  if constexpr (F == elementwise_function::gelu) {
    vec e;
    return mul(x, normal_cdf(x, e));
  }
  if constexpr (F == elementwise_function::tanh) // 1 - 2 / (exp(2x) + 1)
    return sub(splat(1), div(splat(2), add(exp_of(add(x, x)), splat(1))));
  return x;
}
template <elementwise_function F> inline vec derivative_of(vec x, vec y) {
  if constexpr (F == elementwise_function::relu) return keep(greater(y, splat(0)), splat(1));
  if constexpr (F == elementwise_function::gelu) {
    vec e;
    const vec phi = normal_cdf(x, e);
    return fma(x, mul(e, splat(0.39894228F)), phi);
  }
  if constexpr (F == elementwise_function::tanh) return sub(splat(1), mul(y, y));
  return splat(1);
}

template <elementwise_function F, class T> void map(const map_pass<T>& p) {
  each_vector(p.count, [&](std::size_t, const auto& get, const auto& put) { put(p.y, function_of<F>(get(p.x))); });
}

template <elementwise_function F, class T> void map_gradient(const map_gradient_pass<T>& p) {
  for (std::size_t r = 0; r < p.rows; ++r) {
    const std::size_t at = r * p.stride;
    each_vector(p.columns, [&](std::size_t, const auto& get, const auto& put) {
      vec g = get(p.dy + at);
      if constexpr (F == elementwise_function::gelu) g = mul(g, derivative_of<F>(get(p.x + at), g));
      if constexpr (F == elementwise_function::relu || F == elementwise_function::tanh)
        g = mul(g, derivative_of<F>(g, get(p.y + at)));
      if (F != elementwise_function::none || p.dx != p.dy) put(p.dx + at, g);
      if (p.sums) put(p.sums, add(get(p.sums), g));
    });
  }
}

template <class To, class From> void copy(To* y, const From* x, std::size_t count) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) store(y + i, load(x + i));
  if (i == count) return;
  alignas(64) From in[lanes] = {};
  alignas(64) To out[lanes];
  for (std::size_t l = 0; i + l < count; ++l) in[l] = x[i + l];
  store(out, load(in));
  for (std::size_t l = 0; i + l < count; ++l) y[i + l] = out[l];
}

void add_floats(float* y, const float* x, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += x[i];
}
// Adds whole vectors: bf16 activations are padded to them.
void add_halves(bf16* y, const bf16* x, std::size_t count) {
  for (std::size_t i = 0; i < count; i += lanes) store(y + i, add(load(y + i), load(x + i)));
}

void axpy(float* y, float a, const float* x, std::size_t size) {
  const vec factor = splat(a);
  each_vector(size, [&](std::size_t, const auto& get, const auto& put) { put(y, fma(factor, get(x), get(y))); });
}

void dot_products(const float* a, const float* b, std::size_t count, float out[3]) {
  const std::size_t whole = whole_vectors(count);
  vec ab = splat(0), aa = splat(0), bb = splat(0);
  auto take = [&](vec x, vec y) {
    ab = fma(x, y, ab);
    aa = fma(x, x, aa);
    bb = fma(y, y, bb);
  };
  for (std::size_t i = 0; i < whole; i += lanes) take(load(a + i), load(b + i));
  if (whole < count) take(load_some(a + whole, count - whole), load_some(b + whole, count - whole));
  out[0] = sum_of(ab);
  out[1] = sum_of(aa);
  out[2] = sum_of(bb);
}
void combine(float p, const float* a, float q, const float* b, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = p * a[i] + q * b[i];
}

inline float one_and_size(float x) {
  return 1 + (x < 0 ? -x : x);
}
void softsign(const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = x[i] / one_and_size(x[i]);
}
void softsign_backward(const float* x, const float* dy, float* dx, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dx[i] = dy[i] / (one_and_size(x[i]) * one_and_size(x[i]));
}

template <class T>
constexpr map_kernels<T> maps_of = {{&map<elementwise_function::none, T>, &map<elementwise_function::relu, T>,
                                     &map<elementwise_function::gelu, T>, &map<elementwise_function::tanh, T>},
                                    {&map_gradient<elementwise_function::none, T>,
                                     &map_gradient<elementwise_function::relu, T>,
                                     &map_gradient<elementwise_function::gelu, T>,
                                     &map_gradient<elementwise_function::tanh, T>}};

constexpr elementwise_kernels elementwise_table = {
    maps_of<float>, maps_of<bf16>, &add_floats,   &add_halves, &copy<float, bf16>, &copy<bf16, float>,
    &axpy,          &combine,      &dot_products, &softsign,   &softsign_backward,
};
