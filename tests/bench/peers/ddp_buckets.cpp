// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's DistributedDataParallel as a strategy, for its simulation (ddp_order.py): a ring for each bucket, one after
// the other, where buckets are whole tensors in the order of their gradients. A bucket ends with the tensor that makes it
// as large as its limit, of 1 MiB for the first and 25 MiB for the others (Li et al., PyTorch Distributed, VLDB 2020,
// section 4.2; torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size).
#include <regatta/algorithms.hpp>
#include <regatta/data_parallel.hpp>

#include <string>
#include <tuple>
#include <vector>

namespace {

struct ddp_parameters : rg::data_parallel_parameters {
  std::uint64_t first_bucket = 1 << 20;
  std::string wire = "fp32";
};

struct ddp : rg::data_parallel<ddp> {
  using parameters = ddp_parameters;
  static constexpr auto fields = std::tuple_cat(
      rg::data_parallel_fields,
      rg::fields(rg::field("first_bucket", &ddp_parameters::first_bucket, "bytes of the first bucket, at least")
                     .unit(RG_UNIT_BYTES)
                     .range(64, 1e10),
                 rg::field("wire", &ddp_parameters::wire, "wire type").one_of("fp32", "bf16", "fp16")));

  ddp(rg::comm& c, const ddp_parameters& p) : data_parallel(c, buckets_of(c, p), p.lanes), wire(rg::wire_type(p.wire)) {
    c.own(c.whole(), rg::role::worker);
  }
  rg::task<> exchange(rg::bucket b) {
    return rg::ring_all_reduce(comm, members(), comm.rank(), b.gradients, b.lane, wire);
  }

private:
  static std::vector<rg::span_of_arena> buckets_of(rg::comm& c, const ddp_parameters& p) {
    std::vector<rg::span_of_arena> all;
    std::uint64_t first = 0;
    for (std::uint32_t s = 1; s <= c.arena().slice_count; ++s) { // up to the tensor before s
      const bool last = s == c.arena().slice_count;
      const std::uint64_t end = last ? c.arena().count : rg::copy_versioned(rg::at_stride(c.arena().slices, s)).first;
      if (!last && (end - first) * sizeof(float) < (all.empty() ? p.first_bucket : p.bucket)) continue;
      all.push_back({first, end - first});
      first = end;
    }
    c.set_buckets(all);
    return all;
  }

  std::uint32_t wire;
};

} // namespace

RG_PLUGIN("ddp_buckets", "1.0", rg::strategy<ddp>("ddp", "a ring for each bucket of DistributedDataParallel"))
