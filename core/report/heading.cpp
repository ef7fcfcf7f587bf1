// SPDX-License-Identifier: Apache-2.0
#include "report/heading.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/units.hpp"
#include "measure/canary.hpp"
#include "measure/summary.hpp"
#include "report/fields.hpp"

namespace regatta {
namespace {

using nlohmann::json;
using items = std::vector<std::string>;

std::string text_at(const json& from, const char* section, const char* key) {
  const json value = from.value(section, json::object()).value(key, json());
  return value.is_null() || value == "" ? "" : plain_text(value);
}

bool swept(const json& result, const std::string& key) {
  const std::vector<std::string> keys = swept_keys(result);
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

std::string count_text(double n) {
  return n >= 1e6   ? fmt::format("{:.2f} M", n / 1e6)
         : n >= 1e4 ? fmt::format("{:.1f} k", n / 1e3)
                    : fmt::format("{:.0f}", n);
}

// "vgg16 cifar10, 15.25 M parameters, 61.0 MB of gradients": parameters that are words say which variant it is. Of
// sparse tables only rows travel: "10.43 M parameters, 10.00 M of them in sparse tables, 1.72 MB of dense gradients".
std::string model_text(const json& result, const json& experiment) {
  items parts;
  if (!swept(result, "model.plugin")) {
    std::string name = text_at(experiment, "model", "plugin");
    const json parameters = experiment.value("model", json::object()).value("parameters", json::object());
    for (const auto& [key, value] : parameters.items())
      if (value.is_string() && value != "" && !swept(result, "model." + key)) name += " " + plain_text(value);
    if (!name.empty()) parts.push_back(name);
  }
  json count, in_tables;
  for (const json& entry : result.at("results")) {
    const json here = entry.value("parameters", json());
    if (here.is_null()) continue;
    if (!count.is_null() && count != here) return join(parts); // they vary with the case
    count = here;
    in_tables = entry.value("table_parameters", json());
  }
  if (count.is_number() && count > 0) {
    const double n = count, tables = in_tables.is_number() ? in_tables.get<double>() : 0;
    parts.push_back(count_text(n) + " parameters");
    if (tables > 0) parts.push_back(count_text(tables) + " of them in sparse tables");
    if (n > tables)
      parts.push_back(human_bytes(4 * (n - tables)) + (tables > 0 ? " of dense gradients" : " of gradients"));
  }
  return join(parts);
}

std::string training_text(const json& result, const json& experiment) {
  items parts;
  if (!swept(result, "optimizer.plugin")) parts.push_back(text_at(experiment, "optimizer", "plugin"));
  if (!swept(result, "train.precision")) parts.push_back(text_at(experiment, "train", "precision"));
  parts.erase(std::remove(parts.begin(), parts.end(), ""), parts.end());
  return join(parts);
}

// "1 thread and batch 128 a worker": a batch is a worker's or everybody's, and which must be said.
std::string share_text(const json& result, const json& experiment) {
  const std::string threads = text_at(experiment, "cluster", "threads"), batch = text_at(experiment, "train", "batch");
  const bool strong = text_at(experiment, "train", "scaling") == "strong";
  items each, other;
  if (!swept(result, "cluster.threads") && !threads.empty())
    each.push_back(threads + (threads == "1" ? " thread" : " threads"));
  if (!swept(result, "train.batch") && !swept(result, "train.scaling") && !batch.empty())
    (strong ? other : each).push_back("batch " + batch + (strong ? " in all" : ""));
  if (!each.empty()) other.insert(other.begin(), join(each, " and ") + " a worker");
  return join(other);
}

// "worker 1 computes 2 times as long": what a straggler costs looks like a slow strategy otherwise.
std::string straggler_text(const json& result, const json& experiment) {
  const json cluster = experiment.value("cluster", json::object()), factor = cluster.value("slow.factor", json());
  if (!factor.is_number() || factor <= 1 || swept(result, "cluster.slow.factor") || swept(result, "cluster.slow.rank"))
    return "";
  return fmt::format("worker {} computes {:g} times as long", plain_text(cluster.value("slow.rank", json(0))),
                     factor.get<double>());
}

// "strategy.algorithm: sharded", "transport.bandwidth: 1Gbit/s": without them the figures would be taken for those of the
// plugin as it is by itself.
items given_texts(const json& result) {
  items texts;
  for (const char* section : {"strategy", "transport"}) {
    if (swept(result, std::string(section) + ".plugin")) continue;
    const json given = result.at("context").value("given", json::object()).value(section, json::object());
    for (const auto& [name, value] : given.items())
      texts.push_back(fmt::format("{}.{}: {}", section, name, plain_text(value)));
  }
  return texts;
}

// Hosts that are alike are counted, not repeated.
items machine_texts(const json& context) {
  items lines;
  std::map<std::string, int> alike;
  for (const json& host : context.value("hosts", json::array())) {
    const auto cores = host.value("cores", json());
    items parts{fmt::format("{} {} {}", plain_text(cores), cores == 1 ? "core" : "cores",
                            plain_text(host.value("cpu", json())))};
    if (const json quota = host.value("cgroup_cpus", json()); quota.is_number())
      parts.push_back(fmt::format("limited to {:g} CPUs", quota.get<double>()));
    if (const json memory = host.value("memory_bytes", json()); memory.is_number())
      parts.push_back(fmt::format("{:.0f} GiB", memory.get<double>() / (1 << 30)));
    for (const json& gpu : host.value("gpus", json::array())) parts.push_back(plain_text(gpu));
    if (const json kernel = host.value("kernel", json()); kernel.is_string()) parts.push_back(plain_text(kernel));
    const std::string text = join(parts);
    if (alike[text]++ == 0) lines.push_back(text);
  }
  for (std::string& line : lines)
    if (alike[line] > 1) line = fmt::format("{} hosts, each {}", alike[line], line);
  return lines;
}

std::string program_text(const json& context) {
  std::string text = "regatta";
  if (const json version = context.value("regatta", json()); version.is_string()) text += " " + plain_text(version);
  items about;
  for (const char* member : {"git", "build"})
    if (const json value = context.value(member, json()); value.is_string()) about.push_back(plain_text(value));
  return about.empty() ? text : text + " (" + join(about) + ")";
}

std::string repeats_text(const json& experiment) {
  const json measure = experiment.value("measure", json::object());
  const json repeats = measure.value("repeats", json()), steps = measure.value("steps", json()),
             seconds = measure.value("seconds", json());
  if (!repeats.is_number()) return "";
  std::string text = repeats == 1 ? "1 repeat" : plain_text(repeats) + " repeats";
  if (seconds.is_number() && seconds.get<double>() > 0) return text + " of " + human_seconds(seconds);
  return steps.is_number() ? fmt::format("{} of {} {}", text, plain_text(steps), steps == 1 ? "step" : "steps") : text;
}

} // namespace

std::vector<items> heading_of(const json& result, const items& constant) {
  const json& context = result.at("context");
  const json experiment = context.value("experiment", json::object());
  std::vector<items> lines;
  lines.push_back({text_at(experiment, "experiment", "name"), model_text(result, experiment),
                   training_text(result, experiment), share_text(result, experiment),
                   straggler_text(result, experiment)});
  lines.push_back(constant);
  lines.push_back(given_texts(result));
  items machine = machine_texts(context);
  machine.push_back(program_text(context));
  machine.push_back(repeats_text(experiment));
  lines.push_back(machine);
  for (items& line : lines) line.erase(std::remove(line.begin(), line.end(), ""), line.end());
  lines.erase(std::remove_if(lines.begin(), lines.end(), [](const items& line) { return line.empty(); }), lines.end());
  return lines;
}

items warnings_of(const json& result) {
  items lines;
  for (const json& warning : result.at("context").value("warnings", json::array()))
    lines.push_back(plain_text(warning));
  const json& entries = result.at("results");
  std::vector<std::pair<std::string, std::vector<const json*>>> by_text;
  for (const json& entry : entries)
    for (const json& warning : entry.value("warnings", json::array())) {
      const std::string text = plain_text(warning);
      if (std::find(lines.begin(), lines.end(), text) != lines.end()) continue;
      auto known = std::find_if(by_text.begin(), by_text.end(), [&](const auto& w) { return w.first == text; });
      if (known == by_text.end()) known = by_text.insert(by_text.end(), {text, {}});
      known->second.push_back(&entry);
    }
  for (const auto& [text, of] : by_text) {
    if (of.size() == entries.size())
      lines.push_back(text);
    else if (of.size() == 1)
      lines.push_back(fmt::format("{} [{}]", text, case_label(*of.front())));
    else
      lines.push_back(fmt::format("{} [{} of {} cases]", text, of.size(), entries.size()));
  }
  return lines;
}

items verdict_of(const json& result) {
  const json& entries = result.at("results");
  std::size_t ok = 0, partial = 0, failed = 0, skipped = 0, identical = 0, different = 0;
  for (const json& entry : entries) {
    const std::string status = entry.at("status");
    ++(status == "ok" ? ok : status == "partial" ? partial : status == "skipped" ? skipped : failed);
    if (const json replicas = entry.value("replicas_identical", json()); has_figures(entry) && replicas.is_boolean())
      ++(replicas.get<bool>() ? identical : different);
  }
  items texts;
  if (failed > 0) texts.push_back(fmt::format("{} of {} cases failed", failed, entries.size()));
  if (partial > 0) texts.push_back(fmt::format("{} of {} cases with some of their repeats", partial, entries.size()));
  if (skipped > 0) texts.push_back(fmt::format("{} of {} cases skipped", skipped, entries.size()));
  if (different > 0)
    texts.push_back("REPLICAS DIFFER");
  else if (identical > 0)
    texts.push_back("replicas identical");
  if (ok + partial > 0) texts.push_back(check_results(entries).empty() ? "canary passed" : "CANARY FAILED");
  return texts;
}

} // namespace regatta
