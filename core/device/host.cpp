// SPDX-License-Identifier: Apache-2.0
#include "device/host.hpp"

#include "base/failure.hpp"
#include "memory/arithmetic.hpp"
#include "memory/conversion.hpp"
#include "optimizer/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace regatta {
namespace {

template <class T> std::span<T> target(const rg_work& w) {
  return {static_cast<T*>(w.target), w.count};
}
template <class T> std::span<const T> source(const rg_work& w) {
  return {static_cast<const T*>(w.source), w.count};
}
std::span<const std::int32_t> indices(const rg_work& w) {
  return {static_cast<const std::int32_t*>(w.index), w.index_count};
}

bool axpy(const rg_work& w) {
  const auto a = static_cast<float>(w.factor);
  if (w.index)
    return selection::axpy_at(target<float>(w), indices(w), a, {static_cast<const float*>(w.source), w.index_count});
  if (w.type == RG_F64) {
    const auto y = target<double>(w);
    const auto x = source<double>(w);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += w.factor * x[i];
  } else if (a == 1) {
    arithmetic::add(target<float>(w), source<float>(w));
  } else {
    arithmetic::axpy(target<float>(w), a, source<float>(w));
  }
  return true;
}

void norm(const rg_work& w) {
  const arithmetic::norm n = arithmetic::sum_of_squares(source<float>(w));
  auto* const to = static_cast<double*>(w.target);
  const bool add = w.flags & RG_OP_ADD;
  to[0] = (add ? to[0] : 0) + n.not_finite;
  to[1] = (add ? to[1] : 0) + n.sum_of_squares;
}

// A norm that is not finite leaves the values unchanged: the update then decides whether to skip them.
void clip(const rg_work& w) {
  const auto y = target<float>(w);
  const auto norm = arithmetic::sum_of_squares(y);
  const double length = std::sqrt(norm.sum_of_squares); // of the finite elements
  if (norm.not_finite == 0 && length > w.max_norm) arithmetic::scale(y, static_cast<float>(w.max_norm / length));
}

conversion::half half_of(std::uint32_t type) {
  return type == RG_BF16 ? conversion::half::bf16 : conversion::half::fp16;
}

// y += x rounded to `type`.
void add_rounded(conversion::half type, std::span<float> y, std::span<const float> x) {
  std::array<std::uint16_t, 1024> narrow; // fits the L1 cache
  for (std::size_t first = 0; first < y.size(); first += narrow.size()) {
    const std::size_t n = std::min(narrow.size(), y.size() - first);
    conversion::narrow(type, std::span(narrow).first(n), x.subspan(first, n));
    conversion::add(type, y.subspan(first, n), std::span(narrow).first(n));
  }
}

void convert(const rg_work& w) {
  const bool add = w.flags & RG_OP_ADD;
  if (w.type != RG_F32) {
    conversion::narrow(half_of(w.type), target<std::uint16_t>(w), source<float>(w));
  } else if (w.source_type != RG_F32) {
    const auto type = half_of(w.source_type);
    add ? conversion::add(type, target<float>(w), source<std::uint16_t>(w))
        : conversion::widen(type, target<float>(w), source<std::uint16_t>(w));
  } else if (add) {
    add_rounded(half_of(w.round_to), target<float>(w), source<float>(w));
  } else {
    if (w.count) std::memmove(w.target, w.source, w.count * sizeof(float));
    conversion::round(half_of(w.round_to), target<float>(w));
  }
}

} // namespace

void* host_processor::allocate(std::uint64_t bytes) {
  memory_.push_back(allocate_aligned(bytes));
  return memory_.back().get();
}

void host_processor::copy(void* to, const void* from, std::uint64_t bytes) {
  if (bytes) std::memmove(to, from, bytes);
}

bool host_processor::run(const rg_work& w) {
  const auto value = static_cast<float>(w.value), factor = static_cast<float>(w.factor);
  switch (w.kind) {
  case RG_OP_COPY: copy(w.target, w.source, w.count * rg::size_of(w.type)); return true;
  case RG_OP_FILL:
    if (w.index) return selection::fill_at(target<float>(w), indices(w), value);
    arithmetic::fill(target<float>(w), value);
    return true;
  case RG_OP_AXPY: return axpy(w);
  case RG_OP_SCALE: arithmetic::scale(target<float>(w), factor); return true;
  case RG_OP_CLIP: clip(w); return true;
  case RG_OP_ACCUMULATE:
    arithmetic::accumulate(target<float>(w), factor, source<float>(w), {w.sum, w.count});
    return true;
  case RG_OP_NORM: norm(w); return true;
  case RG_OP_CONVERT: convert(w); return true;
  case RG_OP_APPLY:
    optimizer_kernels::update(*w.update, static_cast<float*>(w.target), static_cast<const float*>(w.source), w.count);
    return true;
  case RG_OP_TOP_K:
    selection::top_k(source<float>(w), {static_cast<std::int32_t*>(w.index), w.index_count},
                     {static_cast<float*>(w.target), w.index_count}, selection_);
    return true;
  case RG_OP_SELECT: {
    const auto n = selection::above(source<float>(w), static_cast<float>(w.threshold),
                                    {static_cast<std::int32_t*>(w.index), w.index_count},
                                    {static_cast<float*>(w.target), w.index_count});
    *w.found = n ? *n : std::numeric_limits<std::uint64_t>::max();
    return true;
  }
  default: throw failure(exit_code::plugin, fmt::format("the host has no arithmetic of kind {}", w.kind));
  }
}

} // namespace regatta
