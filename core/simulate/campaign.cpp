// SPDX-License-Identifier: Apache-2.0
#include "simulate/campaign.hpp"

#include "base/failure.hpp"
#include "campaign/prepare.hpp"
#include "registry/run_in_child.hpp"
#include "results/case_entry.hpp"
#include "simulate/simulated_run.hpp"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::uint64_t steps_of_seconds = 30; // with measure.seconds: as many steps, and whole periods

class simulated_campaign {
public:
  simulated_campaign(plugin_facts_cache& answers, const experiment& e, const machine_file& m, campaign_log& records,
                     const simulation_hooks& hooks)
      : answers_(answers), experiment_(e), machine_(m), records_(records), hooks_(hooks) {}

  int run() {
    std::vector<case_config> asked;
    for (const case_config& c : experiment_.cases)
      for (case_config& run : runs_of(c)) asked.push_back(std::move(run));
    answers_.interrupted = [this] { return interruption_.requested(); };
    answers_.collect(asked);
    for (std::size_t i = 0; i < experiment_.cases.size(); ++i) {
      if (records_.complete(i)) continue;
      case_facts facts;
      try {
        run_case(i, facts);
      } catch (const failure& f) {
        if (f.code() == exit_code::interrupted) return static_cast<int>(exit_code::interrupted);
        const bool skip =
            f.code() == exit_code::skipped || (experiment_.cases.size() > 1 && f.code() == exit_code::usage);
        fail(i, skip ? "skipped" : "failed", experiment_.cases[i].written.reason_of(f), facts);
        if (f.code() == exit_code::skipped || !skip) note(static_cast<int>(f.code()));
      } catch (const std::exception& error) {
        fail(i, "failed", error.what(), facts);
        note(static_cast<int>(exit_code::run));
      }
    }
    return worst_;
  }

private:
  void note(int code) { worst_ = worst_ ? worse_exit_code(worst_, code) : code; }
  void keep(const json& record) {
    records_.add(record);
    if (hooks_.record) hooks_.record(record);
  }
  void fail(std::size_t index, const std::string& status, const std::string& error, const case_facts& facts) {
    keep(failure_record(experiment_, index, status, error, facts));
  }

  void run_case(std::size_t index, case_facts& facts) {
    const case_config& c = experiment_.cases[index];
    const model_facts& model = answers_.of(c).model;
    prepared_run run = prepared(c);
    facts = {model, run.job.layout.servers, run.synchronous, run.job.global_batch(), "", {}, false, ""};
    facts.lossy = (answers_.of(c).plan.flags & RG_PLAN_LOSSY) != 0;
    facts.simulated = machine_.text_hash;
    if (!model.table.empty())
      throw failure(exit_code::usage, fmt::format("model.plugin: expected a model without sparse tables, which are not "
                                                  "simulated, got {}, which has {}",
                                                  c.model.id, model.table));
    const std::vector<simulated_tensor>& tensors = tensors_for(c);
    for (const std::string& w : run.warnings)
      if (!w.starts_with("oversubscribed") && !w.starts_with("cluster.spin")) facts.warnings.push_back(w);
    for (std::string& w : not_modelled({&c, &run, &answers_.of(c), &machine_, &tensors}))
      facts.warnings.push_back(std::move(w));
    std::map<std::string, json> unvaried; // by role: with equal computing times every repeat is the same
    for (std::uint64_t repeat = 0; repeat < static_cast<std::uint64_t>(c.measure.repeats); ++repeat) {
      if (records_.has(index, repeat)) continue;
      if (hooks_.begin) hooks_.begin(index, repeat);
      run_repeat(index, repeat, facts, run, tensors, unvaried);
    }
  }

  // A round is one repeat of one case: simulations share no machine.
  void run_repeat(std::size_t index, std::uint64_t repeat, const case_facts& facts, const prepared_run& run,
                  const std::vector<simulated_tensor>& tensors, std::map<std::string, json>& unvaried) {
    const case_config& c = experiment_.cases[index];
    const std::uint64_t round = records_.last_run() + 1;
    const auto add = [&](const case_config& config, const prepared_run& prepared, const std::string& role,
                         std::uint64_t number) {
      finished_run done{role, index, repeat, round};
      done.asynchronous = !prepared.synchronous && prepared.communicates;
      done.plugins = json::object();
      done.facts = facts;
      done.needs_baseline = role == "case" && c.measure.baseline && !is_baseline(c);
      done.needs_contention = done.needs_baseline && has_control(c);
      json& kept = unvaried[role];
      if (kept.is_null() || machine_.variation > 0)
        kept = in_child({&config, &prepared, &answers_.of(config), &machine_, &tensors,
                         (config.seed * 1'000'003 + repeat) * 4 + number,
                         role == "case" && repeat == 0 && hooks_.goal ? hooks_.goal(index) : ""});
      done.ranks = kept;
      keep(run_record(experiment_, records_.last_run() + 1, done));
    };
    add(c, run, "case", 0);
    if (!c.measure.baseline || is_baseline(c)) return;
    const case_config baseline = baseline_of(c);
    const prepared_run alone = prepared(baseline);
    add(baseline, alone, "baseline", 1);
    add(baseline, alone, "baseline", 2);
    if (!has_control(c)) return;
    // The control shares the hosts as the case does, or it would say that one host is too small for all workers.
    case_config control = contention_of(c);
    control.cluster.hosts = c.cluster.hosts;
    prepared_run beside = prepared(contention_of(c));
    beside.job.layout =
        cluster_layout::make(beside.job.layout.workers, 0, false, static_cast<std::uint32_t>(c.cluster.hosts));
    add(control, beside, "contention", 3);
  }

  prepared_run prepared(const case_config& c) {
    prepared_run run = prepare(answers_, c, "");
    if (!run.job.steps) run.job.steps = (steps_of_seconds + run.job.period - 1) / run.job.period * run.job.period;
    return run;
  }

  json in_child(const run_to_simulate& r) {
    child_options options;
    options.limit = std::chrono::hours(24);
    options.interrupted = [this] { return interruption_.requested(); };
    return run_in_child(
        [&](const stage_function& stage) {
          const registry loading = answers_.plugins().loading();
          stage("strategy " + r.config->strategy.id, "was simulated");
          return simulate_run(loading, r);
        },
        options);
  }

  const std::vector<simulated_tensor>& tensors_for(const case_config& c) {
    const std::string key = json{c.model.id, c.model.parameters, c.train.precision, c.train.device}.dump();
    const auto known = tensors_.find(key);
    return known != tensors_.end() ? known->second
                                   : tensors_.emplace(key, tensors_of(answers_.plugins(), c)).first->second;
  }

  plugin_facts_cache& answers_;
  const experiment& experiment_;
  const machine_file& machine_;
  campaign_log& records_;
  const simulation_hooks& hooks_;
  std::map<std::string, std::vector<simulated_tensor>> tensors_;
  interruption interruption_;
  int worst_ = 0;
};

} // namespace

int simulate_cases(plugin_facts_cache& answers, const experiment& e, const machine_file& m, campaign_log& records,
                   const simulation_hooks& hooks) {
  return simulated_campaign(answers, e, m, records, hooks).run();
}

} // namespace regatta
