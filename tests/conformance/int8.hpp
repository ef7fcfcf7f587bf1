// SPDX-License-Identifier: Apache-2.0
//
// Synchronous training with gradients of 8 bits and error feedback (Karimireddy et al., ICML 2019, algorithm 2). Every
// worker sends to every other one a scale and a byte for each element of
//
//   p = g + e;  scale = max |p| / 127;  q = round(p / scale);  e = p - scale * q
//
// and applies the sum of all workers' scale * q in the order of ranks, its own included: replicas are identical.
#pragma once

#include <regatta/strategy.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace test {

// The ways in which a test can spoil it.
struct sound {
  static constexpr bool forgets_residual = false, adds_own_gradient = false, leaves_out_a_tensor = false;
  static constexpr float weight = 1, levels = 127, kept_of_residual = 1;
  static constexpr std::uint64_t resets_every = 0; // steps after which the residual is 0; 0: never
  static constexpr std::uint32_t flags = RG_PLAN_LOSSY;
  static constexpr std::uint64_t steady_from = 0;
};

template <class Defect> struct int8 {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_BYTES | Defect::flags;
    plan.lanes = 1;
    plan.steady_from = Defect::steady_from;
    return plan;
  }

  int8(rg::comm& c, const parameters&)
      : comm(c), n(c.arena().count), residual(c.alloc(n)), messages(c.alloc((scale_bytes + n) * c.workers(), RG_I8)),
        norm(c.alloc(2, RG_F64)) {
    comm.own(comm.whole(), rg::role::worker);
  }

  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer gradient = comm.gradients(comm.whole());
    encode(step);
    transfers.clear();
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      if (w == comm.rank()) continue;
      transfers.push_back(comm.recv(w, message_of(w)));
      transfers.push_back(comm.send(w, message_of(comm.rank())));
    }
    for (auto& t : transfers) co_await t;
    decode();
    co_await comm.apply(0, gradient, step, rg::role::worker);
    if (!comm.deferred()) co_return;
    co_await comm.norm(norm, rg::role::worker);
    co_await comm.commit(norm, step, rg::role::worker);
  }

  rg::comm& comm;

private:
  static constexpr std::uint64_t scale_bytes = 16; // a float, and room that keeps messages aligned

  rg_buffer message_of(std::uint32_t w) const { return rg::sub(messages, (scale_bytes + n) * w, scale_bytes + n); }

  void encode(std::uint64_t step) {
    const float* const g = comm.template pointer<float>(comm.gradients(comm.whole()));
    float* const e = comm.template pointer<float>(residual);
    auto* const bytes = comm.template pointer<std::int8_t>(message_of(comm.rank()));
    float largest = 0;
    for (std::uint64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(g[i] + e[i]));
    const float scale = largest / Defect::levels;
    std::memcpy(bytes, &scale, sizeof scale);
    for (std::uint64_t i = 0; i < n; ++i) {
      const float p = g[i] + e[i], q = scale > 0 ? std::round(p / scale) : 0;
      bytes[scale_bytes + i] = static_cast<std::int8_t>(q);
      e[i] = Defect::forgets_residual ? 0 : Defect::kept_of_residual * (p - scale * q);
    }
    if (Defect::resets_every && (step + 1) % Defect::resets_every == 0) std::fill_n(e, n, 0.0F);
  }

  void decode() {
    float* const g = comm.template pointer<float>(comm.gradients(comm.whole()));
    if (!Defect::adds_own_gradient) std::fill_n(g, n, 0.0F);
    for (std::uint32_t w = 0; w < comm.workers(); ++w) {
      if (Defect::adds_own_gradient && w == comm.rank()) continue;
      const auto* const bytes = comm.template pointer<std::int8_t>(message_of(w));
      float scale = 0;
      std::memcpy(&scale, bytes, sizeof scale);
      for (std::uint64_t i = 0; i < n; ++i) g[i] += Defect::weight * scale * static_cast<float>(bytes[scale_bytes + i]);
    }
    const rg_slice& second = comm.arena().slices[std::min(comm.arena().slice_count - 1, 1u)];
    if (Defect::leaves_out_a_tensor) std::fill_n(g + second.first, second.count, 0.0F);
  }

  std::uint64_t n;
  std::vector<rg::operation> transfers;
  rg_buffer residual, messages, norm;
};

} // namespace test
