// SPDX-License-Identifier: Apache-2.0
//
// Collectives over the example transport: a correct one, and others with one defect each.
#include "sends_all.hpp"

namespace {

// Defect: the shards of a reduce-scatter do not begin at multiples of 16 elements.
struct scatters_evenly : sends_all {
  using sends_all::sends_all;
  part share(const call& c, std::uint64_t place) const override {
    if (c.of.kind != RG_OP_REDUCE_SCATTER) return sends_all::share(c, place);
    const std::uint64_t count = c.of.source.count, n = c.members.size();
    return {count * place / n, count * (place + 1) / n};
  }
};

// Defect: an all-gather omits the elements behind the last multiple of 16.
struct gathers_lines : sends_all {
  using sends_all::sends_all;
  part share(const call& c, std::uint64_t place) const override {
    part p = sends_all::share(c, place);
    if (c.of.kind == RG_OP_ALL_GATHER) p.end -= (p.end - p.first) % 16;
    return p;
  }
};

struct broadcasts_from_first : sends_all {
  using sends_all::sends_all;
  std::size_t root(const call&) const override { return 0; }
};

// Defect: uses a member's rank as its index in the group, which is right only in the group of all ranks.
struct places_by_rank : sends_all {
  using sends_all::sends_all;
  rg_blob listen(const rg_world& world) {
    rank = world.rank;
    return sends_all::listen(world);
  }
  std::size_t own_place(const call& c) const override { return std::min<std::size_t>(rank, c.members.size() - 1); }
  std::uint32_t rank = 0;
};

// Defect: with more than 32 pending collectives, some complete without being done.
struct forgets_some : sends_all {
  using sends_all::sends_all;
  bool is_forgotten(std::size_t under_way) const override { return under_way > 32; }
};

struct forgets_all : sends_all {
  using sends_all::sends_all;
  bool is_forgotten(std::size_t) const override { return true; }
};

struct blames_the_collective : sends_all {
  using sends_all::sends_all;
  rg_status status_of_failure(rg_status) const override { return RG_E_OPERATION; }
};

struct takes_any_collective : sends_all {
  using sends_all::sends_all;
  rg_status refused(const rg_collective& of) override {
    done_.push_back({.cookie = of.cookie, .status = RG_OK, .bytes = 0});
    return RG_OK;
  }
};

// Defect: writes a byte behind the buffer.
struct overwrites_beside : sends_all {
  using sends_all::sends_all;
  void finish(call& c) override {
    sends_all::finish(c);
    if (c.of.target.count == 1000)
      static_cast<std::byte*>(c.of.target_address)[rg::bytes_of(c.of.target)] ^= std::byte{1};
  }
};

} // namespace

RG_PLUGIN("broken_collectives", "1.0", rg::transport<sends_all>("sends_all", "sound, and slow"),
          rg::transport<sends_rounded>("sends_rounded", "sound, with a wire type"),
          rg::transport<scatters_evenly>("scatters_evenly", "broken: shares of its own cut"),
          rg::transport<gathers_lines>("gathers_lines", "broken: gathers whole lines only"),
          rg::transport<broadcasts_from_first>("broadcasts_from_first", "broken: one root for all"),
          rg::transport<places_by_rank>("places_by_rank", "broken: places are ranks"),
          rg::transport<forgets_some>("forgets_some", "broken: not too many at a time"),
          rg::transport<forgets_all>("forgets_all", "broken: does nothing"),
          rg::transport<blames_the_collective>("blames_the_collective", "broken: a death is no error of its own"),
          rg::transport<takes_any_collective>("takes_any_collective", "broken: refuses nothing"),
          rg::transport<overwrites_beside>("overwrites_beside", "broken: writes behind the buffer"))
