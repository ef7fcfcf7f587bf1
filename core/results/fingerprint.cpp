// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/text.hpp"
#include "results/case_entry.hpp"

namespace regatta {
namespace {

using nlohmann::json;

// FNV-1a, 64 bit: an identifier, without cryptographic strength. JSON objects are sorted by key, so equal values have
// equal texts.
std::string hash_of(const json& value) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : value.dump()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

json hash_of_text(const std::string& text) {
  return text.empty() ? json(nullptr) : json(hash_of(text));
}

// Null if the rate is constant, so that parameters without effect do not distinguish cases.
json schedule_of(const schedule_config& s) {
  if (s.name == "constant" && !(s.warmup > 0)) return nullptr;
  return {{"name", s.name},
          {"unit", s.unit},
          {"warmup", s.warmup},
          {"start", s.start},
          {"factor", s.factor},
          {"every", s.every},
          {"length", s.length},
          {"end", s.end},
          {"model_size", s.model_size},
          {"milestones", s.milestones}};
}

json optimizer_of(const optimizer_config& o) {
  return {{"schedule", schedule_of(o.schedule)},
          {"plugin", o.plugin},
          {"lr", o.lr},
          {"momentum", o.momentum},
          {"weight_decay", o.weight_decay},
          {"beta1", o.beta1},
          {"beta2", o.beta2},
          {"epsilon", o.epsilon},
          {"nesterov", o.nesterov},
          {"clip_norm", o.clip_norm},
          {"lr_scaling", o.lr_scaling}};
}

// The samples over which running statistics are taken at once, and which these are. Null without such statistics.
json normalised_over(const case_config& c, const case_facts& facts) {
  if (!facts.model.batch_statistics) return nullptr;
  if (!facts.model.sums_over_workers || c.strategy.id == "none")
    return {facts.model.batch_per_worker, c.train.accumulate};
  json together = {facts.global_batch, c.train.accumulate};
  if (c.train.accumulate > 1) together.push_back(c.cluster.workers);
  return together;
}

json data_of(const case_config& c, const case_facts& facts) {
  const data_config& d = c.data;
  return {{"source", d.source},
          {"content", d.content},
          {"format", d.format},
          {"path", d.path},
          {"content_of_path", facts.data},
          {"queue_source", d.source == "queue" ? json(d.queue_source) : json(nullptr)},
          {"zipf", d.zipf},
          {"endpoint", d.endpoint},
          {"tokens", {d.tokens, d.vocabulary, d.min_count, d.window, d.subsample}},
          {"on_bad_record", d.on_bad_record},
          {"shuffle", d.shuffle},
          {"seed", c.measure.vary_seed ? json{c.seed, "varied"} : json(c.seed)},
          {"normalised_over", normalised_over(c, facts)}};
}

std::string synchrony_of(const case_config& c, const case_facts& facts) {
  if (c.cluster.workers == 1 && c.strategy.id == "none") return "synchronous";
  if (c.strategy.id == "none") return "independent";
  return facts.synchronous ? "synchronous" : "asynchronous";
}

} // namespace

std::string algorithms_of(const strategy_records& strategy) {
  constexpr std::string_view prefix = "algorithm_";
  std::string all;
  for (const auto& [name, seen] : strategy.counts)
    if (name.starts_with(prefix)) all += (all.empty() ? "" : ", ") + one_line(name.substr(prefix.size()));
  return all;
}

json fingerprint(const case_config& c, const case_facts& facts, const run_figures& run) {
  const std::string algorithms = algorithms_of(run.strategy);
  return {{"model", hash_of({{"plugin", c.model.id}, {"parameters", c.model.parameters}})},
          {"optimizer", hash_of(optimizer_of(c.optimizer))},
          {"synchrony", synchrony_of(c, facts)},
          {"precision", c.train.precision},
          {"executor", text_or_null(facts.model.executor)},
          {"data", hash_of(data_of(c, facts))},
          {"kernels", hash_of_text(run.kernels)},
          {"layout_id", hash_of_text(run.layout)},
          {"isa", text_or_null(run.isa)},
          {"algorithms", text_or_null(algorithms)},
          {"simulated", text_or_null(facts.simulated)}};
}

} // namespace regatta
