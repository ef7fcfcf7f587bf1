// SPDX-License-Identifier: Apache-2.0
//
// Each gradient matrix M is sent as P Q^T of rank 2, as PowerSGD does: a sound strategy, and some with one mistake
// each.
#include <regatta/algorithms.hpp>
#include <regatta/data_parallel.hpp>
#include <regatta/random.hpp>

#include <cmath>
#include <vector>

namespace {

struct sound {
  static constexpr bool halves_above_3 = false, forgets_above_3 = false, vectors_up_to_3 = false, nan_at_zero = false,
                        draws_by_rank = false, kernel_forgotten = false, seed_of_clock = false;
};

constexpr std::uint64_t rank = 2;

// Orthonormal columns. One that depends on those before it becomes a random one.
void orthonormalise(float* p, std::uint64_t rows, std::uint64_t seed, bool replaces) {
  const auto dot = [&](std::uint64_t a, std::uint64_t b) {
    double sum = 0;
    for (std::uint64_t i = 0; i < rows; ++i) sum += double{p[i * rank + a]} * double{p[i * rank + b]};
    return sum;
  };
  for (std::uint64_t j = 0; j < rank; ++j)
    for (std::uint32_t attempt = 0; attempt < 4; ++attempt) {
      const double before = std::sqrt(dot(j, j));
      for (std::uint64_t k = 0; k < 2 * j; ++k) { // twice: rounding
        const double s = dot(k % j, j);
        for (std::uint64_t i = 0; i < rows; ++i) p[i * rank + j] -= static_cast<float>(s * double{p[i * rank + k % j]});
      }
      const double norm = std::sqrt(dot(j, j));
      if (!replaces || norm > 1e-5 * before || std::isnan(norm)) {
        for (std::uint64_t i = 0; i < rows; ++i) p[i * rank + j] = static_cast<float>(double{p[i * rank + j]} / norm);
        break;
      }
      for (std::uint64_t i = 0; i < rows; ++i)
        p[i * rank + j] = rg::random_normals(seed, i, static_cast<std::uint32_t>(j), attempt)[0];
    }
}

template <class Mistake> struct low_rank : rg::data_parallel<low_rank<Mistake>> {
  using base = rg::data_parallel<low_rank<Mistake>>;
  using base::comm;
  struct parameters {};
  static constexpr auto fields = rg::fields();

  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_LOSSY | RG_PLAN_ROW_MAJOR;
    plan.lanes = 1;
    return plan;
  }

  low_rank(rg::comm& c, const parameters&) : base(c, tensors(c), 1) {
    c.own(c.whole(), rg::role::worker);
    error = c.alloc(c.whole().count);
    for (std::uint32_t k = 0; k < c.arena().slice_count; ++k) {
      const rg_tensor t = c.tensor_of(rg::copy_versioned(rg::at_stride(c.arena().slices, k)));
      matrix m;
      if (t.compressible && t.ndim > 1) {
        m.rows = static_cast<std::uint64_t>(t.shape[0]);
        m.columns = 1;
        for (std::uint32_t d = 1; d < (Mistake::kernel_forgotten ? 2 : t.ndim); ++d)
          m.columns *= static_cast<std::uint64_t>(t.shape[d]);
        m.small = rank * (m.rows + m.columns) < m.rows * m.columns;
      }
      if (m.small) m.p = c.alloc(m.rows * rank), m.q = c.alloc(m.columns * rank);
      matrices.push_back(m);
    }
  }

  rg::task<> exchange(rg::bucket b) {
    const matrix m = matrices[b.index];
    const bool above_3 = comm.workers() > 3;
    if (!m.small) {
      if (Mistake::vectors_up_to_3 && above_3) co_await comm.fill(b.gradients, 0);
      co_await all_reduce(b.gradients);
      co_return;
    }
    const rg_buffer all = rg::sub(error, b.range.first, b.range.count);
    const rg::matrix gradient(b.gradients, m.rows, m.columns), left(all, m.rows, m.columns), p(m.p, m.rows, rank),
        q(m.q, m.columns, rank);
    const std::uint64_t seed =
        rg::derive_seed(comm.seed(), Mistake::seed_of_clock ? comm.now() / 1000 : b.step, b.index);
    if (b.step == 0)
      co_await comm.run(
          [seed, n = m.columns * rank](void* const* at) {
            for (std::uint64_t i = 0; i < n; ++i) static_cast<float*>(at[0])[i] = rg::random_normals(seed, i)[0];
          },
          {4 * m.columns * rank, 0}, m.q);
    co_await comm.axpy(all, 1, b.gradients);
    co_await comm.gemm(1, left, q, 0, p);
    co_await all_reduce(m.p);
    const std::uint64_t drawn = Mistake::draws_by_rank ? comm.rank() : 7, rows = m.rows;
    co_await comm.run(
        [drawn, rows](void* const* at) {
          orthonormalise(static_cast<float*>(at[0]), rows, drawn, !Mistake::nan_at_zero);
        },
        {4 * rows * rank, 0}, m.p);
    co_await comm.gemm(1, rg::transposed(left), p, 0, q);
    co_await comm.gemm(-1, p, rg::transposed(q), 1, left); // what this worker's part of P Q^T lacks
    co_await all_reduce(m.q);
    co_await comm.gemm(Mistake::halves_above_3 && above_3 ? 0.5 : 1, p, rg::transposed(q), 0, gradient);
    if (Mistake::forgets_above_3 && above_3) co_await comm.fill(all, 0);
  }

private:
  struct matrix {
    std::uint64_t rows = 0, columns = 0;
    bool small = false; // P and Q are smaller than the matrix
    rg_buffer p{}, q{};
  };
  rg::task<> all_reduce(rg_buffer x) { return rg::ring_all_reduce(comm, this->members(), comm.rank(), x, 0); }
  static std::vector<rg::span_of_arena> tensors(rg::comm& c) {
    std::vector<rg::span_of_arena> all;
    for (std::uint32_t k = 0; k < c.arena().slice_count; ++k) {
      const rg_slice s = rg::copy_versioned(rg::at_stride(c.arena().slices, k));
      all.push_back({s.first, s.count});
    }
    c.set_buckets(all);
    return all;
  }
  std::vector<matrix> matrices;
  rg_buffer error{};
};

struct half : sound {
  static constexpr bool halves_above_3 = true;
};
struct forgets : sound {
  static constexpr bool forgets_above_3 = true;
};
struct vectors : sound {
  static constexpr bool vectors_up_to_3 = true;
};
struct nan_of_zero : sound {
  static constexpr bool nan_at_zero = true;
};
struct own_draws : sound {
  static constexpr bool draws_by_rank = true;
};
struct no_kernel : sound {
  static constexpr bool kernel_forgotten = true;
};
struct clock_seed : sound {
  static constexpr bool seed_of_clock = true;
};

} // namespace

RG_PLUGIN("low_rank", "1.0", rg::strategy<low_rank<sound>>("low_rank", "nothing wrong: matrices of rank 2"),
          rg::strategy<low_rank<half>>("low_rank_halved", "broken: above three workers it applies half of a matrix"),
          rg::strategy<low_rank<forgets>>("low_rank_forgets", "broken: no error feedback above three workers"),
          rg::strategy<low_rank<vectors>>("low_rank_vectors", "broken: vectors are 0 above three workers"),
          rg::strategy<low_rank<nan_of_zero>>("low_rank_of_zero", "broken: divides by the norm of a matrix of zeros"),
          rg::strategy<low_rank<own_draws>>("low_rank_draws", "broken: random columns differ between workers"),
          rg::strategy<low_rank<no_kernel>>("low_rank_kernel", "broken: a convolution is read as channels only"),
          rg::strategy<low_rank<clock_seed>>("low_rank_clock", "broken: random numbers depend on the time"))
