/* SPDX-License-Identifier: Apache-2.0
 *
 * What a user of MPI would write: all-reduce of fp32 in place, of each size that is named, and 8 bytes there and back.
 * Rank 0 prints "allreduce BYTES SECONDS" (median) and "pingpong 8 SECONDS" (half of there and back). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  static double times[20000];
  for (int i = 1; i < argc; ++i) {
    const size_t bytes = strtoull(argv[i], NULL, 10);
    float* data = malloc(bytes);
    if (!data) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(data, 0, bytes);
    size_t rounds = ((size_t)1 << 28) / bytes;
    rounds = rounds < 5 ? 5 : rounds > 2000 ? 2000 : rounds;
    for (size_t k = 0; k < rounds + 2; ++k) {
      const double begin = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, data, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (k >= 2) times[k - 2] = MPI_Wtime() - begin;
    }
    qsort(times, rounds, sizeof times[0], ascending);
    if (rank == 0) printf("allreduce %zu %.9f\n", bytes, times[rounds / 2]);
    free(data);
  }
  char byte[8] = {0};
  const int rounds = 20000;
  for (int k = 0; k < rounds && rank < 2; ++k) {
    const double begin = MPI_Wtime();
    if (rank == 0) MPI_Send(byte, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(byte, 8, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(byte, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    times[k] = (MPI_Wtime() - begin) / 2;
  }
  qsort(times, rounds, sizeof times[0], ascending);
  if (rank == 0) printf("pingpong 8 %.9f\n", times[rounds / 2]);
  MPI_Finalize();
  return 0;
}
