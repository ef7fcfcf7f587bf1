// SPDX-License-Identifier: Apache-2.0
#include "simulate/campaign.hpp"

#include "base/failure.hpp"
#include "campaign/prepare.hpp"
#include "launch/memory.hpp"
#include "results/case_entry.hpp"
#include "simulate/side_by_side.hpp"
#include "simulate/weights.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

using nlohmann::json;

// Ends of the names of a repeat's runs, as real runs have them.
constexpr std::array suffixes{"", "-baseline", "-baseline-again", "-contention"};
constexpr std::uint64_t steps_of_seconds = 30; // with measure.seconds: as many steps, and whole periods

// A case, and the runs that it is compared with.
struct planned_case {
  std::size_t index = 0;
  case_config control, baseline;
  prepared_run run, beside, alone;
  case_facts facts;
  const described_weights* weights = nullptr;
  bool over = false; // it has failed: its other runs do not count
};

// A simulation: its input, and once it has ended its result, until the last run that has it is recorded.
struct simulation_job {
  run_to_simulate input;
  std::size_t users = 0; // runs that have this result
  std::optional<child_result> result;
};

// A run of a case, in the order of the records; or the failure of a case that was found before.
struct planned_run {
  planned_case* of = nullptr;
  std::uint64_t repeat = 0;
  const char* role = "case";
  std::size_t job = 0;
  std::optional<failure> failed;
};

// Returns the bytes of memory that a process has now; 0: it has ended.
std::uint64_t memory_of(int process) {
  std::ifstream in(fmt::format("/proc/{}/statm", process));
  std::uint64_t all = 0, resident = 0;
  in >> all >> resident;
  return in ? resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

class simulated_campaign {
public:
  simulated_campaign(plugin_facts_cache& answers, const experiment& e, const machine_file& m, campaign_log& records,
                     const simulation_hooks& hooks)
      : answers_(answers), experiment_(e), machine_(m), records_(records), hooks_(hooks) {}

  int run(std::size_t jobs) {
    answers_.interrupted = [this] { return interruption_.requested(); };
    plan();
    record_ended(); // failures come first if the first cases have them
    side_by_side how;
    how.jobs = jobs;
    how.may_begin = [&](std::size_t job, const std::vector<int>& running) {
      // Results wait for those before them, so that no more than a few are kept.
      return job < first_job_ + 4 * jobs && fits(running);
    };
    how.begun = [this](std::size_t) {
      ++running_;
      show();
    };
    how.take = [this](std::size_t job, child_result&& result) { take(job, std::move(result)); };
    child_options options;
    options.limit = std::chrono::hours(24);
    options.interrupted = answers_.interrupted;
    run_side_by_side(
        jobs_.size(), [this](std::size_t job, const stage_function& stage) { return simulated(job, stage); }, how,
        options);
    return interrupted_ || interruption_.requested() ? static_cast<int>(exit_code::interrupted) : worst_;
  }

private:
  // Fills the lists of runs, of cases and of simulations.
  void plan() {
    std::vector<case_config> asked;
    for (const case_config& c : experiment_.cases)
      for (case_config& run : runs_of(c)) asked.push_back(std::move(run));
    answers_.collect(asked);
    for (std::size_t i = 0; i < experiment_.cases.size(); ++i) {
      if (records_.complete(i)) continue;
      planned_case& c = cases_.emplace_back();
      c.index = i;
      const std::size_t runs = runs_.size(), jobs = jobs_.size();
      const auto give_up = [&](const failure& f) {
        runs_.resize(runs);
        jobs_.resize(jobs);
        planned_run& failed = runs_.emplace_back();
        failed.of = &c;
        failed.failed = f;
      };
      try {
        plan_case(c);
      } catch (const failure& f) {
        if ((interrupted_ = f.code() == exit_code::interrupted)) return;
        give_up(f);
      } catch (const std::exception& error) {
        give_up(failure(exit_code::run, error.what()));
      }
    }
  }

  void plan_case(planned_case& x) {
    const case_config& c = experiment_.cases[x.index];
    const model_facts& model = answers_.of(c).model;
    x.run = prepared(c);
    x.facts = {model, x.run.job.layout.servers, x.run.synchronous, x.run.job.global_batch(), "", {}, false, ""};
    x.facts.lossy = (answers_.of(c).plan.flags & RG_PLAN_LOSSY) != 0;
    x.facts.simulated = machine_.text_hash;
    check_tables(c, model, x.run.exchanges_rows);
    x.weights = &models_.of(c);
    for (const std::string& w : x.run.warnings)
      if (!w.starts_with("oversubscribed") && !w.starts_with("cluster.spin")) x.facts.warnings.push_back(w);
    for (std::string& w : not_modelled(input_of(x, c, x.run, 0))) x.facts.warnings.push_back(std::move(w));
    if (has_baseline(c)) {
      x.baseline = baseline_of(c);
      x.alone = prepared(x.baseline);
      if (has_control(c)) plan_control(x, c);
    }
    std::map<std::string, std::size_t> unvaried; // by role: if nothing is drawn, every repeat is the same
    for (std::uint64_t repeat = 0; repeat < static_cast<std::uint64_t>(c.measure.repeats); ++repeat) {
      if (records_.has(x.index, repeat)) continue;
      // `number` is that of the run within the repeat.
      const auto add = [&](const char* role, const case_config& config, const prepared_run& run, std::uint64_t number) {
        auto known = unvaried.find(role);
        if (known == unvaried.end() || varies(machine_, config)) {
          known = unvaried.insert_or_assign(role, jobs_.size()).first;
          jobs_.push_back({input_of(x, config, run, (c.seed * 1'000'003 + repeat) * 4 + number), 0, {}});
          run_to_simulate& input = jobs_.back().input;
          if (number == 0 && repeat == 0 && hooks_.goal) input.goal = hooks_.goal(x.index);
          if (c.measure.trace > 0 && hooks_.trace)
            input.trace =
                hooks_.trace(fmt::format("case-{}-repeat-{}{}", x.index + 1, repeat + 1, suffixes.at(number)));
        }
        ++jobs_[known->second].users;
        runs_.push_back({&x, repeat, role, known->second, {}});
      };
      add("case", c, x.run, 0);
      if (!has_baseline(c)) continue;
      add("baseline", x.baseline, x.alone, 1);
      add("baseline", x.baseline, x.alone, 2);
      if (has_control(c)) add("contention", x.control, x.beside, 3);
    }
  }

  // The control shares the hosts as the case does, or it would say that one host is too small for all workers.
  void plan_control(planned_case& x, const case_config& c) {
    x.control = contention_of(c);
    x.beside = prepared(x.control);
    x.control.cluster.hosts = c.cluster.hosts;
    x.beside.job.layout =
        cluster_layout::make(x.beside.job.layout.workers, 0, false, static_cast<std::uint32_t>(c.cluster.hosts));
  }

  static bool has_baseline(const case_config& c) { return c.measure.baseline && !is_baseline(c); }

  run_to_simulate input_of(const planned_case& x, const case_config& config, const prepared_run& run,
                           std::uint64_t seed) {
    // The control has other hosts than the case of which facts were asked.
    const plugin_facts& facts = answers_.of(&config == &x.control ? contention_of(experiment_.cases[x.index]) : config);
    return {&config, &run, &facts, &machine_, &x.weights->dense, seed, &x.weights->tables, "", ""};
  }

  prepared_run prepared(const case_config& c) {
    prepared_run run = prepare(answers_, c, "");
    if (!run.job.steps) run.job.steps = (steps_of_seconds + run.job.period - 1) / run.job.period * run.job.period;
    return run;
  }

  // In a child.
  json simulated(std::size_t job, const stage_function& stage) {
    const run_to_simulate& input = jobs_[job].input;
    const registry loading = answers_.plugins().loading();
    stage("strategy " + input.config->strategy.id, "was simulated");
    json ranks = simulate_run(loading, input);
    return {{"ranks", std::move(ranks)}, {"memory", memory_peak_bytes()}};
  }

  // Whether one more simulation fits into the memory if it needs as much as the largest so far, and each that runs
  // grows to that size.
  bool fits(const std::vector<int>& running) {
    std::vector<std::uint64_t> has;
    for (const int process : running) has.push_back(memory_of(process));
    for (const std::uint64_t bytes : has) largest_ = std::max(largest_, bytes);
    std::uint64_t needed = largest_;
    for (const std::uint64_t bytes : has) needed += largest_ - bytes;
    const std::uint64_t free = available_bytes();
    return free == 0 || needed < free;
  }

  void take(std::size_t job, child_result&& result) {
    --running_;
    ++ended_;
    if (result.failed && result.failed->code() == exit_code::interrupted) interrupted_ = true;
    if (interrupted_) return;
    if (!result.failed) {
      largest_ = std::max(largest_, result.value.at("memory").get<std::uint64_t>());
      result.value = json(std::move(result.value.at("ranks")));
    }
    jobs_[job].result = std::move(result);
    record_ended();
    show();
  }

  // Records the runs that have ended, in order, up to the first that has not.
  void record_ended() {
    for (; next_ < runs_.size(); ++next_) {
      const planned_run& run = runs_[next_];
      if (run.failed) {
        fail(*run.of, *run.failed);
        continue;
      }
      simulation_job& job = jobs_[run.job];
      if (!job.result) break;
      --job.users;
      if (!run.of->over) record(run, *job.result, job.users == 0);
      if (job.users == 0) job.result->value = nullptr;
    }
    first_job_ = next_ < runs_.size() ? runs_[next_].job : jobs_.size();
  }

  // `last`: no other run has this result.
  void record(const planned_run& run, child_result& result, bool last) {
    planned_case& x = *run.of;
    if (result.failed) return fail(x, *result.failed);
    const case_config& c = experiment_.cases[x.index];
    const bool is_case = run.role == std::string("case");
    if (is_case) round_ = records_.last_run() + 1; // a repeat of one case: simulations share no machine
    finished_run done{run.role, x.index, run.repeat, round_};
    done.asynchronous = is_case && !x.run.synchronous && x.run.communicates;
    done.plugins = json::object();
    done.facts = x.facts;
    done.needs_baseline = is_case && has_baseline(c);
    done.needs_contention = done.needs_baseline && has_control(c);
    done.ranks = last ? std::move(result.value) : result.value;
    keep(run_record(experiment_, records_.last_run() + 1, std::move(done)));
  }

  void fail(planned_case& x, const failure& f) {
    x.over = true;
    const bool skip = f.code() == exit_code::skipped || (experiment_.cases.size() > 1 && f.code() == exit_code::usage);
    keep(failure_record(experiment_, x.index, skip ? "skipped" : "failed",
                        experiment_.cases[x.index].written.reason_of(f), x.facts));
    if (f.code() != exit_code::skipped && skip) return;
    const int code = static_cast<int>(f.code());
    worst_ = worst_ ? worse_exit_code(worst_, code) : code;
  }
  void keep(const json& record) {
    records_.add(record);
    if (hooks_.record) hooks_.record(record);
  }

  void show() {
    if (!hooks_.progress || next_ >= runs_.size()) return;
    const planned_run& run = runs_[next_];
    const case_config& c = experiment_.cases[run.of->index];
    progress p;
    p.case_number = run.of->index + 1;
    p.cases = experiment_.cases.size();
    p.repeat = run.repeat + 1;
    p.repeats = static_cast<std::uint64_t>(c.measure.repeats);
    p.label = fmt::format("{}, {} workers", c.strategy.id, c.cluster.workers);
    p.phase = fmt::format("{} of {} runs simulated, {} at once", ended_, jobs_.size(), running_);
    hooks_.progress(p);
  }

  plugin_facts_cache& answers_;
  const experiment& experiment_;
  const machine_file& machine_;
  campaign_log& records_;
  const simulation_hooks& hooks_;
  described_models models_{answers_};
  std::deque<planned_case> cases_;
  std::vector<planned_run> runs_;
  std::vector<simulation_job> jobs_;
  std::size_t next_ = 0, first_job_ = 0; // the next run to record, and its simulation
  std::size_t running_ = 0, ended_ = 0;  // simulations
  std::uint64_t largest_ = 0;            // memory of one, in bytes
  std::uint64_t round_ = 0;
  interruption interruption_;
  bool interrupted_ = false;
  int worst_ = 0;
};

} // namespace

int simulate_cases(plugin_facts_cache& answers, const experiment& e, const machine_file& m, std::size_t jobs,
                   campaign_log& records, const simulation_hooks& hooks) {
  return simulated_campaign(answers, e, m, records, hooks).run(std::max<std::size_t>(jobs, 1));
}

} // namespace regatta
