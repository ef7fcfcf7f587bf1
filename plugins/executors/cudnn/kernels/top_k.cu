// SPDX-License-Identifier: Apache-2.0
//
// Selects elements by magnitude. Magnitudes are compared as integers, so results are exact. top_k first finds the k-th
// largest magnitude, digit by digit from the highest. Then every segment counts its selected elements, prefix sums give
// each segment its first index in the output, and segments write.
#include "kernels/arithmetic.hpp"
#include "kernels/launch.hpp"

namespace cudnn::kernels {
namespace {

constexpr std::size_t segment = 64;   // elements per thread
constexpr std::size_t group = 256;    // segments per thread in the prefix sums
constexpr std::uint32_t digits = 256; // values of a digit of 8 bits

// The selected elements: all with a magnitude above `least`, and the first `equal` ones with this magnitude.
struct limit {
  std::uint32_t least;
  std::uint32_t left; // while digits are determined: how many of the k elements have the known digits
  unsigned long long equal;
};
struct counts {
  std::uint32_t above, equal;
};

struct workspace_layout {
  limit* bounds;
  unsigned long long* histogram; // [digits]
  counts *segments, *groups;
  std::size_t segment_count, group_count;
};
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 255) / 256 * 256;
}
workspace_layout layout_of(void* scratch, std::size_t n) {
  workspace_layout w{};
  w.segment_count = (n + segment - 1) / segment;
  w.group_count = (w.segment_count + group - 1) / group;
  auto* at = static_cast<unsigned char*>(scratch);
  w.bounds = reinterpret_cast<limit*>(at);
  w.histogram = reinterpret_cast<unsigned long long*>(at += aligned(sizeof(limit)));
  w.segments = reinterpret_cast<counts*>(at += aligned(digits * sizeof(unsigned long long)));
  w.groups = reinterpret_cast<counts*>(at + aligned(w.segment_count * sizeof(counts)));
  return w;
}

REGATTA_DEVICE inline std::uint32_t magnitude(const float* x, std::size_t i) {
  return reinterpret_cast<const std::uint32_t*>(x)[i] & 0x7fffffffU;
}

// Writes indices and values of the elements within w.bounds.
void compact(cudaStream_t s, const workspace_layout& w, const float* x, std::size_t n, std::int32_t* indices,
             float* values, std::size_t room, std::uint64_t* found) {
  for_each(s, w.segment_count, [=] REGATTA_DEVICE(index_t k) {
    counts c{0, 0};
    const std::size_t end = (k + 1) * segment < n ? (k + 1) * segment : n;
    for (std::size_t i = k * segment; i < end; ++i) {
      const std::uint32_t m = magnitude(x, i);
      c.above += m > w.bounds->least;
      c.equal += m == w.bounds->least;
    }
    w.segments[k] = c;
  });
  // Prefix sums: within each group, then over the groups.
  for_each(s, w.group_count, [=] REGATTA_DEVICE(index_t g) {
    counts sum{0, 0};
    const std::size_t end = (g + 1) * group < w.segment_count ? (g + 1) * group : w.segment_count;
    for (std::size_t k = g * group; k < end; ++k) {
      const counts mine = w.segments[k];
      w.segments[k] = sum;
      sum.above += mine.above;
      sum.equal += mine.equal;
    }
    w.groups[g] = sum;
  });
  for_each(s, 1, [=] REGATTA_DEVICE(index_t) {
    counts sum{0, 0};
    for (std::size_t g = 0; g < w.group_count; ++g) {
      const counts mine = w.groups[g];
      w.groups[g] = sum;
      sum.above += mine.above;
      sum.equal += mine.equal;
    }
    if (found) *found = sum.above + (w.bounds->equal < sum.equal ? w.bounds->equal : sum.equal);
  });
  for_each(s, w.segment_count, [=] REGATTA_DEVICE(index_t k) {
    const counts before_group = w.groups[k / group], before = w.segments[k];
    unsigned long long above = before_group.above + before.above, equal = before_group.equal + before.equal;
    const std::size_t end = (k + 1) * segment < n ? (k + 1) * segment : n;
    for (std::size_t i = k * segment; i < end; ++i) {
      const std::uint32_t m = magnitude(x, i);
      if (m < w.bounds->least) continue;
      const bool larger = m > w.bounds->least;
      const unsigned long long at = above + (equal < w.bounds->equal ? equal : w.bounds->equal);
      if ((larger || equal < w.bounds->equal) && at < room) {
        indices[at] = static_cast<std::int32_t>(i);
        values[at] = x[i];
      }
      above += larger;
      equal += !larger;
    }
  });
}

} // namespace

std::size_t selection_scratch(std::size_t n) {
  const workspace_layout w = layout_of(nullptr, n);
  return aligned(sizeof(limit)) + aligned(digits * sizeof(unsigned long long)) +
         aligned(w.segment_count * sizeof(counts)) + aligned(w.group_count * sizeof(counts));
}

void select_above(cudaStream_t s, const float* x, std::size_t n, float threshold, std::int32_t* indices, float* values,
                  std::size_t room, std::uint64_t* found, void* scratch) {
  const workspace_layout w = layout_of(scratch, n);
  for_each(s, 1, [=] REGATTA_DEVICE(index_t) { *w.bounds = {magnitude(&threshold, 0), 0, 0}; });
  compact(s, w, x, n, indices, values, room, found);
}

void top_k(cudaStream_t s, const float* x, std::size_t n, std::int32_t* indices, float* values, std::size_t k,
           void* scratch) {
  const workspace_layout w = layout_of(scratch, n);
  for_each(s, digits, [=] REGATTA_DEVICE(index_t d) {
    w.histogram[d] = 0;
    if (d == 0) *w.bounds = {0, static_cast<std::uint32_t>(k), 0};
  });
  for (int shift = 24; shift >= 0; shift -= 8) {
    for_each(s, n, [=] REGATTA_DEVICE(index_t i) {
      const std::uint32_t m = magnitude(x, i);
      // The higher digits are known; in the first pass there are none.
      if (shift == 24 || m >> (shift + 8) == w.bounds->least >> (shift + 8))
        count_one(w.histogram + (m >> shift & (digits - 1)));
    });
    for_each(s, 1, [=] REGATTA_DEVICE(index_t) {
      std::uint32_t digit = digits - 1, left = w.bounds->left;
      while (digit > 0 && w.histogram[digit] < left) left -= static_cast<std::uint32_t>(w.histogram[digit--]);
      w.bounds->least |= digit << shift;
      w.bounds->left = left;
      w.bounds->equal = left;
      for (std::uint32_t d = 0; d < digits; ++d) w.histogram[d] = 0;
    });
  }
  compact(s, w, x, n, indices, values, k, nullptr);
}

} // namespace cudnn::kernels
