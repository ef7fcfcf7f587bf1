// SPDX-License-Identifier: Apache-2.0
#include "simulate/measured_operations.hpp"

#include "device/host.hpp"
#include "experiment/experiment.hpp"
#include "memory/arithmetic.hpp"
#include "optimizer/rule.hpp"
#include "optimizer/table.hpp"
#include "results/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <regatta/clock.hpp>
#include <regatta/gemm.hpp>
#include <regatta/plugin.hpp>
#include <regatta/random.hpp>

namespace regatta {
namespace {

constexpr std::uint64_t elements = 4 << 20; // 16 MiB
constexpr double buffer_bytes = 4.0 * elements;
constexpr std::uint64_t selected = elements / 1000; // of a compression as in Deep Gradient Compression
constexpr int rounds = 5;

double ns_of(const std::function<void()>& f) {
  std::vector<double> ns;
  for (int i = 0; i < rounds; ++i) {
    const std::int64_t begin = rg::steady_ns();
    f();
    ns.push_back(static_cast<double>(rg::steady_ns() - begin));
  }
  return *median(ns);
}

constexpr std::uint64_t product_rank = 4; // of measured_products()

// A step of PowerSGD passes over all gradients three times, so they stay in the caches only if all of them fit: a product
// of the gradients of vgg16 (61 MB) takes twice as long as one of 4 MiB.
double ns_of_gemm(std::uint64_t gradients) {
  const double root = std::clamp(std::sqrt(static_cast<double>(gradients)), 256.0, 4096.0);
  const auto side = static_cast<std::uint64_t>(root) / 64 * 64;
  std::vector<float> m(side * side, 1), product(m), p(product_rank * side, 1), q(p);
  const std::array<rg_gemm, 4> products = measured_products(side); // P, Q, P Q^T, and the same added
  double cost = 0;
  for (const rg_gemm& g : products) cost += static_cast<double>(std::max(rg::bytes_of(g), rg::flops_of(g)));
  return ns_of([&] {
           arithmetic::gemm(products[0], q.data(), m.data(), p.data());
           arithmetic::gemm(products[1], p.data(), m.data(), q.data());
           arithmetic::gemm(products[2], p.data(), q.data(), product.data());
           arithmetic::gemm(products[3], p.data(), q.data(), m.data());
         }) /
         cost;
}

// Adds those on rows of sparse tables and matrices: of 64 elements, each row once, in an order that no cache foresees.
void add_rows(std::map<std::string, double>& all, std::vector<float>& listed, std::vector<float>& table) {
  constexpr std::uint64_t row = 64, rows = elements / row, stride = 40'503; // odd: coprime to the number of rows
  std::vector<std::int64_t> numbers(rows);
  for (std::uint64_t i = 0; i < rows; ++i) numbers[i] = static_cast<std::int64_t>(i * stride % rows);
  const update_rule rule(optimizer_config(), 1);
  row_table sparse(rule, {rows, row},
                   [](std::span<const std::uint64_t> some, float* out) { std::fill_n(out, some.size() * row, 0.0f); });
  sparse.write(numbers, 1, listed.data()); // allocates the rows
  all["rows_write"] = ns_of([&] { sparse.write(numbers, 1, listed.data()); }) / (3 * buffer_bytes);
  all["rows_add"] = ns_of([&] { sparse.add(numbers, listed.data()); }) / (3 * buffer_bytes);
  const auto of_table = [&](std::uint64_t i) { return table.data() + static_cast<std::uint64_t>(numbers[i]) * row; };
  all["gather_rows"] = ns_of([&] {
                         for (std::uint64_t i = 0; i < rows; ++i)
                           std::copy_n(of_table(i), row, listed.data() + i * row);
                       }) /
                       (2 * buffer_bytes);
  all["scatter_rows"] = ns_of([&] {
                          for (std::uint64_t i = 0; i < rows; ++i)
                            std::copy_n(listed.data() + i * row, row, of_table(i));
                        }) /
                        (2 * buffer_bytes);
}

} // namespace

std::array<rg_gemm, 4> measured_products(std::uint64_t side) {
  // Rows of all matrices have `side` elements. Factors that are not transposed have rows of `product_rank` elements: their
  // products took three to ten times as long, and simulated steps of PowerSGD up to three times (mlp, two workers).
  const auto product = [side](std::uint64_t m, std::uint64_t k, std::uint32_t flags, double beta) {
    return rg_gemm{.a_type = RG_F32,
                   .b_type = RG_F32,
                   .c_type = RG_F32,
                   .flags = flags,
                   .m = m,
                   .n = side,
                   .k = k,
                   .a_row = side,
                   .b_row = side,
                   .c_row = side,
                   .alpha = 1.0 / static_cast<double>(side * product_rank),
                   .beta = beta};
  };
  return {product(product_rank, side, RG_GEMM_B, 0), product(product_rank, side, 0, 0),
          product(side, product_rank, RG_GEMM_A, 0), product(side, product_rank, RG_GEMM_A, 1)};
}

std::map<std::string, double> measure_operations(std::uint64_t gradients) {
  host_processor host;
  std::vector<float> x(elements), y(elements), sum(elements), values(selected);
  std::vector<std::int32_t> index(selected);
  for (std::uint64_t i = 0; i < elements; ++i) x[i] = rg::random_normals(1, i)[0];
  std::uint64_t found = 0;
  rg_work w = rg::make_versioned<rg_work>();
  w.type = w.source_type = RG_F32;
  w.count = elements;
  w.factor = 0.5;
  w.source = x.data();
  w.sum = sum.data();
  // The bytes are those that the engine counts for each operation (runtime/local_operations.cpp).
  const auto each = [&](std::uint32_t kind, void* target, double of_bytes) {
    w.kind = kind;
    w.target = target;
    return ns_of([&] { host.run(w); }) / of_bytes;
  };
  std::map<std::string, double> all;
  all["fill"] = each(RG_OP_FILL, y.data(), 2 * buffer_bytes);
  all["copy"] = ns_of([&] { host.copy(y.data(), x.data(), elements * sizeof(float)); }) / (2 * buffer_bytes);
  all["axpy"] = each(RG_OP_AXPY, y.data(), 3 * buffer_bytes);
  all["scale"] = each(RG_OP_SCALE, y.data(), 2 * buffer_bytes);
  w.max_norm = 1;
  all["clip"] = each(RG_OP_CLIP, y.data(), 2 * buffer_bytes);
  all["accumulate"] = each(RG_OP_ACCUMULATE, y.data(), 3 * buffer_bytes);
  w.type = RG_BF16;
  all["convert"] = each(RG_OP_CONVERT, y.data(), 1.5 * buffer_bytes);
  w.type = RG_F16;
  all["convert_fp16"] = each(RG_OP_CONVERT, y.data(), 1.5 * buffer_bytes);
  w.type = RG_F32;
  w.index = index.data();
  w.index_count = selected;
  w.found = &found;
  w.threshold = 3.4; // fewer than `selected` of normally distributed numbers are above it
  all["top_k"] = each(RG_OP_TOP_K, values.data(), buffer_bytes + 8.0 * selected);
  all["select"] = each(RG_OP_SELECT, values.data(), buffer_bytes + 8.0 * selected);
  all["gemm"] = ns_of_gemm(gradients);
  add_rows(all, x, y);
  return all;
}

} // namespace regatta
