// SPDX-License-Identifier: Apache-2.0
#include "machine/core_independence.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/cpu_mask.hpp"
#include "machine/rates_together.hpp"
#include "machine/speed.hpp"

namespace regatta {
namespace of_cores { // a unity build compiles the short names below together with those of other files
namespace {

using steady = std::chrono::steady_clock;
using seconds = std::chrono::duration<double>;

constexpr int rounds = 4;                         // disturbances only slow down, so the best round counts
constexpr seconds longest{0.1};                   // limit for all rounds under lasting disturbance
constexpr double undisturbed_share = 0.97;        // a thread had its CPU for at least this share of a window
constexpr seconds window{0.003};                  // length of one measurement
constexpr seconds single_window{0.01};            // length of one measurement that is not repeated
constexpr std::size_t copied = 16 << 20;          // bytes of a buffer
constexpr std::size_t copied_at_once = 256 << 10; // bytes between two reads of the clock
constexpr std::size_t multiply_adds = 1000;       // rounds between two reads of the clock: some 10 us
constexpr seconds longest_for_a_line{0.1}; // two CPUs that share one core by turns need milliseconds per round trip
constexpr int trips = 50;                  // per measurement
constexpr std::uint32_t no_more_trips = UINT32_MAX; // ends the other thread

bool pin_this_thread(int cpu) {
  const cpu_mask mask({cpu});
  return mask.set() && pthread_setaffinity_np(pthread_self(), mask.bytes(), mask.set()) == 0;
}

bool can_pin(const std::vector<int>& cpus) {
  std::atomic<bool> all = true;
  for (const int cpu : cpus) std::thread([&] { all = all && pin_this_thread(cpu); }).join();
  return all;
}

// Does one unit of work of the given thread.
using work = std::function<void(std::size_t thread)>;

struct sample {
  std::vector<double> rates; // units per second of each CPU
  bool disturbed = false;    // another process had one of the CPUs for a part of the time
};

// Measures all CPUs working at the same time.
sample measure(const std::vector<int>& cpus, std::size_t first_thread, const work& unit, seconds length = window) {
  const auto all = rates_together(cpus.size(), length, [&](std::size_t i) {
    pin_this_thread(cpus[i]);
    return [&unit, thread = first_thread + i] { unit(thread); };
  });
  sample s;
  for (const thread_rate& t : all) {
    s.rates.push_back(t.units_per_second);
    s.disturbed = s.disturbed || t.cpu_share < undisturbed_share;
  }
  return s;
}

struct ratio {
  double at_once = 0; // throughput at once, relative to the sum of each alone
  bool disturbed = false;
};

// A CPU can reach alone the rate that it reached beside the other one, so that rate counts as "alone" too, and
// disturbances cannot raise the ratio above 1. They can lower it, so disturbed measurements of both CPUs count only if
// there are no others.
ratio ratio_at_once(int first, int second, const work& unit) {
  const auto begin = steady::now();
  double best_first = 0, best_second = 0, best_both = 0, best_disturbed = 0;
  for (int good = 0; good < rounds && steady::now() - begin < longest;) {
    const double alone_first = measure({first}, 0, unit).rates[0], alone_second = measure({second}, 1, unit).rates[0];
    const sample both = measure({first, second}, 0, unit);
    best_first = std::max({best_first, alone_first, both.rates[0]});
    best_second = std::max({best_second, alone_second, both.rates[1]});
    double& best = both.disturbed ? best_disturbed : best_both;
    best = std::max(best, both.rates[0] + both.rates[1]);
    if (!both.disturbed) ++good;
  }
  const bool disturbed = best_both == 0;
  return {(disturbed ? best_disturbed : best_both) / (best_first + best_second), disturbed};
}

// Units of work of two threads.
class fma_work {
public:
  void operator()(std::size_t thread) { keep_[thread].value = multiply_add(multiply_adds, 0.999f, 0.001f); }

private:
  struct alignas(64) result {
    volatile float value = 0;
  };
  std::vector<result> keep_ = std::vector<result>(2); // kept, so that the compiler does not remove the loop
};

class copy_work {
public:
  void operator()(std::size_t thread) {
    buffers& b = of_threads_[thread];
    std::memcpy(b.to.data() + b.at, b.from.data() + b.at, copied_at_once);
    b.at = (b.at + copied_at_once) % copied;
  }

private:
  struct buffers {
    std::vector<char> from = std::vector<char>(copied, 1), to = std::vector<char>(copied);
    std::size_t at = 0;
  };
  std::vector<buffers> of_threads_ = std::vector<buffers>(2);
};

double both(const sample& s) {
  return s.rates[0] + s.rates[1];
}

std::optional<double> clock_of(int cpu) {
  std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu));
  double khz = 0;
  return file >> khz ? std::optional(1e3 * khz) : std::nullopt;
}

// The first thread sets odd numbers, the second answers with the even number that follows.
std::optional<double> line_round_trip(int first, int second) {
  struct alignas(64) line {
    std::atomic<std::uint32_t> number = 0;
  } shared;
  std::optional<double> best;
  std::jthread answering([&] {
    pin_this_thread(second);
    for (std::uint32_t next = 1;; next += 2) {
      std::uint32_t seen = 0;
      while ((seen = shared.number.load(std::memory_order_acquire)) != next)
        if (seen == no_more_trips) return;
      // The other thread may have given up in between; its final value must remain.
      if (!shared.number.compare_exchange_strong(seen, next + 1, std::memory_order_acq_rel)) return;
    }
  });
  const auto ask = [&] {
    pin_this_thread(first);
    const auto begin = steady::now();
    const auto too_late = [&] { return steady::now() - begin > longest_for_a_line; };
    std::uint32_t next = 1;
    for (int r = 0; r < 40 && !too_late(); ++r) {
      const auto since = steady::now();
      for (int t = 0; t < trips; ++t, next += 2) {
        shared.number.store(next, std::memory_order_release);
        for (int spins = 1; shared.number.load(std::memory_order_acquire) != next + 1; ++spins)
          if (spins % 4096 == 0 && too_late()) {
            shared.number.store(no_more_trips, std::memory_order_release);
            return;
          }
      }
      const double trip = seconds(steady::now() - since).count() / trips;
      best = std::min(best.value_or(trip), trip);
    }
    shared.number.store(no_more_trips, std::memory_order_release);
  };
  try {
    std::jthread(ask).join();
  } catch (const std::system_error&) { // it could not be started: the other one would wait for ever
    shared.number.store(no_more_trips, std::memory_order_release);
    throw;
  }
  answering.join();
  return best;
}

} // namespace
} // namespace of_cores

using nlohmann::json;

std::optional<core_independence> measure_core_independence(int first, int second) {
  if (first == second) return std::nullopt;
  try {
    if (!of_cores::can_pin({first, second})) return std::nullopt;
    core_independence c;
    c.first = first;
    c.second = second;
    of_cores::fma_work multiplying;
    of_cores::copy_work copying;
    const of_cores::ratio fma = of_cores::ratio_at_once(first, second, std::ref(multiplying)),
                          copy = of_cores::ratio_at_once(first, second, std::ref(copying));
    c.fma = fma.at_once;
    c.copy = copy.at_once;
    c.disturbed = fma.disturbed || copy.disturbed;
    c.line_round_trip_seconds = of_cores::line_round_trip(first, second);
    return c;
  } catch (const std::exception&) { // no memory or no thread for it: unknown, and no reason to end a campaign
    return std::nullopt;
  }
}

std::optional<rates_at_once> measure_rates_at_once(int first, int second) {
  if (first == second) return std::nullopt;
  try {
    if (!of_cores::can_pin({first, second})) return std::nullopt;
    of_cores::fma_work multiplying;
    of_cores::copy_work copying;
    const std::vector<int> cpus{first, second};
    rates_at_once r;
    r.fma = of_cores::both(of_cores::measure(cpus, 0, std::ref(multiplying), of_cores::single_window)) *
            of_cores::multiply_adds * multiply_add_flops;
    r.clock_hz = of_cores::clock_of(first);
    r.copy = of_cores::both(of_cores::measure(cpus, 0, std::ref(copying), of_cores::single_window)) *
             of_cores::copied_at_once;
    r.line_round_trip_seconds = of_cores::line_round_trip(first, second);
    return r;
  } catch (const std::exception&) { // as above
    return std::nullopt;
  }
}

json to_json(const std::optional<rates_at_once>& r) {
  if (!r) return nullptr;
  const auto or_null = [](const std::optional<double>& value) { return value ? json(*value) : json(nullptr); };
  return {{"fma", r->fma},
          {"copy", r->copy},
          {"line_round_trip_seconds", or_null(r->line_round_trip_seconds)},
          {"clock_hz", or_null(r->clock_hz)}};
}

json to_json(const std::optional<core_independence>& c) {
  if (!c) return nullptr;
  return {{"cpus", {c->first, c->second}},
          {"fma", c->fma},
          {"copy", c->copy},
          {"disturbed", c->disturbed},
          {"line_round_trip_seconds", c->line_round_trip_seconds ? json(*c->line_round_trip_seconds) : json(nullptr)}};
}

std::string independence_text(const json& c) {
  if (!c.is_object() || !c.value("fma", json()).is_number() || !c.value("copy", json()).is_number()) return "";
  // Measured: two hyperthreads reach 0.5 to 0.6 of the multiply-adds of two cores; two cores that lower their clock
  // together reach 0.85.
  const double fma = c["fma"];
  const char* const verdict = c.value("disturbed", false) ? "disturbed by other load"
                              : fma < 0.65                ? "hyperthreads of one core"
                              : fma < 0.85                ? "cores that share"
                                                          : "independent cores";
  return fmt::format("FMA {:.2f}, copies {:.2f} of two ({})", fma, c["copy"].get<double>(), verdict);
}

} // namespace regatta
