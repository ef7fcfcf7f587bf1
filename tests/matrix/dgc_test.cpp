// SPDX-License-Identifier: Apache-2.0
//
// Deep gradient compression against the plain algorithm, written here once more, step for step and to the bit; and the
// bytes it sends.
#include "matrix.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace regatta;
using namespace regatta::test;

namespace {

struct plan_of_test {
  std::vector<double> sparsity = {0.999};
  std::uint64_t begin = 0, every = 0; // steps without compression; steps at each sparsity
  std::int64_t dense_below = 1;
  double clip = 0;
};

std::size_t kept(std::int64_t elements, double sparsity) {
  return static_cast<std::size_t>(std::max(1.0, std::round(static_cast<double>(elements) * (1 - sparsity))));
}

double sparsity_at(const plan_of_test& p, std::uint64_t step) {
  return p.every ? p.sparsity[std::min<std::size_t>((step - p.begin) / p.every, p.sparsity.size() - 1)]
                 : p.sparsity.back();
}

// One tensor's v: places of the k largest, ascending, of equal ones the first.
std::vector<std::size_t> largest(const std::vector<float>& v, std::size_t first, std::size_t count, std::size_t k) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return std::fabs(v[a]) > std::fabs(v[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

// All tensors have a multiple of 16 elements: there is no padding.
std::vector<float> reference(const simulation_setup& s, const plan_of_test& p) {
  const std::size_t n = arena_elements(s);
  const auto m = static_cast<float>(s.optimizer.momentum), lr = static_cast<float>(s.optimizer.lr);
  std::vector<float> w(n);
  for (std::size_t i = 0; i < n; ++i) w[i] = initial_weight(i);
  std::vector<std::vector<float>> u(s.workers, std::vector<float>(n)), v(s.workers, std::vector<float>(n));
  std::vector<float> of_sum(n); // momentum of what goes dense
  for (std::uint64_t step = 0; step < s.steps; ++step) {
    std::vector<std::vector<float>> g(s.workers, std::vector<float>(n));
    for (std::uint32_t r = 0; r < s.workers; ++r)
      for (std::size_t i = 0; i < n; ++i) g[r][i] = gradient_of(r, s.workers, step, i, w[i]);
    std::size_t first = 0;
    for (const std::int64_t elements : s.tensors) {
      const auto count = static_cast<std::size_t>(elements);
      std::vector<float> sum(count, 0.0F);
      if (elements < p.dense_below || step < p.begin) {
        for (std::size_t i = 0; i < count; ++i) {
          for (std::uint32_t r = 0; r < s.workers; ++r) sum[i] += g[r][first + i];
          float& momentum = of_sum[first + i];
          momentum = m * momentum + sum[i];
          sum[i] = momentum;
        }
      } else {
        for (std::uint32_t r = 0; r < s.workers; ++r) {
          if (step && step == p.begin)
            for (std::size_t i = first; i < first + count; ++i)
              u[r][i] = of_sum[i] * (1.0F / static_cast<float>(s.workers));
          if (p.clip > 0) {
            double norm = 0;
            for (std::size_t i = first; i < first + count; ++i) norm += static_cast<double>(g[r][i]) * g[r][i];
            const double limit = p.clip / std::sqrt(s.workers), factor = std::min(1.0, limit / std::sqrt(norm));
            for (std::size_t i = first; i < first + count; ++i) g[r][i] *= static_cast<float>(factor);
          }
          for (std::size_t i = first; i < first + count; ++i) {
            u[r][i] = m * u[r][i] + g[r][i];
            v[r][i] += u[r][i];
          }
          for (const std::size_t i : largest(v[r], first, count, kept(elements, sparsity_at(p, step)))) {
            sum[i - first] += v[r][i];
            u[r][i] = v[r][i] = 0;
          }
        }
      }
      for (std::size_t i = 0; i < count; ++i) w[first + i] -= lr * sum[i];
      first += count;
    }
  }
  return w;
}

simulation_setup setup_of(const plan_of_test& p, std::uint32_t workers, bool servers) {
  simulation_setup s;
  s.strategy = "dgc";
  s.parameters = {{"sparsity", p.sparsity}, {"rampup_begin_step", p.begin},
                  {"rampup_step", p.every}, {"dense_below", p.dense_below},
                  {"clip_norm", p.clip},    {"exchange", servers ? "servers" : "all_gather"}};
  s.workers = workers;
  s.tensors = {4000, 160, 2000, 48};
  return s;
}

} // namespace

TEST_CASE("at a sparsity of 0.999 the weights are those of the plain algorithm, step for step, to the bit") {
  for (std::uint32_t workers = 1; workers <= 8; ++workers)
    for (const std::uint32_t servers : {0u, 1u, 2u, 3u, 4u})
      for (const bool colocate : {false, true})
        for (const std::uint64_t steps : {1, 2, 5, 30}) {
          if (colocate && !servers) continue;
          CAPTURE(workers);
          CAPTURE(servers);
          CAPTURE(colocate);
          CAPTURE(steps);
          const plan_of_test p;
          simulation_setup s = setup_of(p, workers, servers != 0);
          s.servers = servers;
          s.colocate = colocate;
          s.steps = steps;
          s.straggler_ns = workers % 3 ? 0 : 50'000;
          s.late_ns = workers % 2 ? 0 : 200'000;
          s.network.eager = workers % 2;
          const auto r = simulate(plugins(), s);
          replicas_identical(r);
          REQUIRE(r.weights[0] == reference(s, p));
        }
}

TEST_CASE("over every network, with more tensors under way than there are") {
  for (const auto& network : networks())
    for (const int lanes : {1, 3, 8}) {
      const plan_of_test p{{0.9}, 0, 0, 1, 0};
      simulation_setup s = setup_of(p, 3, false);
      s.parameters["lanes"] = lanes;
      s.network = network;
      const auto r = simulate(plugins(), s);
      replicas_identical(r);
      REQUIRE(r.weights[0] == reference(s, p));
    }
}

TEST_CASE("warm-up: dense steps, then one sparsity after the other, with the momentum carried over") {
  for (const bool servers : {false, true}) {
    const plan_of_test p{{0.5, 0.75, 0.9}, 3, 2, 1, 0};
    simulation_setup s = setup_of(p, 2, servers); // of two the order of addition does not matter
    s.servers = servers ? 2 : 0;
    for (s.steps = 1; s.steps <= 12; ++s.steps) {
      const auto r = simulate(plugins(), s);
      replicas_identical(r);
      REQUIRE(r.weights[0] == reference(s, p));
    }
  }
}

TEST_CASE("small tensors go dense with ordinary momentum, and clipping is by tensor") {
  const plan_of_test p{{0.9}, 0, 0, 1000, 0.2};
  for (const bool servers : {false, true})
    for (const std::uint32_t workers : {1u, 2u, 5u}) {
      simulation_setup s = setup_of(p, workers, servers);
      s.servers = servers ? 2 : 0;
      const auto r = simulate(plugins(), s);
      replicas_identical(r);
      const auto expected = reference(s, p);
      for (std::size_t i = 0; i < expected.size(); ++i)
        REQUIRE(r.weights[0][i] == doctest::Approx(expected[i]).epsilon(1e-6)); // norms are summed in another order
    }
}

TEST_CASE("where nothing is left out it is momentum, as the serial run has it") {
  const plan_of_test p{{0.0}, 0, 0, 1, 0};
  simulation_setup s = setup_of(p, 4, false);
  s.parameters["sparsity"] = {0.0};
  s.optimizer.momentum = 0; // masking clears what was sent: without compression there is no momentum left
  equals_serial(s, simulate(plugins(), s));
}

TEST_CASE("all-gather: every worker sends 2k words to every other; servers: 2k words there, at most 2nk back") {
  const plan_of_test p{{0.99}, 0, 0, 1, 0};
  for (std::uint32_t n = 1; n <= 6; ++n) {
    simulation_setup s = setup_of(p, n, false);
    s.steps = 3;
    std::uint64_t words = 0;
    for (const std::int64_t t : s.tensors) words += 2 * kept(t, 0.99);
    for (const auto& c : simulate(plugins(), s).counted) {
      CHECK(c.messages_sent == 3 * s.tensors.size() * (n - 1));
      CHECK(c.bytes_sent == 3 * 4 * words * (n - 1));
      CHECK(c.bytes_received == c.bytes_sent);
    }
    s = setup_of(p, n, true);
    s.steps = 3;
    s.servers = 1;
    const auto r = simulate(plugins(), s);
    for (std::uint32_t w = 0; w < n; ++w) {
      CHECK(r.counted[w].messages_sent == 3 * s.tensors.size() + 2); // and goodbye, on each lane
      CHECK(r.counted[w].messages_received == 2 * 3 * s.tensors.size());
      CHECK(r.counted[w].bytes_sent == 3 * 4 * words);
      CHECK(r.counted[w].bytes_received <= 3 * 4 * words * n);
      CHECK(r.counted[w].bytes_received >= 3 * 4 * words / 2);
    }
  }
}

TEST_CASE("a run that goes on from a checkpoint has momentum, residual and sparsity of the run before") {
  for (const bool servers : {false, true}) {
    simulation_setup s = setup_of({{0.75, 0.9}, 1, 3, 1, 0}, 3, servers);
    s.servers = servers ? 1 : 0;
    s.steps = 9;
    const auto whole = simulate(plugins(), s);
    simulated_checkpoint checkpoint;
    simulation_setup before = s, after = s;
    before.steps = 5; // in the ramp-up: the next steps have another sparsity
    before.stop_at = &checkpoint;
    simulate(plugins(), before);
    REQUIRE(checkpoint.ranks.at(0).state.size() == 2);
    after.resume = &checkpoint;
    CHECK(simulate(plugins(), after).weights == whole.weights);
    auto& residual = checkpoint.ranks[0].state[1];
    CHECK(residual.first == "residual");
    std::ranges::fill(residual.second, std::byte{0});
    CHECK(simulate(plugins(), after).weights != whole.weights);
    checkpoint.ranks[0].state.pop_back();
    CHECK_THROWS_WITH_AS(simulate(plugins(), after), doctest::Contains("residual"), std::exception);
  }
}

TEST_CASE("it reports its times and bytes, and says when it sends more than dense would") {
  std::vector<std::string> said;
  plan_of_test p{{0.999}, 0, 0, 1, 0};
  simulation_setup s = setup_of(p, 8, false);
  s.log = [&](int, const std::string& text) { said.push_back(text); };
  const auto r = simulate(plugins(), s);
  CHECK(said.empty());
  const auto& sums = r.records.at(0).sums;
  for (const char* name : {"encode_seconds", "wire_seconds", "decode_seconds"}) CHECK(sums.at(name) > 0);
  CHECK(sums.at("exchanged_bytes") < sums.at("dense_bytes"));
  CHECK(sums.at("exchanged_bytes") == static_cast<double>(r.counted[0].bytes_sent + r.counted[0].bytes_received));
  p.sparsity = {0.75}; // 8 workers: 2 x 0.25 x 7 against 2 x 7 / 8
  s.parameters["sparsity"] = {0.75};
  simulate(plugins(), s);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("at sparsity 0.75 and 8 workers more bytes are sent than without compression") !=
        std::string::npos);
}

TEST_CASE("momentum twice, another optimiser's rule, and clipping by global norm are refused") {
  simulation_setup s = setup_of({}, 2, false);
  s.parameters["momentum"] = 0.9;
  CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains("keep one of them"), std::exception);
  s.optimizer.plugin = "sgd"; // then it is the strategy's
  s.optimizer.momentum = 0;
  CHECK_NOTHROW(simulate(plugins(), s));
  s.parameters.erase("momentum");
  s.optimizer.plugin = "adam";
  CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains("cannot do adam"), std::exception);
  s.optimizer.plugin = "momentum";
  s.optimizer.nesterov = true;
  CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains("cannot do Nesterov's"), std::exception);
  s.optimizer.nesterov = false;
  s.optimizer.clip_norm = 1;
  CHECK_THROWS_WITH_AS(simulate(plugins(), s), doctest::Contains("strategy.clip_norm"), std::exception);
}

TEST_CASE("32 ghosts with 15 million weights") {
  plan_of_test p{{0.999}, 0, 0, 16384, 0};
  simulation_setup s = setup_of(p, 32, false);
  s.ghosts = true;
  s.steps = 1;
  s.tensors = {15'000'000, 10'000};
  CHECK(simulate(plugins(), s).left_over == 0);
}
