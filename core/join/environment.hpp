// SPDX-License-Identifier: Apache-2.0
//
// The launch that this process belongs to, from the environment variables that launchers set: mpirun, srun, mpiexec,
// torchrun, Kubernetes, Kubeflow, and Regatta's own REGATTA_*. Decides only which launch it is and how its processes
// meet; opens no connection and reads no file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace regatta {

// Returns the value of the environment variable with this name, or null if it is not set.
using environment = std::function<const char*(const char*)>;

// Returns the environment of this process, as getenv() reads it. [main]
environment process_environment();

// One launch, as one of its processes sees it. All processes have the same `job`, `size`, `slots`, `meets`, `host` and
// `port`; each has its own `rank`.
struct launcher_environment {
  enum class meeting {
    address,  // process 0 listens on `host`:`port`; the others connect to it and prove that they have the secret
    pmix,     // process 0 tells its address and a secret by PMIx
    same_host // all must be on this host: an abstract Unix socket that is named after `job`
  };

  std::string launcher; // for messages: "mpirun", "srun", "mpiexec", "torchrun", "REGATTA_RANK", ...
  std::string job;      // name of this launch, unique among the launches of this user on this host
  std::uint32_t rank = 0;
  std::uint32_t size = 0;  // number of processes; 0: only PMIx's job data knows it
  std::uint32_t slots = 1; // ranks that each process starts, size x slots in all; 0: "auto", refused at the start
  meeting meets = meeting::same_host;

  // For meeting::address, otherwise empty. Process 0 listens on the first free one of the ports
  // `port` .. `port + port_tries - 1`, because torchrun's agent may hold MASTER_PORT itself; the others try them in
  // turn.
  std::string host;
  std::uint16_t port = 0;
  std::uint16_t port_tries = 0;

  std::string secret_file; // path of REGATTA_SECRET_FILE; empty if it is not set, which meeting::address never has
  // Advice for the user of this launcher if the processes turn out to be on several hosts (meeting::same_host), or if
  // PMIx cannot be used (meeting::pmix): a sentence without its first capital.
  std::string advice;
};

// Returns the launch of which this process is a part, or nullopt if it was started alone: no launcher's variables, or
// those of a launch of one process (a shell in an allocation of Slurm has them); mpirun and mpiexec of one process are
// a launch of size 1. Of several launchers the first of these counts: REGATTA_*, torchrun's agent, PMIx, Open MPI, PMI,
// Slurm, Kubeflow's PET_*, RANK and WORLD_SIZE. REGATTA_COORDINATOR tells all of them where to meet. Throws failure
// (usage), which names the variables and says what to do, if
// - a variable says that there are several processes, but nothing says how they meet;
// - only some of a launcher's variables are set, or one has a value that it cannot have;
// - two launchers' variables disagree on rank or size, unless REGATTA_RANK decides; of torchrun's agent, if another
//   launcher has started another number of processes than there are agents;
// - they meet at an address that other hosts can reach, but REGATTA_SECRET_FILE is not set. (Without it, a loopback
//   address, or torchrun's address if it has started all processes on one host, means meeting::same_host.)
// docs/cluster.md lists the variables. [any]
std::optional<launcher_environment> find_launcher(const environment& variables);

// Returns one line such as "mpirun, process 0 of 4, meets by PMIx".
std::string description_of(const launcher_environment& launch);

// Returns description_of() the launch that find_launcher() finds, "none", or "refused: " and the reason.
std::string launcher_line(const environment& variables);

} // namespace regatta
