// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/manifest.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "kubernetes/yaml.hpp"
#include "text/values.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t longest_label = 63; // RFC 1123
constexpr const char* experiment_folder = "/etc/regatta/experiment";
constexpr const char* secret_folder = "/etc/regatta/secret";
constexpr const char* results_folder = "/results";

bool is_label_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

bool is_label(std::string_view name) {
  return !name.empty() && name.size() <= longest_label && name.front() != '-' && name.back() != '-' &&
         std::ranges::all_of(name, is_label_character);
}

ordered_json metadata(const kubernetes_job& job) {
  ordered_json m = {{"name", job.name}};
  if (!job.namespace_.empty()) m["namespace"] = job.namespace_;
  m["labels"] = {{"app.kubernetes.io/name", "regatta"}, {"app.kubernetes.io/instance", job.name}};
  return m;
}

// The selector of the job's pods, for kubectl.
std::string pods_of(const kubernetes_job& job) {
  return "app.kubernetes.io/instance=" + job.name;
}

std::string coordinator_of(const kubernetes_job& job) {
  return fmt::format("{0}-0.{0}:{1}", job.name, kubernetes_port);
}

ordered_json resources_of(const kubernetes_job& job) {
  ordered_json amounts = ordered_json::object();
  if (!job.cpu.empty()) amounts["cpu"] = job.cpu;
  if (!job.memory.empty()) amounts["memory"] = job.memory;
  if (job.gpus) amounts["nvidia.com/gpu"] = std::to_string(job.gpus);
  if (amounts.empty()) return ordered_json::object();
  return {{"requests", amounts}, {"limits", amounts}};
}

ordered_json container_of(const kubernetes_job& job) {
  ordered_json arguments = {"run",        fmt::format("{}/{}", experiment_folder, job.file_name),
                            "--out",      fmt::format("{}/{}", results_folder, job.name),
                            "--format",   "json",
                            "--progress", "never"};
  ordered_json c = {{"name", "regatta"},
                    {"image", job.image},
                    {"command", {"regatta"}},
                    {"args", arguments},
                    {"env",
                     {{{"name", "REGATTA_RANKS"}, {"value", std::to_string(job.processes)}},
                      {{"name", "REGATTA_COORDINATOR"}, {"value", coordinator_of(job)}},
                      {{"name", "REGATTA_SECRET_FILE"}, {"value", fmt::format("{}/secret", secret_folder)}}}}};
  if (ordered_json resources = resources_of(job); !resources.empty()) c["resources"] = std::move(resources);
  c["securityContext"] = {{"allowPrivilegeEscalation", false}};
  c["volumeMounts"] = {{{"name", "secret"}, {"mountPath", secret_folder}, {"readOnly", true}},
                       {{"name", "experiment"}, {"mountPath", experiment_folder}, {"readOnly", true}},
                       {{"name", "results"}, {"mountPath", results_folder}},
                       {{"name", "shm"}, {"mountPath", "/dev/shm"}}};
  return c;
}

ordered_json pod_of(const kubernetes_job& job) {
  ordered_json pod = {{"subdomain", job.name},
                      {"restartPolicy", "Never"},
                      {"automountServiceAccountToken", false},
                      {"enableServiceLinks", false}};
  if (job.one_per_node)
    pod["affinity"] = {
        {"podAntiAffinity",
         {{"requiredDuringSchedulingIgnoredDuringExecution",
           ordered_json::array({{{"labelSelector", {{"matchLabels", {{"app.kubernetes.io/instance", job.name}}}}},
                                 {"topologyKey", "kubernetes.io/hostname"}}})}}}};
  pod["containers"] = ordered_json::array({container_of(job)});
  ordered_json results = {{"name", "results"}};
  if (job.results_claim.empty())
    results["emptyDir"] = ordered_json::object();
  else
    results["persistentVolumeClaim"] = {{"claimName", job.results_claim}};
  pod["volumes"] = {{{"name", "secret"}, {"secret", {{"secretName", job.name}, {"defaultMode", 0400}}}},
                    {{"name", "experiment"}, {"configMap", {{"name", job.name}}}},
                    std::move(results),
                    {{"name", "shm"}, {"emptyDir", {{"medium", "Memory"}}}}};
  return pod;
}

std::string heading(const kubernetes_job& job) {
  const std::string in = job.namespace_.empty() ? "" : " -n " + job.namespace_,
                    first = pods_of(job) + ",batch.kubernetes.io/job-completion-index=0";
  std::string text =
      fmt::format("{0} in {1} pod{2}. This file holds the secret of the run: keep it to yourself, and print a new one "
                  "for each run.\n"
                  "\n"
                  "start      kubectl create -f FILE\n"
                  "watch      kubectl get pods{3} -l {4} -o wide\n"
                  "wait       kubectl wait{3} --for=condition=complete --timeout=24h job/{5}\n"
                  "result     kubectl logs{3} --tail=-1 -l {6} | sed -n '/^{{$/,/^}}$/p' >result.json\n"
                  "           regatta report result.json\n"
                  "messages   kubectl logs{3} --prefix --tail=-1 -l {4}\n"
                  "remove     kubectl delete{3} job,service,configmap,secret -l {4}\n"
                  "\n",
                  job.file_name, job.processes, job.processes == 1 ? "" : "s", in, pods_of(job), job.name, first);
  if (job.results_claim.empty())
    text += fmt::format(
        "The folder of results ends with the pod; `--results CLAIM` keeps it in a volume. While the job runs:\n"
        "           kubectl cp{0} \"$(kubectl get pods{0} -l {1} -o name | cut -d/ -f2)\":{2}/{3} {3}",
        in, first, results_folder, job.name);
  else
    text += fmt::format("The folder of results is {} of the volume {}.", job.name, job.results_claim);
  return text;
}

yaml_comments comments_of(std::size_t document) {
  const std::string pod = "/spec/template/spec/", container = pod + "containers/0/";
  switch (document) {
  case 0: return {{"/kind", "The processes prove to each other that they know it. Pods read it as a file."}};
  case 1: return {{"/data", "The experiment, as it was written."}};
  case 2:
    return {{"/kind", "Gives each pod a name: pod k is NAME-k.NAME. Opens nothing: all ports of the pods stay as they "
                      "are."},
            {"/spec/publishNotReadyAddresses", "Names exist as soon as a pod has an address, before it is ready."}};
  default:
    return {{"/spec/completionMode",
             "Pod k runs process k: Kubernetes sets JOB_COMPLETION_INDEX. If one pod fails, all "
             "end, and none is started again."},
            {pod + "enableServiceLinks", "Without variables of other services in the environment."},
            {pod + "affinity", "No two pods of the job on one node."},
            {container + "args",
             "The result goes to standard output of pod 0, and its folder to " + std::string(results_folder) + "."},
            {container + "resources", "Requests equal limits: no other pod is promised these CPUs and this memory."},
            {pod + "volumes/0/name", "Mode 0400, in decimal: nobody else in the pod can read it."},
            {pod + "volumes/3/name", "Shared memory of NCCL and MPI; without it, it ends at 64 MiB."}};
  }
}

} // namespace

std::optional<std::string> job_name_problem(const std::string& name, std::uint32_t processes) {
  if (!is_label(name) || (name[0] >= '0' && name[0] <= '9'))
    return fmt::format(
        "expected a DNS label of at most 63 lower-case letters, digits and '-' that begins with a letter "
        "and does not end with '-', got \"{}\"",
        one_line(name));
  const std::string last = fmt::format("{}-{}", name, processes - 1);
  if (last.size() > longest_label)
    return fmt::format("expected at most {} characters, because the last of {} pods is named {}, which must be a DNS "
                       "label of at most 63 characters; got {}",
                       longest_label - (last.size() - name.size()), processes, last, name.size());
  return {};
}

std::optional<std::string> namespace_problem(const std::string& name) {
  if (is_label(name)) return {};
  return fmt::format(
      "expected a DNS label of at most 63 lower-case letters, digits and '-' that neither begins nor ends "
      "with '-', got \"{}\"",
      one_line(name));
}

std::optional<std::string> image_problem(const std::string& image) {
  const auto allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("._-/:@", c); };
  if (!image.empty() && image.size() <= 500 && std::isalnum(static_cast<unsigned char>(image[0])) &&
      std::ranges::all_of(image, allowed))
    return {};
  return fmt::format("expected the name of an image, such as registry.example.org/regatta:0.1, got \"{}\"",
                     one_line(image));
}

std::string job_name_of(const std::string& experiment) {
  constexpr std::size_t longest = longest_label - 5; // "-4095"
  std::string name = "regatta-";
  for (const char c : experiment) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != '-' && is_label_character(lower))
      name += lower;
    else if (name.back() != '-')
      name += '-';
  }
  name.resize(std::min(name.size(), longest));
  while (name.back() == '-') name.pop_back();
  return name;
}

std::optional<std::string> cpu_quantity(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  if (error != std::errc() || !(number > 0) || number > 1e6 || (unit != "" && unit != "m")) return {};
  const double thousandths = number * (unit == "m" ? 1 : 1000);
  const auto whole = static_cast<std::int64_t>(thousandths);
  if (static_cast<double>(whole) != thousandths) return {}; // Kubernetes counts in thousandths
  return whole % 1000 == 0 ? std::to_string(whole / 1000) : fmt::format("{}m", whole);
}

std::optional<std::string> memory_quantity(const std::string& text) {
  const bool bare = !text.empty() && text.back() != 'B' && !std::isdigit(static_cast<unsigned char>(text.back()));
  const auto bytes = parse_bytes(bare ? text + "B" : text);
  if (!bytes || *bytes < 1 << 20) return {};
  std::string quantity = exact_bytes(*bytes);
  quantity.pop_back(); // B
  return quantity;
}

std::vector<ordered_json> kubernetes_objects(const kubernetes_job& job) {
  const auto object = [&](const char* version, const char* kind) {
    return ordered_json{{"apiVersion", version}, {"kind", kind}, {"metadata", metadata(job)}};
  };
  // Immutable: applying a second print of this file over a running job fails, instead of giving it another secret.
  ordered_json secret = object("v1", "Secret");
  secret["type"] = "Opaque";
  secret["immutable"] = true;
  secret["stringData"] = {{"secret", job.secret}};
  ordered_json config = object("v1", "ConfigMap");
  config["immutable"] = true;
  config["data"] = {{job.file_name, job.experiment}};
  ordered_json service = object("v1", "Service");
  service["spec"] = {{"clusterIP", "None"},
                     {"publishNotReadyAddresses", true},
                     {"selector", {{"app.kubernetes.io/instance", job.name}}},
                     {"ports", ordered_json::array({{{"name", "coordinator"}, {"port", kubernetes_port}}})}};
  ordered_json jobs = object("batch/v1", "Job");
  jobs["spec"] = {{"completionMode", "Indexed"},
                  {"completions", job.processes},
                  {"parallelism", job.processes},
                  {"backoffLimit", 0},
                  {"template", {{"metadata", {{"labels", metadata(job)["labels"]}}}, {"spec", pod_of(job)}}}};
  return {std::move(secret), std::move(config), std::move(service), std::move(jobs)};
}

std::string kubernetes_yaml(const kubernetes_job& job) {
  const auto objects = kubernetes_objects(job);
  std::string text = yaml_comment(heading(job));
  for (std::size_t i = 0; i < objects.size(); ++i) text += "---\n" + yaml_text(objects[i], comments_of(i));
  return text;
}

std::string kubernetes_json(const kubernetes_job& job) {
  return document_text(ordered_json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", kubernetes_objects(job)}});
}

} // namespace regatta
