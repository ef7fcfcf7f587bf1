// SPDX-License-Identifier: Apache-2.0
#include "campaign/campaign.hpp"

#include "base/failure.hpp"
#include "campaign/facts.hpp"
#include "campaign/prepare.hpp"
#include "launch/outside.hpp"
#include "measure/record.hpp"
#include "measure/summary.hpp"
#include "rank/clock.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

struct campaign::planned {
  std::size_t index; // of the case
  const case_config* config;
  case_facts facts;
  std::vector<repeat_figures> repeats;
  bool over = false; // failed or skipped: runs no more
};

struct campaign::group {
  std::vector<planned> cases;
};

struct campaign::outcome {
  std::optional<run_figures> figures;
  std::string error;
  int code = 0;
  bool interrupted = false;
};

namespace {

std::string label_of(const case_config& c) {
  return fmt::format("{}, {}, {} worker{}", c.strategy.id, c.transport.id, c.cluster.workers,
                     c.cluster.workers == 1 ? "" : "s");
}

// Of several causes the one that comes first here decides how the program ends.
int worse(int a, int b) {
  constexpr int order[] = {2, 3, 4, 1, 5, 77};
  for (const int code : order)
    if (a == code || b == code) return code;
  return std::max(a, b);
}

} // namespace

campaign::campaign(const registry& plugins, const experiment& e, std::function<bool(std::size_t)> done,
                   campaign_hooks hooks)
    : plugins_(plugins), experiment_(e), hooks_(std::move(hooks)), done_(std::move(done)) {
  progress_.cases = e.cases.size();
}

bool campaign::run() {
  campaign_begin_ = steady_ns();
  std::vector<std::string> keys;
  std::map<std::string, group> groups;
  for (std::size_t i = 0; i < experiment_.cases.size(); ++i) {
    if (done_(i)) continue;
    const case_config& c = experiment_.cases[i];
    // Without a baseline nothing is shared.
    const std::string key = c.measure.baseline ? baseline_key(c) : fmt::format("case {}", i);
    if (!groups.count(key)) keys.push_back(key);
    planned p{i, &c, {}, {}, false};
    groups[key].cases.push_back(std::move(p));
    runs_planned_ += static_cast<std::size_t>(c.measure.repeats);
  }
  for (const std::string& key : keys)
    if (!run_group(groups[key])) break;
  return !interrupted_;
}

bool campaign::run_group(group& g) {
  std::uint64_t repeats = 0;
  for (planned& p : g.cases) {
    const case_config& c = *p.config;
    repeats = std::max(repeats, static_cast<std::uint64_t>(c.measure.repeats));
    try {
      const model_facts m = facts_of(plugins_, c);
      const prepared_run run = prepare(plugins_, c, "");
      check_tables(c, m, run.exchanges_rows);
      if (hooks_.outside && run.ranks.size() > hooks_.outside->size())
        throw failure(exit_code::skipped, fmt::format("needs {} ranks, and {} has started {}", run.ranks.size(),
                                                      hooks_.outside->launcher(), hooks_.outside->size()));
      p.facts.servers = run.job.layout.servers;
      p.facts.synchronous = run.synchronous;
      p.facts.batch_per_worker = run.job.batch;
      p.facts.global_batch = run.job.global_batch();
      p.facts.unit = m.unit;
      p.facts.batch_statistics = m.batch_statistics;
      p.facts.parameters = m.parameters;
      p.facts.table_parameters = m.table_parameters;
      p.facts.warnings = run.warnings;
      const std::uint64_t needed = estimated_bytes(c, m, p.facts.servers), there = available_bytes();
      if (there && needed > there)
        throw failure(exit_code::usage,
                      fmt::format("needs about {} MiB of memory, and {} MiB are free", needed >> 20, there >> 20));
    } catch (const failure& e) {
      // The only case of an experiment is refused; one of a sweep is skipped with its reason.
      const bool skip = e.code() == exit_code::skipped || experiment_.cases.size() > 1;
      fail(p, skip ? "skipped" : "failed", e.what(),
           e.code() == exit_code::skipped || !skip ? static_cast<int>(e.code()) : 0);
    }
  }
  for (std::uint64_t r = 0; r < repeats; ++r)
    if (!run_repeat(g, r)) {
      for (planned& p : g.cases)
        if (!p.over)
          fail(p, "failed",
               fmt::format("interrupted after {} of {} repeats", p.repeats.size(), p.config->measure.repeats), 0);
      return false;
    }
  return true;
}

bool campaign::run_repeat(group& g, std::uint64_t repeat) {
  std::optional<run_figures> baseline;
  std::map<std::int64_t, run_figures> contention; // by workers
  progress_.repeat = repeat + 1;
  for (planned& p : g.cases) {
    const case_config& c = *p.config;
    if (p.over || repeat >= static_cast<std::uint64_t>(c.measure.repeats)) continue;
    progress_.case_number = p.index + 1;
    progress_.repeats = static_cast<std::size_t>(c.measure.repeats);
    progress_.label = label_of(c);
    const auto control = [&](const case_config& what, const std::string& name, auto&& keep) {
      outcome o = run_once(what, name);
      if (o.interrupted) return false;
      if (o.figures)
        keep(std::move(*o.figures));
      else
        fail(p, "failed", name + ": " + o.error, o.code);
      return true;
    };
    const bool compared = c.measure.baseline && !is_baseline(c);
    if (compared && !baseline && !control(baseline_of(c), "baseline", [&](run_figures f) { baseline = std::move(f); }))
      return false;
    // Several workers alone: once for every number of workers, as a case of its own where the sweep has it.
    if (compared && !p.over && c.cluster.workers > 1 && c.strategy.id != "none" &&
        !contention.count(c.cluster.workers) &&
        !control(contention_of(c), "contention", [&](run_figures f) { contention[c.cluster.workers] = std::move(f); }))
      return false;
    if (p.over) continue;
    outcome o = run_once(c, "");
    if (o.interrupted) return false;
    if (!o.figures) {
      fail(p, o.code == static_cast<int>(exit_code::skipped) ? "skipped" : "failed", o.error, o.code);
      continue;
    }
    repeat_figures f;
    f.run = std::move(*o.figures);
    if (compared) f.baseline = baseline;
    if (compared && contention.count(c.cluster.workers)) f.contention = contention[c.cluster.workers];
    p.repeats.push_back(std::move(f));
    ++runs_done_;
    if (p.repeats.size() == static_cast<std::size_t>(c.measure.repeats)) finish(p);
  }
  return true;
}

campaign::outcome campaign::run_once(const case_config& c, const std::string& phase) {
  outcome o;
  try {
    const std::string kernels = kernels_for(c);
    if (interrupted_ |= interruption_.requested(); interrupted_) {
      o.interrupted = true;
      return o;
    }
    const prepared_run run = prepare(plugins_, c, kernels);
    progress_.phase = phase;
    progress_.step = 0;
    progress_.steps = run.job.warmup + run.job.steps;
    run_begin_ = steady_ns();
    show({});
    if (hooks_.begin_run)
      hooks_.begin_run(fmt::format("case-{}-repeat-{}{}{}", progress_.case_number, progress_.repeat,
                                   phase.empty() ? "" : "-", phase));
    launch_plan plan{run.ranks, run.address};
    plan.outside = hooks_.outside;
    if (hooks_.outside && run.launched) hooks_.outside->join(*run.launched, c.transport.id);
    const launch_result r = launch(plan, {[&](const std::vector<rank_progress>& ranks) { show(ranks); }, hooks_.log,
                                          [&] { return interruption_.requested(); }});
    if (r.interrupted) {
      interrupted_ = o.interrupted = true;
      return o;
    }
    if (r.failure) {
      o.error = r.failure->message;
      if (const std::string log = hooks_.log_file ? hooks_.log_file(r.failure->rank) : ""; !log.empty())
        o.error += fmt::format("; all that it wrote: {}", log);
      o.code = r.failure->code;
      return o;
    }
    std::vector<rank_record> records;
    for (const nlohmann::json& j : r.results) records.push_back(record_from_json(j));
    o.figures = figures_of(records, !run.synchronous && run.communicates);
  } catch (const failure& e) {
    o.error = e.what();
    o.code = static_cast<int>(e.code());
  } catch (const std::exception& e) {
    o.error = e.what();
    o.code = static_cast<int>(exit_code::run);
  }
  return o;
}

// One process times the candidates, before any rank starts; all runs of the same shapes get the same picks.
std::string campaign::kernels_for(const case_config& c) {
  if (c.train.kernels != "timed") return "";
  const std::string key = kernels_key(c);
  if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  const prepared_run run = prepare_tuning(plugins_, c);
  progress_.phase = "timing kernels";
  progress_.step = progress_.steps = 0;
  show({});
  if (hooks_.begin_run) hooks_.begin_run(fmt::format("case-{}-kernels", progress_.case_number));
  const launch_result r = launch({run.ranks, run.address}, {{}, hooks_.log, [&] { return interruption_.requested(); }});
  interrupted_ |= r.interrupted;
  if (r.failure) throw failure(static_cast<exit_code>(r.failure->code), r.failure->message);
  if (r.interrupted) return "";
  return kernels_[key] = r.results.at(0).at("kernels").get<std::string>();
}

void campaign::finish(planned& p) {
  p.over = true;
  hooks_.entry(p.index, case_entry(*p.config, p.facts, p.repeats));
}

void campaign::fail(planned& p, const std::string& status, const std::string& error, int code) {
  p.over = true;
  runs_planned_ -= std::min(runs_planned_, static_cast<std::size_t>(p.config->measure.repeats) - p.repeats.size());
  worst_ = worst_ ? worse(worst_, code) : code;
  // Repeats that did finish are figures all the same.
  nlohmann::json entry =
      p.repeats.empty() ? case_entry(*p.config, p.facts, status, error) : case_entry(*p.config, p.facts, p.repeats);
  entry["status"] = status;
  entry["error"] = error;
  hooks_.entry(p.index, entry);
}

void campaign::show(const std::vector<rank_progress>& ranks) {
  if (!hooks_.progress) return;
  const double elapsed = static_cast<double>(steady_ns() - run_begin_) * 1e-9;
  progress_.step = 0;
  progress_.samples_per_second.reset();
  std::uint64_t slowest = UINT64_MAX, samples = 0;
  for (const rank_progress& r : ranks) {
    if (!r.step) continue; // a server, or one that has not begun
    slowest = std::min(slowest, r.step);
    samples += r.samples;
  }
  if (slowest != UINT64_MAX) progress_.step = slowest;
  if (samples && elapsed > 0) progress_.samples_per_second = static_cast<double>(samples) / elapsed;
  progress_.seconds_left.reset();
  if (runs_done_) {
    const double so_far = static_cast<double>(steady_ns() - campaign_begin_) * 1e-9;
    progress_.seconds_left = so_far / static_cast<double>(runs_done_) *
                             static_cast<double>(runs_planned_ - std::min(runs_planned_, runs_done_));
  }
  hooks_.progress(progress_);
}

} // namespace regatta
