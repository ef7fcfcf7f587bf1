// SPDX-License-Identifier: Apache-2.0
#include "results/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace regatta {

std::optional<double> quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return std::nullopt;
  const double position = q * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(samples.begin(), at, samples.end());
  const double low = *at;
  if (below + 1 == samples.size()) return low;
  const double high = *std::min_element(at + 1, samples.end());
  return low + (position - static_cast<double>(below)) * (high - low);
}

namespace {

double mean_of(const std::vector<double>& samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

} // namespace

std::optional<double> deviation(const std::vector<double>& samples) {
  if (samples.size() < 2) return std::nullopt;
  const double mean = mean_of(samples);
  double squares = 0;
  for (const double x : samples) squares += (x - mean) * (x - mean);
  return std::sqrt(squares / static_cast<double>(samples.size() - 1));
}

std::optional<double> variation(const std::vector<double>& samples) {
  const auto spread = deviation(samples);
  if (!spread || mean_of(samples) == 0) return std::nullopt;
  return *spread / mean_of(samples);
}

std::vector<std::size_t> middle(const std::vector<double>& samples) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
  if (order.empty()) return {};
  const std::size_t half = order.size() / 2;
  if (order.size() % 2 == 1) return {order[half]};
  return {order[half - 1], order[half]};
}

std::vector<std::size_t> thinned(std::size_t count, std::size_t most) {
  std::vector<std::size_t> kept(std::min(count, most));
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = count <= most ? i : i * (count - 1) / (most - 1);
  return kept;
}

} // namespace regatta
