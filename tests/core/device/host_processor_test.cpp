// SPDX-License-Identifier: Apache-2.0
#include "device/host.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/failure.hpp"

using namespace regatta;
using floats = std::vector<float>;
using indices = std::vector<std::int32_t>;

namespace {

rg_work work(std::uint32_t kind, floats& target) {
  auto w = rg::make_versioned<rg_work>();
  w.kind = kind;
  w.type = w.source_type = RG_F32;
  w.target = target.data();
  w.count = target.size();
  return w;
}

} // namespace

TEST_CASE("memory is zeroed and aligned") {
  host_processor p;
  const auto* const bytes = static_cast<const unsigned char*>(p.allocate(1000));
  CHECK(reinterpret_cast<std::uintptr_t>(bytes) % 64 == 0);
  CHECK(std::all_of(bytes, bytes + 1000, [](unsigned char b) { return b == 0; }));
}

TEST_CASE("work is done when run() returns") {
  host_processor p;
  floats y{1, 2, 3};
  const floats x{10, 20, 30};
  rg_work w = work(RG_OP_AXPY, y);
  w.source = x.data();
  w.factor = 2;
  CHECK(p.run(w));
  CHECK(y == floats{21, 42, 63});
  w = work(RG_OP_SCALE, y);
  w.factor = 0.5;
  CHECK(p.run(w));
  CHECK(y == floats{10.5, 21, 31.5});
  w = work(RG_OP_FILL, y);
  w.value = 7;
  CHECK(p.run(w));
  CHECK(y == floats{7, 7, 7});
}

TEST_CASE("an index outside of the target is refused, and nothing is written") {
  host_processor p;
  floats y{1, 2, 3};
  indices at{2, 0};
  rg_work w = work(RG_OP_FILL, y);
  w.value = 9;
  w.index = at.data();
  w.index_count = at.size();
  CHECK(p.run(w));
  CHECK(y == floats{9, 2, 9});
  for (const std::int32_t outside : {3, -1}) {
    at[1] = outside;
    y = {1, 2, 3};
    CHECK_FALSE(p.run(w));
    CHECK(y == floats{1, 2, 3});
  }
}

TEST_CASE("the largest magnitudes are selected, and more than there is room for are reported") {
  host_processor p;
  const floats x{1, -5, 3, 0, 4};
  floats values(2);
  indices at(2);
  rg_work w = work(RG_OP_TOP_K, values);
  w.source = x.data();
  w.count = x.size();
  w.index = at.data();
  w.index_count = at.size();
  CHECK(p.run(w));
  CHECK(at == indices{1, 4});
  CHECK(values == floats{-5, 4});
  std::uint64_t found = 0;
  w.kind = RG_OP_SELECT;
  w.found = &found;
  w.threshold = 3.5;
  CHECK(p.run(w));
  CHECK(found == 2);
  CHECK(values == floats{-5, 4});
  w.threshold = 0.5; // four are above it
  CHECK(p.run(w));
  CHECK(found == UINT64_MAX);
}

TEST_CASE("rows are gathered and scattered by devices only") {
  host_processor p;
  floats y{1};
  CHECK_THROWS_AS(p.run(work(RG_OP_GATHER_ROWS, y)), failure);
}
