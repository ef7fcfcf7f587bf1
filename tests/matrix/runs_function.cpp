// SPDX-License-Identifier: Apache-2.0
//
// A strategy for tests of one worker: a function of its own doubles the gradients, or throws.
#include <regatta/strategy.hpp>

#include <stdexcept>

namespace {

struct runs_function {
  struct parameters {
    std::int64_t bytes = 1, flops = 0;
    bool throws = false;
    std::int64_t size = 0, pause = 0;
  };
  static constexpr auto fields = rg::fields(rg::field("bytes", &parameters::bytes, "declared bytes"),
                                            rg::field("flops", &parameters::flops, "declared operations"),
                                            rg::field("throws", &parameters::throws, "the function throws"),
                                            rg::field("size", &parameters::size, "rows of a matrix product; 0: none"),
                                            rg::field("pause", &parameters::pause, "ns that it waits; 0: none"));
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.lanes = 1;
    return plan;
  }
  runs_function(rg::comm& c, const parameters& p)
      : comm(c), p_(p), size_(static_cast<std::uint64_t>(p.size)), square_(c.alloc(3 * size_ * size_)) {
    c.own(c.whole(), rg::role::worker);
  }

  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradients = comm.gradients(comm.whole());
    const auto twice = [count = gradients.count, throws = p_.throws](void* const* addresses) {
      if (throws) throw std::runtime_error("the function gives up");
      auto* const g = static_cast<float*>(addresses[0]);
      for (std::uint64_t i = 0; i < count; ++i) g[i] *= 2;
    };
    co_await comm.run(twice, {static_cast<std::uint64_t>(p_.bytes), static_cast<std::uint64_t>(p_.flops)}, gradients);
    const auto part = [&](std::uint64_t k) {
      return rg::matrix(rg::sub(square_, k * size_ * size_, size_ * size_), size_, size_);
    };
    if (p_.pause) co_await comm.after(static_cast<std::uint64_t>(p_.pause));
    if (size_) co_await comm.gemm(1, part(0), part(1), 0, part(2));
    co_await comm.apply(0, gradients, step, rg::role::worker);
  }

  rg::comm& comm;
  parameters p_;
  std::uint64_t size_;
  rg_buffer square_;
};

} // namespace

RG_PLUGIN("runs_function", "0.1.0", rg::strategy<runs_function>("runs_function", "a function of its own, for tests"))
