// SPDX-License-Identifier: Apache-2.0
//
// A process that mpirun starts for pmix_test: writes what it learnt by PMIx to the file FOLDER/RANK.
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include <unistd.h>

#include "base/failure.hpp"
#include "join/environment.hpp"
#include "join/pmix.hpp"

#ifdef REGATTA_TEST_MPI
#include "transports/mpi/beside_pmix.hpp"
#endif

namespace {

// Returns MPI's sum of the ranks, after PMIx has been in use; -1 in a build without MPI.
int sum_by_mpi(int rank) {
#ifdef REGATTA_TEST_MPI
  int sum = 0;
  begin_mpi_beside_pmix([] { MPI_Init(nullptr, nullptr); }); // ends the process if it fails
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum;
#else
  return (void)rank, -1;
#endif
}

} // namespace

int main(int, char** argv) {
  try {
    const auto launch = regatta::find_launcher(regatta::process_environment());
    regatta::pmix_exchange pmix;
    const bool agree = launch && launch->rank == pmix.rank() && launch->size == pmix.size() &&
                       launch->meets == regatta::launcher_environment::meeting::pmix;
    const std::string first = pmix.broadcast("from " + std::to_string(pmix.rank()));
    const int sum = sum_by_mpi(static_cast<int>(pmix.rank()));
    const std::string second = pmix.broadcast("pid " + std::to_string(::getpid())); // MPI_Finalize() has not ended PMIx
    std::ofstream(std::string(argv[1]) + "/" + std::to_string(pmix.rank()))
        << (agree ? "agree" : "differ") << "; " << pmix.size() << "; " << first << "; " << sum << "; " << second;
    return 0;
  } catch (const regatta::failure& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(e.code());
  }
}
