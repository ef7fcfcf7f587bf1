// SPDX-License-Identifier: Apache-2.0
#include "simulate/fit.hpp"

#include "base/failure.hpp"

#include <array>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

using namespace regatta;

TEST_CASE("a least-squares step solves linear errors, and is bounded and damped") {
  // errors = 1 + 2 x, 3 - y, x + y + 3.5: all zero at x = -0.5, y = 3 but the last, which is 6 there.
  const std::vector<double> errors{1, 3, -2.5};
  const std::vector<std::vector<double>> derivatives{{2, 0, 1}, {0, -1, 1}};
  const auto exact = least_squares_step(errors, derivatives, 1e-12, 10);
  CHECK(exact[0] == doctest::Approx(-0.5));
  CHECK(exact[1] == doctest::Approx(3));
  CHECK(least_squares_step(errors, derivatives, 1e-12, 1)[1] == 1);
  CHECK(std::abs(least_squares_step(errors, derivatives, 10, 10)[1]) < 1);
  // Errors that a parameter does not change do not move it.
  const auto one = least_squares_step({1, 1}, {{1, 1}, {0, 0}}, 1e-4, 10);
  CHECK(one[0] == doctest::Approx(-1).epsilon(0.001));
  CHECK(one[1] == 0);
  CHECK(least_squares_step({1, 1}, {{0, 0}, {0, 0}}, 1e-4, 10) == std::vector<double>{0, 0});
  // Three parameters, of which no error depends on one alone: 1 + x + y, 2 + y + z, 3 + x + z.
  const auto three = least_squares_step({1, 2, 3}, {{1, 0, 1}, {1, 1, 0}, {0, 1, 1}}, 1e-12, 10);
  CHECK(three[0] == doctest::Approx(-1));
  CHECK(std::abs(three[1]) < 1e-6);
  CHECK(three[2] == doctest::Approx(-2));
}

TEST_CASE("a line through points on a line, and never a negative part") {
  const line_fit f = fit_line({{0, 10}, {100, 30}, {1000, 210}});
  CHECK(f.constant == doctest::Approx(10));
  CHECK(f.slope == doctest::Approx(0.2));
  CHECK(f.residual == doctest::Approx(0));
  const line_fit through = fit_line({{10, 1}, {100, 100}});
  CHECK(through.constant == 0);
  CHECK(through.residual > 0.2);
}

TEST_CASE("messages: processor time is o and O, the rest of the time L and G") {
  std::vector<message_sample> samples;
  for (const double bytes : {8.0, 4096.0, 1e6, 4e6})
    samples.push_back({bytes, 9000 + 2 * (3000 + 0.1 * bytes) + 0.3 * bytes, 2 * (3000 + 0.1 * bytes)});
  const message_costs c = fit_messages(samples);
  CHECK(c.overhead_ns == doctest::Approx(3000));
  CHECK(c.overhead_ns_per_byte == doctest::Approx(0.1));
  CHECK(c.latency_ns == doctest::Approx(9000));
  CHECK(1 / c.bytes_per_ns == doctest::Approx(0.3));
  CHECK(*c.residual == doctest::Approx(0).epsilon(1e-6));
}

TEST_CASE("messages whose bytes cost more beyond a size: two lines that meet there") {
  const auto sample = [](double bytes) {
    const double work = 3000 + 0.1 * (std::min(bytes, 1e6) + 3 * std::max(0.0, bytes - 1e6));
    return message_sample{bytes, 9000 + 2 * work + 0.3 * bytes, 2 * work};
  };
  std::vector<message_sample> samples;
  for (const double bytes : {8.0, 4096.0, 2.5e5, 1e6, 4e6, 1.6e7}) samples.push_back(sample(bytes));
  const message_costs c = fit_messages(samples);
  CHECK(c.large_from == 1e6);
  CHECK(c.large_factor == doctest::Approx(3));
  CHECK(c.overhead_ns == doctest::Approx(3000));
  CHECK(c.overhead_ns_per_byte == doctest::Approx(0.1));
  CHECK(1 / c.bytes_per_ns == doctest::Approx(0.3));
  CHECK(*c.residual == doctest::Approx(0).epsilon(1e-6));
  std::vector<std::pair<double, double>> cpu_ns;
  for (const message_sample& s : samples) cpu_ns.emplace_back(s.bytes, s.cpu_ns);
  const message_work w = fit_work(cpu_ns);
  CHECK(w.overhead_ns == doctest::Approx(3000));
  CHECK(w.overhead_ns_per_byte == doctest::Approx(0.1));
  CHECK(w.large_from == 1e6);
  CHECK(w.large_factor == doctest::Approx(3));
  // One line where measurements only vary, and where too few of them are large.
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double noise = i % 2 ? 1.03 : 0.97;
    samples[i] = {samples[i].bytes, noise * (9000 + 0.5 * samples[i].bytes), 6000 + 0.2 * samples[i].bytes};
  }
  CHECK(std::isinf(fit_messages(samples).large_from));
  CHECK(std::isinf(fit_messages({sample(8), sample(4096), sample(1e6), sample(4e6)}).large_from));
}

TEST_CASE("what training takes more is added to a message's work, for small and for large messages alike") {
  const message_work w{10'000, 0.1, 1e6, 4};
  const message_work more = with_more_work(w, 2'000, 0.1);
  CHECK(more.overhead_ns == 12'000);
  CHECK(more.overhead_ns_per_byte == doctest::Approx(0.2));
  CHECK(more.large_from == 1e6);
  CHECK(more.large_factor * more.overhead_ns_per_byte == doctest::Approx(0.5));
  const message_work less = with_more_work(w, -20'000, -0.05); // no work is negative
  CHECK(less.overhead_ns == 0);
  CHECK(less.overhead_ns_per_byte == doctest::Approx(0.05));
  CHECK(less.large_factor * less.overhead_ns_per_byte == doctest::Approx(0.35));
}

TEST_CASE("computing beside messages: the loss is what fits all samples") {
  const auto f = fit_loss({{1000, 100, 1150}, {2000, 400, 2600}});
  REQUIRE(f);
  CHECK(f->loss == doctest::Approx(1.5));
  CHECK(f->residual == doctest::Approx(0));
  const auto between = fit_loss({{1000, 100, 1100}, {1000, 100, 1300}, {1000, 100, 1200}});
  REQUIRE(between);
  CHECK(between->loss == doctest::Approx(2));
  CHECK(between->residual == doctest::Approx(100.0 / 1300));
  CHECK(fit_loss({{1000, 100, 900}})->loss == 0);
  CHECK(!fit_loss({{1000, 9, 1100}})); // all messages come while nothing computes
}

TEST_CASE("steps that vary are described by quantiles, and by 40 % at most") {
  const std::vector<double> q = relative_quantiles({30, 10, 20});
  REQUIRE(q.size() == 21);
  CHECK(q.front() == doctest::Approx(0.5));
  CHECK(q[5] == doctest::Approx(0.75));
  CHECK(q[10] == doctest::Approx(1));
  CHECK(q.back() == doctest::Approx(1.5));
  CHECK(relative_quantiles({7}) == std::vector<double>(21, 1));
  CHECK_NOTHROW(require_steady_steps(0.39));
  CHECK_THROWS_WITH_AS(require_steady_steps(0.412),
                       "computing: expected steps that vary by at most 40 %, got 41 %: repeat it on an idle machine",
                       failure);
}

TEST_CASE("a bad fit is refused with the figure") {
  CHECK_NOTHROW(require_good_fit("messages over tcp", 0.19));
  CHECK_THROWS_WITH_AS(require_good_fit("messages over tcp", 0.31),
                       "messages over tcp: expected a fit within 20 %, got a residual of 31 %: repeat it on an idle "
                       "machine",
                       failure);
}
