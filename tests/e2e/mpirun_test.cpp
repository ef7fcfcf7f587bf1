// SPDX-License-Identifier: Apache-2.0
//
// Ranks that another launcher started: `mpirun -n N regatta run FILE.toml`, over shm and over MPI itself.
#include "processes.hpp"
#include "program.hpp"

#include <array>
#include <csignal>
#include <set>

using namespace regatta::test;

namespace {

const std::string tiny = small_experiment(4, true);

const std::string launcher = REGATTA_MPIRUN " --allow-run-as-root --oversubscribe -n ";

outcome under_mpirun(const temporary_folder& s, int processes, const std::string& options) {
  return program(s, "run x.toml --progress never --format json " + options, launcher + std::to_string(processes));
}

bool has_mpi() {
  return fs::exists(fs::path(REGATTA_PLUGINS) / "mpi.so");
}

std::vector<double> curve(const json& entry) {
  return entry.at("loss").at("curve").get<std::vector<double>>();
}

void learns_alike(const json& entry, const json& other) {
  const std::vector<double> here = curve(entry), there = curve(other);
  REQUIRE(here.size() == there.size());
  for (std::size_t k = 0; k < here.size(); ++k) CHECK(here[k] == doctest::Approx(there[k]).epsilon(1e-6));
}

} // namespace

TEST_CASE("every process is a rank: fewer are idle, more cannot be; what is computed is the same") {
  const temporary_folder s;
  const json alone = results(s, tiny, "--sweep strategy.plugin=allreduce,sync_ps --set cluster.workers=2");
  const outcome o =
      under_mpirun(s, 3,
                   "--out there --set transport.plugin=shm --sweep strategy.plugin=allreduce,sync_ps,local_sgd "
                   "--sweep cluster.workers=2,4 ");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const json r = parsed(o.out).at("results"); // rank 0 alone has printed
  REQUIRE(r.size() == 6);
  for (const json& entry : r) {
    CAPTURE(entry.at("case"));
    if (entry.at("case").at("cluster.workers") == 2) {
      CHECK(entry.at("status") == "ok");
      CHECK(entry.at("efficiency").at("median") > 0);
    } else {
      CHECK(entry.at("status") == "skipped");
      CHECK(entry.at("error").get<std::string>().find("and mpirun has started 3") != std::string::npos);
    }
  }
  CHECK(curve(r.at(0)) == curve(alone.at(0)));
  CHECK(curve(r.at(2)) == curve(alone.at(1)));
}

TEST_CASE("transport mpi inside another one is refused with a word about why") {
  if (!has_mpi()) return;
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny;
  for (const char* transport : {"shaped --set transport.shaped.over=mpi", "auto --set transport.auto.between=mpi"}) {
    const outcome o = program(s, std::string("run x.toml --set cluster.workers=2 --set transport.plugin=") + transport);
    INFO(o.err);
    CHECK(o.code == 2);
    CHECK(o.err.find("transport mpi cannot be inside another one") != std::string::npos);
  }
}

TEST_CASE("transport mpi trains as shm does") {
  if (!has_mpi()) {
    MESSAGE("skipped: built without MPI");
    return;
  }
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny;
  const outcome o =
      under_mpirun(s, 3,
                   "--out r --sweep strategy.plugin=allreduce,sync_ps,dgc --sweep transport.plugin=shm,mpi "
                   "--set cluster.workers=2 --set optimizer.plugin=sgd");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const json r = parsed(o.out).at("results");
  REQUIRE(r.size() == 6);
  for (std::size_t i = 0; i < r.size(); i += 2) {
    CAPTURE(r.at(i).at("case"));
    CHECK(r.at(i + 1).at("replicas_identical") == true);
    learns_alike(r.at(i + 1), r.at(i)); // a native sum of two is rounded once, in whatever order: the same
  }
}

TEST_CASE("MPI's own all-reduce has the wire types bf16 and fp16") {
  if (!has_mpi()) {
    MESSAGE("skipped: built without MPI");
    return;
  }
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny;
  const outcome o = under_mpirun(s, 3,
                                 "--out r --set strategy.plugin=allreduce --set transport.plugin=mpi "
                                 "--set strategy.allreduce.algorithm=native --set cluster.workers=3 "
                                 "--set optimizer.plugin=sgd --sweep strategy.allreduce.wire=fp32,bf16,fp16");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const json r = parsed(o.out).at("results");
  REQUIRE(r.size() == 3);
  const auto sent = [](const json& entry) { return entry.at("bytes").at("sent_per_step").at("worker").get<double>(); };
  for (std::size_t i = 1; i < r.size(); ++i) {
    CAPTURE(r.at(i).at("case"));
    CHECK(r.at(i).at("replicas_identical") == true);
    const std::vector<double> rounded = curve(r.at(i)), whole = curve(r.at(0));
    REQUIRE(rounded.size() == whole.size());
    for (std::size_t k = 0; k < whole.size(); ++k) CHECK(rounded[k] == doctest::Approx(whole[k]).epsilon(1e-2));
    CHECK(rounded != whole);
    CHECK(sent(r.at(i)) < 0.6 * sent(r.at(0)));
  }
}

TEST_CASE("sharded updates train alike over every transport") {
  if (!has_mpi()) {
    MESSAGE("skipped: built without MPI");
    return;
  }
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny;
  const outcome o = under_mpirun(s, 2,
                                 "--out r --set strategy.plugin=allreduce --set strategy.allreduce.algorithm=sharded "
                                 "--set strategy.allreduce.bucket=65536 --set cluster.workers=2 "
                                 "--sweep transport.plugin=shm,auto,mpi");
  INFO(o.err);
  REQUIRE(o.code == 0);
  const json r = parsed(o.out).at("results");
  REQUIRE(r.size() == 3);
  for (const json& entry : r) {
    CAPTURE(entry.at("case"));
    CHECK(entry.at("replicas_identical") == true);
    learns_alike(entry, r.at(0));
  }
}

TEST_CASE("transports and collectives alone, over MPI") {
  if (!has_mpi()) {
    MESSAGE("skipped: built without MPI");
    return;
  }
  const temporary_folder s;
  const std::string sizes =
      "comm --op allreduce,reducescatter,allgather,alltoall,broadcast,send,push_pull --transport mpi "
      "--seconds 0.002 --min 8B --max 100000B --factor 100 --format json ";
  const outcome o = program(s, sizes + "--ranks 2,3", launcher + "3");
  INFO(o.err);
  REQUIRE(o.code == 0);
  std::set<std::string> algorithms, native;
  const json d = parsed(o.out);
  for (const json& r : d.at("results")) {
    CAPTURE(r);
    CHECK(r.at("wrong") == 0);
    if (r.at("op") == "allreduce") algorithms.insert(r.at("algorithm"));
    if (r.at("algorithm") == "native") native.insert(r.at("op"));
  }
  CHECK(native == std::set<std::string>{"allreduce", "reducescatter", "allgather", "alltoall", "broadcast"});
  CHECK(algorithms == std::set<std::string>{"circulant", "halving_doubling", "native", "recursive_doubling", "ring"});
  const outcome few = program(s, sizes + "--ranks 4", launcher + "3");
  CHECK(few.code == 2);
  CHECK(few.err.find("mpirun has started 3") != std::string::npos);
  const outcome alone = program(s, sizes + "--ranks 2");
  CHECK(alone.code == 2);
  CHECK(alone.err.find("mpirun -n 2 regatta comm --transport mpi") != std::string::npos);
}

TEST_CASE("without a launcher, transport mpi is refused with the command to use") {
  if (!has_mpi()) {
    MESSAGE("skipped: built without MPI");
    return;
  }
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny;
  const outcome o = program(s, "run x.toml --set transport.plugin=mpi --set cluster.workers=2");
  CHECK(o.code == 2);
  CHECK(o.err.find("mpirun -n 2 regatta run FILE.toml") != std::string::npos);
}

TEST_CASE("PMI's and Slurm's processes are ranks too") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny;
  const std::string job = std::to_string(getpid());
  for (const auto& [rank, size, more] :
       {std::array<std::string, 3>{"PMI_RANK", "PMI_SIZE", "PMI_JOBID=" + job},
        std::array<std::string, 3>{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID=0 SLURM_JOB_ID=" + job}}) {
    CAPTURE(rank);
    const auto place = [&](int r) { return rank + "=" + std::to_string(r) + " " + size + "=2 " + more; };
    const outcome o = program(s,
                              "run x.toml --out " + rank +
                                  " --set transport.plugin=shm --set cluster.workers=2 "
                                  "--format json --progress never",
                              "{ " + place(1) + " " REGATTA_PROGRAM " run x.toml & } && " + place(0));
    INFO(o.err);
    REQUIRE(o.code == 0);
    CHECK(parsed(o.out).at("results").at(0).at("status") == "ok");
    const outcome wrong = program(s, "run x.toml", place(2));
    CHECK(wrong.code == 2);
    CHECK(wrong.err.find(rank + "=2 in the environment, but " + size + "=2") != std::string::npos);
  }
}

TEST_CASE("one mistake in the file is said once, and ends all processes") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny << "[nonsense]\n";
  const outcome o = under_mpirun(s, 3, "");
  CHECK(o.code == 2);
  const auto at = o.err.find("x.toml:16:");
  REQUIRE(at != std::string::npos);
  CHECK(o.err.find("x.toml:16:", at + 1) == std::string::npos);
}

TEST_CASE("a rank that dies ends the run, and leaves no process") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << tiny << "[sweep]\n\"measure.steps\" = [2, 100000000]\n[cluster]\nworkers = 2\n";
  const pid_t launched = start(s, {REGATTA_MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", "3", REGATTA_PROGRAM,
                                   "run", "x.toml", "--out", "r", "--progress", "never"});
  const auto first_done = [&] {
    const json j = parsed(read(s.path / "r" / "result.json"), true);
    return j.is_object() && !j.at("results").empty() && j.at("results").at(0).at("status") == "ok";
  };
  REQUIRE(within(patience, first_done));
  std::vector<pid_t> ranks = children_of(launched);
  REQUIRE(ranks.size() == 3);
  std::vector<pid_t> all = ranks;
  for (const pid_t p : ranks)
    for (const pid_t child : children_of(p)) all.push_back(child);
  CHECK(all.size() >= 5); // the campaign and the agent are children of process 0, and ranks of each process
  kill(ranks[1], SIGKILL);
  int status = 0;
  REQUIRE(within(patience, [&] { return waitpid(launched, &status, WNOHANG) == launched; }));
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) != 0);
  for (const pid_t p : all) CHECK(within(patience, [&] { return !alive(p); }));
  const json r = parsed(read(s.path / "r" / "result.json")).at("results");
  CHECK(r.at(0).at("status") == "ok");
}
