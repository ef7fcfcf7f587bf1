// SPDX-License-Identifier: Apache-2.0
//
// The program in the environment of launchers: it joins the other processes or refuses, and never runs alone.
#include "processes.hpp"
#include "program.hpp"

#include <sys/wait.h>

using namespace regatta::test;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("one of several processes that cannot meet refuses to run, and names the variable") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small_experiment(1);
  const std::pair<const char*, const char*> refused[] = {
      {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=192.0.2.1 MASTER_PORT=29500", "WORLD_SIZE=2"},
      {"PMIX_RANK=1 PMIX_NAMESPACE=job", "PMIX_NAMESPACE=job"},
      {"JOB_COMPLETION_INDEX=1", "JOB_COMPLETION_INDEX=1"},
      {"PET_NNODES=2 PET_NODE_RANK=0 PET_MASTER_ADDR=node-0 PET_MASTER_PORT=29500", "PET_NNODES=2"},
      {"SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=2 PMI_RANK=0 PMI_SIZE=2 PMI_JOBID=1.0",
       "--mpi=pmix"}};
  for (const auto& [environment, name] : refused) {
    const outcome o = program(s, "run x.toml --out results", environment);
    CHECK(o.code == 2);
    CHECK_MESSAGE(contains(o.err, name), o.err);
    CHECK(!fs::exists(s.path / "results"));
    const outcome doctor = program(s, "doctor", environment); // says so, and describes the machine all the same
    CHECK(doctor.code == 0);
    CHECK(contains(doctor.out, std::string("refused: ")));
    CHECK(contains(doctor.out, name));
  }
}

TEST_CASE("two processes with torchrun's variables on one host are one run") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small_experiment(3) + "[cluster]\nworkers = 2\n";
  const auto start_rank = [&](const char* rank) {
    return start(s, {"/usr/bin/env", std::string("RANK=") + rank, "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                     "MASTER_PORT=" + std::to_string(20000 + getpid() % 20000), REGATTA_PROGRAM, "run", "x.toml",
                     "--out", std::string("results-") + rank});
  };
  for (const pid_t process : {start_rank("1"), start_rank("0")}) {
    int status = -1;
    REQUIRE(waitpid(process, &status, 0) == process);
    INFO(read(s.path / "err"));
    CHECK(status == 0);
  }
  CHECK(!fs::exists(s.path / "results-1"));
  const json result = parsed(read(s.path / "results-0" / "result.json"));
  CHECK(result.at("results").at(0).at("status") == "ok");
  CHECK(result.at("results").at(0).at("workers") == 2);
}

TEST_CASE("doctor and a dry run say which launcher started the process") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small_experiment(1);
  CHECK(parsed(program(s, "doctor --json", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=::1 MASTER_PORT=1").out).at("launcher") ==
        "torchrun, process 1 of 2, meets on this host");
  CHECK(contains(program(s, "run x.toml --dry-run").out, "launcher: none\n"));
  CHECK(parsed(program(s, "run x.toml --dry-run --format json").out).at("launcher") == "none");
}
