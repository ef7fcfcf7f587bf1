// SPDX-License-Identifier: Apache-2.0
#include "campaign/campaign.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "campaign/model_facts.hpp"
#include "campaign/prepare.hpp"
#include "launch/host_link.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <regatta/clock.hpp>

namespace regatta {

struct campaign::planned {
  std::size_t index; // of the case
  const case_config* config;
  case_facts facts;
  bool over = false; // failed or skipped: its remaining repeats do not run

  bool samples() const { return config->measure.precision > 0; }
  std::uint64_t repeats() const { return static_cast<std::uint64_t>(samples() ? 0 : config->measure.repeats); }
};

// A run of a round, and the cases that need it: without it they have no complete repeat.
struct campaign::round_run {
  case_config config;
  std::string role, name; // of finished_run and for progress and files; the name of a case's own run is empty
  std::vector<planned*> needed_by;
};

struct campaign::outcome {
  std::optional<std::uint64_t> number; // number of its record; nullopt: the run failed or was interrupted
  std::string error, dump;
  int code = 0;
  bool interrupted = false;
};

namespace {

// Returns the status of a case whose run ended with exit code `code`: skipped if this machine cannot run it.
const char* status_of(int code) {
  return code == static_cast<int>(exit_code::skipped) ? "skipped" : "failed";
}

double seconds_since(std::int64_t begin) {
  return 1e-9 * static_cast<double>(rg::steady_ns() - begin);
}

std::string label_of(const case_config& c) {
  return fmt::format("{}, {}, {} worker{}", c.strategy.id, c.transport.id, c.cluster.workers,
                     c.cluster.workers == 1 ? "" : "s");
}

// Orders the runs of a round at random (Fisher and Yates), so that no run is always the first, or always follows the
// same other one: the machine may slow down within a round. The order depends on nothing but the arguments, on every
// machine: std::shuffle may differ between standard libraries.
template <class Run> void shuffle(std::vector<Run>& runs, std::uint64_t seed, std::uint64_t repeat) {
  std::seed_seq seeds{seed, seed >> 32, repeat, repeat >> 32};
  std::mt19937_64 random(seeds);
  for (std::size_t n = runs.size(); n > 1; --n) std::swap(runs[n - 1], runs[random() % n]);
}

// Returns the SHA-256 sums of the data that the case reads, from the context.
std::string data_sums(const nlohmann::json& context, const data_config& d) {
  std::vector<std::string> sums;
  for (const std::string& path : {d.path, d.evaluation_path, d.vocabulary})
    for (const nlohmann::json& set : context.value("data", nlohmann::json::array()))
      if (set.is_object() && set.value("path", nlohmann::json()) == path)
        if (const nlohmann::json sum = set.value("sha256", nlohmann::json()); sum.is_string()) sums.push_back(sum);
  return join(sums);
}

} // namespace

campaign::campaign(plugin_facts_cache& facts, const experiment& e, plugin_files& files, campaign_log& records,
                   campaign_hooks hooks)
    : facts_(facts), experiment_(e), files_(files), records_(records), hooks_(std::move(hooks)) {
  progress_.cases = e.cases.size();
  facts_.interrupted = [this] { return interruption_.requested(); };
}

bool campaign::run() {
  campaign_begin_ = rg::steady_ns();
  std::vector<std::string> keys;
  std::map<std::string, std::vector<planned>> groups;
  std::vector<case_config> asked; // cases to ask the plugins about, all in one child
  for (std::size_t i = 0; i < experiment_.cases.size(); ++i) {
    const case_config& c = experiment_.cases[i];
    if (records_.complete(i)) continue;
    // Without a baseline cases share no runs, so each case is a group.
    const std::string key = c.measure.baseline ? baseline_key(c) : fmt::format("case {}", i);
    if (!groups.count(key)) keys.push_back(key);
    const planned& p = groups[key].emplace_back(planned{i, &c, {}, false});
    for (std::uint64_t r = 0; r < p.repeats(); ++r) runs_planned_ += !records_.has(i, r);
    for (case_config& run : runs_of(c)) asked.push_back(std::move(run));
    if (c.train.kernels == "timed") asked.push_back(baseline_of(c)); // prepare_tuning() asks about it
  }
  facts_.collect(asked);
  if (interrupted_ = interruption_.requested(); interrupted_) return false;
  const double budget = 1e-9 * static_cast<double>(experiment_.cases.front().measure.budget);
  std::size_t left = keys.size(); // groups, which share what is left of the budget
  for (const std::string& key : keys)
    if (!run_group(groups[key], (budget - seconds_since(campaign_begin_)) / static_cast<double>(left--))) return false;
  return !interrupted_;
}

std::string campaign::lost_host() const {
  if (facts_.hosts && !interrupted_) // an interruption ends the agents, too
    for (const host_link* h : facts_.hosts->hosts())
      if (!h->lost.empty()) return fmt::format("host {} ({})", h->name, h->lost);
  return "";
}

bool campaign::run_group(std::vector<planned>& group, double share) {
  for (planned& p : group) {
    if (!lost_host().empty()) return false;
    prepare_case(p);
  }
  const std::int64_t begin = rg::steady_ns();
  for (group_time time{0, 0, share};;) {
    std::vector<std::size_t> indices;
    for (const planned& p : group)
      if (!p.over) indices.push_back(p.index);
    if (indices.empty()) return true;
    const next_round next = records_.next(indices, time);
    for (const nlohmann::json& record : next.records) keep(record);
    if (!next.repeat) return true;
    if (!lost_host().empty()) return false;
    progress_.half_width = next.half_width;
    if (!run_round(group, *next.repeat, next.length)) return false;
    const double now = seconds_since(begin);
    time.last_round = now - std::exchange(time.spent, now);
  }
}

void campaign::prepare_case(planned& p) {
  const case_config& c = *p.config;
  try {
    const model_facts& m = facts_.of(c).model;
    const prepared_run run = prepare(facts_, c, "");
    check_tables(c, m, run.exchanges_rows);
    p.facts = {m,
               run.job.layout.servers,
               run.synchronous,
               run.job.global_batch(),
               data_sums(records_.context(), c.data),
               run.warnings,
               (facts_.of(c).plan.flags & RG_PLAN_LOSSY) != 0,
               ""};
    const std::uint64_t needed = estimated_bytes(c, m, p.facts.servers);
    if (const std::string lack = lack_of_memory(needed, run, facts_.hosts); !lack.empty())
      throw failure(exit_code::usage, lack);
  } catch (const failure& e) {
    // A case that cannot run is an error if it is the experiment's only case; a sweep skips it. A plugin that crashes
    // is an error in both.
    const bool skip = e.code() == exit_code::skipped || (experiment_.cases.size() > 1 && e.code() == exit_code::usage);
    fail(p, skip ? "skipped" : "failed", c.written.reason_of(e),
         e.code() == exit_code::skipped || !skip ? static_cast<int>(e.code()) : 0);
  }
}

std::vector<campaign::round_run> campaign::runs_of_round(const std::vector<planned*>& cases, std::int64_t length) {
  std::vector<round_run> runs;
  std::vector<planned*> compared;
  std::map<std::int64_t, std::vector<planned*>> controlled; // by the number of workers
  for (planned* p : cases) {
    const case_config& c = *p->config;
    runs.push_back({c, "case", "", {p}});
    if (!c.measure.baseline || is_baseline(c)) continue;
    compared.push_back(p);
    if (has_control(c)) controlled[c.cluster.workers].push_back(p);
  }
  if (!compared.empty())
    for (const char* name : {"baseline", "baseline-again"})
      runs.push_back({baseline_of(*compared.front()->config), "baseline", name, compared});
  for (const auto& [workers, needing] : controlled)
    runs.push_back({contention_of(*needing.front()->config), "contention", "contention", needing});
  for (round_run& run : runs) {
    run.config.measure.steps *= length;
    run.config.measure.seconds *= static_cast<double>(length);
  }
  return runs;
}

bool campaign::run_round(std::vector<planned>& group, std::uint64_t repeat, std::int64_t length) {
  std::vector<planned*> cases;
  for (planned& p : group)
    if (!p.over && (p.samples() || repeat < p.repeats()) && !records_.has(p.index, repeat)) cases.push_back(&p);
  std::vector<round_run> runs = runs_of_round(cases, length);
  shuffle(runs, cases.front()->config->seed, repeat);
  for (round_run& run : runs) run.config.seed += run.config.measure.vary_seed ? repeat : 0;
  const std::uint64_t round = records_.last_run() + 1;
  progress_.repeat = repeat + 1;
  if (hooks_.calibrate) keep(machine_record(round, hooks_.calibrate()));
  for (round_run& run : runs) {
    // Cases that failed in this round need no further runs.
    std::erase_if(run.needed_by, [](const planned* p) { return p->over; });
    if (run.needed_by.empty()) continue;
    if (!lost_host().empty()) return false;
    const planned& first = *run.needed_by.front();
    progress_.case_number = first.index + 1;
    progress_.repeats = first.repeats();
    progress_.label = label_of(*first.config);
    finished_run done{run.role, first.index, repeat, round};
    if (run.role == "case") {
      done.facts = first.facts;
      done.needs_baseline = first.config->measure.baseline && !is_baseline(*first.config);
      done.needs_contention = done.needs_baseline && has_control(*first.config);
    }
    const outcome o = run_once(run.config, std::move(done), run.name);
    if (o.interrupted) return false;
    if (o.number && run.role == "case") ++runs_done_;
    if (o.number) continue;
    if (!lost_host().empty()) run.needed_by.resize(1);
    for (planned* p : run.needed_by)
      fail(*p, status_of(o.code), (run.role == "case" ? "" : run.role + ": ") + o.error, o.code, o.dump);
  }
  return true;
}

campaign::outcome campaign::run_once(const case_config& c, finished_run done, const std::string& name) {
  outcome o;
  try {
    const std::string kernels = kernels_for(c);
    if (interrupted_ |= interruption_.requested(); interrupted_) {
      o.interrupted = true;
      return o;
    }
    const prepared_run run = prepare(facts_, c, kernels);
    done.plugins = files_.verified(run.job.files);
    progress_.phase = name;
    progress_.step = 0;
    progress_.steps = run.job.steps ? run.job.warmup + run.job.steps : 0; // unknown with measure.seconds
    first_samples_ = 0;
    show({});
    if (hooks_.begin_run)
      hooks_.begin_run(fmt::format("case-{}-repeat-{}{}{}", progress_.case_number, progress_.repeat,
                                   progress_.phase.empty() ? "" : "-", progress_.phase));
    launch_plan plan{run.ranks, run.address};
    set_limits(plan, c);
    if (facts_.hosts) {
      plan.hosts = facts_.hosts->hosts();
      plan.lasting = run.launcher_plugin.has_value();
      if (run.launcher_plugin) facts_.hosts->join(*run.launcher_plugin, c.transport.id);
    }
    launch_result r = launch(plan, {[&](const std::vector<rank_progress>& ranks) { show(ranks); }, hooks_.log});
    if (r.interrupted) {
      interrupted_ = o.interrupted = true;
      return o;
    }
    if (r.failure) {
      o.error = r.failure->message;
      o.dump = r.failure->dump;
      if (const std::string log = hooks_.log_file ? hooks_.log_file(r.failure->rank) : ""; !log.empty())
        o.error += fmt::format("; its whole output: {}", log);
      o.code = r.failure->code;
      return o;
    }
    done.asynchronous = !run.synchronous && run.communicates;
    if (facts_.hosts) // a rank knows only its host's name for itself, which others may have, too
      for (std::size_t rank = 0; rank < r.results.size(); ++rank)
        r.results[rank]["host"] = plan.hosts.at(plan.ranks[rank].host)->name;
    if (hooks_.take_traces) hooks_.take_traces(r.results, r.hosts);
    done.ranks = std::move(r.results);
    done.hosts = r.hosts;
    for (const auto& [rank, warning] : r.warnings) done.ranks[rank]["warnings"].push_back(warning);
    keep(run_record(experiment_, records_.last_run() + 1, std::move(done)));
    o.number = records_.last_run();
  } catch (const failure& e) {
    o.error = e.what();
    o.code = static_cast<int>(e.code());
  } catch (const std::exception& e) {
    o.error = e.what();
    o.code = static_cast<int>(exit_code::run);
  }
  return o;
}

// One process times kernels before any rank starts, so that all runs with the same shapes use the same kernels.
std::string campaign::kernels_for(const case_config& c) {
  if (c.train.kernels != "timed") return "";
  const std::string key = kernels_key(c, facts_.of(c).plan.flags & RG_PLAN_ROW_MAJOR);
  if (const auto known = records_.kernel_choices(key)) return *known;
  const prepared_run run = prepare_tuning(facts_, c);
  progress_.phase = "timing kernels";
  progress_.step = progress_.steps = 0;
  show({});
  if (hooks_.begin_run) hooks_.begin_run(fmt::format("case-{}-kernels", progress_.case_number));
  launch_plan plan{run.ranks, run.address};
  set_limits(plan, c);
  const launch_result r = launch(plan, {{}, hooks_.log});
  interrupted_ |= r.interrupted;
  if (r.failure) throw failure(static_cast<exit_code>(r.failure->code), r.failure->message);
  if (r.interrupted) return "";
  auto kernel_choices = r.results.at(0).at("kernels").get<std::string>();
  keep(kernels_record(key, kernel_choices));
  return kernel_choices;
}

void campaign::keep(const nlohmann::json& record) {
  records_.add(record);
  if (hooks_.record) hooks_.record(record);
}

void campaign::fail(planned& p, const std::string& status, const std::string& error, int code,
                    const std::string& dump) {
  p.over = true;
  for (std::uint64_t r = 0; r < p.repeats(); ++r)
    if (!records_.has(p.index, r) && runs_planned_) --runs_planned_;
  worst_ = worst_ ? worse_exit_code(worst_, code) : code;
  keep(failure_record(experiment_, p.index, status, error, p.facts, dump));
}

void campaign::show(const std::vector<rank_progress>& ranks) {
  if (!hooks_.progress) return;
  progress_.step = 0;
  progress_.samples_per_second.reset();
  std::uint64_t slowest = UINT64_MAX, samples = 0;
  for (const rank_progress& r : ranks) {
    if (!r.step) continue; // a server, or a rank that has not begun its first step
    slowest = std::min(slowest, r.step);
    samples += r.samples;
  }
  if (slowest != UINT64_MAX) progress_.step = slowest;
  if (samples && !first_samples_) { // starting takes seconds, which are no training
    first_samples_ = samples;
    first_seen_ = rg::steady_ns();
  }
  if (samples > first_samples_)
    progress_.samples_per_second = static_cast<double>(samples - first_samples_) / seconds_since(first_seen_);
  progress_.seconds_left.reset();
  if (const measure_config& m = experiment_.cases.front().measure; m.precision > 0) {
    progress_.seconds_left = std::max(0.0, 1e-9 * static_cast<double>(m.budget) - seconds_since(campaign_begin_));
  } else if (runs_done_) {
    progress_.seconds_left = seconds_since(campaign_begin_) / static_cast<double>(runs_done_) *
                             static_cast<double>(runs_planned_ - std::min(runs_planned_, runs_done_));
  }
  hooks_.progress(progress_);
}

} // namespace regatta
