// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective_rules.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

using namespace regatta;

namespace {

// A collective of member 1 of 3, of `from` and `to` floats.
rg_op_collective call(std::uint32_t kind, std::uint64_t from, std::uint64_t to, std::uint32_t root = 0) {
  rg_op_collective o{};
  o.op.kind = kind;
  o.root = root;
  o.reduction = kind == RG_OP_ALL_REDUCE || kind == RG_OP_REDUCE || kind == RG_OP_REDUCE_SCATTER ? RG_SUM : 0;
  o.source = {1, RG_F32, 0, from};
  o.target = {1, RG_F32, 0, to};
  return o;
}

constexpr collective_group third{.id = 0, .size = 3, .index = 1};

std::string error(const rg_op_collective& o) {
  const char* const text = error_in(o, third);
  return text ? text : "";
}

} // namespace

TEST_CASE("correct calls are accepted") {
  CHECK(error(call(RG_OP_ALL_REDUCE, 48, 48)) == "");
  CHECK(error(call(RG_OP_REDUCE_SCATTER, 48, 16)) == "");
  CHECK(error(call(RG_OP_REDUCE_SCATTER, 33, 16)) == ""); // 3 cache lines, the last one short
  CHECK(error(call(RG_OP_REDUCE_SCATTER, 17, 16)) == ""); // 2 lines for 3 members: none for the first one
  CHECK(error(call(RG_OP_ALL_GATHER, 16, 48)) == "");
  CHECK(error(call(RG_OP_BROADCAST, 7, 7)) == "");
  CHECK(error(call(RG_OP_BROADCAST, 999, 7)) == ""); // only the root has a source
  CHECK(error(call(RG_OP_GATHER, 5, 999)) == "");    // only the root has a target
  CHECK(error(call(RG_OP_SCATTER, 999, 5)) == "");
  CHECK(error(call(RG_OP_ALL_TO_ALL, 9, 9)) == "");
  CHECK(error(call(RG_OP_BARRIER, 1, 2)) == "");
}

TEST_CASE("counts") {
  const std::array<std::uint64_t, 3> counts = {1, 2, 3}, from_each = {2, 0, 5};
  rg_op_collective o = call(RG_OP_REDUCE_SCATTER, 6, 2);
  o.counts = counts.data();
  CHECK(error(o) == "");
  o.target.count = 3;
  CHECK(error(o) == "this rank's chunk has the wrong count");
  o.source.count = 7;
  CHECK(error(o) == "the counts do not add up to that of the buffer");
  o = call(RG_OP_GATHER, 2, 0);
  o.counts = counts.data();
  CHECK(error(o) == ""); // not the root: the whole is unknown
  o.source.count = 1;
  CHECK(error(o) == "this rank's chunk has the wrong count");
  o = call(RG_OP_ALL_TO_ALL, 6, 7);
  o.counts = counts.data();
  CHECK(error(o) == "expected counts of source and target, or of neither");
  o.target_counts = from_each.data();
  CHECK(error(o) == "");
  o.target.count = 8;
  CHECK(error(o) == "the counts do not add up to those of the buffers");
  o = call(RG_OP_ALL_GATHER, 2, 6);
  o.counts = counts.data();
  o.target_counts = from_each.data();
  CHECK(error(o) == "only an all-to-all has counts of the target");
  o = call(RG_OP_ALL_REDUCE, 6, 6);
  o.counts = counts.data();
  CHECK(error(o) == "this collective has no counts");
}

TEST_CASE("wrong calls are refused with the reason") {
  CHECK(error(call(RG_OP_ALL_REDUCE, 48, 47)) == "source and target have different counts");
  CHECK(error(call(RG_OP_REDUCE_SCATTER, 48, 17)) == "this rank's chunk has the wrong count");
  CHECK(error(call(RG_OP_ALL_GATHER, 15, 48)) == "this rank's chunk has the wrong count");
  CHECK(error(call(RG_OP_BROADCAST, 7, 7, 3)) == "expected a root among the members of the group");
  CHECK(error(call(RG_OP_ALL_TO_ALL, 10, 10)).starts_with("without counts, source and target have the same count"));
  rg_op_collective o = call(RG_OP_ALL_REDUCE, 4, 4);
  o.reduction = 0;
  CHECK(error(o).starts_with("expected a reduction"));
  o = call(RG_OP_ALL_GATHER, 16, 48);
  o.reduction = RG_SUM;
  CHECK(error(o).starts_with("expected a reduction"));
  o = call(RG_OP_ALL_REDUCE, 4, 4);
  o.target.type = RG_F64;
  CHECK(error(o) == "source and target are of different types");
  o.source.type = RG_F64;
  o.wire = RG_BF16;
  CHECK(error(o) == "only RG_F32 has a wire type");
}

TEST_CASE("the buffers that a member uses") {
  const auto uses = [](std::uint32_t kind, std::uint32_t root) {
    const rg_op_collective o = call(kind, 4, 4, root);
    const used_buffers b = buffers_of(o, third);
    return std::string(b.source ? "source " : "") + (b.target ? "target" : "");
  };
  CHECK(uses(RG_OP_ALL_TO_ALL, 0) == "source target");
  CHECK(uses(RG_OP_REDUCE, 0) == "source ");
  CHECK(uses(RG_OP_REDUCE, 1) == "source target");
  CHECK(uses(RG_OP_GATHER, 2) == "source ");
  CHECK(uses(RG_OP_BROADCAST, 0) == "target");
  CHECK(uses(RG_OP_SCATTER, 0) == "target");
  CHECK(uses(RG_OP_SCATTER, 1) == "source target");
  CHECK(uses(RG_OP_BARRIER, 0) == "");
}
