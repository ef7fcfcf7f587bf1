// SPDX-License-Identifier: Apache-2.0
//
// What a strategy asks to be computed: on host memory, at once. Under a virtual clock it takes the time that a core
// would need, ghosts or not.
#include "rank/exchange.hpp"

#include "memory/arithmetic.hpp"
#include "memory/conversion.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include <regatta/plugin.hpp>

namespace regatta {
namespace {

std::uint64_t bytes_of(const rg_buffer& b) {
  return b.count * rg::size_of(b.type);
}

bool is_half(std::uint32_t type) {
  return type == RG_F16 || type == RG_BF16;
}

conversion::half half_of(std::uint32_t type) {
  return type == RG_BF16 ? conversion::half::bf16 : conversion::half::fp16;
}

} // namespace

// What it takes a simulated rank to touch bytes: 10 GB/s is one core's share of a server's memory.
std::uint64_t exchange::virtual_ns(std::uint64_t bytes) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * 0.1);
}

rg_status exchange::arithmetic(const rg_op& op) {
  const bool reads = op.kind == RG_OP_COPY || op.kind == RG_OP_AXPY || op.kind == RG_OP_ACCUMULATE;
  const bool indexed = (op.kind == RG_OP_FILL || op.kind == RG_OP_AXPY) && op.index.region != 0;
  if (!regions_.contains(op.target) || (reads && !regions_.contains(op.source)) ||
      (indexed && !regions_.contains(op.index)))
    return refuse("arithmetic names memory outside its region");
  if (op.kind != RG_OP_COPY && op.target.type != RG_F32) return refuse("arithmetic is on RG_F32");
  if (indexed && op.index.type != RG_I32) return refuse("the index of arithmetic is RG_I32");
  const std::uint64_t count = indexed ? op.index.count : op.target.count;
  if (reads && (op.source.count != count || op.source.type != op.target.type))
    return refuse("arithmetic on buffers of different length or type");
  if (op.kind == RG_OP_ACCUMULATE &&
      (!regions_.contains(op.index) || op.index.type != RG_F32 || op.index.count != count))
    return refuse("accumulate: three buffers of RG_F32 and one length");
  const std::uint64_t bytes = count * rg::size_of(op.target.type);
  if (!regions_.ghosts()) {
    const auto a = static_cast<float>(op.a);
    if (op.kind == RG_OP_COPY) {
      std::memmove(regions_.address(op.target), regions_.address(op.source), bytes);
      return worked(op, bytes * 2);
    }
    const auto y = regions_.elements<float>(op.target);
    const auto x = reads ? regions_.elements<const float>(op.source) : std::span<const float>{};
    const auto places = indexed ? regions_.elements<const std::int32_t>(op.index) : std::span<const std::int32_t>{};
    bool inside = true;
    switch (op.kind) {
    case RG_OP_FILL: indexed ? void(inside = selection::fill_at(y, places, a)) : arithmetic::fill(y, a); break;
    case RG_OP_AXPY: indexed ? void(inside = selection::axpy_at(y, places, a, x)) : arithmetic::axpy(y, a, x); break;
    case RG_OP_SCALE: arithmetic::scale(y, a); break;
    case RG_OP_ACCUMULATE: arithmetic::accumulate(y, a, x, regions_.elements<float>(op.index)); break;
    case RG_OP_CLIP:
      // A norm that is not finite leaves the values as they are: they are for the update to judge.
      if (const double norm = std::sqrt(arithmetic::sum_of_squares(y).sum_of_squares);
          norm > op.a && std::isfinite(norm))
        arithmetic::scale(y, static_cast<float>(op.a / norm));
      break;
    default: break;
    }
    if (!inside) return refuse("arithmetic: an index names an element outside the buffer");
  }
  return worked(op, bytes * (reads ? 3 : 2));
}

rg_status exchange::convert(const rg_op& op) {
  const rg_buffer &to = op.target, &from = op.source;
  if (!regions_.contains(to) || !regions_.contains(from) || to.count != from.count)
    return refuse("convert: buffers outside their region, or of different length");
  const bool rounds = to.type == RG_F32 && from.type == RG_F32 && is_half(op.wire);
  const bool narrows = from.type == RG_F32 && is_half(to.type), widens = to.type == RG_F32 && is_half(from.type);
  if (!rounds && !narrows && !widens) return refuse("convert: between RG_F32 and RG_F16 or RG_BF16");
  if (!regions_.ghosts()) {
    if (narrows) {
      conversion::narrow(half_of(to.type), regions_.elements<std::uint16_t>(to), regions_.elements<const float>(from));
    } else if (widens) {
      conversion::widen(half_of(from.type), regions_.elements<float>(to), regions_.elements<const std::uint16_t>(from));
    } else {
      const auto y = regions_.elements<float>(to);
      arithmetic::copy(y, regions_.elements<const float>(from));
      conversion::round(half_of(op.wire), y);
    }
  }
  return worked(op, bytes_of(to) + bytes_of(from));
}

rg_status exchange::select(const rg_op& op) {
  if (!regions_.contains(op.source) || !regions_.contains(op.target) || !regions_.contains(op.index))
    return refuse("a selection names memory outside its region");
  if (op.source.type != RG_F32 || op.target.type != RG_F32 || op.index.type != RG_I32 ||
      op.index.count != op.target.count)
    return refuse("a selection is of RG_F32, into as many values as indices (RG_I32)");
  if (op.source.count > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    return refuse("a selection is of 2^31 elements at most");
  if (op.kind == RG_OP_TOP_K && op.target.count > op.source.count) return refuse("top k of fewer than k elements");
  std::uint64_t found = op.target.count;
  if (!regions_.ghosts()) {
    const auto x = regions_.elements<const float>(op.source);
    const auto places = regions_.elements<std::int32_t>(op.index);
    const auto values = regions_.elements<float>(op.target);
    if (op.kind == RG_OP_TOP_K) {
      selection::top_k(x, places, values, selection_);
    } else {
      const auto n = selection::above(x, static_cast<float>(op.a), places, values);
      if (!n) return refuse("select: more elements than the buffers hold");
      found = *n;
    }
  }
  const std::uint64_t touched = bytes_of(op.source) + found * (sizeof(float) + sizeof(std::int32_t));
  if (op.kind == RG_OP_TOP_K) return worked(op, touched);
  end_later(op, setup_.caps.flags & RG_CAP_VIRTUAL ? virtual_ns(touched) : 0, found * sizeof(float));
  return RG_OK;
}

} // namespace regatta
