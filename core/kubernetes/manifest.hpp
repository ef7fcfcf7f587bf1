// SPDX-License-Identifier: Apache-2.0
//
// The Kubernetes objects that run an experiment in pods: a Secret, a ConfigMap, a headless Service and an Indexed Job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// A request to `regatta kubernetes`. Every pod runs one process.
struct kubernetes_job {
  std::string name;       // of all four objects; a name that job_name_problem() accepts
  std::string namespace_; // empty: that of kubectl's context
  std::string image;
  std::uint32_t processes = 1;
  // Of each pod:
  std::string cpu;           // a quantity of Kubernetes: "4", "500m"; empty: no limit
  std::string memory;        // a quantity of Kubernetes: "16Gi"; empty: no limit
  std::uint32_t gpus = 0;    // of NVIDIA
  std::string results_claim; // a PersistentVolumeClaim that every pod mounts; empty: a folder that ends with the pod
  bool one_per_node = false; // no two pods on one node
  std::string file_name;     // of the experiment, without folder
  std::string experiment;    // its text
  std::string secret;        // of the launch (join/secret.hpp), as text without newline
};

// The port on which process 0 listens for the others.
inline constexpr std::uint16_t kubernetes_port = 7117;

// [any] Returns why `name` cannot name a Job of so many pods and its Service ("expected ..."); nullopt if it can. Pod k
// has the host name NAME-k, which must be a DNS label: at most 63 lower-case letters, digits and '-', the first a
// letter, the last no '-'.
std::optional<std::string> job_name_problem(const std::string& name, std::uint32_t processes);
// [any] Returns why `name` is no namespace ("expected ..."); nullopt if it is one.
std::optional<std::string> namespace_problem(const std::string& name);
// [any] Returns why `image` is no reference of an image ("expected ..."); nullopt if it may be one.
std::optional<std::string> image_problem(const std::string& image);
// [any] Returns the name for the Job of an experiment: "regatta-" and the experiment's name, with '-' in place of what
// a DNS label cannot have, and short enough for 4096 pods.
std::string job_name_of(const std::string& experiment);

// [any] Return the quantity of Kubernetes; nullopt if the text is none. CPUs: "4", "0.5", "500m", above 0, in whole
// thousandths. Memory: sizes such as "16GiB", and as Kubernetes writes them ("16Gi"), from 1 MiB on.
std::optional<std::string> cpu_quantity(const std::string& text);
std::optional<std::string> memory_quantity(const std::string& text);

// [any] Returns the four objects, in the order in which they are to be created.
std::vector<nlohmann::ordered_json> kubernetes_objects(const kubernetes_job& job);

// [any] Returns the objects as one stream of YAML documents, with comments that say how to start the job, where its
// results are and how to remove it.
std::string kubernetes_yaml(const kubernetes_job& job);
// [any] Returns the objects as one JSON document, a List, which kubectl accepts, too.
std::string kubernetes_json(const kubernetes_job& job);

} // namespace regatta
