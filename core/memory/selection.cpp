// SPDX-License-Identifier: Apache-2.0
#include "memory/selection.hpp"

#include <regatta/simd.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <functional>

namespace regatta::selection {
namespace {

inline std::uint32_t magnitude(float x) noexcept {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
}

// Writes the indices of the elements with a magnitude of at least `least`, up to `capacity` of them. Returns their
// number, or more than `capacity` as soon as that is certain. Most blocks have no such element and cost one vectorised
// pass.
std::size_t collect_loop(const float* x, std::size_t n, std::uint32_t least, std::int32_t* indices,
                         std::size_t capacity) noexcept {
  constexpr std::size_t block = 64;
  std::size_t found = 0;
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t end = n - first < block ? n : first + block;
    std::uint32_t any = 0;
    for (std::size_t i = first; i < end; ++i) any |= static_cast<std::uint32_t>(magnitude(x[i]) >= least);
    if (!any) continue;
    for (std::size_t i = first; i < end; ++i) {
      if (magnitude(x[i]) < least) continue;
      if (found == capacity) return capacity + 1;
      indices[found++] = static_cast<std::int32_t>(i);
    }
  }
  return found;
}

// Estimates from a sample a magnitude that somewhat more than k elements reach; 0: take all.
std::uint32_t guess(std::span<const float> x, std::size_t k, std::vector<std::uint32_t>& sample) {
  constexpr std::size_t fewest = 2048, most = std::size_t{1} << 18;
  const std::size_t m = std::clamp(x.size() / 64, fewest, most);
  if (x.size() <= 4 * m) return 0;
  sample.resize(m);
  const std::size_t stride = x.size() / m;
  // one random index per stride, so that a periodic pattern in x is not always hit at the same phase
  std::uint64_t random = 0x9e3779b97f4a7c15u;
  for (std::size_t i = 0; i < m; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    sample[i] = magnitude(x[i * stride + (random >> 33) % stride]);
  }
  const double expected = static_cast<double>(m) * static_cast<double>(k) / static_cast<double>(x.size());
  // too few elements only with a deviation above four sigma
  const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 2);
  if (rank >= m) return 0;
  std::nth_element(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(rank), sample.end(), std::greater<>());
  return sample[rank];
}

// Returns the k-th largest magnitude by radix selection from the highest digit: exact, in three passes, without
// allocation.
std::uint32_t kth_largest(std::span<const float> x, std::size_t k) {
  struct digit {
    unsigned shift, bits;
  };
  std::uint32_t prefix = 0;
  unsigned known = 31;
  for (const digit d : {digit{20, 11}, digit{10, 10}, digit{0, 10}}) {
    std::array<std::size_t, 2048> count{};
    for (const float v : x) {
      const std::uint32_t m = magnitude(v);
      if (known == 31 || m >> known == prefix) ++count[(m >> d.shift) & ((1u << d.bits) - 1)];
    }
    std::uint32_t value = (1u << d.bits) - 1;
    while (count[value] < k) k -= count[value--];
    prefix = (known == 31 ? 0 : prefix << d.bits) | value;
    known = d.shift;
  }
  return prefix;
}

bool inside(std::span<const std::int32_t> indices, std::size_t size) noexcept {
  std::uint32_t largest = 0;
  for (const std::int32_t i : indices) largest = std::max(largest, static_cast<std::uint32_t>(i));
  return indices.empty() || largest < size;
}

} // namespace

void top_k(std::span<const float> x, std::span<std::int32_t> indices, std::span<float> values, scratch& memory) {
  const std::size_t k = indices.size();
  if (k == 0) return;
  const std::size_t capacity = std::min(x.size(), 2 * k + 4096);
  memory.indices.resize(capacity);
  std::span<std::int32_t> candidates(memory.indices);
  const std::uint32_t least = guess(x, k, memory.magnitudes);
  const std::size_t found = rg::simd::widest<collect_loop>(x.data(), x.size(), least, candidates.data(), capacity);
  std::uint32_t threshold = 0;
  if (found >= k && found <= capacity) {
    candidates = candidates.first(found);
    memory.magnitudes.resize(found);
    std::transform(candidates.begin(), candidates.end(), memory.magnitudes.begin(),
                   [&](std::int32_t i) { return magnitude(x[static_cast<std::size_t>(i)]); });
    const auto kth = memory.magnitudes.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(memory.magnitudes.begin(), kth, memory.magnitudes.end(), std::greater<>());
    threshold = *kth;
  } else {
    threshold = kth_largest(x, k);
    candidates = {};
  }
  // Takes all elements above the threshold, and the first of those equal to it, until there are k.
  const auto pass_over = [&](auto each) {
    if (!candidates.empty())
      for (const std::int32_t i : candidates) each(static_cast<std::size_t>(i));
    else
      for (std::size_t i = 0; i < x.size(); ++i) each(i);
  };
  std::size_t larger = 0;
  pass_over([&](std::size_t i) { larger += magnitude(x[i]) > threshold; });
  std::size_t equal = k - larger, at = 0;
  pass_over([&](std::size_t i) {
    const std::uint32_t m = magnitude(x[i]);
    if (m < threshold || (m == threshold && !equal)) return;
    if (m == threshold) --equal;
    indices[at] = static_cast<std::int32_t>(i);
    values[at++] = x[i];
  });
}

std::optional<std::size_t> above(std::span<const float> x, float threshold, std::span<std::int32_t> indices,
                                 std::span<float> values) {
  const std::size_t found =
      rg::simd::widest<collect_loop>(x.data(), x.size(), magnitude(threshold) + 1, indices.data(), indices.size());
  if (found > indices.size()) return std::nullopt;
  for (std::size_t i = 0; i < found; ++i) values[i] = x[static_cast<std::size_t>(indices[i])];
  return found;
}

bool fill_at(std::span<float> y, std::span<const std::int32_t> indices, float a) noexcept {
  if (!inside(indices, y.size())) return false;
  for (const std::int32_t i : indices) y[static_cast<std::size_t>(i)] = a;
  return true;
}

bool axpy_at(std::span<float> y, std::span<const std::int32_t> indices, float a, std::span<const float> x) noexcept {
  if (!inside(indices, y.size())) return false;
  for (std::size_t i = 0; i < indices.size(); ++i) y[static_cast<std::size_t>(indices[i])] += a * x[i];
  return true;
}

} // namespace regatta::selection
