// SPDX-License-Identifier: Apache-2.0
//
// RG_OP_RUN and RG_OP_GEMM where time is real: on a thread of the engine's, beside the loop; small products on the loop.
#include "runtime/strategy_host.hpp"

#include "base/failure.hpp"

#include <regatta/gemm.hpp>
#include <regatta/strategy.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

using namespace regatta;

namespace {

// Numbers that bf16 represents.
std::vector<rg::bf16> narrow(const std::vector<float>& x) {
  std::vector<rg::bf16> y;
  for (const float v : x) y.push_back({static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16)});
  return y;
}

// A transport of one rank, of which only the waiting is real.
struct silent_transport {
  std::mutex mutex;
  std::condition_variable changed;
  bool woken = false;

  static silent_transport& of(void* self) { return *static_cast<silent_transport*>(self); }
  static rg_transport functions() {
    auto f = rg::make_versioned<rg_transport>();
    f.poll = [](void* self, std::uint64_t, std::uint64_t, rg_completion*, std::uint32_t, std::uint32_t* count) {
      silent_transport& t = of(self);
      std::unique_lock lock(t.mutex);
      t.changed.wait(lock, [&] { return t.woken; }); // a loop that nobody wakes hangs
      t.woken = false;
      *count = 0;
      return rg_status{RG_OK};
    };
    f.wake = [](void* self) {
      silent_transport& t = of(self);
      const std::lock_guard lock(t.mutex);
      t.woken = true;
      t.changed.notify_one();
    };
    return f;
  }
};

// A strategy whose end_step is a coroutine of the test.
struct scripted {
  struct parameters {};
  static rg_plan plan(const parameters&, const rg_cluster&) { return {.struct_size = sizeof(rg_plan), .lanes = 1}; }
  scripted(rg::comm& c, const parameters&) : comm(c), buffer(c.alloc(256)) { c.own(c.whole(), rg::role::worker); }
  rg::task<> end_step(std::uint64_t) { co_await script(*this); }

  rg::comm& comm;
  rg_buffer buffer;
  static inline std::function<rg::task<>(scripted&)> script;
};

// Runs one step of a strategy on this thread, the loop.
void run(std::function<rg::task<>(scripted&)> script) {
  static const rg_component component = rg::strategy<scripted>("scripted", "a coroutine of a test");
  scripted::script = std::move(script);
  silent_transport transport;
  const rg_transport functions = silent_transport::functions();
  plugin_host transport_host;
  const std::array<std::int64_t, 1> shape = {16};
  auto tensor = rg::make_versioned<rg_tensor>();
  tensor.kind = RG_TENSOR_DENSE;
  tensor.type = RG_F32;
  tensor.name = "t";
  tensor.ndim = 1;
  tensor.shape = shape.data();
  auto cluster = rg::make_versioned<rg_cluster>();
  cluster.size = cluster.workers = 1;
  cluster.server = -1;
  const std::uint32_t host_of[] = {0};
  cluster.host_of = host_of;
  auto caps = rg::make_versioned<rg_transport_caps>();
  caps.memory = RG_MEMORY_HOST;
  strategy_host_setup setup{};
  setup.strategy = static_cast<const rg_strategy*>(component.functions);
  setup.strategy_id = "scripted";
  setup.transport = {"silent", &functions, &transport, caps, &transport_host};
  setup.cluster = cluster;
  setup.lanes = 1;
  setup.tensors = {tensor};
  strategy_host host(std::move(setup));
  host.start();
  host.begin(strategy_host::begin_step, 0);
  host.gradients_ready(16);
  host.begin(strategy_host::end_step, 0);
  while (!host.done(strategy_host::end_step)) host.poll(UINT64_MAX, 0);
}

rg::task<> waits_for_the_loop(scripted& s) {
  std::atomic<bool> begun = false, answered = false;
  std::thread::id there;
  const auto f = [&](void* const* addresses) {
    there = std::this_thread::get_id();
    begun = true;
    begun.notify_one();
    answered.wait(false); // for ever if this is the loop
    static_cast<float*>(addresses[0])[0] = 3;
  };
  auto running = s.comm.run(f, {1, 0}, s.buffer);
  begun.wait(false);
  answered = true;
  answered.notify_one();
  co_await running;
  CHECK(there != std::this_thread::get_id());
  CHECK(s.comm.elements<float>(s.buffer)[0] == 3);
}

rg::task<> in_order(scripted& s) {
  const auto twice = [](void* const* addresses) { *static_cast<float*>(addresses[0]) *= 2; };
  const auto plus_one = [](const rg_run& on) {
    CHECK(!on.stream);
    CHECK(!on.device);
    CHECK(on.buffer_count == 2);
    CHECK(on.addresses[0] == on.addresses[1]);
    *static_cast<float*>(on.addresses[0]) += 1;
  };
  const rg_buffer first = rg::sub(s.buffer, 0, 1);
  s.comm.elements<float>(first)[0] = 1;
  auto a = s.comm.run(twice, {1, 0}, first), b = s.comm.run(plus_one, {1, 0}, first, first);
  co_await s.comm.run(twice, {1, 0}, first);
  co_await a;
  co_await b;
  CHECK(s.comm.elements<float>(first)[0] == 6);
}

rg::task<> fails(scripted& s) {
  co_await s.comm.run([](void* const*) { throw std::runtime_error("the function gives up"); }, {1, 0}, s.buffer);
}
rg::task<> fails_unseen(scripted& s) {
  {
    auto dropped = s.comm.run([](void* const*) { throw std::runtime_error("nobody waits"); }, {1, 0}, s.buffer);
  }
  co_await s.comm.run([](void* const*) {}, {1, 0}, s.buffer);
}
rg::task<> costs_nothing(scripted& s) {
  co_await s.comm.run([](void* const*) {}, {0, 0}, s.buffer);
}
rg::task<> multiplies_out_of_bounds(scripted& s) {
  co_await s.comm.gemm(1, {s.buffer, 16, 16}, {s.buffer, 16, 17}, 0, {s.buffer, 16, 17});
}
rg::task<> multiplies_other_shapes(scripted& s) {
  co_await s.comm.gemm(1, {s.buffer, 2, 3}, {s.buffer, 2, 3}, 0, {s.buffer, 2, 2});
}
rg::task<> multiplies(scripted& s) {
  const auto x = s.comm.elements<float>(s.buffer);
  for (std::size_t i = 0; i < 6; ++i) x[i] = x[16 + i] = static_cast<float>(i + 1); // [[1 2 3] [4 5 6]], twice
  const rg::matrix a(rg::sub(s.buffer, 0, 6), 2, 3), b(rg::sub(s.buffer, 16, 6), 2, 3),
      c(rg::sub(s.buffer, 32, 4), 2, 2);
  co_await s.comm.gemm(2, a, rg::transposed(b), 0, c);
  CHECK(x[32] == 28);
  CHECK(x[33] == 64);
  CHECK(x[34] == 64);
  CHECK(x[35] == 154);
}
// bf16 x bf16, accumulated in fp32: 257 needs 9 bits, one more than bf16 has.
rg::task<> multiplies_bf16(scripted& s) {
  const auto x = s.comm.elements<float>(s.buffer);
  const auto halves = [&](std::uint64_t first) {
    rg_buffer b = rg::sub(s.buffer, first, 4);
    b.type = RG_BF16;
    return b;
  };
  const std::vector<rg::bf16> ones = narrow({256, 1, 3, 2}), units = narrow({1, 1, 1, -1});
  std::memcpy(&x[0], ones.data(), 4 * sizeof(rg::bf16));
  std::memcpy(&x[16], units.data(), 4 * sizeof(rg::bf16));
  const rg::matrix a(halves(0), 2, 2), b(halves(16), 2, 2), c(rg::sub(s.buffer, 32, 4), 2, 2);
  co_await s.comm.gemm(1, a, b, 0, c);
  CHECK(x[32] == 257);
  CHECK(x[33] == 255);
  CHECK(x[34] == 5);
  CHECK(x[35] == 1);
}
// A small product is computed at once, but not before the functions of earlier calls.
rg::task<> multiplies_in_order(scripted& s) {
  const auto x = s.comm.elements<float>(s.buffer);
  const rg::matrix a(rg::sub(s.buffer, 0, 1), 1, 1), b(rg::sub(s.buffer, 16, 1), 1, 1),
      c(rg::sub(s.buffer, 32, 1), 1, 1);
  x[0] = 2;
  x[16] = 3;
  auto first = s.comm.gemm(1, a, b, 0, c);
  CHECK(x[32] == 6);
  co_await first;
  std::atomic<bool> submitted = false;
  const auto doubles = [&](void* const* addresses) {
    submitted.wait(false);
    *static_cast<float*>(addresses[0]) *= 2;
  };
  auto function = s.comm.run(doubles, {1, 0}, rg::sub(s.buffer, 0, 1));
  auto second = s.comm.gemm(1, a, b, 0, c);
  CHECK(x[32] == 6);
  submitted = true;
  submitted.notify_one();
  co_await function;
  co_await second;
  CHECK(x[32] == 12);
}
rg::task<> multiplies_mixed(scripted& s) {
  rg_buffer half = rg::sub(s.buffer, 0, 4);
  half.type = RG_BF16;
  co_await s.comm.gemm(1, {half, 2, 2}, {rg::sub(s.buffer, 16, 4), 2, 2}, 0, {rg::sub(s.buffer, 32, 4), 2, 2});
}

} // namespace

TEST_CASE("a function runs beside the loop, which its end wakes") {
  run(waits_for_the_loop);
}

TEST_CASE("functions run one at a time, in the order of their operations") {
  run(in_order);
}

TEST_CASE("an exception of a function ends the run with its text, also if the strategy does not wait for it") {
  CHECK_THROWS_WITH_AS(run(fails), doctest::Contains("the function gives up"), failure);
  CHECK_THROWS_WITH_AS(run(fails_unseen), doctest::Contains("nobody waits"), failure);
}

TEST_CASE("a function whose declared cost is nothing is refused: virtual time would stand still") {
  CHECK_THROWS_WITH_AS(run(costs_nothing), doctest::Contains("bytes or flops above 0"), failure);
}

TEST_CASE("matrix products as operations") {
  run(multiplies);
  run(multiplies_bf16);
  run(multiplies_in_order);
  CHECK_THROWS_WITH_AS(run(multiplies_mixed), doctest::Contains("expected c of RG_F32, and a and b both of"), failure);
  CHECK_THROWS_WITH_AS(run(multiplies_out_of_bounds), doctest::Contains("gemm: expected matrices"), failure);
  CHECK_THROWS_WITH_AS(run(multiplies_other_shapes), doctest::Contains("gemm: expected a of m x k"), failure);
}

TEST_CASE("a GEMM of any shape, stored any way, is that of the definition") {
  for (const std::size_t m : {0U, 1U, 3U, 9U, 20U})
    for (const std::size_t n : {0U, 1U, 7U, 513U})
      for (const std::size_t k : {0U, 1U, 5U, 37U})
        for (std::uint32_t flags = 0; flags < 4; ++flags)
          for (const double beta : {0.0, 1.0, -0.5}) {
            CAPTURE(m);
            CAPTURE(n);
            CAPTURE(k);
            CAPTURE(flags);
            const bool a_across = flags & RG_GEMM_A, b_across = flags & RG_GEMM_B;
            rg_gemm g{.a_type = RG_F32, .b_type = RG_F32, .c_type = RG_F32, .flags = flags, .m = m, .n = n, .k = k};
            g.alpha = 0.5;
            g.beta = beta;
            g.a_row = (a_across ? m : k) + 2; // gaps between rows
            g.b_row = (b_across ? k : n) + 1;
            g.c_row = n + 3;
            std::vector<float> a((m + k + 1) * (m + k + 4)), b((n + k + 1) * (n + k + 4)), c((m + 1) * g.c_row);
            // Small integers: every order of the sum gives the same result.
            for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
            for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 2;
            for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(i % 11);
            std::vector<float> expected = c;
            for (std::size_t i = 0; i < m; ++i)
              for (std::size_t j = 0; j < n; ++j) {
                float sum = 0;
                for (std::size_t l = 0; l < k; ++l)
                  sum +=
                      a[a_across ? l * g.a_row + i : i * g.a_row + l] * b[b_across ? j * g.b_row + l : l * g.b_row + j];
                float& x = expected[i * g.c_row + j];
                x = 0.5F * sum + static_cast<float>(beta) * x;
              }
            if (beta == 0) // what is not read may be anything
              for (std::size_t i = 0; i < m; ++i)
                for (std::size_t j = 0; j < n; ++j) c[i * g.c_row + j] = std::numeric_limits<float>::quiet_NaN();
            CHECK(rg::fits(g, a.size(), b.size(), c.size()));
            const auto before = c;
            rg::gemm(g, a.data(), b.data(), c.data());
            REQUIRE(c == expected);
            c = before; // bf16 holds these integers, too
            rg::gemm(g, narrow(a).data(), narrow(b).data(), c.data());
            REQUIRE(c == expected);
          }
}

TEST_CASE("matrices that reach out of their buffers do not fit") {
  rg_gemm g{.a_type = RG_F32, .b_type = RG_F32, .c_type = RG_F32, .m = 3, .n = 4, .k = 5};
  g.a_row = 5;
  g.b_row = 4;
  g.c_row = 10;
  CHECK(rg::fits(g, 15, 20, 24));
  CHECK(!rg::fits(g, 14, 20, 24));
  CHECK(!rg::fits(g, 15, 19, 24));
  CHECK(!rg::fits(g, 15, 20, 23));
  g.a_row = 4; // rows overlap
  CHECK(!rg::fits(g, 100, 20, 24));
  g.a_row = UINT64_MAX;
  CHECK(!rg::fits(g, 100, 20, 24));
}
