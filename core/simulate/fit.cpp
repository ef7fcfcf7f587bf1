// SPDX-License-Identifier: Apache-2.0
#include "simulate/fit.hpp"

#include "base/failure.hpp"
#include "results/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace regatta {
namespace {

constexpr double most_variation = 0.4;

using point = std::pair<double, double>;

// Relative errors weigh each point by 1 / y.
line_fit least_squares(const std::vector<point>& points, bool with_constant, bool with_slope) {
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
  for (const auto& [x, y] : points) {
    const double weight = 1 / (y * y);
    w += weight;
    wx += weight * x;
    wxx += weight * x * x;
    wy += weight * y;
    wxy += weight * x * y;
  }
  line_fit f;
  if (with_constant && with_slope) {
    const double determinant = w * wxx - wx * wx;
    f.constant = (wxx * wy - wx * wxy) / determinant;
    f.slope = (w * wxy - wx * wy) / determinant;
  } else if (with_constant) {
    f.constant = wy / w;
  } else {
    f.slope = wxy / wxx;
  }
  return f;
}

// A line up to x = bend, and from there on another one.
struct bent_line {
  line_fit start;
  double bend = std::numeric_limits<double>::infinity(), slope_beyond = 0;
  double residual = 0; // as that of line_fit, of all points

  double at(double x) const {
    return start.constant + start.slope * std::min(x, bend) + slope_beyond * std::max(0.0, x - bend);
  }
};

std::vector<double> relative_errors(const bent_line& f, const std::vector<point>& points) {
  std::vector<double> errors;
  for (const auto& [x, y] : points) errors.push_back(std::abs(f.at(x) - y) / y);
  return errors;
}

// A line that bends at one of the points, if its sum of squares of relative errors is at most a quarter of a straight
// one's. At least three points are up to there, and two beyond.
bent_line fit_bent_line(std::vector<point> points) {
  constexpr std::size_t fewest = 3, fewest_beyond = 2;
  constexpr double enough_better = 0.25;
  std::ranges::sort(points);
  const auto squares = [&](const bent_line& f) {
    const std::vector<double> errors = relative_errors(f, points);
    return std::inner_product(errors.begin(), errors.end(), errors.begin(), 0.0);
  };
  bent_line best{.start = fit_line(points)};
  double least = enough_better * squares(best);
  for (std::size_t i = fewest; i + fewest_beyond <= points.size(); ++i) {
    const auto middle = points.begin() + static_cast<std::ptrdiff_t>(i);
    bent_line f{.start = fit_line({points.begin(), middle})};
    f.bend = std::prev(middle)->first;
    std::vector<point> beyond; // above the end of the first part
    for (auto p = middle; p != points.end(); ++p) beyond.emplace_back(p->first - f.bend, p->second);
    const double end = f.start.constant + f.start.slope * f.bend;
    double products = 0, weights = 0; // of a line through that end
    for (const auto& [x, y] : beyond) {
      products += x * (y - end) / (y * y);
      weights += x * x / (y * y);
    }
    f.slope_beyond = std::max(0.0, products / weights);
    if (const double sum = squares(f); sum < least) {
      least = sum;
      best = f;
    }
  }
  best.residual = median(relative_errors(best, points)).value_or(0);
  return best;
}

// Sets what a byte beyond `from` costs, if there is such a size and others cost something.
void set_large(message_work& w, double from, double ns_per_byte) {
  if (!std::isfinite(from) || w.overhead_ns_per_byte <= 0) return;
  w.large_from = from;
  w.large_factor = std::max(0.0, ns_per_byte / w.overhead_ns_per_byte);
}

} // namespace

line_fit fit_line(const std::vector<point>& points) {
  line_fit f = least_squares(points, true, true);
  if (f.constant < 0) f = least_squares(points, false, true);
  if (f.slope < 0) f = least_squares(points, true, false);
  std::vector<double> errors;
  for (const auto& [x, y] : points) errors.push_back(std::abs(f.constant + f.slope * x - y) / y);
  f.residual = median(errors).value_or(0);
  return f;
}

message_costs fit_messages(const std::vector<message_sample>& samples) {
  std::vector<point> times, work;
  for (const message_sample& s : samples) {
    times.emplace_back(s.bytes, s.ns);
    work.emplace_back(s.bytes, std::max(s.cpu_ns, 1.0));
  }
  const bent_line bent = fit_bent_line(times);
  const line_fit& time = bent.start;
  std::erase_if(work, [&](const point& p) { return p.first > bent.bend; });
  const line_fit cpu = fit_line(work);
  message_costs c;
  // CPU time beside the transfer (another thread's, the kernel's on another core) cannot be on its path.
  c.overhead_ns = std::min(cpu.constant, time.constant) / 2;
  c.overhead_ns_per_byte = std::min(cpu.slope, 0.99 * time.slope) / 2;
  c.latency_ns = time.constant - 2 * c.overhead_ns;
  const double gap_per_byte = std::max(time.slope - 2 * c.overhead_ns_per_byte, 1e-3); // G
  c.bytes_per_ns = 1 / gap_per_byte;
  // Inside a host only processors move bytes: what large messages take longer is their work.
  set_large(c, bent.bend, (bent.slope_beyond - gap_per_byte) / 2);
  c.residual = bent.residual;
  return c;
}

message_work fit_work(std::vector<std::pair<double, double>> cpu_ns) {
  for (auto& [bytes, ns] : cpu_ns) ns = std::max(ns, 1.0);
  const bent_line bent = fit_bent_line(std::move(cpu_ns));
  message_work w{bent.start.constant / 2, bent.start.slope / 2};
  set_large(w, bent.bend, bent.slope_beyond / 2);
  return w;
}

message_work with_more_work(message_work w, double ns, double ns_per_byte) {
  const double large = std::max(0.0, w.overhead_ns_per_byte * w.large_factor + ns_per_byte);
  w.overhead_ns = std::max(0.0, w.overhead_ns + ns);
  w.overhead_ns_per_byte = std::max(0.0, w.overhead_ns_per_byte + ns_per_byte);
  if (w.overhead_ns_per_byte > 0) w.large_factor = large / w.overhead_ns_per_byte;
  return w;
}

std::optional<loss_fit> fit_loss(const std::vector<loss_sample>& samples) {
  constexpr double least = 0.01;
  if (std::ranges::all_of(samples, [&](const loss_sample& s) { return s.lost < least * s.alone; })) return {};
  double products = 0, squares = 0;
  for (const loss_sample& s : samples) {
    products += s.lost * (s.measured - s.alone);
    squares += s.lost * s.lost;
  }
  loss_fit f{std::max(0.0, products / squares)};
  std::vector<double> errors;
  for (const loss_sample& s : samples) errors.push_back(std::abs(s.alone + f.loss * s.lost - s.measured) / s.measured);
  f.residual = median(errors).value_or(0);
  return f;
}

std::vector<double> least_squares_step(const std::vector<double>& errors,
                                       const std::vector<std::vector<double>>& derivatives, double damping,
                                       double most) {
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  // The normal equations. Their matrix is positive definite, so elimination needs no pivots.
  const std::size_t n = derivatives.size();
  std::vector<std::vector<double>> rows(n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k)
      rows[i].push_back(product(derivatives[i], derivatives[k]) + (i == k ? damping : 0));
    rows[i].push_back(-product(derivatives[i], errors));
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t below = i + 1; below < n; ++below) {
      const double times = rows[below][i] / rows[i][i];
      for (std::size_t k = i; k <= n; ++k) rows[below][k] -= times * rows[i][k];
    }
  std::vector<double> step(n);
  for (std::size_t i = n; i-- > 0;) {
    double right = rows[i][n];
    for (std::size_t k = i + 1; k < n; ++k) right -= rows[i][k] * step[k];
    step[i] = right / rows[i][i];
  }
  for (double& x : step) x = std::clamp(x, -most, most);
  return step;
}

std::vector<double> relative_quantiles(const std::vector<double>& numbers) {
  constexpr int parts = 20;
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
  std::vector<double> all;
  for (int k = 0; k <= parts; ++k)
    all.push_back(quantile(numbers, static_cast<double>(k) / parts).value_or(mean) / mean);
  return all;
}

void require_steady_steps(double variation) {
  if (variation > most_variation)
    throw failure(exit_code::run, fmt::format("computing: expected steps that vary by at most {:.0f} %, got {:.0f} %: "
                                              "repeat it on an idle machine",
                                              100 * most_variation, 100 * variation));
}

void require_good_fit(const std::string& what, double residual) {
  if (residual > worst_residual)
    throw failure(exit_code::run, fmt::format("{}: expected a fit within {:.0f} %, got a residual of {:.0f} %: repeat "
                                              "it on an idle machine",
                                              what, 100 * worst_residual, 100 * residual));
}

} // namespace regatta
