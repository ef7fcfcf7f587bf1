// SPDX-License-Identifier: Apache-2.0
//
// Gradients against the loss itself: central differences along a few directions of every tensor.
#include "check/gradient.hpp"

#include "base/text.hpp"
#include "check/model_under_test.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <regatta/random.hpp>

namespace regatta::conformance {
namespace {

constexpr std::uint64_t samples_a_step = 16;
constexpr double allowed = 0.025; // of the slope: half of the smallest error that must be found
constexpr std::size_t most_tensors = 64;

double product(const floats& a, const floats& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                            [](float x, float y) { return double{x} * y; });
}

double length(const floats& a) {
  return std::sqrt(product(a, a));
}

// From one end of a short way through the weights to the other.
struct difference {
  double loss;
  floats weights; // as fp32 has them: a step of a large tensor may be a few of its units
};

// Central differences of the loss. The loss is made of fp32 sums, so they have two enemies: at a short distance rounding is
// most of the difference, at a long one corners of ReLUs are crossed. Rounding is random from one distance to the next and
// the average of many gets rid of it; corners are not, so short distances are the safe ones.
class slope_meter {
public:
  slope_meter(model_under_test& m, const samples& x) : m_(m), x_(x), loss_(m.step(x)) {}

  // From `distance` against `direction`, of any length but zero, to as far along it.
  difference along(std::uint32_t tensor, const floats& direction, double distance) {
    floats& w = m_.weights(tensor);
    const floats start = w;
    const double unit = distance / length(direction);
    const auto loss_at = [&](double d) {
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = start[i] + static_cast<float>(d * direction[i]);
      return m_.step(x_);
    };
    difference found{-loss_at(-unit), w};
    found.loss += loss_at(unit);
    std::transform(w.begin(), w.end(), found.weights.begin(), found.weights.begin(), std::minus<>());
    std::copy(start.begin(), start.end(), w.begin());
    return found;
  }

  // Where a slope of `expected` changes the loss by such a share of it, but no more than `most` of the weights' length.
  double distance(std::uint32_t tensor, double expected, double share, double most) {
    const floats& w = m_.weights(tensor);
    const double size = std::max(length(w), 0.03 * std::sqrt(static_cast<double>(w.size())));
    return std::min(share * std::abs(loss_ / expected), most * size);
  }

  // What rounding adds to a difference, about: of all shipped models it is less.
  double rounding() const { return 1.2e-7 * std::abs(loss_); }

private:
  model_under_test& m_;
  const samples& x_;
  double loss_;
};

std::uint32_t random_word(std::uint64_t seed, std::size_t element, std::uint32_t direction) {
  return rg::random_bits(seed, element, direction, rg::stream_sampling)[0];
}

// A random half of the gradient's elements; all of them as direction 0, and where nothing but zeros would be left.
floats part_of(const floats& gradient, std::uint64_t seed, std::uint32_t direction) {
  floats d = gradient;
  for (std::size_t i = 0; i < d.size() && direction; ++i)
    if (random_word(seed, i, direction) & 1) d[i] = 0;
  return length(d) > 0 ? d : gradient;
}

// Random signs where the gradient is exactly zero. Padding, which no canonical layout has, stays zero.
floats signs_of_zeros(model_under_test& m, std::uint32_t t, const floats& gradient, std::uint64_t seed,
                      std::uint32_t direction) {
  floats d = m.canonical(t, gradient);
  for (std::size_t i = 0; i < d.size(); ++i)
    d[i] = d[i] != 0 ? 0.0F : random_word(seed, i, direction) & 1 ? 1.0F : -1.0F;
  return m.from_canonical(t, d);
}

// Elements whose gradient is zero must not change the loss. Whole parts that are missing show nowhere else: along what is
// left the gradient is right. Empty, or the complaint.
std::string try_zeros(slope_meter& meter, model_under_test& m, double per_gradient, std::uint32_t t,
                      const floats& gradient, std::uint64_t seed) {
  const auto zeros = static_cast<std::size_t>(std::count(gradient.begin(), gradient.end(), 0.0F));
  const auto others = static_cast<double>(gradient.size() - zeros);
  const double usual = others > 0 ? per_gradient * length(gradient) / std::sqrt(others) : 0; // where it is not zero
  for (std::uint32_t k = 0; k < 4; ++k) {
    const floats d = signs_of_zeros(m, t, gradient, seed, k);
    if (length(d) == 0) return {};
    const double distance = meter.distance(t, usual, 1e-4, 0.01);
    const double near = meter.along(t, d, distance).loss / (2 * distance),
                 nearer = meter.along(t, d, distance / 3).loss / (2 * distance / 3);
    const double least = std::min(std::abs(near), std::abs(nearer)) - 6 * meter.rounding() / distance;
    if (near * nearer > 0 && least > usual / 4)
      return fmt::format("the gradient of {} of {} elements is 0, but there the loss changes by {:.3g} a unit", zeros,
                         gradient.size(), near);
  }
  return {};
}

struct estimate {
  std::vector<double> ratios; // ascending
  double median = 1, error = 0;

  void add(double ratio) { // NaN counts for nothing
    if (!std::isfinite(ratio)) return;
    ratios.insert(std::upper_bound(ratios.begin(), ratios.end(), ratio), ratio);
    const std::size_t n = ratios.size();
    median = (ratios[(n - 1) / 2] + ratios[n / 2]) / 2;
    error = (ratios[n * 3 / 4] - ratios[n / 4]) / std::sqrt(static_cast<double>(n)); // about that of a median
  }
  bool tells() const { return ratios.size() >= 8 && error < 0.01; }
};

// Empty, or how the gradient of this tensor differs from the slope of the loss.
std::string try_tensor(slope_meter& meter, double per_gradient, std::uint32_t t, const floats& gradient,
                       std::uint64_t seed) {
  if (length(gradient) == 0) return {};
  // Of the loss's change to what the gradient says; NaN where rounding is more than `hidden` of it. Direction 0 is the
  // gradient itself.
  const auto ratio = [&](std::uint32_t direction, double share, double most, double hidden = 0.25) {
    const floats d = part_of(gradient, seed, direction);
    const double slope = per_gradient * product(gradient, d) / length(d);
    const difference found = meter.along(t, d, meter.distance(t, slope, share, most));
    const double predicted = per_gradient * product(gradient, found.weights);
    const double larger = std::max(std::abs(found.loss), std::abs(predicted));
    return meter.rounding() < hidden * larger ? found.loss / predicted : NAN;
  };
  // Most tensors are right beyond doubt after a few long steps.
  struct glance {
    double share, most;
    std::uint32_t directions;
    double within;
  };
  for (const glance& g : {glance{2e-5, 0.01, 2, 0.006}, glance{4e-6, 0.002, 6, 0.02}}) {
    std::uint32_t right = 0;
    while (right < g.directions && std::abs(ratio(right, g.share, g.most, g.within) - 1) < g.within) ++right;
    if (right == g.directions) return {};
  }
  // The others take many short ones. Where rounding hides those, longer ones are believed if two lengths agree.
  const auto many = [&](double share, double most) {
    estimate e;
    for (std::uint32_t k = 0; k < 80 && (k < 16 || e.error > 0.005); ++k) {
      const double longer = 1 + 0.03 * k; // rounding differs each time
      e.add(ratio(k % 2 ? k + 1 : 0, share * longer, most * longer));
    }
    return e;
  };
  estimate found = many(1e-6, 1e-3);
  for (double longer = 10; !found.tells(); longer *= 10) {
    if (longer > 1e4) return {};
    const estimate shorter = many(1e-6 * longer / 3, 1e-3 * longer / 3), other = many(1e-6 * longer, 1e-3 * longer);
    if (!shorter.tells() || !other.tells()) continue;
    if (std::abs(shorter.median - other.median) > 0.01) return {}; // the loss is no straight line here
    found = other;
  }
  if (std::abs(found.median - 1) <= allowed * std::max(1.0, std::abs(found.median)) + 2 * found.error) return {};
  return fmt::format("the loss changes by {:.4g} times as much as the gradient says (median of {} directions)",
                     found.median, found.ratios.size());
}

// All of them, or of a very deep model the first, the last and a choice of the others.
std::vector<std::uint32_t> chosen(std::vector<std::uint32_t> tensors, std::uint64_t seed) {
  constexpr std::ptrdiff_t ends = most_tensors / 4;
  if (tensors.size() <= most_tensors) return tensors;
  const auto first = tensors.begin() + ends, last = tensors.end() - ends;
  for (auto at = first; at + 1 < last; ++at)
    std::iter_swap(at, at + rg::to_index(random_word(seed, static_cast<std::size_t>(at - first), 0),
                                         static_cast<std::uint32_t>(last - at)));
  tensors.erase(first + ends * 2, last);
  std::sort(tensors.begin(), tensors.end());
  return tensors;
}

} // namespace

void finite_differences(const subject& s) {
  model_under_test m(s, samples_a_step);
  m.bind();
  const samples x = m.make_samples(0, samples_a_step);
  m.prepare({&x});
  slope_meter meter(m, x);
  // Gradients are those of the loss over the global batch; where terms have counts of their own, of the loss over what it
  // is a sum of.
  double per_gradient = static_cast<double>(samples_a_step);
  if (m.info().count_kinds) {
    rg_step_result result;
    require(m.try_step(x, samples_a_step, RG_BATCH_LAST, {}, result) >= 0, "the step fails");
    per_gradient = static_cast<double>(result.count);
  }
  std::vector<std::string> wrong;
  const auto tensors = chosen(m.trained(), s.seed);
  for (const std::uint32_t t : tensors) {
    m.step(x);
    const floats gradient = m.gradients(t);
    std::string found = try_tensor(meter, per_gradient, t, gradient, s.seed);
    if (found.empty()) found = try_zeros(meter, m, per_gradient, t, gradient, s.seed);
    if (!found.empty()) wrong.push_back(fmt::format("{}: {}", m.tensors()[t].name, found));
  }
  if (wrong.empty()) return;
  const std::size_t count = wrong.size();
  wrong.resize(std::min<std::size_t>(count, 3));
  throw failed(fmt::format("of {} tensors, {} {} wrong: {}{}", tensors.size(), count, count == 1 ? "is" : "are",
                           join(wrong, "; "), count > 3 ? "; ..." : ""));
}

} // namespace regatta::conformance
