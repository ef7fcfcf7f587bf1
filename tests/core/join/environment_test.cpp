// SPDX-License-Identifier: Apache-2.0
#include "join/environment.hpp"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/failure.hpp"

using namespace regatta;

namespace {

using meeting = launcher_environment::meeting;
using settings = std::map<std::string, std::string>;

std::optional<launcher_environment> found_in(const settings& s) {
  return find_launcher([&](const char* name) {
    const auto at = s.find(name);
    return at == s.end() ? nullptr : at->second.c_str();
  });
}

// Returns the refusal's text; "joined" or "none" if there is none.
std::string refusal_of(const settings& s) {
  try {
    return found_in(s) ? "joined" : "none";
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::usage);
    return e.what();
  }
}

settings operator+(settings a, const settings& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

settings without(settings s, const std::string& name) {
  s.erase(name);
  return s;
}

// Each as process 1 of 4 sees it.
const settings mpirun{{"OMPI_COMM_WORLD_RANK", "1"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"PMIX_RANK", "1"},
                      {"PMIX_NAMESPACE", "2009923585"},
                      {"PMIX_SERVER_URI41", "2009923584.0;tcp4://127.0.0.1:50951"}};
const settings srun{{"SLURM_PROCID", "1"},  {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_JOB_ID", "7"},
                    {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_NNODES", "2"}};
const settings two_nodes{{"SLURM_STEP_NUM_NODES", "2"}};
const settings srun_pmix = srun + two_nodes +
                           settings{{"PMIX_RANK", "1"},
                                    {"PMIX_NAMESPACE", "slurm.pmix.7.0"},
                                    {"PMIX_SERVER_URI2", "slurm.pmix.7.0;tcp4://10.0.0.1:5000"}};
const settings srun_pmi2 = srun + settings{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"PMI_JOBID", "7.0"}};
const settings secret{{"REGATTA_SECRET_FILE", "/run/secret"}};
const settings torchrun = secret + settings{{"RANK", "1"},
                                            {"WORLD_SIZE", "4"},
                                            {"LOCAL_WORLD_SIZE", "2"},
                                            {"GROUP_WORLD_SIZE", "2"},
                                            {"MASTER_ADDR", "node1"},
                                            {"MASTER_PORT", "29500"},
                                            {"TORCHELASTIC_RUN_ID", "job"}};
// Agents that mpirun has started, one on each of four nodes.
const settings agents = mpirun + torchrun + settings{{"LOCAL_WORLD_SIZE", "1"}, {"GROUP_WORLD_SIZE", "4"}};
const settings kubernetes =
    secret +
    settings{{"JOB_COMPLETION_INDEX", "1"}, {"REGATTA_RANKS", "4"}, {"REGATTA_COORDINATOR", "job-0.svc:29400"}};
const settings kubeflow = secret + settings{{"PET_NNODES", "4"},
                                            {"PET_NPROC_PER_NODE", "2"},
                                            {"PET_NODE_RANK", "1"},
                                            {"JOB_COMPLETION_INDEX", "1"},
                                            {"PET_MASTER_ADDR", "trainer-node-0-0.trainer"},
                                            {"PET_MASTER_PORT", "29500"}};
const settings own =
    secret + settings{{"REGATTA_RANK", "1"}, {"REGATTA_RANKS", "4"}, {"REGATTA_COORDINATOR", "10.0.0.1:29400"}};

struct row {
  const char* name;
  settings complete;
  const char* launcher;
  meeting meets;
  settings half;
  std::vector<std::string> half_names; // that the refusal contains
  settings contradicting;
  std::vector<std::string> contradicting_names;
};

const std::vector<row> table = {
    {"mpirun",
     mpirun,
     "mpirun",
     meeting::pmix,
     without(mpirun, "OMPI_COMM_WORLD_SIZE"),
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE is not set"},
     mpirun + settings{{"PMIX_RANK", "2"}},
     {"PMIX_RANK=2", "OMPI_COMM_WORLD_RANK=1"}},
    {"srun with PMIx",
     srun_pmix,
     "srun",
     meeting::pmix,
     without(srun_pmix, "PMIX_NAMESPACE"),
     {"PMIX_RANK=1", "PMIX_NAMESPACE is not set"},
     srun_pmix + settings{{"SLURM_PROCID", "0"}},
     {"PMIX_RANK=1", "SLURM_PROCID=0"}},
    {"srun with PMI2 alone, on one host",
     srun_pmi2,
     "srun",
     meeting::same_host,
     without(srun_pmi2, "PMI_SIZE"),
     {"PMI_RANK=1", "PMI_SIZE is not set"},
     srun_pmi2 + settings{{"SLURM_PROCID", "0"}},
     {"PMI_RANK=1", "SLURM_PROCID=0"}},
    {"plain srun, on one host",
     srun,
     "srun",
     meeting::same_host,
     without(srun, "SLURM_PROCID"),
     {"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID is not set"},
     srun + settings{{"RANK", "1"}, {"WORLD_SIZE", "8"}},
     {"SLURM_STEP_NUM_TASKS=4", "WORLD_SIZE=8"}},
    {"torchrun",
     torchrun,
     "torchrun",
     meeting::address,
     without(torchrun, "WORLD_SIZE"),
     {"RANK=1", "WORLD_SIZE is not set"},
     torchrun + settings{{"RANK", "4"}},
     {"RANK=4", "WORLD_SIZE=4"}},
    {"torchrun's agents under mpirun, and mpirun within a process of torchrun",
     agents,
     "torchrun",
     meeting::address,
     without(agents, "WORLD_SIZE"),
     {"RANK=1", "WORLD_SIZE is not set"},
     agents + settings{{"LOCAL_WORLD_SIZE", "2"}, {"GROUP_WORLD_SIZE", "2"}},
     {"OMPI_COMM_WORLD_SIZE=4", "GROUP_WORLD_SIZE=2", "env -u TORCHELASTIC_RUN_ID"}},
    {"Kubernetes indexed job",
     kubernetes,
     "a Kubernetes indexed job",
     meeting::address,
     without(kubernetes, "REGATTA_RANKS"),
     {"JOB_COMPLETION_INDEX=1", "REGATTA_RANKS"},
     kubernetes + settings{{"JOB_COMPLETION_INDEX", "4"}},
     {"JOB_COMPLETION_INDEX=4", "REGATTA_RANKS=4"}},
    {"Kubeflow",
     kubeflow,
     "Kubeflow (PET_*)",
     meeting::address,
     without(kubeflow, "PET_NODE_RANK"),
     {"PET_NNODES=4", "PET_NODE_RANK is not set"},
     kubeflow + settings{{"JOB_COMPLETION_INDEX", "2"}},
     {"PET_NODE_RANK=1", "JOB_COMPLETION_INDEX=2"}},
    {"Regatta's own",
     own,
     "REGATTA_RANK",
     meeting::address,
     without(own, "REGATTA_RANKS"),
     {"REGATTA_RANK=1", "REGATTA_RANKS is not set"},
     own + settings{{"REGATTA_RANK", "4"}},
     {"REGATTA_RANK=4", "REGATTA_RANKS=4"}},
};

void check_refusal(const settings& s, const std::vector<std::string>& names) {
  const std::string text = refusal_of(s);
  for (const std::string& name : names) CHECK_MESSAGE(text.find(name) != std::string::npos, text);
}

} // namespace

TEST_CASE("nine environments join when they are complete, and are refused by name otherwise") {
  for (const row& r : table) {
    CAPTURE(r.name);
    const auto launch = found_in(r.complete);
    REQUIRE(launch);
    CHECK(launch->launcher == r.launcher);
    CHECK(launch->meets == r.meets);
    CHECK(launch->rank == 1);
    CHECK(launch->size == 4);
    CHECK_FALSE(launch->job.empty());
    check_refusal(r.half, r.half_names);
    check_refusal(r.contradicting, r.contradicting_names);
  }
}

TEST_CASE("processes that have no way to meet are refused by the variable that says how many there are") {
  check_refusal(srun_pmi2 + two_nodes, {"PMI_RANK=1", "SLURM_STEP_NUM_NODES=2", "--mpi=pmix"});
  check_refusal(srun + two_nodes, {"SLURM_STEP_NUM_TASKS=4", "--mpi=pmix"});
  check_refusal(without(srun, "SLURM_STEP_NUM_NODES"), {"SLURM_STEP_NUM_TASKS=4", "2 nodes"}); // SLURM_NNODES
  check_refusal({{"RANK", "1"}, {"WORLD_SIZE", "2"}}, {"WORLD_SIZE=2", "MASTER_ADDR"});
  check_refusal(without(torchrun, "MASTER_PORT"), {"WORLD_SIZE=4", "MASTER_PORT"});
  check_refusal({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "n"}}, {"PMIX_NAMESPACE=n", "PMIX_SERVER_URI2"});
  check_refusal({{"JOB_COMPLETION_INDEX", "0"}}, {"JOB_COMPLETION_INDEX=0", "REGATTA_RANKS=1"});
  check_refusal({{"VC_TASK_INDEX", "0"}}, {"VC_TASK_INDEX=0"});
  check_refusal(without(kubeflow, "PET_MASTER_ADDR"), {"PET_NNODES=4", "PET_MASTER_ADDR"});
  check_refusal(kubeflow + settings{{"PET_NNODES", "1:4"}}, {"PET_NNODES=1:4"});
  check_refusal(without(own, "REGATTA_COORDINATOR"), {"REGATTA_RANKS=4", "REGATTA_COORDINATOR"});
  check_refusal({{"REGATTA_COORDINATOR", "node1:29400"}}, {"REGATTA_COORDINATOR=node1:29400", "REGATTA_RANK"});
  check_refusal({{"REGATTA_RANKS", "2"}}, {"REGATTA_RANKS=2", "REGATTA_RANK is not set"});
  check_refusal(own + settings{{"REGATTA_RANK", "one"}}, {"REGATTA_RANK", "\"one\""});
}

TEST_CASE("REGATTA_COORDINATOR tells every launcher's processes where to meet") {
  const settings where = secret + settings{{"REGATTA_COORDINATOR", "[fd00::1]:29400"}};
  for (const settings& s : {mpirun, srun + two_nodes, srun_pmi2 + two_nodes, torchrun, kubeflow}) {
    const auto launch = found_in(s + where);
    REQUIRE(launch);
    CHECK(launch->meets == meeting::address);
    CHECK(launch->host == "fd00::1");
    CHECK(launch->port == 29400);
    CHECK(launch->port_tries == 17);
    CHECK(launch->secret_file == "/run/secret");
  }
  for (const char* text : {"node1", ":29400", "node1:", "node1:0", "node1:65536", "fd00::1:29400", "node1:29400x"})
    check_refusal(own + settings{{"REGATTA_COORDINATOR", text}}, {"REGATTA_COORDINATOR", "HOST:PORT"});
  CHECK(found_in(own + settings{{"REGATTA_COORDINATOR", "node1:65535"}})->port_tries == 1);
}

TEST_CASE("an address that other hosts can reach needs a secret; on one host the kernel vouches for the user") {
  for (const auto& [s, size] : {std::pair(own, "REGATTA_RANKS=4"), std::pair(torchrun, "WORLD_SIZE=4"),
                                std::pair(kubernetes, "REGATTA_RANKS=4"), std::pair(kubeflow, "PET_NNODES=4")})
    check_refusal(without(s, "REGATTA_SECRET_FILE"), {size, "REGATTA_SECRET_FILE", "openssl rand -hex 32"});
  const settings local = without(torchrun, "REGATTA_SECRET_FILE");
  for (const settings& s : {local + settings{{"MASTER_ADDR", "127.0.0.1"}},
                            local + settings{{"MASTER_ADDR", "localhost"}}, local + settings{{"LOCAL_WORLD_SIZE", "4"}},
                            without(own, "REGATTA_SECRET_FILE") + settings{{"REGATTA_COORDINATOR", "[::1]:29400"}}}) {
    const auto launch = found_in(s);
    REQUIRE(launch);
    CHECK(launch->meets == meeting::same_host);
    CHECK(launch->host.empty());
    CHECK(launch->port_tries == 0);
    CHECK(launch->advice.find("REGATTA_SECRET_FILE") != std::string::npos);
  }
  check_refusal(local + settings{{"MASTER_ADDR", "127.example.org"}}, {"REGATTA_SECRET_FILE"});
}

TEST_CASE("one process is no launch, and neither is a script that launches") {
  for (const settings& s :
       {settings{}, secret, settings{{"MASTER_ADDR", "node1"}}, settings{{"RANK", "0"}, {"WORLD_SIZE", "1"}},
        settings{{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NNODES", "2"}},
        srun + settings{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},
        srun_pmix + settings{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"PMIX_RANK", "0"}},
        settings{{"REGATTA_RANKS", "1"}, {"JOB_COMPLETION_INDEX", "3"}}, settings{{"RANK", ""}, {"WORLD_SIZE", ""}},
        settings{{"PET_NNODES", "1"}, {"PET_NODE_RANK", "0"}, {"PET_NPROC_PER_NODE", "4"}}})
    CHECK(refusal_of(s) == "none");
  const auto alone = found_in(mpirun + settings{{"OMPI_COMM_WORLD_RANK", "0"},
                                                {"PMIX_RANK", "0"}, //
                                                {"OMPI_COMM_WORLD_SIZE", "1"}});
  REQUIRE(alone); // transports that need mpirun run with one process, too
  CHECK(alone->size == 1);
}

TEST_CASE("the innermost of several launchers counts") {
  const settings agent = torchrun + settings{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"GROUP_WORLD_SIZE", "4"}};
  for (const settings& s : {srun + agent, srun_pmix + agent, mpirun + agent, kubeflow + agent}) {
    const auto launch = found_in(s);
    REQUIRE(launch);
    CHECK(launch->launcher == "torchrun");
    CHECK(launch->rank == 5);
  }
  const settings daemons{{"SLURM_PROCID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "2"}}; // of mpirun and mpiexec in an allocation
  CHECK(found_in(srun + daemons + mpirun)->launcher == "mpirun");
  CHECK(found_in(srun + daemons + settings{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}})->launcher == "mpiexec");
  CHECK(found_in(mpirun + settings{{"JOB_COMPLETION_INDEX", "0"}})->launcher == "mpirun"); // in a pod
  CHECK(found_in(agent + mpirun + srun + own + settings{{"REGATTA_RANK", "2"}})->rank == 2);
  check_refusal(without(mpirun + agent, "TORCHELASTIC_RUN_ID"), {"OMPI_COMM_WORLD_RANK=1", "RANK=5"});
}

TEST_CASE("Kubeflow says how many ranks a pod starts") {
  CHECK(found_in(kubeflow)->slots == 2);
  CHECK(found_in(without(kubeflow, "PET_NPROC_PER_NODE"))->slots == 1);
  CHECK(found_in(kubeflow + settings{{"PET_NPROC_PER_NODE", "auto"}})->slots == 0);
  check_refusal(kubeflow + settings{{"PET_NPROC_PER_NODE", "0"}}, {"PET_NPROC_PER_NODE=0"});
  const settings older{{"RANK", "1"}, {"WORLD_SIZE", "8"}}; // the number of the pod, and of all ranks
  CHECK(found_in(kubeflow + older)->size == 4);
  check_refusal(kubeflow + older + settings{{"WORLD_SIZE", "6"}}, {"PET_NNODES=4", "WORLD_SIZE=6"});
}

TEST_CASE("launches that run at the same time have different names") {
  const auto name_of = [](const char* job, const char* step) {
    return found_in(srun + settings{{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", step}})->job;
  };
  CHECK(name_of("1", "23") != name_of("12", "3"));
  CHECK(found_in(torchrun)->job != found_in(torchrun + settings{{"MASTER_PORT", "29501"}})->job);
  CHECK(found_in(torchrun)->job == found_in(torchrun + settings{{"RANK", "2"}})->job);
}

TEST_CASE("PMIx's job data gives the size that the environment does not") {
  const auto launch = found_in({{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "prte.1"}, {"PMIX_SERVER_URI4", "x"}});
  REQUIRE(launch);
  CHECK(launch->meets == meeting::pmix);
  CHECK(launch->size == 0);
  CHECK(description_of(*launch) == "a launcher with PMIx, process 3, meets by PMIx");
}

TEST_CASE("a launch in one line") {
  CHECK(description_of(*found_in(mpirun)) == "mpirun, process 1 of 4, meets by PMIx");
  CHECK(description_of(*found_in(srun)) == "srun, process 1 of 4, meets on this host");
  CHECK(description_of(*found_in(kubeflow)) ==
        "Kubeflow (PET_*), process 1 of 4, 2 ranks each, meets at trainer-node-0-0.trainer port 29500");
}
