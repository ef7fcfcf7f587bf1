// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective_rules.hpp"

#include <numeric>

#include <regatta/collectives.hpp>

namespace regatta {
namespace {

// Whether the source, or the target, has the chunks of all members while the other buffer has one.
bool cuts_source(std::uint32_t kind) {
  return kind == RG_OP_REDUCE_SCATTER || kind == RG_OP_SCATTER;
}
bool cuts_target(std::uint32_t kind) {
  return kind == RG_OP_ALL_GATHER || kind == RG_OP_GATHER;
}

std::uint64_t sum_of(const std::uint64_t* counts, std::uint32_t size) {
  return std::accumulate(counts, counts + size, std::uint64_t{0});
}

// Elements of a chunk of `whole`.
std::uint64_t chunk(const rg_op_collective& o, const collective_group& g, const rg_buffer& whole) {
  return rg::chunk_of(whole.count, o.counts, g.index, g.size).count;
}

const char* error_in_all_to_all(const rg_op_collective& o, const collective_group& g) {
  if (!o.counts != !o.target_counts) return "expected counts of source and target, or of neither";
  if (!o.counts)
    return o.source.count != o.target.count || o.source.count % g.size != 0
               ? "without counts, source and target have the same count, a multiple of the number of members"
               : nullptr;
  return o.source.count != sum_of(o.counts, g.size) || o.target.count != sum_of(o.target_counts, g.size)
             ? "the counts do not add up to those of the buffers"
             : nullptr;
}

const char* error_in_chunks(const rg_op_collective& o, const collective_group& g) {
  const auto [source, target] = buffers_of(o, g);
  const bool cut = cuts_source(o.op.kind);
  const rg_buffer *whole = cut ? source : target, *own = cut ? target : source;
  if (o.target_counts) return "only an all-to-all has counts of the target";
  if (whole && o.counts && whole->count != sum_of(o.counts, g.size))
    return "the counts do not add up to that of the buffer";
  const std::uint64_t expected = whole ? chunk(o, g, *whole) : o.counts ? o.counts[g.index] : own->count;
  return own->count != expected ? "this rank's chunk has the wrong count" : nullptr;
}

} // namespace

used_buffers buffers_of(const rg_op_collective& o, const collective_group& g) {
  const bool is_root = !rg::has_root(o.op.kind) || o.root == g.index;
  const bool from_root = o.op.kind == RG_OP_BROADCAST || o.op.kind == RG_OP_SCATTER, none = o.op.kind == RG_OP_BARRIER;
  return {none || (from_root && !is_root) ? nullptr : &o.source,
          none || (!from_root && !is_root) ? nullptr : &o.target};
}

const char* error_in(const rg_op_collective& o, const collective_group& g) {
  const std::uint32_t kind = o.op.kind;
  if (rg::reduces(kind) ? o.reduction < RG_SUM || o.reduction > RG_MAX : o.reduction != 0)
    return "expected a reduction (RG_SUM, ...) where elements are reduced, and none elsewhere";
  if (rg::has_root(kind) && o.root >= g.size) return "expected a root among the members of the group";
  const auto [source, target] = buffers_of(o, g);
  if (source && target && source->type != target->type) return "source and target are of different types";
  if (const rg_buffer* any = source ? source : target; any && o.wire && any->type != RG_F32)
    return "only RG_F32 has a wire type";
  if (kind == RG_OP_ALL_TO_ALL) return error_in_all_to_all(o, g);
  if (cuts_source(kind) || cuts_target(kind)) return error_in_chunks(o, g);
  if (o.counts || o.target_counts) return "this collective has no counts";
  return source && target && source->count != target->count ? "source and target have different counts" : nullptr;
}

} // namespace regatta
