// SPDX-License-Identifier: Apache-2.0
#include "measure/record.hpp"

#include <ctime>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_members.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// Steps are sent as one array per member: a tenth of the text of an array of objects.
constexpr std::pair<const char*, std::int64_t step_time::*> step_members[] = {
    {"begin", &step_time::begin},
    {"input", &step_time::input},
    {"forward", &step_time::forward},
    {"backward", &step_time::backward},
    {"update", &step_time::update},
    {"blocked", &step_time::blocked},
    {"compute_end", &step_time::compute_end},
    {"end", &step_time::end},
    {"stalled_at", &step_time::stalled_at},
    {"stalled", &step_time::stalled},
    {"paused", &step_time::paused},
};

json steps_to_json(const std::vector<step_time>& steps) {
  json j = json::object();
  for (const auto& [name, member] : step_members) {
    json& column = j[name] = json::array();
    for (const step_time& s : steps) column.push_back(s.*member);
  }
  return j;
}

std::vector<step_time> steps_from_json(const json& j) {
  std::vector<step_time> steps(member<json>(j, "begin").size());
  for (const auto& [name, into] : step_members) {
    const auto column = member<std::vector<std::int64_t>>(j, name);
    if (column.size() != steps.size())
      throw failure(exit_code::run,
                    fmt::format("\"{}\" has {} steps, and \"begin\" has {}", name, column.size(), steps.size()));
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i].*into = column[i];
  }
  return steps;
}

json optional_to_json(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

std::optional<double> optional_from_json(const json& object, const char* key) {
  if (member<json>(object, key).is_null()) return std::nullopt;
  return member<double>(object, key);
}

// Values cannot be names in JSON, so counts are lists of pairs.
json records_to_json(const strategy_records& r) {
  json counts = json::object();
  for (const auto& [name, seen] : r.counts)
    counts[name] = std::vector<std::pair<std::int64_t, std::uint64_t>>(seen.begin(), seen.end());
  json by_step = json::object();
  for (const auto& [name, seen] : r.by_step) {
    json& list = by_step[name] = json::array();
    for (const strategy_records::of_step& s : seen) list.push_back({s.worker, s.step, s.value, s.times});
  }
  return {{"counts", std::move(counts)}, {"sums", r.sums}, {"by_step", std::move(by_step)}};
}

strategy_records records_from_json(const json& j) {
  strategy_records r;
  using pairs = std::vector<std::pair<std::int64_t, std::uint64_t>>;
  for (const auto& [name, seen] : member<std::map<std::string, pairs>>(j, "counts"))
    for (const auto& [value, times] : seen) r.counts[name][value] = times;
  for (const auto& [name, sum] : member<std::map<std::string, double>>(j, "sums")) r.sums[name] = sum;
  for (const auto& [name, list] : member<std::map<std::string, std::vector<json>>>(j, "by_step"))
    for (const json& s : list)
      r.by_step[name].push_back({.worker = element<std::uint32_t>(s, 0),
                                 .step = element<std::uint64_t>(s, 1),
                                 .times = element<decltype(strategy_records::of_step::times)>(s, 3),
                                 .value = element<std::int64_t>(s, 2)});
  return r;
}

} // namespace

void strategy_records::count(std::string_view name, std::int64_t value) {
  auto at = counts.find(name);
  if (at == counts.end()) at = counts.emplace(std::string(name), std::map<std::int64_t, std::uint64_t>{}).first;
  ++at->second[value];
}

void strategy_records::count(std::string_view name, std::int64_t value, std::uint32_t worker, std::uint64_t step) {
  auto at = by_step.find(name);
  if (at == by_step.end()) {
    at = by_step.emplace(std::string(name), std::vector<of_step>{}).first;
    at->second.reserve(4096);
  }
  // The buckets of a step often have the same value, one after the other.
  if (auto& list = at->second;
      !list.empty() && list.back().worker == worker && list.back().step == step && list.back().value == value)
    ++list.back().times;
  else
    list.push_back({.worker = worker, .step = step, .times = 1, .value = value});
}

void strategy_records::add(std::string_view name, double amount) {
  const auto at = sums.find(name);
  if (at == sums.end())
    sums.emplace(std::string(name), amount);
  else
    at->second += amount;
}

json to_json(const rank_record& r) {
  return {{"rank", r.rank},
          {"worker", r.worker},
          {"server", r.server},
          {"host", r.host},
          {"role", r.role},
          {"region_begin", r.region_begin},
          {"region_end", r.region_end},
          {"bound", r.bound ? json(*r.bound) : json(nullptr)},
          {"agrees", r.agrees},
          {"steps", steps_to_json(r.steps)},
          {"samples", r.samples},
          {"loss_sums", r.loss_sums},
          {"loss_counts", r.loss_counts},
          {"unit_counts", r.unit_counts},
          {"counts_tokens", r.counts_tokens},
          {"communication_ns", r.communication_ns},
          {"server_update_ns", r.server_update_ns},
          {"drain_ns", r.drain_ns},
          {"bytes_sent", r.bytes_sent},
          {"bytes_received", r.bytes_received},
          {"memory_peak_bytes", r.memory_peak_bytes},
          {"cpu_seconds", r.cpu_seconds},
          {"gpu", r.gpu ? to_json(*r.gpu) : json(nullptr)},
          {"steal", optional_to_json(r.steal)},
          {"strategy", records_to_json(r.strategy)},
          {"given_bytes", r.given_bytes},
          {"weights_should_move", r.weights_should_move},
          {"weights_moved", r.weights_moved},
          {"first_step", r.first_step},
          {"weights_hash", r.weights_hash},
          {"layout", r.layout},
          {"kernels", r.kernels},
          {"metric", r.metric},
          {"metric_value", optional_to_json(r.metric_value)},
          {"metric_curve", r.metric_curve},
          {"skipped_records", r.skipped_records},
          {"warnings", r.warnings}};
}

rank_record record_from_json(const json& j) {
  rank_record r;
  take(j, "rank", r.rank);
  take(j, "worker", r.worker);
  take(j, "server", r.server);
  take(j, "host", r.host);
  take(j, "role", r.role);
  take(j, "region_begin", r.region_begin);
  take(j, "region_end", r.region_end);
  if (!member<json>(j, "bound").is_null()) r.bound = member<std::uint64_t>(j, "bound");
  take(j, "agrees", r.agrees);
  r.steps = steps_from_json(member<json>(j, "steps"));
  take(j, "samples", r.samples);
  const auto sums = member<std::vector<json>>(j, "loss_sums");
  for (std::size_t i = 0; i < sums.size(); ++i)
    r.loss_sums.push_back(sums[i].is_null() ? std::numeric_limits<double>::quiet_NaN() : element<double>(sums, i));
  take(j, "loss_counts", r.loss_counts);
  take(j, "unit_counts", r.unit_counts);
  take(j, "counts_tokens", r.counts_tokens);
  take(j, "communication_ns", r.communication_ns);
  take(j, "server_update_ns", r.server_update_ns);
  take(j, "drain_ns", r.drain_ns);
  take(j, "bytes_sent", r.bytes_sent);
  take(j, "bytes_received", r.bytes_received);
  take(j, "memory_peak_bytes", r.memory_peak_bytes);
  take(j, "cpu_seconds", r.cpu_seconds);
  if (const json gpu = member<json>(j, "gpu"); !gpu.is_null()) r.gpu = gpu_from_json(gpu);
  r.steal = optional_from_json(j, "steal");
  r.strategy = records_from_json(member<json>(j, "strategy"));
  take(j, "given_bytes", r.given_bytes);
  take(j, "weights_should_move", r.weights_should_move);
  take(j, "weights_moved", r.weights_moved);
  take(j, "first_step", r.first_step);
  take(j, "weights_hash", r.weights_hash);
  take(j, "layout", r.layout);
  take(j, "kernels", r.kernels);
  take(j, "metric", r.metric);
  r.metric_value = optional_from_json(j, "metric_value");
  take(j, "metric_curve", r.metric_curve);
  take(j, "skipped_records", r.skipped_records);
  take(j, "warnings", r.warnings);
  return r;
}

std::uint64_t memory_peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::uint64_t kib = 0;
    std::istringstream words(line);
    std::string key;
    if (words >> key >> kib && key == "VmHWM:") return kib * 1024;
  }
  return 0;
}

double process_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::optional<cpu_ticks> read_cpu_ticks() {
  // user nice system idle iowait irq softirq steal; guest time, which follows, is already part of user.
  constexpr int fields = 8;
  std::ifstream stat("/proc/stat");
  std::string cpu;
  if (!(stat >> cpu) || cpu != "cpu") return std::nullopt;
  cpu_ticks ticks;
  for (int i = 0; i < fields; ++i) {
    std::uint64_t value = 0;
    if (!(stat >> value)) return std::nullopt;
    ticks.total += value;
    if (i == fields - 1) ticks.steal = value;
  }
  return ticks;
}

std::optional<double> steal_between(const std::optional<cpu_ticks>& from, const std::optional<cpu_ticks>& to) {
  if (!from || !to || to->total <= from->total || to->steal < from->steal) return std::nullopt;
  return static_cast<double>(to->steal - from->steal) / static_cast<double>(to->total - from->total);
}

} // namespace regatta
