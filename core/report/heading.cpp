// SPDX-License-Identifier: Apache-2.0
#include "report/heading.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "machine/core_independence.hpp"
#include "report/common_settings.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"
#include "report/rounded.hpp"
#include "results/inference.hpp"
#include "text/values.hpp"

namespace regatta {
namespace {

using nlohmann::json;
using items = std::vector<std::string>;

// Keys that the heading, or a column of the table, shows in words.
const std::vector<std::string> told_otherwise = {"model.plugin",
                                                 "optimizer.plugin",
                                                 "optimizer.lr",
                                                 "optimizer.schedule.name",
                                                 "strategy.plugin",
                                                 "transport.plugin",
                                                 "train.batch",
                                                 "train.batch_unit",
                                                 "train.scaling",
                                                 "train.precision",
                                                 "cluster.workers",
                                                 "cluster.servers",
                                                 "cluster.threads",
                                                 "cluster.colocate",
                                                 "cluster.straggler.rank",
                                                 "cluster.straggler.factor",
                                                 "measure.steps",
                                                 "measure.seconds",
                                                 "measure.repeats",
                                                 "measure.precision",
                                                 "measure.budget",
                                                 "data.source",
                                                 "data.queue_source",
                                                 "data.content"};

bool is_told(const std::string& key) {
  return std::find(told_otherwise.begin(), told_otherwise.end(), key) != told_otherwise.end();
}

// Appends for example "lr 0.01" if the text is known.
void add_named(items& to, const std::string& name, const std::string& text) {
  if (!text.empty()) to.push_back(name + " " + text);
}

std::string count_text(double n) {
  return n >= 1e6   ? fmt::format("{:.2f} M", n / 1e6)
         : n >= 1e4 ? fmt::format("{:.1f} k", n / 1e3)
                    : fmt::format("{:.0f}", n);
}

// Returns for example "bert base (layers 2, vocabulary 8000)". Parameters that are words name the variant; changed
// numbers are listed, so that a modified model is not taken for the published one.
std::string variant_text(const common_settings& common, const json& experiment) {
  std::string name = common.text("model.plugin");
  if (name.empty()) return ""; // the model varies: given_texts() shows it
  const json parameters = experiment.value("model", json::object()).value("parameters", json::object());
  const auto is_word = [&](const std::string& key) { return parameters.value(key, json()).is_string(); };
  for (const auto& [key, value] : parameters.items())
    if (is_word(key) && value != "" && !common.varies("model." + key)) name += " " + plain_text(value);
  items changed;
  for (const auto& [key, text] : common.parameters("model"))
    if (!is_word(key)) add_named(changed, key, text);
  return changed.empty() ? name : name + " (" + join(changed) + ")";
}

// Returns for example "vgg16 cifar10, 15.25 M parameters, 61.0 MB of gradients". Only rows of sparse tables are
// exchanged, so they are listed apart: "10.43 M parameters, 10.00 M of them in sparse tables, 1.72 MB of dense
// gradients".
std::string model_text(const json& result, const common_settings& common, const json& experiment) {
  items parts;
  if (const std::string variant = variant_text(common, experiment); !variant.empty()) parts.push_back(variant);
  json count, in_tables;
  for (const json& entry : result.at("results")) {
    const json here = entry.value("parameters", json());
    if (here.is_null()) continue;
    if (!count.is_null() && count != here) return join(parts); // the numbers vary with the case
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

// Returns for example "momentum, lr 0.01, weight_decay 0.0001, schedule linear (length 1000, warmup 10)".
std::string optimizer_text(const common_settings& common) {
  const std::string of_schedule = "schedule.";
  items parts, schedule;
  if (const std::string rule = common.text("optimizer.plugin"); !rule.empty()) parts.push_back(rule);
  add_named(parts, "lr", common.text("optimizer.lr"));
  for (const auto& [name, text] : common.given("optimizer")) {
    if (is_told("optimizer." + name)) continue;
    const bool length = name.starts_with(of_schedule);
    add_named(length ? schedule : parts, length ? name.substr(of_schedule.size()) : name, text);
  }
  std::string how = common.text("optimizer.schedule.name");
  if (!schedule.empty()) how += (how.empty() ? "(" : " (") + join(schedule) + ")";
  if (how != "constant") add_named(parts, "schedule", how);
  return join(parts);
}

// Returns for example "fp32, executor onednn".
std::string arithmetic_text(const common_settings& common) {
  items parts;
  if (const std::string precision = common.text("train.precision"); !precision.empty()) parts.push_back(precision);
  if (!common.varies("train.executor")) add_named(parts, "executor", join(common.plugins("executor"), " and "));
  return join(parts);
}

// Returns for example "data random, content normal": zeros compute faster than other numbers, and generated input is
// faster than files.
std::string data_text(const common_settings& common) {
  const std::string source = common.text("data.source");
  const std::string held = source == "queue" ? common.text("data.queue_source") : source;
  items parts;
  add_named(parts, "data", source);
  if (source == "queue") add_named(parts, "of", held);
  if (held != "dataset" && held != "stream") add_named(parts, "content", common.text("data.content"));
  for (const auto& [name, text] : common.given("data"))
    if (!is_told("data." + name)) add_named(parts, name, text);
  return join(parts);
}

// Returns for example "1 thread and batch 128 a worker". The text must say whether a batch is that of one worker or of
// all.
std::string share_text(const common_settings& common) {
  const std::string threads = common.text("cluster.threads"), batch = common.text("train.batch");
  const bool strong = common.text("train.scaling") == "strong";
  items each, other;
  if (!threads.empty()) each.push_back(threads + (threads == "1" ? " thread" : " threads"));
  if (!batch.empty() && !common.varies("train.scaling"))
    (strong ? other : each)
        .push_back("batch " + batch + (common.text("train.batch_unit") == "tokens" ? " tokens" : "") +
                   (strong ? " in all" : ""));
  if (!each.empty()) other.insert(other.begin(), join(each, " and ") + " a worker");
  return join(other);
}

// Returns for example "worker 1 computes 2 times as long": without it, the cost of a straggler looks like a slow
// strategy.
std::string straggler_text(const json& experiment, const common_settings& common) {
  const json cluster = experiment.value("cluster", json::object()), factor = cluster.value("straggler.factor", json());
  if (common.varies("cluster.straggler.factor")) {
    const std::string rank = common.text("cluster.straggler.rank");
    return rank.empty() ? "" : "slow worker: " + rank;
  }
  if (!factor.is_number() || factor <= 1 || common.varies("cluster.straggler.rank")) return "";
  return fmt::format("worker {} computes {:g} times as long", plain_text(cluster.value("straggler.rank", json(0))),
                     factor.get<double>());
}

// Returns for example "strategy.algorithm: sharded", "geo_ps.k: 400", "train.accumulate: 4": settings that differ from
// their defaults. Without them the figures would be taken for those of the plugin's defaults.
items given_texts(const common_settings& common) {
  items texts;
  const auto add = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) texts.push_back(name + ": " + text);
  };
  for (const char* section : {"model", "strategy", "transport"}) {
    const bool varies = common.text(std::string(section) + ".plugin").empty();
    if (section == std::string("model") && !varies) continue; // the model's are beside its name
    for (const auto& [name, text] : common.parameters(section)) add(varies ? name : section + ("." + name), text);
  }
  for (const std::string section : {"experiment", "train", "cluster", "measure"})
    for (const auto& [name, text] : common.given(section))
      if (const std::string key = section + "." + name; !is_told(key)) add(key, text);
  for (const auto& [key, text] : common.swept_alike(told_otherwise)) add(key, text);
  return texts;
}

// Returns for example "algorithms: ring", or for several cases "algorithms: ring (2 of 4 cases), sharded (2 of 4
// cases)": a strategy may choose them itself. Cases of one worker, in which nothing is exchanged, do not count.
std::string algorithms_text(const json& result) {
  std::map<std::string, std::size_t> cases;
  std::size_t all = 0;
  for (const json& entry : result.at("results"))
    if (const json names = entry.value("fingerprint", json::object()).value("algorithms", json()); names.is_string()) {
      ++cases[plain_text(names)];
      ++all;
    }
  items texts;
  for (const auto& [names, n] : cases)
    texts.push_back(n == all ? names : fmt::format("{} ({} of {} cases)", names, n, all));
  return texts.empty() ? "" : "algorithms: " + join(texts);
}

// Equal hosts are counted, not repeated.
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
    if (alike[text]++ > 0) continue;
    lines.push_back(text);
    if (const std::string truth = independence_text(host.value("core_independence", json())); !truth.empty())
      lines.push_back("2 cores at once: " + truth);
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

// Returns for example "6 repeats" or "6 to 23 repeats".
std::string range_text(std::int64_t least, std::int64_t most, const char* unit) {
  if (least == most) return fmt::format("{} {}{}", most, unit, most == 1 ? "" : "s");
  return fmt::format("{} to {} {}s", least, most, unit);
}

std::string sampled_text(const json& result, const json& measure) {
  std::int64_t fewest = INT64_MAX, most = 0, shortest = INT64_MAX, longest = 0;
  for (const json& entry : result.at("results")) {
    const json sampling = entry.value("sampling", json()), rate = entry.value("samples_per_second", json());
    if (!sampling.is_object() || !rate.is_object()) continue;
    const auto n = rate.at("n").get<std::int64_t>(), length = sampling.at("length").get<std::int64_t>();
    fewest = std::min(fewest, n);
    most = std::max(most, n);
    shortest = std::min(shortest, length);
    longest = std::max(longest, length);
  }
  std::string wanted = fmt::format("wanted: ±{:g} % within {}", 100 * measure.at("precision").get<double>(),
                                   exact_nanoseconds(measure.at("budget")));
  if (most == 0) return wanted;
  const double seconds = measure.value("seconds", 0.0);
  const auto steps = measure.value("steps", std::int64_t{0});
  const std::string each =
      seconds > 0 ? human_seconds(seconds * static_cast<double>(shortest)) +
                        (shortest == longest ? "" : " to " + human_seconds(seconds * static_cast<double>(longest)))
                  : range_text(steps * shortest, steps * longest, "step");
  return fmt::format("{} of {} ({})", range_text(fewest, most, "repeat"), each, wanted);
}

// Returns for example "3 repeats of 30 steps"; with measure.precision "8 to 23 repeats of 30 to 120 steps, for E known
// to ±2 % in at most 10min".
std::string repeats_text(const json& result, const json& experiment) {
  const json measure = experiment.value("measure", json::object());
  if (const json precision = measure.value("precision", json()); precision.is_number() && precision > 0)
    return sampled_text(result, measure);
  const json repeats = measure.value("repeats", json()), steps = measure.value("steps", json()),
             seconds = measure.value("seconds", json());
  if (!repeats.is_number()) return "";
  std::string text = repeats == 1 ? "1 repeat" : plain_text(repeats) + " repeats";
  if (seconds.is_number() && seconds.get<double>() > 0) return text + " of " + human_seconds(seconds);
  return steps.is_number() ? fmt::format("{} of {} {}", text, plain_text(steps), steps == 1 ? "step" : "steps") : text;
}

// Returns what the column `column` shows, the interval of `figure`: "E from–to", "efficiency"; empty if no case has
// one.
std::string interval_text(const json& result, const std::string& column, const char* figure) {
  std::size_t fewest = SIZE_MAX;
  double coverage = 1;
  for (const json& entry : result.at("results")) {
    const json e = entry.value(figure, json());
    if (!e.is_object() || e.value("n", std::size_t{0}) < 2) continue;
    fewest = std::min(fewest, e.at("n").get<std::size_t>());
    coverage = std::min(coverage, e.at("coverage").get<double>());
  }
  if (fewest == SIZE_MAX) return "";
  if (coverage >= usual_confidence) return column + ": 95 % interval of the median";
  return fmt::format("{}: range of {} repeats, a {:.3g} % interval; 95 % takes {} repeats", column, fewest,
                     100 * coverage, fewest_pairs(1));
}

// Returns for example "noise: baseline against itself 0.97–1.03", over the repeats of all cases; empty if no case has a
// baseline.
std::string noise_text(const json& result) {
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const json& entry : result.at("results")) {
    const json noise = entry.value("noise", json());
    if (!noise.is_object()) continue;
    low = std::min(low, noise.at("min").get<double>());
    high = std::max(high, noise.at("max").get<double>());
  }
  if (low > high) return "";
  return fmt::format("noise: baseline against itself {:.2f}–{:.2f}", low, high);
}

} // namespace

std::vector<items> heading_of(const json& result, const items& constant) {
  const json& context = result.at("context");
  const json experiment = context.value("experiment", json::object());
  const common_settings common(result);
  std::vector<items> lines;
  lines.push_back({common.text("experiment.name"), model_text(result, common, experiment), optimizer_text(common),
                   arithmetic_text(common), share_text(common), data_text(common), straggler_text(experiment, common)});
  if (result.value("simulated", false)) lines.back().insert(lines.back().begin(), "SIMULATED");
  lines.push_back(constant);
  lines.push_back(given_texts(common));
  lines.back().push_back(algorithms_text(result));
  items machine = machine_texts(context);
  machine.push_back(program_text(context));
  machine.push_back(repeats_text(result, experiment));
  machine.push_back(interval_text(result, "E from–to", "efficiency"));
  machine.push_back(interval_text(result, "after from–to", "seconds_to_target"));
  machine.push_back(noise_text(result));
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
    if (entries.size() == 1)
      lines.push_back(text);
    else if (of.size() == entries.size())
      lines.push_back(fmt::format("{} ({} cases)", text, of.size()));
    else if (of.size() == 1)
      lines.push_back(fmt::format("{} [{}]", text, one_line(case_label(*of.front()))));
    else
      lines.push_back(fmt::format("{} ({} of {} cases)", text, of.size(), entries.size()));
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
  // Cases that had not begun when a campaign was interrupted have no entry.
  const std::size_t planned = std::max(entries.size(), result.at("context").value("cases", std::size_t{0}));
  if (const std::size_t ended = entries.size() - partial; ended < planned)
    texts.push_back(fmt::format("{} of {} cases", ended, planned));
  if (failed > 0) texts.push_back(fmt::format("{} of {} cases failed", failed, planned));
  if (partial > 0) texts.push_back(fmt::format("{} of {} cases with some of their repeats", partial, planned));
  if (skipped > 0) texts.push_back(fmt::format("{} of {} cases skipped", skipped, planned));
  if (different > 0)
    texts.push_back("REPLICAS DIFFER");
  else if (identical > 0)
    texts.push_back("replicas identical");
  if (ok + partial > 0)
    texts.push_back(check_results(entries).empty() ? "result checks passed" : "RESULT CHECKS FAILED");
  return texts;
}

} // namespace regatta
