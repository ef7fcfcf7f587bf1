// SPDX-License-Identifier: Apache-2.0
//
// Implements row_kernels.hpp over the vector type of kernels.inl, and load_some and store_some, which access the first
// n elements, n < lanes; the rest loads as zero and is not stored. As in kernels.inl, functions of other headers must
// not be called.

// Elements of a row that fill whole vectors.
inline std::size_t whole_vectors(std::size_t dim) {
  return dim / lanes * lanes;
}

void find_rows(const row_word* index, const std::int32_t* ids, std::size_t count, std::uint32_t* at) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = static_cast<std::uint32_t>(ids[i]);
    const row_word word = index[row / 64];
    const std::uint64_t bit = std::uint64_t{1} << row % 64;
    const auto below = static_cast<std::uint64_t>(__builtin_popcountll(word.bits & (bit - 1)));
    at[i] = word.bits & bit ? static_cast<std::uint32_t>(word.before + below) : no_row;
  }
}

void gather(const float* table, std::size_t dim, const std::uint32_t* at, std::size_t count, float* out) {
  const std::size_t whole = whole_vectors(dim), rest = dim - whole;
  for (std::size_t i = 0; i < count; ++i, out += dim) {
    const bool there = at[i] != no_row;
    const float* row = table + (there ? at[i] * dim : 0);
    for (std::size_t d = 0; d < whole; d += lanes) store(out + d, there ? load(row + d) : splat(0));
    if (rest) store_some(out + whole, there ? load_some(row + whole, rest) : splat(0), rest);
  }
}

void gather_sum(const float* table, std::size_t dim, const std::uint32_t* at, std::size_t count, float* out) {
  constexpr std::size_t wide = 8; // vectors that are summed in registers at once
  const std::size_t whole = whole_vectors(dim), rest = dim - whole;
  auto each_row = [&](std::size_t d, const auto& f) {
    for (std::size_t i = 0; i < count; ++i)
      if (at[i] != no_row) f(table + at[i] * dim + d);
  };
  std::size_t d = 0;
  for (; d + wide * lanes <= whole; d += wide * lanes) {
    vec sum[wide];
    for (vec& s : sum) s = splat(0);
    each_row(d, [&](const float* row) {
      for (std::size_t k = 0; k < wide; ++k) sum[k] = add(sum[k], load(row + k * lanes));
    });
    for (std::size_t k = 0; k < wide; ++k) store(out + d + k * lanes, sum[k]);
  }
  for (; d < whole; d += lanes) {
    vec sum = splat(0);
    each_row(d, [&](const float* row) { sum = add(sum, load(row)); });
    store(out + d, sum);
  }
  if (rest) {
    vec sum = splat(0);
    each_row(d, [&](const float* row) { sum = add(sum, load_some(row, rest)); });
    store_some(out + d, sum, rest);
  }
}

void scatter_add(float* table, std::size_t dim, const std::uint32_t* at, std::size_t count, const float* in,
                 std::size_t stride, std::uint32_t first, std::uint32_t last) {
  const std::size_t whole = whole_vectors(dim), rest = dim - whole;
  for (std::size_t i = 0; i < count; ++i, in += stride) {
    if (at[i] < first || at[i] >= last) continue;
    float* row = table + at[i] * dim;
    for (std::size_t d = 0; d < whole; d += lanes) store(row + d, add(load(row + d), load(in + d)));
    if (rest) store_some(row + whole, add(load_some(row + whole, rest), load_some(in + whole, rest)), rest);
  }
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

inline float total(const vec& v) {
  alignas(64) float f[lanes];
  store(f, v);
  float sum = 0;
  for (float x : f) sum += x;
  return sum;
}
void products(const float* a, const float* b, std::size_t count, float out[3]) {
  const std::size_t whole = whole_vectors(count);
  vec ab = splat(0), aa = splat(0), bb = splat(0);
  auto take = [&](vec x, vec y) {
    ab = fma(x, y, ab);
    aa = fma(x, x, aa);
    bb = fma(y, y, bb);
  };
  for (std::size_t i = 0; i < whole; i += lanes) take(load(a + i), load(b + i));
  if (whole < count) take(load_some(a + whole, count - whole), load_some(b + whole, count - whole));
  out[0] = total(ab);
  out[1] = total(aa);
  out[2] = total(bb);
}
void combine(float p, const float* a, float q, const float* b, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = p * a[i] + q * b[i];
}

constexpr row_kernels row_table_of() {
  return {&find_rows, &gather, &gather_sum, &scatter_add, &softsign, &softsign_backward, &products, &combine};
}
