// SPDX-License-Identifier: Apache-2.0
#include "results/campaign_records.hpp"

#include "base/json_members.hpp"
#include "measure/rank_record.hpp"
#include "results/sampling.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {

namespace {

using nlohmann::json;

constexpr std::uint64_t most_runs = 1'000'000'000; // run numbers above this are damage: no campaign has that many runs

case_facts facts_in(const json& record) {
  case_facts facts;
  take_members(member<json>(record, "facts"), facts);
  return facts;
}

} // namespace

campaign_records::campaign_records(const experiment& e) : experiment_(e), cases_(e.cases.size()) {}

campaign_records::case_state& campaign_records::case_of(const json& record) {
  const auto index = member<std::size_t>(record, "index");
  if (index >= cases_.size() || member<json>(record, "case") != swept_values(experiment_.cases[index]))
    throw failure(exit_code::usage, "the experiment has no such case");
  return cases_[index];
}

void campaign_records::add(const json& record) {
  const auto kind = member<std::string>(record, "kind");
  if (kind == "campaign") {
    const auto context = member<json>(record, "context");
    if (!context.is_object()) throw failure(exit_code::usage, "its context is no object");
    context_ = context;
  } else if (kind == "run") {
    add_run(record);
  } else if (kind == "failure") {
    const auto status = member<std::string>(record, "status");
    if (status != "failed" && status != "skipped")
      throw failure(exit_code::usage, fmt::format("unknown status \"{}\"", status));
    member<std::string>(record, "error");
    if (record.contains("dump")) member<std::string>(record, "dump");
    const auto facts = facts_in(record);
    case_state& c = case_of(record);
    c.facts = facts;
    c.failure = record;
  } else if (kind == "kernels") {
    kernel_choices_[member<std::string>(record, "key")] = member<std::string>(record, "kernel_choices");
  } else if (kind == "machine") {
    const auto round = member<std::uint64_t>(record, "round");
    if (const auto machine = member<json>(record, "machine"); !machine.is_null())
      rates_[round] = {member<double>(machine, "fma"), member<double>(machine, "copy"),
                       member<std::optional<double>>(machine, "line_round_trip_seconds"),
                       member<std::optional<double>>(machine, "clock_hz")};
  } else if (kind == "sampling") {
    add_sampling(record);
  } else {
    throw failure(exit_code::usage, fmt::format("unknown kind \"{}\"", kind));
  }
}

void campaign_records::add_sampling(const json& record) {
  const auto length = member<std::int64_t>(record, "length");
  const auto ended = member<std::string>(record, "ended");
  if (length < 1) throw failure(exit_code::usage, fmt::format("no run has a length of {}", length));
  case_state& c = case_of(record);
  c.ended = ended;
  if (length != c.length) c.repeats.clear();
  c.length = length;
}

void campaign_records::add_run(const json& record) {
  const auto number = member<std::uint64_t>(record, "number");
  const auto role = member<std::string>(record, "role");
  const auto repeat_number = member<std::uint64_t>(record, "repeat");
  const auto sums = member<std::map<std::string, std::string>>(record, "plugins");
  case_state& c = case_of(record);
  const auto index = member<std::size_t>(record, "index");
  if (number == 0 || number > most_runs) throw failure(exit_code::usage, fmt::format("no run has number {}", number));
  if (role != "case" && role != "baseline" && role != "contention")
    throw failure(exit_code::usage, fmt::format("unknown role \"{}\"", role));
  const measure_config& measure = experiment_.cases[index].measure;
  if (repeat_number >= (measure.precision > 0 ? most_rounds : static_cast<std::uint64_t>(measure.repeats)))
    throw failure(exit_code::usage, fmt::format("the case has no repeat {}", repeat_number));
  const auto round_number = member<std::uint64_t>(record, "round");
  if (round_number == 0 || round_number > number)
    throw failure(exit_code::usage, fmt::format("run {} belongs to no round {}", number, round_number));
  std::vector<std::string> needs;
  case_facts facts;
  if (role == "case") {
    needs = member<std::vector<std::string>>(record, "needs");
    facts = facts_in(record);
  }
  std::vector<rank_record> ranks;
  const auto all = record.find("ranks"); // not copied: there may be thousands
  if (all == record.end() || !all->is_array()) throw failure(exit_code::usage, "expected a list \"ranks\"");
  for (const json& rank : *all) ranks.push_back(record_from_json(rank));
  std::vector<timed_host> hosts;
  for (const json& host : member<std::vector<json>>(record, "hosts")) hosts.push_back(timed_host_from_json(host));
  run_figures figures = figures_of(ranks, member<bool>(record, "asynchronous"), hosts);
  // It is not known when the backward passes of devices end: their records have the end of the step in its place.
  if (experiment_.cases[index].train.device != "cpu")
    for (worker_pace& pace : figures.paces) pace.last.reset();
  round_runs& round = rounds_[round_number];
  if (role == "case") {
    recorded_repeat repeat;
    repeat.figures.run = std::move(figures);
    repeat.figures.round = round_number;
    repeat.needs_baseline = std::ranges::find(needs, "baseline") != needs.end();
    repeat.needs_contention = std::ranges::find(needs, "contention") != needs.end();
    c.facts = std::move(facts);
    c.repeats[repeat_number] = std::move(repeat);
    c.failure = nullptr; // a failure before this run no longer counts
    round.repeats.emplace_back(index, repeat_number);
  } else if (role == "contention") {
    round.contention[experiment_.cases[index].cluster.workers] = std::move(figures);
  } else {
    (round.baseline ? round.baseline_again : round.baseline) = std::move(figures);
  }
  for (const auto& [of_case, in_case] : round.repeats) {
    const auto found = cases_[of_case].repeats.find(in_case);
    if (found != cases_[of_case].repeats.end() && found->second.figures.round == round_number)
      pair(found->second, round, experiment_.cases[of_case].cluster.workers);
  }
  sums_.insert(sums.begin(), sums.end());
  last_ = std::max(last_, number);
}

// The figures hold every step, so they are copied only once.
void campaign_records::pair(recorded_repeat& repeat, const round_runs& round, std::int64_t workers) {
  repeat_figures& f = repeat.figures;
  if (repeat.needs_baseline && !f.baseline) f.baseline = round.baseline;
  if (repeat.needs_baseline && !f.baseline_again) f.baseline_again = round.baseline_again;
  const auto control = round.contention.find(workers);
  if (repeat.needs_contention && !f.contention && control != round.contention.end()) f.contention = control->second;
}

std::vector<std::size_t> campaign_records::cases_of(std::uint64_t round) const {
  std::vector<std::size_t> indices;
  if (const auto found = rounds_.find(round); found != rounds_.end())
    for (const auto& [index, repeat] : found->second.repeats)
      if (const auto r = cases_[index].repeats.find(repeat);
          r != cases_[index].repeats.end() && r->second.figures.round == round)
        indices.push_back(index);
  return indices;
}

bool campaign_records::has(std::size_t index, std::uint64_t repeat) const {
  const case_state& c = cases_.at(index);
  const auto found = c.repeats.find(repeat);
  return c.released.count(repeat) != 0 || (found != c.repeats.end() && found->second.complete());
}

bool campaign_records::complete(std::size_t index) const {
  const measure_config& measure = experiment_.cases.at(index).measure;
  if (measure.precision > 0) return !cases_.at(index).ended.empty();
  for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(measure.repeats); ++r)
    if (!has(index, r)) return false;
  return true;
}

next_round campaign_records::next(const std::vector<std::size_t>& group, const group_time& time) const {
  if (experiment_.cases.at(group.front()).measure.precision > 0)
    return next_sampled_round(experiment_, *this, group, time);
  next_round next;
  for (const std::size_t index : group)
    for (std::uint64_t r = 0; r < static_cast<std::uint64_t>(experiment_.cases.at(index).measure.repeats); ++r)
      if (!has(index, r)) next.repeat = std::min(r, next.repeat.value_or(r));
  return next;
}

std::optional<machine_rates> campaign_records::rates_of(std::uint64_t round) const {
  const auto found = rates_.find(round);
  return found == rates_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<machine_rates> campaign_records::rates() const {
  std::vector<machine_rates> all;
  for (const auto& [round, rates] : rates_) all.push_back(rates);
  return all;
}

void campaign_records::release(std::size_t index) {
  case_state& c = cases_.at(index);
  for (const auto& [number, figures] : c.repeats) c.released.insert(number);
  c.repeats.clear();
}

std::optional<std::string> campaign_records::kernel_choices(const std::string& key) const {
  const auto found = kernel_choices_.find(key);
  return found == kernel_choices_.end() ? std::nullopt : std::optional(found->second);
}

} // namespace regatta
