// SPDX-License-Identifier: Apache-2.0
//
// Compares gradients with the loss itself: along a path through the weights of a tensor, the integral of its gradient
// must be the change of the loss.
#include "check/model/gradient.hpp"

#include "base/text.hpp"
#include "check/model/model_under_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <regatta/random.hpp>

namespace regatta::conformance {
namespace {

constexpr std::uint64_t samples_per_step = 16;
constexpr double allowed = 0.025; // relative error of a gradient: half of the smallest one that must be found
constexpr std::size_t most_tensors = 64, most_paths = 16;

// The change of the loss along a path through the weights: measured, and predicted by the integral of the gradient.
struct change {
  double measured, predicted;
};

// Measures the loss and its gradient along straight paths through the weights of one tensor. In place of finite
// differences it integrates the gradient: that stays right if the path crosses kinks of ReLUs, so paths may be long
// enough for a change of the loss far above its rounding.
class path_meter {
public:
  // `per_gradient` is the factor from the model's gradients to those of the loss that step() returns.
  path_meter(model_under_test& m, const samples& x, double per_gradient)
      : m_(m), x_(x), per_gradient_(per_gradient), loss_(m.step(x)) {}

  // Measures the path from the current weights minus `distance` along `direction` to the weights plus `distance` along
  // it, and restores the weights. `direction` may have any length but zero. Integrates by Simpson's rule, and doubles
  // the number of intervals up to `most_intervals` until the integral no longer changes. `middle` is the gradient at
  // the current weights.
  change along(std::uint32_t tensor, const floats& direction, double distance, const floats& middle,
               std::uint32_t most_intervals) {
    floats& w = m_.weights(tensor);
    const floats start = w;
    const double unit = distance / norm(direction);
    const auto loss_at = [&](double part) { // position on the path, -1 to 1
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = start[i] + static_cast<float>(part * unit * direction[i]);
      return m_.step(x_);
    };
    const double first_loss = loss_at(-1);
    floats path = w, end_gradients = m_.gradients(tensor);
    const double measured = loss_at(1) - first_loss;
    std::transform(w.begin(), w.end(), path.begin(), path.begin(), std::minus<>()); // as fp32 rounded the weights
    const double ends = dot(end_gradients, path) + dot(m_.gradients(tensor), path);
    double odd = dot(middle, path), even = 0, integral = (ends + 4 * odd) / 6;
    for (std::uint32_t n = 4; n <= most_intervals && rounding_share({measured, per_gradient_ * integral}) < 0.01;
         n *= 2) {
      even += odd;
      odd = 0;
      for (std::uint32_t i = 1; i < n; i += 2) {
        loss_at(2.0 * i / n - 1);
        odd += dot(m_.gradients(tensor), path);
      }
      const double coarser = std::exchange(integral, (ends + 4 * odd + 2 * even) / (3 * n));
      if (std::abs(integral - coarser) < 0.005 * std::abs(integral)) break;
    }
    std::copy(start.begin(), start.end(), w.begin());
    return {measured, per_gradient_ * integral};
  }

  // Returns the distance at which a directional derivative of `expected` changes the loss by the fraction `share`, but
  // at most the fraction `most` of the length of the tensor's weights.
  double distance(std::uint32_t tensor, double expected, double share, double most) {
    const floats& w = m_.weights(tensor);
    const double size = std::max(norm(w), 0.03 * std::sqrt(static_cast<double>(w.size())));
    return std::min(share * std::abs(loss_ / expected), most * size);
  }

  double per_gradient() const { return per_gradient_; }
  // Returns the rounding error of a change, as a fraction of the change.
  double rounding_share(const change& c) const {
    return rounding() / std::max(std::abs(c.measured), std::abs(c.predicted));
  }
  // Returns an upper estimate of the rounding error of a difference of two losses; in all shipped models it is less.
  double rounding() const { return 1.2e-7 * std::abs(loss_); }

private:
  model_under_test& m_;
  const samples& x_;
  double per_gradient_, loss_;
};

std::uint32_t random_word(std::uint64_t seed, std::size_t element, std::uint32_t direction) {
  return rg::random_bits(seed, element, direction, rg::stream_sampling)[0];
}

// Returns a random half of the gradient's elements, the others set to 0; all elements for direction 0, or if only zeros
// would be left.
floats part_of(const floats& gradient, std::uint64_t seed, std::uint32_t direction) {
  floats d = gradient;
  for (std::size_t i = 0; i < d.size() && direction; ++i)
    if (random_word(seed, i, direction) & 1) d[i] = 0;
  return norm(d) > 0 ? d : gradient;
}

// Returns 1 or -1 at random where the gradient is exactly 0, and 0 elsewhere and in padding of the memory layout.
floats signs_of_zeros(model_under_test& m, std::uint32_t t, const floats& gradient, std::uint64_t seed,
                      std::uint32_t direction) {
  floats d = m.canonical(t, gradient);
  for (std::size_t i = 0; i < d.size(); ++i)
    d[i] = d[i] != 0 ? 0.0F : random_word(seed, i, direction) & 1 ? 1.0F : -1.0F;
  return m.from_canonical(t, d);
}

// Checks that the loss does not change with elements whose gradient is 0. Paths along the gradient do not move these
// elements, so only this check finds a part of the gradient that was never computed. Returns the error, or "".
std::string try_zeros(path_meter& meter, model_under_test& m, std::uint32_t t, const floats& gradient,
                      std::uint64_t seed) {
  const auto zeros = static_cast<std::size_t>(std::count(gradient.begin(), gradient.end(), 0.0F));
  const auto others = static_cast<double>(gradient.size() - zeros);
  const double usual =
      others > 0 ? meter.per_gradient() * norm(gradient) / std::sqrt(others) : 0; // of nonzero elements
  for (std::uint32_t k = 0; k < 4; ++k) {
    const floats d = signs_of_zeros(m, t, gradient, seed, k);
    if (norm(d) == 0) return {};
    const double distance = meter.distance(t, usual, 1e-4, 0.01);
    const double near = meter.along(t, d, distance, gradient, 2).measured / (2 * distance),
                 nearer = meter.along(t, d, distance / 3, gradient, 2).measured / (2 * distance / 3);
    const double least = std::min(std::abs(near), std::abs(nearer)) - 6 * meter.rounding() / distance;
    if (near * nearer > 0 && least > usual / 4)
      return fmt::format(
          "the gradient of {} of {} elements is 0, but the derivative of the loss by them is about {:.3g}", zeros,
          gradient.size(), near);
  }
  return {};
}

// Median of measured over predicted changes of the loss, with its uncertainty.
struct estimate {
  std::vector<double> ratios; // ascending
  double median = 1, error = 0;

  void add(double ratio) { // NaN is ignored
    if (!std::isfinite(ratio)) return;
    ratios.insert(std::upper_bound(ratios.begin(), ratios.end(), ratio), ratio);
    const std::size_t n = ratios.size();
    median = (ratios[(n - 1) / 2] + ratios[n / 2]) / 2;
    error = (ratios[n * 3 / 4] - ratios[n / 4]) / std::sqrt(static_cast<double>(n)); // about that of the median
  }
  bool is_certain() const { return ratios.size() >= most_paths / 2 && 4 * error < allowed; }
};

// zero: the gradient is 0 everywhere; hidden: an error of 5 % could not be told from noise.
enum class gradient_state { right, wrong, zero, hidden };
struct verdict_of_tensor {
  gradient_state result = gradient_state::right;
  std::string error{}; // only with gradient_state::wrong: the error
};

// Checks that the integral of this tensor's gradient is the change of the loss.
verdict_of_tensor try_tensor(path_meter& meter, std::uint32_t t, const floats& gradient, std::uint64_t seed) {
  if (!std::isfinite(norm(gradient))) return {gradient_state::wrong, "its gradient is not finite"};
  if (norm(gradient) == 0) return {gradient_state::zero};
  // Returns the measured over the predicted change of the loss along a path; NaN if rounding hides the change. Triples
  // the length of the path until rounding is less than the fraction `hidden` of the change. Later paths start with that
  // length, because the next one needs about the same. Direction 0 is the gradient itself.
  double stretch = 1;
  const auto ratio = [&](std::uint32_t direction, double longer, std::uint32_t most_intervals, double hidden) {
    const floats d = part_of(gradient, seed, direction);
    const double derivative = meter.per_gradient() * dot(gradient, d) / norm(d);
    for (;; stretch *= 3) {
      const double distance = meter.distance(t, derivative, 6e-5 * longer * stretch, 3e-3 * longer * stretch);
      const change c = meter.along(t, d, distance, gradient, most_intervals);
      if (meter.rounding_share(c) < hidden) return c.measured / c.predicted;
      if (stretch > 999) return std::numeric_limits<double>::quiet_NaN(); // path of 3 x the weights' length
    }
  };
  // Two paths that agree to 0.5 % are proof enough, and suffice for most tensors.
  const auto right = [&](std::uint32_t direction) { return std::abs(ratio(direction, 1, 2, 0.003) - 1) < 0.005; };
  if (right(0) && right(1)) return {};
  // The others take more paths until the median is certain enough. Their lengths differ, so that they do not cross the
  // same kinks. They may be shorter than the first two, with more rounding, because the median averages it out.
  stretch = 1;
  estimate found;
  for (std::uint32_t k = 0; k < most_paths && !found.is_certain(); ++k) {
    found.add(ratio(k % 2 ? k : 0, 1 + std::fmod(0.618 * k, 1), 32, 0.01));
    if (k == 3 && found.ratios.empty()) break;
  }
  if (found.ratios.size() >= most_paths / 2 && std::abs(found.median - 1) > std::max(allowed, 4 * found.error))
    return {gradient_state::wrong,
            fmt::format("the loss changes by {:.4g} times the integral of the gradient (median of {} paths)",
                        found.median, found.ratios.size())};
  return {found.is_certain() ? gradient_state::right : gradient_state::hidden};
}

// Returns all tensors if they are at most 64; else the first 16, the last 16, and 32 of the others that the seed
// chooses.
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

void check_gradients(const subject& s) {
  model_under_test m(s, samples_per_step);
  const samples x = m.start();
  // The model's gradients are those of the summed loss divided by the samples of the global batch, or, if the model
  // counts terms (count_kinds), by the number of terms. step() returns the sum.
  const std::uint64_t terms =
      m.info().count_kinds ? m.step(x, samples_per_step, RG_BATCH_LAST).count : samples_per_step;
  path_meter meter(m, x, static_cast<double>(terms));
  std::vector<std::string> wrong, hidden, zero;
  const auto all = m.trained(), tensors = chosen(all, s.seed);
  for (const std::uint32_t t : tensors) {
    m.step(x);
    const floats gradient = m.gradients(t);
    const std::string name = m.tensors()[t].name;
    verdict_of_tensor j = try_tensor(meter, t, gradient, s.seed);
    if (j.result != gradient_state::wrong) {
      const std::string how = try_zeros(meter, m, t, gradient, s.seed);
      if (!how.empty()) j = {gradient_state::wrong, how};
    }
    if (j.result == gradient_state::wrong) wrong.push_back(fmt::format("{}: {}", name, j.error));
    if (j.result == gradient_state::hidden) hidden.push_back(name);
    if (j.result == gradient_state::zero) zero.push_back(name);
  }
  if (tensors.size() < all.size())
    remark(fmt::format("{} of {} tensors are checked; another --seed chooses others", tensors.size(), all.size()));
  if (!hidden.empty())
    remark(
        fmt::format("the gradients of {} of {} tensors are not measured (too small beside the rounding of the loss, or "
                    "too different along each path): {}",
                    hidden.size(), tensors.size(), join(hidden)));
  if (!zero.empty())
    remark(fmt::format("the gradients of {} of {} tensors are 0, and the loss does not change with them: {}",
                       zero.size(), tensors.size(), join(zero)));
  if (wrong.empty()) return;
  const std::size_t count = wrong.size();
  wrong.resize(std::min<std::size_t>(count, 3));
  throw failed(fmt::format("of {} tensors, {} {} wrong: {}{}", tensors.size(), count, count == 1 ? "is" : "are",
                           join(wrong, "; "), count > 3 ? "; ..." : ""));
}

} // namespace regatta::conformance
