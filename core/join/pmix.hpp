// SPDX-License-Identifier: Apache-2.0
//
// PMIx, by which mpirun and srun --mpi=pmix let the processes of a job exchange data before they have connections.
#pragma once

#include <cstdint>
#include <string>

namespace regatta {

// This process's connection to the launcher's PMIx server. Loads libpmix.so.2, which the program is not linked to; one
// that MPI_Init() loads in the same process is the same library, and counts its users.
//
// Keep the object until the process ends: mpirun ends the job when a process exits without the destructor. PMIx has a
// thread, so fork before; a child that is forked later must neither use nor destroy the object. [main]
class pmix_exchange {
public:
  // Connects. Throws failure (usage) if this build is without PMIx or libpmix.so.2 cannot be loaded, failure (run) if
  // the launcher's server cannot be reached or does not tell the number of processes.
  pmix_exchange();
  ~pmix_exchange(); // closes the connection; does not wait for the other processes
  pmix_exchange(const pmix_exchange&) = delete;
  pmix_exchange& operator=(const pmix_exchange&) = delete;

  std::uint32_t rank() const noexcept { return rank_; } // in the job
  std::uint32_t size() const noexcept { return size_; } // of the job

  // Returns process 0's `text` in all processes, which must all call it; the others' argument is ignored. The text has
  // no zero bytes. Only processes of this job can read it. Throws failure (run) if PMIx fails, or if a process has not
  // called it after `seconds` (0: no limit; not every launcher keeps it).
  std::string broadcast(const std::string& text, int seconds = 60);

private:
  std::uint32_t rank_ = 0, size_ = 0;
  [[maybe_unused]] std::uint32_t broadcasts_ = 0; // each has a key of its own
  std::string space_;                             // PMIx's name of the job
};

} // namespace regatta
