// SPDX-License-Identifier: Apache-2.0
#include "join/environment.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "join/variables.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

namespace regatta {
namespace {

using meeting = launcher_environment::meeting;

constexpr int most_ports = 17; // torchrun's agent holds at most MASTER_PORT; others may hold a few after it
const std::string to_meet_anywhere =
    "set REGATTA_COORDINATOR=HOST:PORT (HOST: a name or address of process 0's host) and REGATTA_SECRET_FILE=FILE "
    "(openssl rand -hex 32 > FILE; chmod 600 FILE; the same on all hosts) in the environment of all processes";

// A launch that variables describe, before it is known how its processes meet.
struct place {
  launched_pair at;
  std::string launcher, job;
  std::uint32_t slots = 1, nodes = 1;
  bool pmix = false;
  const char *host = nullptr, *port = nullptr; // variables with the address of process 0; null: none
  std::string advice = to_meet_anywhere;
};

failure contradiction(const launched_pair& a, const launched_pair& b) {
  const bool ranks = a.rank != b.rank;
  return {exit_code::usage,
          fmt::format("{}={} in the environment, but {}={}: expected the same from both. Start the processes with one "
                      "launcher, or set REGATTA_RANK, REGATTA_RANKS and REGATTA_COORDINATOR, which decide",
                      ranks ? a.rank_name : a.size_name, ranks ? a.rank : a.size, ranks ? b.rank_name : b.size_name,
                      ranks ? b.rank : b.size)};
}

void expect_agreement(const launched_pair& a, const launched_pair& b) {
  if (a.rank != b.rank || (a.size && a.size != b.size)) throw contradiction(a, b);
}

// Processes of one launcher have a parent in common if they are on one host.
std::string job_of(const variables& v, const std::string& launcher, const char* name) {
  const std::string named = v.text(name);
  std::string job = fmt::format("{} {}", launcher, named.empty() ? fmt::format("parent {}", ::getppid()) : named);
  if (const std::string step = v.text("SLURM_STEP_ID"); !step.empty())
    job += "." + step; // the dot tells step 23 of job 1 from step 3 of job 12
  return job;
}

std::optional<place> slurm_place(const variables& v) {
  if (!v.has("SLURM_STEP_NUM_TASKS")) return {}; // a batch script has SLURM_PROCID, too
  const auto at = v.pair("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (!at) return {};
  place p{*at, "srun", job_of(v, "srun", "SLURM_JOB_ID")};
  const auto step = v.number("SLURM_STEP_NUM_NODES");
  p.nodes = (step ? step : v.number("SLURM_NNODES")).value_or(1);
  p.advice = "start them with srun --mpi=pmix, or " + to_meet_anywhere;
  return p;
}

// Returns whether a PMIx server can be reached: PMIX_RANK without one comes from an inherited environment.
bool has_pmix_server(const variables& v) {
  constexpr const char* names[] = {"PMIX_SERVER_URI",   "PMIX_SERVER_URI2",  "PMIX_SERVER_URI21", "PMIX_SERVER_URI3",
                                   "PMIX_SERVER_URI31", "PMIX_SERVER_URI4",  "PMIX_SERVER_URI41", "PMIX_SERVER_URI42",
                                   "PMIX_SERVER_URI5",  "PMIX_SERVER_URI51", "PMIX_SERVER_URI6",  "PMIX_SERVER_URI61"};
  return std::any_of(std::begin(names), std::end(names), [&](const char* name) { return v.has(name); });
}

// Returns the place that PMIx or Open MPI gives.
std::optional<place> pmix_place(const variables& v, const std::optional<place>& slurm) {
  const auto ompi = v.pair("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  const auto rank = v.number("PMIX_RANK");
  const std::string space = v.text("PMIX_NAMESPACE");
  if (rank.has_value() == space.empty())
    throw v.half_set("a launcher that serves PMIx", rank ? "PMIX_RANK" : "PMIX_NAMESPACE",
                     rank ? "PMIX_NAMESPACE" : "PMIX_RANK");
  if (!rank && !ompi) return {};
  const bool of_slurm = !ompi && space.starts_with("slurm.pmix."); // else Slurm may have started the launcher's daemons
  const std::string launcher = of_slurm ? "srun" : ompi ? "mpirun" : "a launcher with PMIx";
  place p{ompi ? *ompi : launched_pair{"PMIX_RANK", "the size of PMIx's job", *rank, 0}, launcher,
          job_of(v, launcher, "PMIX_NAMESPACE")};
  if (rank) {
    const launched_pair by_pmix{"PMIX_RANK", "", *rank, 0};
    if (ompi) expect_agreement(by_pmix, *ompi);
    if (of_slurm && slurm) {
      expect_agreement(by_pmix, slurm->at);
      p.at.size_name = slurm->at.size_name;
      p.at.size = slurm->at.size;
    }
    p.pmix = has_pmix_server(v);
    if (!p.pmix && !ompi)
      throw failure(exit_code::usage,
                    fmt::format("{} in the environment, but PMIX_SERVER_URI2 and the like are not set: expected the "
                                "address of the launcher's PMIx server, by which its processes meet. {}",
                                v.said({"PMIX_RANK", "PMIX_NAMESPACE"}), v.or_unset({"PMIX_RANK", "PMIX_NAMESPACE"})));
  }
  return p;
}

// A launcher that starts torchrun's agents starts one for each node. Throws failure (usage) for another number of
// processes: then it was started by a process of torchrun, and its processes have inherited one RANK.
void expect_agents(const variables& v, const launched_pair& launched) {
  const auto agents = v.number("GROUP_WORLD_SIZE");
  if (agents && launched.size && *agents != launched.size)
    throw failure(
        exit_code::usage,
        fmt::format("{}={} in the environment, but GROUP_WORLD_SIZE={}: expected as many processes as torchrun has "
                    "agents. If a process of torchrun started them, all have its RANK: let torchrun start regatta, or "
                    "run the other launcher with `env -u TORCHELASTIC_RUN_ID -u RANK -u WORLD_SIZE`",
                    launched.size_name, launched.size, *agents));
}

// Returns the place that mpirun, srun or mpiexec gives; torchrun's variables must agree with it.
std::optional<place> launcher_place(const variables& v) {
  const auto slurm = slurm_place(v);
  const auto pmix = pmix_place(v, slurm);
  const auto pair = v.pair("mpiexec", "PMI_RANK", "PMI_SIZE");
  std::optional<place> pmi;
  if (pair) pmi = place{*pair, "mpiexec", job_of(v, "mpiexec", "PMI_JOBID")};
  if (pmi && slurm && v.has("PMI_JOBID")) { // Slurm's own PMI; without it, mpiexec's daemons may be a step of Slurm
    expect_agreement(pmi->at, slurm->at);
    pmi.reset();
  }
  std::optional<place> found;
  for (const auto& p : {pmix, pmi, slurm})
    if (p && p->at.size != 1 && !found) found = p;
  const auto torch = v.pair("torchrun", "RANK", "WORLD_SIZE");
  if (found && torch && torch->size > 1) {
    if (v.has("TORCHELASTIC_RUN_ID")) {
      expect_agents(v, found->at);
      return {};
    }
    expect_agreement(found->at, *torch);
    if (!found->pmix && v.has("MASTER_ADDR") && v.has("MASTER_PORT") && v.has("REGATTA_SECRET_FILE")) {
      found->host = "MASTER_ADDR";
      found->port = "MASTER_PORT";
    }
  }
  if (found || (torch && torch->size > 1)) return found;
  return pmix && pmix->launcher == "mpirun" ? pmix : pmi; // a launch of one process, which a transport may need
}

std::optional<place> torchrun_place(const variables& v) {
  const auto at = v.pair("torchrun", "RANK", "WORLD_SIZE");
  if (!at || at->size == 1) return {};
  place p{*at, "torchrun", "torchrun " + v.text("TORCHELASTIC_RUN_ID")};
  p.host = "MASTER_ADDR";
  p.port = "MASTER_PORT";
  const auto local = v.number("LOCAL_WORLD_SIZE");
  p.nodes = local == at->size ? 1 : 0;
  return p;
}

// The variables by which Kubernetes numbers the pods of a job, and Volcano those of a task.
const char* pod_index(const variables& v) {
  for (const char* name : {"JOB_COMPLETION_INDEX", "VC_TASK_INDEX", "VK_TASK_INDEX"})
    if (v.has(name)) return name;
  return nullptr;
}

// Returns the place that Kubeflow's trainer gives, one process a pod; size 1 for one pod.
std::optional<place> kubeflow_place(const variables& v) {
  if (v.text("PET_NNODES").find(':') != std::string::npos)
    throw failure(exit_code::usage, fmt::format("{} in the environment: expected one number of nodes, got a range. "
                                                "Regatta's number of ranks is fixed",
                                                v.said({"PET_NNODES"})));
  const auto at = v.pair("Kubeflow", "PET_NODE_RANK", "PET_NNODES");
  if (!at) return {};
  place p{*at, "Kubeflow (PET_*)", "Kubeflow"};
  p.host = "PET_MASTER_ADDR";
  p.port = "PET_MASTER_PORT";
  p.nodes = 0;
  const std::string per_node = v.text("PET_NPROC_PER_NODE");
  if (per_node == "auto" || per_node == "cpu" || per_node == "gpu")
    p.slots = 0;
  else if (!per_node.empty() && (p.slots = *v.number("PET_NPROC_PER_NODE")) == 0)
    throw failure(exit_code::usage, "PET_NPROC_PER_NODE=0 in the environment: expected 1 or more");
  if (const char* name = pod_index(v); name && *v.number(name) != at->rank && std::string_view(name)[0] == 'J')
    throw contradiction(p.at, {name, "", *v.number(name), 0});
  // Kubeflow's older operator sets these two beside PET_*: the pod's number, and the number of pods or of all ranks.
  if (const auto torch = v.pair("torchrun", "RANK", "WORLD_SIZE"); torch && torch->size > 1) {
    const std::uint64_t ranks = std::uint64_t{at->size} * p.slots;
    if (torch->rank != at->rank || (torch->size != at->size && p.slots != 0 && torch->size != ranks))
      throw contradiction(p.at, *torch);
  }
  return p;
}

// Returns the place that REGATTA_RANKS gives; the number of the process is REGATTA_RANK or that of the pod.
std::optional<place> own_place(const variables& v) {
  if (!v.has("REGATTA_RANK") && !v.has("REGATTA_RANKS")) return {};
  if (!v.has("REGATTA_RANK") && v.number("REGATTA_RANKS") == 1)
    return place{{"REGATTA_RANK", "REGATTA_RANKS", 0, 1}, "REGATTA_RANKS", ""};
  const char* pod = v.has("REGATTA_RANK") ? nullptr : pod_index(v);
  const std::string launcher = !pod ? "REGATTA_RANK" : *pod == 'J' ? "a Kubernetes indexed job" : "Volcano";
  return place{*v.pair(launcher, pod ? pod : "REGATTA_RANK", "REGATTA_RANKS"), launcher, launcher};
}

bool is_loopback(const std::string& host) {
  in_addr address{};
  return host == "localhost" || host == "::1" ||
         (::inet_pton(AF_INET, host.c_str(), &address) == 1 && host.starts_with("127."));
}

// Sets host and port from the variable with "HOST:PORT" or "[HOST]:PORT".
void set_coordinator(const variables& v, launcher_environment& launch) {
  const std::string text = v.text("REGATTA_COORDINATOR");
  const auto colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string::npos)
    host.clear();
  const auto port = colon == std::string::npos ? std::nullopt : port_of(text.substr(colon + 1));
  if (host.empty() || !port)
    throw failure(exit_code::usage,
                  fmt::format("{} in the environment: expected HOST:PORT with a port from 1 to 65535, "
                              "such as node1:29400 or [fd00::1]:29400",
                              v.said({"REGATTA_COORDINATOR"})));
  launch.host = host;
  launch.port = *port;
}

// Sets host and port from the launcher's own variables.
void set_address(const variables& v, const place& p, launcher_environment& launch) {
  for (const char* name : {p.host, p.port})
    if (!v.has(name))
      throw failure(exit_code::usage,
                    fmt::format("{} in the environment: {} processes, but {} is not set. Set {} and {} to a name or "
                                "address of process 0's host and a free port there. {}",
                                v.said({p.at.rank_name, p.at.size_name}), p.at.size, name, p.host, p.port,
                                v.or_unset({p.at.rank_name, p.at.size_name})));
  const auto port = port_of(v.text(p.port));
  if (!port)
    throw failure(exit_code::usage,
                  fmt::format("{} in the environment: expected a port from 1 to 65535", v.said({p.port})));
  launch.host = v.text(p.host);
  launch.port = *port;
}

// Decides how the processes of a launch meet.
launcher_environment meeting_of(const variables& v, const place& p) {
  launcher_environment launch;
  launch.launcher = p.launcher;
  launch.job = p.job;
  launch.rank = p.at.rank;
  launch.size = p.at.size;
  launch.slots = p.slots;
  launch.secret_file = v.text("REGATTA_SECRET_FILE");
  launch.advice = p.advice;
  const bool told = v.has("REGATTA_COORDINATOR");
  if (told) {
    set_coordinator(v, launch);
  } else if (p.pmix) {
    launch.meets = meeting::pmix;
    return launch;
  } else if (p.host) {
    set_address(v, p, launch);
  } else if (p.nodes > 1) {
    throw failure(exit_code::usage,
                  fmt::format("{} in the environment: {} processes of {} on {} nodes have no way to meet{}: {}",
                              v.said({p.at.rank_name, p.at.size_name, "SLURM_STEP_NUM_NODES", "PMI_RANK"}), p.at.size,
                              p.launcher, p.nodes, v.has("PMI_RANK") ? ", for PMI_RANK is PMI's, without PMIx" : "",
                              p.advice));
  } else {
    return launch;
  }
  launch.job += fmt::format(" {} {}", launch.host, launch.port);
  if (launch.secret_file.empty()) {
    // On one host an abstract Unix socket needs no secret: the kernel tells the user of the other end.
    const bool one_host = is_loopback(launch.host) || (!told && p.nodes == 1);
    const std::string where = told ? "REGATTA_COORDINATOR" : p.host;
    if (!one_host)
      throw failure(
          exit_code::usage,
          fmt::format(
              "{} in the environment: {} processes of {} meet at an address that other hosts can "
              "reach, but REGATTA_SECRET_FILE is not set. Make a secret (openssl rand -hex 32 > FILE; "
              "chmod 600 FILE), place it on every host (in pods, mount a Secret), and set REGATTA_SECRET_FILE=FILE. {}",
              v.said({p.at.rank_name, p.at.size_name, where.c_str()}), p.at.size, p.launcher,
              v.or_unset({p.at.rank_name, p.at.size_name})));
    launch.host.clear();
    launch.port = 0;
    return launch;
  }
  launch.meets = meeting::address;
  launch.port_tries = static_cast<std::uint16_t>(std::min(most_ports, 65536 - launch.port));
  return launch;
}

// Returns the place of the launcher that counts; nullopt: none, or one process.
std::optional<place> deciding_place(const variables& v) {
  if (auto own = own_place(v)) {
    if (own->at.size == 1) return {};
    if (!v.has("REGATTA_COORDINATOR"))
      throw failure(exit_code::usage,
                    fmt::format("{} in the environment: {} processes, but REGATTA_COORDINATOR is not set: {}",
                                v.said({own->at.rank_name, own->at.size_name}), own->at.size, to_meet_anywhere));
    return own;
  }
  auto launched = launcher_place(v);
  if (v.has("TORCHELASTIC_RUN_ID")) // the other launcher has started torchrun's agents
    if (auto torch = torchrun_place(v)) return torch;
  if (launched) return launched;
  if (auto kubeflow = kubeflow_place(v)) return kubeflow->at.size == 1 ? std::nullopt : kubeflow;
  if (auto torch = torchrun_place(v)) return torch;
  if (const char* pod = pod_index(v))
    throw failure(
        exit_code::usage,
        fmt::format("{} in the environment: this pod is one of several, but REGATTA_RANKS, their number, is not "
                    "set. Set REGATTA_RANKS, REGATTA_COORDINATOR=HOST:PORT (HOST: the headless service's name "
                    "of pod 0) and REGATTA_SECRET_FILE, or REGATTA_RANKS=1 if each pod runs alone",
                    v.said({pod})));
  if (v.has("REGATTA_COORDINATOR")) throw v.half_set("Regatta's own launch", "REGATTA_COORDINATOR", "REGATTA_RANK");
  return {};
}

} // namespace

environment process_environment() {
  return [](const char* name) { return std::getenv(name); };
}

std::optional<launcher_environment> find_launcher(const environment& get) {
  const variables v(get);
  const auto p = deciding_place(v);
  return p ? std::optional(meeting_of(v, *p)) : std::nullopt;
}

std::string description_of(const launcher_environment& launch) {
  const std::string size = launch.size ? fmt::format(" of {}", launch.size) : "";
  const std::string slots = launch.slots == 1 ? ""
                            : launch.slots    ? fmt::format(", {} ranks each", launch.slots)
                                              : ", several ranks each";
  const std::string where = launch.meets == meeting::pmix      ? "by PMIx"
                            : launch.meets == meeting::address ? fmt::format("at {} port {}", launch.host, launch.port)
                                                               : "on this host";
  return fmt::format("{}, process {}{}{}, meets {}", one_line(launch.launcher), launch.rank, size, slots,
                     one_line(where));
}

std::string launcher_line(const environment& get) {
  try {
    const auto launch = find_launcher(get);
    return launch ? description_of(*launch) : "none";
  } catch (const failure& e) {
    return std::string("refused: ") + e.what();
  }
}

} // namespace regatta
