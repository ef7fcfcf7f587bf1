// SPDX-License-Identifier: Apache-2.0
//
// A compressing strategy on matrices: PowerSGD (Vogels, Karimireddy, Jaggi, NeurIPS 2019, algorithms 1 and 2). A
// gradient of m x n is sent as factors P of m x r and Q of n x r, by one step of a power iteration that goes on from
// the Q of the last step; what they lack stays with the worker and is added to its next gradient. The weights of a
// convolution, [outputs, channels, height, width], are a matrix of outputs x rest. Vectors are sent as they are.
//
// All arithmetic is operations of the engine's: it runs on the host and on devices, and in simulations with ghosts.
#include <regatta/algorithms.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace {

struct powersgd {
  struct parameters {
    std::int64_t rank = 2;
  };
  static constexpr auto fields =
      rg::fields(rg::field("rank", &parameters::rank, "columns of the factors").range(1, 64));

  static rg_plan plan(const parameters&, const rg_cluster& cluster) {
    if (cluster.flags & RG_HOST_DEFERRED)
      throw rg::error(RG_E_CONFIG, "powersgd: expected no clipping and no fp16, whose overflow would stay in the "
                                   "residual: set optimizer.clip_norm = 0 and another train.precision");
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_LOSSY | RG_PLAN_ROW_MAJOR | RG_PLAN_RESUMES;
    plan.lanes = 1;
    plan.symmetry = RG_SYMMETRY_ROTATION;
    return plan;
  }
  static bool talks(const parameters&, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t distance = std::max(a, b) - std::min(a, b);
    return distance == 1 || distance == c.workers - 1; // neighbours on the ring
  }

  // [main]
  powersgd(rg::comm& c, const parameters& p) : comm(c), all_(c.workers()) {
    std::iota(all_.begin(), all_.end(), 0U);
    comm.own(comm.whole(), rg::role::worker);
    std::uint64_t p_size = 0, q_size = 0, elements = 0, most = 0;
    for (std::uint32_t s = 0; s < comm.arena().slice_count; ++s) {
      const rg_slice slice = rg::copy_versioned(rg::at_stride(comm.arena().slices, s));
      const rg_tensor t = comm.tensor_of(slice);
      const auto m = static_cast<std::uint64_t>(t.ndim ? t.shape[0] : 1), n = elements_of(t) / m;
      const std::uint64_t r = std::min({static_cast<std::uint64_t>(p.rank), m, n});
      if (!t.compressible || r * (m + n) >= m * n) { // a vector, or too small to gain anything
        vectors_.push_back({slice.first, slice.count});
        continue;
      }
      matrices_.push_back({slice.first, m, n, r, elements, p_size, q_size});
      p_size += r * m;
      q_size += r * n;
      elements += m * n;
      most = std::max(most, r);
    }
    residual_ = comm.alloc(elements);
    std::uint64_t vector_size = 0;
    for (const rg::span_of_arena v : vectors_) vector_size += v.count;
    sums_ = comm.alloc(even(p_size + vector_size)); // all P, then all vectors
    p_size_ = p_size;
    q_ = comm.alloc(even(q_size));
    start_ = comm.alloc(q_size);
    projections_ = comm.alloc(most);
  }

  rg::task<> end_step(std::uint64_t step) {
    if (!started_) co_await start();
    for (const matrix& x : matrices_) {
      co_await comm.axpy(of(residual_, x.residual, x.m * x.n), 1, gradient(x));
      co_await comm.gemm(1, q(x), rg::transposed(residual(x)), 0, p(x));
    }
    std::uint64_t at = p_size_;
    for (const rg::span_of_arena v : vectors_) {
      co_await comm.copy(of(sums_, at, v.count), comm.gradients(v));
      at += v.count;
    }
    co_await rg::ring_all_reduce(comm, all_, comm.rank(), sums_, 0);
    for (const matrix& x : matrices_) {
      for (std::uint64_t column = 0; column < x.r; ++column) co_await orthogonalise(x, column);
      co_await comm.gemm(1, p(x), residual(x), 0, q(x));
    }
    co_await rg::ring_all_reduce(comm, all_, comm.rank(), q_, 0);
    const double mean = 1.0 / comm.workers();
    for (const matrix& x : matrices_) {
      co_await comm.gemm(1, rg::transposed(p(x)), q(x), 0, {gradient(x), x.m, x.n});
      co_await comm.gemm(-mean, rg::transposed(p(x)), q(x), 1, residual(x));
      co_await prepare(x);
    }
    at = p_size_;
    for (const rg::span_of_arena v : vectors_) {
      co_await comm.copy(comm.gradients(v), of(sums_, at, v.count));
      at += v.count;
    }
    co_await comm.apply(0, comm.gradients(comm.whole()), step, rg::role::worker);
  }

  void checkpoint(rg::saved_state& s) {
    s.buffer("residual", residual_);
    s.buffer("q", q_);
    s.buffer("start", start_);
    s.value("started", started_);
  }

  rg::comm& comm; // public: coroutine frames come from its pool

private:
  struct matrix {
    std::uint64_t first;          // its gradient's first element in the arena
    std::uint64_t m, n, r;        // rows, columns; columns of its factors
    std::uint64_t residual, p, q; // its first elements in the buffers
  };

  static std::uint64_t elements_of(const rg_tensor& t) {
    std::uint64_t n = 1;
    for (std::uint32_t d = 0; d < t.ndim; ++d) n *= static_cast<std::uint64_t>(t.shape[d]);
    return n;
  }
  // Returns a number of elements that the ring cuts into equal chunks, so that all ranks send the same.
  std::uint64_t even(std::uint64_t elements) const {
    const std::uint64_t chunk = std::uint64_t{16} * comm.workers();
    return (elements + chunk - 1) / chunk * chunk;
  }
  static rg_buffer of(rg_buffer b, std::uint64_t first, std::uint64_t count) { return rg::sub(b, first, count); }
  rg_buffer gradient(const matrix& x) const { return comm.gradients({x.first, x.m * x.n}); }
  rg::matrix residual(const matrix& x) const { return {of(residual_, x.residual, x.m * x.n), x.m, x.n}; }
  // The factors are kept transposed, so that a column is a contiguous part of the buffer.
  rg::matrix p(const matrix& x) const { return {of(sums_, x.p, x.r * x.m), x.r, x.m}; }
  rg::matrix q(const matrix& x) const { return {of(q_, x.q, x.r * x.n), x.r, x.n}; }
  rg::matrix columns_of_p(const matrix& x, std::uint64_t first, std::uint64_t count) const {
    return {of(sums_, x.p + first * x.m, count * x.m), count, x.m};
  }

  // Scales a vector to length 1; zeros stay zeros. CLIP shortens only, so the vector is made long before.
  rg::task<> normalise(rg_buffer v) {
    co_await comm.scale(v, 0x1p40);
    co_await comm.clip(v, 1);
  }
  // Makes a column of P orthogonal to those before it, by Gram-Schmidt. Twice, because the first difference may be
  // nothing but rounding errors, which are not orthogonal.
  rg::task<> orthogonalise(const matrix& x, std::uint64_t column) {
    const rg::matrix self = columns_of_p(x, column, 1);
    co_await normalise(self.elements);
    for (int pass = 0; column && pass < 2; ++pass) {
      const rg::matrix before = columns_of_p(x, 0, column), along(of(projections_, 0, column), 1, column);
      co_await comm.gemm(1, self, rg::transposed(before), 0, along);
      co_await comm.gemm(-1, along, before, 1, self);
      co_await normalise(self.elements);
    }
  }
  // Makes Q the start of the next power iteration. A Q of zeros, after a gradient of zeros, would stay so for ever:
  // hence the trace of the first Q, which is far below the rounding of a gradient that matters.
  rg::task<> prepare(const matrix& x) {
    co_await normalise(q(x).elements);
    co_await comm.axpy(q(x).elements, 1e-6, of(start_, x.q, x.r * x.n));
  }
  // The first Q must be equal on all workers and in general position; the paper draws it at random. Column k is the
  // k-th row of the weights, plus ones in the k-th part, since weights may be zeros.
  rg::task<> start() {
    for (const matrix& x : matrices_) {
      const rg_buffer all = of(start_, x.q, x.r * x.n);
      for (std::uint64_t k = 0; k < x.r; ++k)
        co_await comm.fill(of(all, k * x.n + x.n * k / x.r, x.n * (k + 1) / x.r - x.n * k / x.r), 1);
      co_await comm.axpy(all, 1, comm.weights({x.first, x.r * x.n}));
      co_await normalise(all);
      co_await prepare(x);
    }
    started_ = true;
  }

  std::vector<std::uint32_t> all_; // the workers' ranks
  std::vector<matrix> matrices_;
  std::vector<rg::span_of_arena> vectors_;
  rg_buffer residual_{}, sums_{}, q_{}, start_{}, projections_{};
  std::uint64_t p_size_ = 0;
  bool started_ = false;
};

} // namespace

RG_PLUGIN("custom_strategy_powersgd", "1.0", rg::strategy<powersgd>("powersgd", "example: gradients of low rank"))
