// SPDX-License-Identifier: Apache-2.0
#include "machine/rates_together.hpp"

#include <atomic>
#include <exception>
#include <thread>

#include <regatta/clock.hpp>

namespace regatta {

std::vector<thread_rate> rates_together(std::size_t threads, std::chrono::duration<double> window,
                                        const std::function<std::function<void()>(std::size_t)>& prepare) {
  using steady = std::chrono::steady_clock;
  std::vector<thread_rate> rates(threads);
  std::vector<std::exception_ptr> errors(threads + 1);
  std::atomic<std::size_t> ready = 0;
  std::atomic<bool> given_up = false; // otherwise threads that have started would wait for the others for ever
  const auto run = [&](std::size_t t) {
    const auto unit = prepare(t);
    for (++ready; ready < threads && !given_up;) std::this_thread::yield();
    if (given_up) return;
    const auto begin = steady::now();
    const std::int64_t cpu_begin = rg::thread_cpu_ns();
    std::chrono::duration<double> passed{0};
    double units = 0;
    do {
      unit();
      ++units;
      passed = steady::now() - begin;
    } while (passed < window);
    rates[t] = {units / passed.count(), 1e-9 * static_cast<double>(rg::thread_cpu_ns() - cpu_begin) / passed.count()};
  };
  {
    std::vector<std::jthread> running;
    try {
      for (std::size_t t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
          try {
            run(t);
          } catch (...) {
            errors[t] = std::current_exception();
            given_up = true;
          }
        });
    } catch (...) {
      errors[threads] = std::current_exception();
      given_up = true;
    }
  }
  for (const std::exception_ptr& e : errors)
    if (e) std::rethrow_exception(e);
  return rates;
}

} // namespace regatta
