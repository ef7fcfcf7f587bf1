// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.hpp"

#include "kernels/launch.hpp"

namespace cudnn::kernels {
namespace {

template <class T> void gather_of(cudaStream_t s, gather_args g, T* y, std::size_t count) {
  for_each(s, count * g.size, [=] REGATTA_DEVICE(index_t i) {
    const index_t row = i / g.size, at = i % g.size;
    const std::int32_t id = g.ids[row];
    float sum = id < 0 ? 0 : g.scale * g.table[std::size_t(id) * g.size + at];
    const std::size_t offset = std::size_t{row % g.period} * g.size + at;
    if (g.first) sum += g.first[offset];
    if (g.second) sum += g.second[offset];
    put(y + i, sum);
  });
}

template <class T> void sums_of(cudaStream_t s, gather_args g, index_t each, T* y, std::size_t samples) {
  for_each(s, samples * g.size, [=] REGATTA_DEVICE(index_t i) {
    const index_t sample = i / g.size, at = i % g.size;
    float sum = 0;
    for (index_t k = 0; k < each; ++k) {
      const std::int32_t id = g.ids[sample * each + k];
      if (id >= 0) sum += g.table[std::size_t(id) * g.size + at];
    }
    put(y + i, sum);
  });
}

template <class T>
void scatter_of(cudaStream_t s, row_groups n, const T* dy, index_t each, index_t size, float scale, float* gradient) {
  for_rows(s, n.most, size, [=] REGATTA_DEVICE(const block& b, index_t k) {
    if (static_cast<std::int32_t>(k) >= *n.count) return;
    float* to = gradient + std::size_t(n.rows[k]) * size;
    for (index_t i = b.first(); i < size; i += b.step()) {
      float sum = 0;
      for (std::int32_t at = n.begin[k]; at < n.begin[k + 1]; ++at)
        sum += to_float(dy[std::size_t(n.order[at]) / each * size + i]);
      to[i] += scale * sum;
    }
  });
}

} // namespace

void gather(cudaStream_t s, dtype t, const gather_args& g, void* y, std::size_t count) {
  by_type(t, [&](auto* of) { gather_of(s, g, as(of, y), count); });
}

void gather_sums(cudaStream_t s, dtype t, const gather_args& g, std::uint32_t each, void* y, std::size_t samples) {
  by_type(t, [&](auto* of) { sums_of(s, g, each, as(of, y), samples); });
}

void scatter(cudaStream_t s, dtype t, const row_groups& n, const void* dy, std::uint32_t each, std::uint32_t size,
             float scale, float* gradient) {
  by_type(t, [&](auto* of) { scatter_of(s, n, as(of, dy), each, size, scale, gradient); });
}

} // namespace cudnn::kernels
