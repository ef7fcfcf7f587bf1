// SPDX-License-Identifier: Apache-2.0
//
// Maps values to pixels, with ticks at round values.
#pragma once

#include <string>
#include <vector>

namespace regatta::page {

// Kinds of values, which decide the unit and the text of ticks.
enum class measure { plain, seconds, bytes, bytes_per_second, bits_per_second, share };

struct axis {
  std::string title; // without unit: "step time"
  measure kind = measure::plain;
  bool log = false;       // ignored if a value is 0 or less
  bool from_zero = false; // the axis contains 0; ignored if it is logarithmic
  std::vector<double> at; // values of ticks; empty: round values
};

struct tick {
  double value;
  std::string text;
};

class scale {
public:
  // For values between `low` and `high`, drawn from pixel `from` to pixel `to` (either may be larger). The ends of a
  // linear scale without axis::at are round values. Requires finite values.
  scale(const axis& of, double low, double high, double from, double to);

  double at(double value) const; // returns the pixel of a value
  const std::vector<tick>& ticks() const { return ticks_; }
  bool log() const { return log_; }
  bool regular() const { return regular_; } // ticks are equally far apart
  // Return the values at the two ends of the axis.
  double low() const { return low_; }
  double high() const { return high_; }
  // Returns the title with the unit of the ticks: "step time [ms]".
  const std::string& title() const { return title_; }

private:
  void place_linear(const axis& of);
  void place_log(const axis& of);
  void place_given(const axis& of);
  std::string text_of(const axis& of, double value, double step) const;

  double low_, high_, from_, to_, unit_ = 1;
  bool log_ = false, regular_ = false;
  std::string title_;
  std::vector<tick> ticks_;
};

} // namespace regatta::page
