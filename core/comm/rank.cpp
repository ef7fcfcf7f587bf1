// SPDX-License-Identifier: Apache-2.0
#include "comm/rank.hpp"

#include "base/failure.hpp"
#include "comm/connection.hpp"
#include "comm/pairs.hpp"
#include "comm/patterns.hpp"
#include "comm/plan.hpp"
#include "measure/rank_record.hpp"
#include "rank/rank.hpp"
#include "rank/state_report.hpp"
#include "runtime/strategy_host.hpp"
#include "text/values.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <regatta/clock.hpp>
#include <regatta/ext/collectives.h>
#include <regatta/plugin.hpp>

namespace regatta::comm {
namespace {

constexpr std::uint64_t least_iterations = 5, most_iterations = 5000;

// Returns for example "allreduce (ring)".
std::string in_words(const operation& o) {
  return o.algorithm.empty() ? o.op : fmt::format("{} ({})", o.op, o.algorithm);
}

// Measures one operation for all sizes.
class measuring {
public:
  measuring(control_client& control, const plan& p, const operation& o, connection& c)
      : control_(control), report_(c.report()), plan_(p), what_(o), values_(o, p.counts),
        strategy_(c.setup(values_.values, *std::max_element(p.counts.begin(), p.counts.end()))) {
    strategy_.start();
    report_.watch(strategy_);
  }
  ~measuring() { report_.end_watch(); }
  measuring(const measuring&) = delete;
  measuring& operator=(const measuring&) = delete;

  measurement run(std::size_t size) {
    size_ = size;
    measurement m;
    m.what = what_;
    m.bytes = plan_.counts[size] * sizeof(float);
    const std::string name = fmt::format("measuring {} of {}", in_words(what_), exact_bytes(m.bytes));
    control_.operation(name.c_str(), pace::rare); // sizes grow, so the time of one does not predict the next
    m.wrong = checked();
    zero(); // repeated sums of other values would overflow
    const std::uint64_t iterations = warm_up();
    m.ns.reserve(iterations);
    control_.barrier("measure");
    const double cpu = process_cpu_seconds();
    std::int64_t begin = rg::steady_ns();
    for (std::uint64_t i = 0; i < iterations; ++i) {
      once();
      const std::int64_t end = rg::steady_ns();
      m.ns.push_back(end - begin);
      begin = end;
    }
    m.cpu_seconds = process_cpu_seconds() - cpu;
    control_.barrier("measured");
    m.wrong += checked();
    // An iteration of `send` is two messages, there and back; report the time of one.
    if (what_.op == "send")
      for (std::int64_t& ns : m.ns) ns /= 2;
    if (!takes_part(what_.op, control_.rank(), plan_.ranks)) m.ns.clear();
    return m;
  }

private:
  std::span<float> part(std::span<float> all) const { return all.first(plan_.counts[size_]); }

  void once() {
    strategy_.begin(strategy_host::end_step, step_of(size_, ++iteration_));
    const waiting_scope waits(control_.status(), waiting::peers);
    while (!strategy_.done(strategy_host::end_step)) report_.poll(strategy_, plan_.spin_ns);
  }

  std::uint64_t checked() {
    fill(control_.rank(), part(strategy_.weights()), part(strategy_.gradients()));
    control_.barrier("check"); // no peer may still read this rank's memory while it fills
    once();
    const std::uint64_t wrong =
        count_wrong(what_.op, control_.rank(), plan_.ranks, part(strategy_.weights()), part(strategy_.gradients()));
    control_.barrier("checked");
    return wrong;
  }

  void zero() {
    for (const auto all : {strategy_.weights(), strategy_.gradients()}) std::ranges::fill(part(all), 0.0F);
  }

  // Warms up for about a tenth of plan::seconds. Returns the number of iterations that take about plan::seconds, from 5
  // to 5000, the same on every rank.
  std::uint64_t warm_up() {
    for (std::uint64_t rounds = 2;; rounds *= 4) {
      const std::int64_t begin = rg::steady_ns();
      for (std::uint64_t i = 0; i < rounds; ++i) once();
      const double seconds = 1e-9 * static_cast<double>(rg::steady_ns() - begin);
      const double mean = control_.sum("warm-up", {seconds}).at(0) / (plan_.ranks * static_cast<double>(rounds));
      if (mean * static_cast<double>(rounds) < 0.1 * plan_.seconds && rounds < most_iterations) continue;
      return static_cast<std::uint64_t>(std::clamp(plan_.seconds / mean, static_cast<double>(least_iterations),
                                                   static_cast<double>(most_iterations)));
    }
  }

  control_client& control_;
  state_report& report_;
  const plan& plan_;
  operation what_;
  pattern_values values_;
  strategy_host strategy_;
  std::size_t size_ = 0;
  std::uint64_t iteration_ = 0;
};

std::vector<measurement> measure(control_client& control, const plan& p, std::optional<connection>& open) {
  control.operation("connecting to its peers", pace::rare);
  connection& c = open.emplace(control, p);
  c.connect(p);
  std::vector<measurement> all;
  for (const operation& o : p.operations) {
    if (!c.can(o)) continue;
    control.operation(("setting up " + in_words(o)).c_str(), pace::rare);
    measuring m(control, p, o, c);
    control.barrier("ready");
    for (std::size_t size = 0; size < p.counts.size(); ++size) all.push_back(m.run(size));
    control.barrier("operation done"); // a rank must not free memory that peers still read
  }
  control.operation("closing the transport", pace::rare);
  c.close();
  open.reset();
  return all;
}

} // namespace

bool is_job(const control_client& control) {
  return control.job().contains("comm");
}

int run_rank(control_client& control) {
  std::optional<connection> open; // outlives the report: destroying a transport may end the process
  return report_to_coordinator(control, [&]() -> nlohmann::json {
    const plan p = control.job().at("comm").get<plan>();
    if (p.pairs.repeats) return measure_pairs(control, p, open);
    return measure(control, p, open);
  });
}

} // namespace regatta::comm
