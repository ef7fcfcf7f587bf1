// SPDX-License-Identifier: Apache-2.0
//
// Implements embedding.hpp.

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

constexpr embedding_kernels embedding_table = {&find_rows, &gather, &gather_sum, &scatter_add};
