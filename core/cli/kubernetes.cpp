// SPDX-License-Identifier: Apache-2.0
#include "cli/kubernetes.hpp"

#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/findings.hpp"
#include "base/text.hpp"
#include "campaign/prepare.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/standard_output.hpp"
#include "config/load.hpp"
#include "config/toml_document.hpp"
#include "control/crypto.hpp"
#include "kubernetes/manifest.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace regatta {
namespace {

constexpr std::size_t largest_file = 1'000'000; // bytes; a ConfigMap holds 1 MiB, names and labels included

void say(const std::string& text) {
  print_error(text + "\n");
}

void refuse(const std::string& what) {
  throw failure(exit_code::usage, "regatta: kubernetes: " + what);
}

// Throws failure (usage) "OPTION: PROBLEM" if there is a problem.
void require(const char* option, const std::optional<std::string>& problem) {
  if (problem) refuse(fmt::format("{}: {}", option, *problem));
}

// Returns the case as its pods see it: every worker is on a host of its own.
case_config in_pods(case_config c) {
  c.cluster.hosts = std::max<std::int64_t>(c.cluster.hosts, c.cluster.workers);
  return c;
}

// Returns how many ranks the largest case has. Cases that cannot run are said on standard error; throws their reasons
// if none can.
std::uint32_t ranks_of(const experiment& e, const registry& plugins) {
  plugin_facts_cache facts(plugins);
  std::vector<case_config> cases;
  for (const case_config& c : e.cases) cases.push_back(in_pods(c));
  facts.collect(cases);
  std::uint32_t most = 0;
  findings reasons;
  std::set<std::string> said;
  for (const case_config& c : cases) {
    try {
      most = std::max(most, prepare(facts, c, "").job.layout.size());
    } catch (const failure& f) {
      const std::string reason = c.written.reason_of(f);
      reasons.add({f.code(), reason});
      said.insert(reason);
    }
  }
  if (most == 0) {
    say("regatta: kubernetes: no case can run with each rank in a pod, as on a host, of its own:");
    reasons.raise();
  }
  for (const std::string& reason : said) say(fmt::format("warning: a case will not run in pods: {}", reason));
  return most;
}

// Says which files of this machine the cases read: the pods have only the experiment's text.
void name_files(const experiment& e) {
  std::set<std::string> paths(e.plugin_path.begin(), e.plugin_path.end());
  for (const case_config& c : e.cases)
    for (const std::string& path : {c.data.path, c.data.evaluation_path, c.data.vocabulary})
      if (!path.empty() && !c.data.generate) paths.insert(path);
  if (!paths.empty())
    say(fmt::format("warning: the image or a volume that you add must have {}", join({paths.begin(), paths.end()})));
}

// Returns 32 random bytes as text in base64 (RFC 4648). The file in the pod holds this text, so that no reader can take
// a byte of it for a newline or an end.
std::string new_secret() {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const blob bytes = random_bytes(32);
  std::string text;
  std::uint32_t bits = 0;
  int have = 0;
  for (const std::uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    for (have += 8; have >= 6; have -= 6) text += digits[bits >> (have - 6) & 63];
  }
  if (have) text += digits[bits << (6 - have) & 63];
  while (text.size() % 4) text += '=';
  return text;
}

std::string file_name_of(const std::filesystem::path& file) {
  std::string name = file.filename().string(); // a key of a ConfigMap
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') c = '-';
  return name.size() > 200 || name.starts_with("..") ? "experiment.toml" : name;
}

} // namespace

int kubernetes_verb(const kubernetes_options& o) {
  kubernetes_job job;
  require("--image", image_problem(o.image));
  if (!o.namespace_.empty()) require("--namespace", namespace_problem(o.namespace_));
  if (!o.results_claim.empty()) require("--results", namespace_problem(o.results_claim));
  const auto quantity = [](const char* option, const std::string& text, auto&& convert, const char* expected) {
    const auto out = text.empty() ? std::optional<std::string>("") : convert(text);
    if (!out) refuse(fmt::format("{}: expected {}, got \"{}\"", option, expected, one_line(text)));
    return *out;
  };
  job.cpu = quantity("--cpu", o.cpu, cpu_quantity, "a number of CPUs above 0, such as 4, 0.5 or 500m");
  job.memory = quantity("--memory", o.memory, memory_quantity, "a size of at least 1 MiB, such as 16GiB");

  const registry plugins(plugin_folders(o.plugin_path, plugin_path_of(o.file, {})));
  const experiment e = load_experiment(o.file, {}, catalogue_of(plugins));
  for (const std::string& notice : e.notices) say(notice);
  const std::uint32_t ranks = ranks_of(e, plugins);
  if (o.processes && o.processes < ranks)
    refuse(fmt::format("--processes: expected at least {}, the ranks of the largest case, got {}", ranks, o.processes));

  job.processes = o.processes ? o.processes : ranks;
  job.name = o.name.empty() ? job_name_of(e.name) : o.name;
  require("--name", job_name_problem(job.name, job.processes));
  job.namespace_ = o.namespace_;
  job.image = o.image;
  const bool devices = std::ranges::any_of(e.cases, [](const case_config& c) { return c.train.device == "cuda"; });
  job.gpus = static_cast<std::uint32_t>(o.gpus >= 0 ? o.gpus : devices ? 1 : 0);
  job.results_claim = o.results_claim;
  job.one_per_node = o.one_per_node;
  job.file_name = file_name_of(o.file);
  job.experiment = read_text(o.file);
  if (job.experiment.size() > largest_file)
    refuse(fmt::format("{}: expected at most {} bytes, which a ConfigMap can hold, got {}", o.file.string(),
                       largest_file, job.experiment.size()));
  job.secret = new_secret();
  name_files(e);
  print_output(o.format == "json" ? kubernetes_json(job) : kubernetes_yaml(job));
  return 0;
}

} // namespace regatta
