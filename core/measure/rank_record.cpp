// SPDX-License-Identifier: Apache-2.0
#include "measure/rank_record.hpp"

#include <array>
#include <concepts>
#include <fstream>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/clock.hpp>

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

// Returns the value of `name`, which is added if it is new. Allocates only then.
template <class Map> typename Map::mapped_type& value_of(Map& map, std::string_view name) {
  const auto at = map.find(name);
  return at == map.end() ? map[std::string(name)] : at->second;
}

} // namespace

void strategy_records::count(std::string_view name, std::int64_t value) {
  ++value_of(counts, name)[value];
}

void strategy_records::count(std::string_view name, std::int64_t value, std::uint32_t worker, std::uint64_t step) {
  std::vector<of_step>& list = value_of(by_step, name);
  if (list.empty()) list.reserve(4096);
  // The buckets of a step often have the same value, one after the other.
  if (!list.empty() && list.back().worker == worker && list.back().step == step && list.back().value == value)
    ++list.back().times;
  else
    list.push_back({.worker = worker, .step = step, .times = 1, .value = value});
}

void strategy_records::add(std::string_view name, double amount) {
  value_of(sums, name) += amount;
}

// All members but `steps`, `loss_sums`, `gpu` and `strategy`, which have another form in JSON.
template <class R, class Visit>
requires std::same_as<std::remove_const_t<R>, rank_record>
void each_member(R& r, Visit&& visit) {
  visit("rank", r.rank);
  visit("worker", r.worker);
  visit("server", r.server);
  visit("host", r.host);
  visit("numa_node", r.numa_node);
  visit("role", r.role);
  visit("region_begin", r.region_begin);
  visit("region_end", r.region_end);
  visit("bound", r.bound);
  visit("agrees", r.agrees);
  visit("samples", r.samples);
  visit("loss_counts", r.loss_counts);
  visit("unit_counts", r.unit_counts);
  visit("counts_tokens", r.counts_tokens);
  visit("touched_rows", r.touched_rows);
  visit("communication_ns", r.communication_ns);
  visit("server_update_ns", r.server_update_ns);
  visit("drain_ns", r.drain_ns);
  visit("bytes_sent", r.bytes_sent);
  visit("bytes_received", r.bytes_received);
  visit("transport_counters", r.transport_counters);
  visit("memory_peak_bytes", r.memory_peak_bytes);
  visit("cpu_seconds", r.cpu_seconds);
  visit("steal", r.steal);
  visit("run_queue", r.run_queue);
  visit("given_bytes", r.given_bytes);
  visit("weights_should_move", r.weights_should_move);
  visit("weights_moved", r.weights_moved);
  visit("first_step", r.first_step);
  visit("weights_hash", r.weights_hash);
  visit("layout", r.layout);
  visit("kernels", r.kernels);
  visit("isa", r.isa);
  visit("metric", r.metric);
  visit("metric_value", r.metric_value);
  visit("metric_curve", r.metric_curve);
  visit("evaluation_ns", r.evaluation_ns);
  visit("warm_up_ns", r.warm_up_ns);
  visit("skipped_records", r.skipped_records);
  visit("warnings", r.warnings);
}

json to_json(const rank_record& r) {
  json j = members_to_json(r);
  j["steps"] = steps_to_json(r.steps);
  j["loss_sums"] = r.loss_sums;
  j["gpu"] = r.gpu ? to_json(*r.gpu) : json(nullptr);
  j["strategy"] = records_to_json(r.strategy);
  return j;
}

rank_record record_from_json(const json& j) {
  rank_record r;
  take_members(j, r);
  r.steps = steps_from_json(member<json>(j, "steps"));
  const auto sums = member<std::vector<json>>(j, "loss_sums");
  for (std::size_t i = 0; i < sums.size(); ++i)
    r.loss_sums.push_back(sums[i].is_null() ? std::numeric_limits<double>::quiet_NaN() : element<double>(sums, i));
  if (const json gpu = member<json>(j, "gpu"); !gpu.is_null()) r.gpu = gpu_from_json(gpu);
  r.strategy = records_from_json(member<json>(j, "strategy"));
  return r;
}

std::uint64_t memory_peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kib = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  return 0;
}

double process_cpu_seconds() {
  return 1e-9 * static_cast<double>(rg::read_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
}

std::optional<std::int64_t> run_queue_ns() {
  std::ifstream schedstat("/proc/thread-self/schedstat");
  std::int64_t ran = 0, waited = 0;
  return schedstat >> ran >> waited ? std::optional(waited) : std::nullopt;
}

std::optional<cpu_ticks> read_cpu_ticks() {
  // user nice system idle iowait irq softirq steal; guest time, which follows, is already part of user.
  std::array<std::uint64_t, 8> fields{};
  std::ifstream stat("/proc/stat");
  std::string cpu;
  stat >> cpu;
  for (std::uint64_t& field : fields) stat >> field;
  if (!stat || cpu != "cpu") return std::nullopt;
  return cpu_ticks{std::accumulate(fields.begin(), fields.end(), std::uint64_t{0}), fields.back()};
}

std::optional<double> steal_between(const std::optional<cpu_ticks>& from, const std::optional<cpu_ticks>& to) {
  if (!from || !to || to->total <= from->total || to->steal < from->steal) return std::nullopt;
  return static_cast<double>(to->steal - from->steal) / static_cast<double>(to->total - from->total);
}

} // namespace regatta
