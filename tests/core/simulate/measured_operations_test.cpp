// SPDX-License-Identifier: Apache-2.0
#include "simulate/measured_operations.hpp"

#include "registry/registry.hpp"
#include "simulate/machine_file.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <regatta/plugin.hpp>

using namespace regatta;

namespace {

// The host of a strategy of one worker, whose model has one matrix. Operations end at once, without an effect; matrix
// products are recorded.
struct recording_host {
  explicit recording_host(std::array<std::int64_t, 2> of) : shape(of) {
    const auto count = static_cast<std::uint64_t>(shape[0] * shape[1]);
    cluster.workers = 1;
    tensor.name = "matrix";
    tensor.type = RG_F32;
    tensor.ndim = 2;
    tensor.shape = shape.data();
    tensor.compressible = 1;
    slice.count = arena.count = count;
    arena.slices = &slice;
    arena.tensors = &tensor;
    arena.slice_count = arena.tensor_count = 1;
    arena.weights = {1, RG_F32, 0, count};
    arena.gradients = {2, RG_F32, 0, count};
    strategy.host = &host;
    strategy.context = this;
    strategy.cluster = &cluster;
    strategy.arena = &arena;
    strategy.alloc = [](void* self, std::uint32_t type, std::uint64_t n, rg_buffer* out) -> rg_status {
      *out = {++static_cast<recording_host*>(self)->regions, type, 0, n};
      return RG_OK;
    };
    strategy.own = [](void*, std::uint32_t, std::uint64_t, std::uint64_t, rg_buffer*) -> rg_status { return RG_OK; };
    strategy.submit = [](void* self, const rg_op* op) -> rg_status {
      if (op->kind == RG_OP_GEMM)
        static_cast<recording_host*>(self)->products.push_back(reinterpret_cast<const rg_op_gemm*>(op)->gemm);
      return RG_DONE;
    };
    strategy.done = [](void* self, std::uint64_t, rg_status status) {
      static_cast<recording_host*>(self)->ended = status;
    };
  }

  std::array<std::int64_t, 2> shape;
  rg_tensor tensor = rg::make_versioned<rg_tensor>();
  rg_slice slice = rg::make_versioned<rg_slice>();
  rg_host host = rg::make_versioned<rg_host>();
  rg_cluster cluster = rg::make_versioned<rg_cluster>();
  rg_arena arena = rg::make_versioned<rg_arena>();
  rg_strategy_host strategy = rg::make_versioned<rg_strategy_host>();
  rg_region regions = 2;
  std::vector<rg_gemm> products;
  rg_status ended = RG_AGAIN;
};

auto layout_of(const rg_gemm& g) {
  return std::tuple(g.a_type, g.b_type, g.c_type, g.flags, g.m, g.n, g.k, g.a_row, g.b_row, g.c_row, g.beta);
}

} // namespace

TEST_CASE("operations of strategies are measured, each with a name that a machine file may have") {
  const std::map<std::string, double> all = measure_operations(1 << 20);
  for (const char* name : {"fill", "copy", "axpy", "scale", "clip", "accumulate", "convert", "convert_fp16", "top_k",
                           "select", "gemm", "gather_rows", "scatter_rows", "rows_add", "rows_write"}) {
    CAPTURE(name);
    REQUIRE(all.contains(name));
    CHECK(all.at(name) > 0);
    CHECK(all.at(name) < 1000); // a processor without caches would be faster
  }
  std::string file = "[compute]\nbatch = 32\nsamples_per_second = 10\n[work]\n";
  for (const auto& [name, ns] : all) file += name + " = 0.5\n";
  CHECK(parse_machine("m.toml", file).work_of.size() == all.size());
}

TEST_CASE("the measured products are those that PowerSGD makes of whole gradients, in its order and layout") {
  const std::array measured = measured_products(512);
  const rg_gemm& first = measured.front(); // of rank rows, and of the gradient's columns and rows
  const registry plugins = registry::of_files({REGATTA_POWERSGD});
  const rg_strategy& powersgd = plugins.find(kind::strategy, "powersgd").strategy;
  recording_host host({static_cast<std::int64_t>(first.n), static_cast<std::int64_t>(first.k)});
  const rg_value rank = {.i = static_cast<std::int64_t>(first.m)};
  void* self = nullptr;
  REQUIRE(powersgd.create(&host.strategy, &rank, &self) == RG_OK);
  REQUIRE(powersgd.end_step(self, 0, 1) == RG_OK);
  CHECK(host.ended == RG_OK);
  powersgd.destroy(self);
  // The others make the factors orthogonal.
  std::erase_if(host.products, [&](const rg_gemm& g) { return g.m * g.n * g.k < first.m * first.n * first.k; });
  REQUIRE(host.products.size() == measured.size());
  for (std::size_t i = 0; i < measured.size(); ++i) {
    CAPTURE(i);
    CHECK(layout_of(measured[i]) == layout_of(host.products[i]));
  }
}
