// SPDX-License-Identifier: Apache-2.0
//
// Fits of a calibration. Pure functions of measured samples.
#pragma once

#include "simulate/machine_file.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace regatta {

// y = constant + slope * x, with neither below 0. `residual` is the median of |y - measured| / measured.
struct line_fit {
  double constant = 0, slope = 0, residual = 0;
};
// [any] Returns the line with the smallest sum of squares of relative errors. Requires at least two points, with
// different x, and y above 0.
line_fit fit_line(const std::vector<std::pair<double, double>>& points);

// A message of `bytes` between two ranks that wait for each other.
struct message_sample {
  double bytes = 0, ns = 0, cpu_ns = 0; // time from its send to its end at the receiver; CPU time of both together
};
// [any] Returns what a message costs: o and O are half of the CPU time each, as far as the time has room for it, L + 2o
// and G + 2O the time of a message. The gap is 0: ping-pong does not show it. Where one line fits the times much worse
// than two that meet at one of the sizes, bytes beyond that size (`large_from`) cost another O. `residual` is that of the
// time. Requires two sizes or more.
message_costs fit_messages(const std::vector<message_sample>& samples);

// [any] Returns the work of a message's sender and receiver, each half of the CPU time of both, by lines that may bend as
// those of fit_messages(). `cpu_ns`: that time by bytes, in ns. Requires two sizes or more.
message_work fit_work(std::vector<std::pair<double, double>> cpu_ns);

// [any] Returns the work between hosts in training steps: `w`, of ping-pong between hosts, and what training takes more
// than ping-pong inside a host, `ns` for each message and `ns_per_byte`, which may be negative. It does not depend on what
// the kernel takes: it is for cold caches and for changes between threads.
message_work with_more_work(message_work w, double ns, double ns_per_byte);

// The computing of a worker in a step beside an exchange, in ns.
struct loss_sample {
  double alone = 0, lost = 0; // simulated: if it loses nothing, and what it loses if computing_loss is 1
  double measured = 0;
};
// [any] Returns the computing_loss with the smallest sum of squares of errors, and the median of the relative errors of
// the computing. std::nullopt: `lost` is less than 1 % of the computing of each sample.
struct loss_fit {
  double loss = 0, residual = 0;
};
std::optional<loss_fit> fit_loss(const std::vector<loss_sample>& samples);

// [any] Returns the changes of parameters that make the sum of squares of `errors` smallest, if these are linear with
// these derivatives, plus `damping` times the squares of the changes (Levenberg 1944); each at most `most`, up or down.
// `derivatives` has, for each parameter, one of each error. Requires damping above 0.
std::vector<double> least_squares_step(const std::vector<double>& errors,
                                       const std::vector<std::vector<double>>& derivatives, double damping,
                                       double most);

// [any] Returns the 21 quantiles of positive numbers at probabilities 0, 0.05, ... 1, relative to their mean. Requires
// a number.
std::vector<double> relative_quantiles(const std::vector<double>& numbers);

// [any] Throws failure (run) with the figure if steps vary by more than 40 % (standard deviation over mean).
void require_steady_steps(double variation);

// The residual above which a fit is bad.
constexpr double worst_residual = 0.2;
// [any] Throws failure (run) with the figure if the residual of a fit is above worst_residual.
void require_good_fit(const std::string& what, double residual);

} // namespace regatta
