// SPDX-License-Identifier: Apache-2.0
#include "page/chart/scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "text/values.hpp"

namespace regatta::page {
namespace {

struct named_unit {
  double size;
  const char* name;
};

// Returns the unit in which the largest value of an axis is at least 1.
named_unit unit_of(measure kind, double largest) {
  static constexpr named_unit seconds[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  static constexpr named_unit bytes[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}};
  static constexpr named_unit rates[] = {{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}};
  static constexpr named_unit bits[] = {
      {1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}, {1, "bit/s"}};
  const auto pick = [&](const auto& units) {
    for (const named_unit& u : units)
      if (largest >= u.size) return u;
    return *(std::end(units) - 1);
  };
  switch (kind) {
  case measure::seconds: return pick(seconds);
  case measure::bytes: return pick(bytes);
  case measure::bytes_per_second: return pick(rates);
  case measure::bits_per_second: return pick(bits);
  case measure::share: return {0.01, "%"};
  case measure::plain: break;
  }
  return {1, ""};
}

// Returns 1, 2 or 5 times a power of ten, such that `range` has about `wanted` steps.
double round_step(double range, double wanted) {
  const double rough = range / wanted, power = std::pow(10, std::floor(std::log10(rough)));
  const double digit = rough / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

} // namespace

scale::scale(const axis& of, double low, double high, double from, double to)
    : low_(std::min(low, high)), high_(std::max(low, high)), from_(from), to_(to) {
  log_ = of.log && low_ > 0;
  if (of.from_zero && !log_) {
    low_ = std::min(low_, 0.0);
    high_ = std::max(high_, 0.0);
  }
  if (low_ == high_) { // one value: it is drawn in the middle
    const double room = log_ ? 0 : low_ == 0 ? 1 : std::abs(low_) / 2;
    low_ = log_ ? low_ / 2 : low_ - room;
    high_ = log_ ? high_ * 2 : high_ + room;
  }
  if (log_ && of.at.empty()) { // marks at the ends of the axis would be cut
    const double room = std::pow(high_ / low_, 0.03);
    low_ /= room;
    high_ *= room;
  }
  const named_unit unit = unit_of(of.kind, std::max(std::abs(low_), std::abs(high_)));
  // The ticks of a logarithmic scale have units of their own: "1 us", "1 ms".
  const bool sizes = of.kind == measure::bytes && !of.at.empty(); // "64KiB"
  const bool in_title = !log_ && !sizes && *unit.name;
  unit_ = log_ ? 1 : unit.size;
  title_ = of.title + (in_title ? fmt::format(" [{}]", unit.name) : "");
  if (!of.at.empty())
    place_given(of);
  else if (log_)
    place_log(of);
  else
    place_linear(of);
}

double scale::at(double value) const {
  const double share =
      log_ ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_)) : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

std::string scale::text_of(const axis& of, double value, double step) const {
  if (log_ && of.kind != measure::plain) {
    if (of.kind == measure::bytes && value == std::floor(value) && value < 0x1p62)
      return exact_bytes(static_cast<std::int64_t>(value));
    const named_unit unit = unit_of(of.kind, value * (1 + 1e-9));
    return fmt::format("{:.3g} {}", value / unit.size, unit.name);
  }
  const double shown = value / unit_;
  if (step <= 0) return fmt::format("{:.6g}", shown);
  const int decimals = std::clamp(-static_cast<int>(std::floor(std::log10(step / unit_) + 1e-9)), 0, 9);
  const std::string text = fmt::format("{:.{}f}", shown, decimals);
  if (std::abs(shown) >= 1e6) return fmt::format("{:.3g}", shown);
  return text == "-0" ? "0" : text;
}

void scale::place_linear(const axis& of) {
  const double pixels = std::abs(to_ - from_), step = round_step(high_ - low_, std::max(2.0, pixels / 55));
  regular_ = true;
  low_ = std::floor(low_ / step + 1e-9) * step;
  high_ = std::ceil(high_ / step - 1e-9) * step;
  for (int i = 0; low_ + i * step <= high_ + step / 2; ++i) {
    const double value = std::round(low_ / step + i) * step;
    ticks_.push_back({value, text_of(of, value, step)});
  }
}

// Ticks are powers of 10; of 2 for sizes in bytes; within less than two decades also 2 and 5 times a power of 10.
void scale::place_log(const axis& of) {
  const bool binary = of.kind == measure::bytes;
  const double decades = std::log10(high_ / low_);
  if (binary) {
    const double octaves = std::max(1.0, std::log2(high_ / low_));
    const int every = std::max(1, static_cast<int>(std::ceil(octaves / 6)));
    for (int e = static_cast<int>(std::ceil(std::log2(low_) - 1e-9)); std::exp2(e) <= high_ * (1 + 1e-9); e += every)
      ticks_.push_back({std::exp2(e), text_of(of, std::exp2(e), 0)});
    return;
  }
  const int every = std::max(1, static_cast<int>(std::ceil(decades / 6)));
  for (int e = static_cast<int>(std::floor(std::log10(low_))); std::pow(10, e) <= high_ * (1 + 1e-9); ++e)
    for (const int digit : {1, 2, 5}) {
      const double value = digit * std::pow(10, e);
      const bool wanted = digit == 1 ? e % every == 0 : decades < 2;
      if (wanted && value >= low_ * (1 - 1e-9) && value <= high_ * (1 + 1e-9))
        ticks_.push_back({value, text_of(of, value, 0)});
    }
}

void scale::place_given(const axis& of) {
  for (const double value : of.at)
    ticks_.push_back(
        {value, of.kind == measure::bytes ? exact_bytes(static_cast<std::int64_t>(value)) : text_of(of, value, 0)});
}

} // namespace regatta::page
