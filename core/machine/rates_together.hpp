// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

namespace regatta {

// The rate of a thread that works at the same time as others.
struct thread_rate {
  double units_per_second = 0; // calls of its function
  double cpu_share = 0;        // CPU time over time: below 1 if something else ran on its CPU
};

// Starts `threads` threads. Each calls prepare(its index); once all have done so, each calls the function that it got
// again and again for `window`. Returns their rates, by index. Throws std::system_error if a thread cannot be started,
// and what prepare() or one of these functions throws, after all threads have ended.
std::vector<thread_rate> rates_together(std::size_t threads, std::chrono::duration<double> window,
                                        const std::function<std::function<void()>(std::size_t)>& prepare);

} // namespace regatta
