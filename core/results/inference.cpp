// SPDX-License-Identifier: Apache-2.0
#include "results/inference.hpp"

#include "results/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace regatta {
namespace {

constexpr double level = 1 - usual_confidence;

// The probabilities of the values 0, 1, 2, ... of a statistic.
using distribution = std::vector<double>;

double sum_of(const std::vector<std::size_t>& ranks, double power) {
  double sum = 0;
  for (const std::size_t rank : ranks) sum += std::pow(static_cast<double>(rank), power);
  return sum;
}

// Returns the normal distribution over 0, 1, ..., most.
distribution normal_shares(double mean, double variance, std::size_t most) {
  distribution share(most + 1);
  double below = 0;
  for (std::size_t v = 0; v <= most; ++v) {
    const double here =
        v == most ? 1 : 0.5 * std::erfc((mean - static_cast<double>(v) - 0.5) / std::sqrt(2 * variance));
    share[v] = here - std::exchange(below, here);
  }
  return share;
}

// Returns the distribution of the sum of those `ranks` whose sample is positive, if every sign is equally likely.
distribution of_signed_ranks(const std::vector<std::size_t>& ranks) {
  const std::size_t most = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  if (ranks.size() > 200) return normal_shares(static_cast<double>(most) / 2, sum_of(ranks, 2) / 4, most);
  distribution share(most + 1);
  share[0] = 1;
  std::size_t reached = 0;
  for (const std::size_t rank : ranks) {
    reached += rank;
    for (std::size_t sum = reached + 1; sum-- > 0;)
      share[sum] = 0.5 * (share[sum] + (sum >= rank ? share[sum - rank] : 0.0));
  }
  return share;
}

// Returns the distribution of the sum of `chosen` of the `ranks`, if every choice is equally likely.
distribution of_rank_sums(const std::vector<std::size_t>& ranks, std::size_t chosen) {
  const std::size_t most = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  if (chosen > 50 || ranks.size() - chosen > 50) {
    const auto all = static_cast<double>(ranks.size()), share = static_cast<double>(chosen) / all;
    const double mean = static_cast<double>(most) / all;
    const double variance = sum_of(ranks, 2) / all - mean * mean;
    return normal_shares(share * static_cast<double>(most), share * (1 - share) * all * all / (all - 1) * variance,
                         most);
  }
  // The number of ways to each sum, by the number of ranks taken.
  std::vector<distribution> ways(chosen + 1, distribution(most + 1));
  ways[0][0] = 1;
  for (const std::size_t rank : ranks)
    for (std::size_t taken = chosen; taken-- > 0;)
      for (std::size_t sum = rank; sum <= most; ++sum) ways[taken + 1][sum] += ways[taken][sum - rank];
  distribution share = std::move(ways[chosen]);
  const double all = std::accumulate(share.begin(), share.end(), 0.0);
  for (double& w : share) w /= all;
  return share;
}

// Returns twice the rank of each value, so that the mean rank of equal values is an integer too.
std::vector<std::size_t> doubled_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size()), ranks(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  for (std::size_t i = 0, end = 0; i < order.size(); i = end) {
    for (end = i; end < order.size() && values[order[end]] == values[order[i]];) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = i + end + 1; // (i + 1) + end is twice the mean rank
  }
  return ranks;
}

double two_sided(const distribution& share, std::size_t observed) {
  const auto at = share.begin() + static_cast<std::ptrdiff_t>(observed);
  const double below = std::accumulate(share.begin(), at + 1, 0.0), above = std::accumulate(at, share.end(), 0.0);
  return std::min(1.0, 2 * std::min(below, above));
}

// Returns the median of the sorted `values` with the k-th smallest and the k-th largest for the largest k >= 1 whose
// coverage is at least `confidence`. The statistic of the test counts the values below the tested one: the interval
// from the k-th value covers with probability 1 - 2 P(statistic < k).
interval of_sorted(const std::vector<double>& values, const distribution& share, double confidence) {
  std::size_t k = 1;
  double outside = share[0]; // P(statistic < k)
  while (k < values.size() / 2 && 1 - 2 * (outside + share[k]) >= confidence) outside += share[k++];
  return {*median(values), values[k - 1], values[values.size() - k], std::max(0.0, 1 - 2 * outside)};
}

double t_quantile(double degrees, double q) {
  return boost::math::quantile(boost::math::students_t(degrees), q);
}

// Returns the highest p-value of the signed-rank test of n pairs that is at most 5 %: its distribution has few steps at
// small n. Requires n >= 6.
double attainable_level(std::size_t n) {
  if (n > 50) return level; // the steps are smaller than 0.1 %
  std::vector<std::size_t> ranks(n);
  std::iota(ranks.begin(), ranks.end(), std::size_t{1});
  double below = 0, attained = 0;
  for (const double share : of_signed_ranks(ranks)) {
    if (2 * (below += share) > level) break;
    attained = 2 * below;
  }
  return attained;
}

} // namespace

std::optional<interval> median_interval(std::vector<double> samples, double confidence) {
  if (samples.empty()) return std::nullopt;
  std::sort(samples.begin(), samples.end());
  const boost::math::binomial of_signs(static_cast<double>(samples.size()), 0.5);
  distribution share(samples.size() + 1);
  for (std::size_t k = 0; k < share.size(); ++k) share[k] = boost::math::pdf(of_signs, static_cast<double>(k));
  return of_sorted(samples, share, confidence);
}

std::optional<interval> paired_shift(const std::vector<double>& d, double confidence) {
  if (d.empty()) return std::nullopt;
  std::vector<double> means; // of all pairs: the Walsh averages
  for (std::size_t i = 0; i < d.size(); ++i)
    for (std::size_t j = i; j < d.size(); ++j) means.push_back((d[i] + d[j]) / 2);
  std::sort(means.begin(), means.end());
  std::vector<std::size_t> ranks(d.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{1});
  return of_sorted(means, of_signed_ranks(ranks), confidence);
}

std::optional<interval> unpaired_shift(const std::vector<double>& a, const std::vector<double>& b, double confidence) {
  if (a.empty() || b.empty()) return std::nullopt;
  std::vector<double> differences;
  for (const double x : a)
    for (const double y : b) differences.push_back(x - y);
  std::sort(differences.begin(), differences.end());
  std::vector<std::size_t> ranks(a.size() + b.size());
  std::iota(ranks.begin(), ranks.end(), std::size_t{1});
  const distribution sums = of_rank_sums(ranks, a.size());
  const std::size_t least = a.size() * (a.size() + 1) / 2; // the sum of the lowest ranks
  return of_sorted(differences, distribution(sums.begin() + static_cast<std::ptrdiff_t>(least), sums.end()),
                   confidence);
}

double paired_p(const std::vector<double>& d) {
  std::vector<double> sizes, kept;
  for (const double x : d)
    if (x != 0) {
      kept.push_back(x);
      sizes.push_back(std::abs(x));
    }
  if (kept.empty()) return 1;
  const std::vector<std::size_t> ranks = doubled_ranks(sizes);
  std::size_t positive = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) positive += kept[i] > 0 ? ranks[i] : 0;
  return two_sided(of_signed_ranks(ranks), positive);
}

double unpaired_p(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1;
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  const std::vector<std::size_t> ranks = doubled_ranks(all);
  return two_sided(
      of_rank_sums(ranks, a.size()),
      std::accumulate(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(a.size()), std::size_t{0}));
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, std::min(1.0, static_cast<double>(p.size() - i) * p[order[i]]));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

std::size_t fewest_pairs(std::size_t comparisons) {
  return static_cast<std::size_t>(std::ceil(1 + std::log2(static_cast<double>(comparisons) / level)));
}

std::size_t fewest_unpaired(std::size_t comparisons) {
  // The smallest p-value of n and n samples is 2 / (2n over n).
  double ways = 2;
  std::size_t n = 1;
  for (; 2 / ways * static_cast<double>(comparisons) > level; ++n)
    ways *= static_cast<double>(2 * (2 * n + 1)) / static_cast<double>(n + 1);
  return n;
}

double smallest_detectable(double spread, std::size_t n) {
  if (n < 2) return std::numeric_limits<double>::infinity();
  const auto degrees = static_cast<double>(n - 1);
  return (t_quantile(degrees, 1 - level / 2) + t_quantile(degrees, 0.8)) * spread / std::sqrt(static_cast<double>(n));
}

std::size_t repeats_to_detect(double spread, double difference, std::size_t comparisons) {
  constexpr std::size_t most = 10'000;
  constexpr double rank_efficiency =
      3 / 3.14159265358979; // of the signed-rank test beside the t test, for normal noise
  const auto finds = [&](std::size_t n) {
    const auto degrees = static_cast<double>(n - 1), pairs = static_cast<double>(n);
    const double sure = t_quantile(degrees, 1 - attainable_level(n) / 2) + t_quantile(degrees, 0.8);
    return sure * spread / std::sqrt(rank_efficiency * pairs) <= difference;
  };
  std::size_t n = fewest_pairs(comparisons);
  while (n < most && !finds(n)) n += n < 100 ? 1 : n / 20;
  return std::min(n, most);
}

} // namespace regatta
