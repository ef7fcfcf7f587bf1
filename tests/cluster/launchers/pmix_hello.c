// SPDX-License-Identifier: Apache-2.0
//
// Each rank publishes its host's name with PMIx, and prints its own and that of rank 0, as a launched program exchanges
// an address. Returns the number of the call that failed.
#include <pmix.h>

#include <stdio.h>
#include <unistd.h>

int main(void) {
  pmix_proc_t me, first;
  if (PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS) return 1;
  char host[64];
  gethostname(host, sizeof host);
  pmix_value_t value;
  PMIX_VALUE_LOAD(&value, host, PMIX_STRING);
  if (PMIx_Put(PMIX_GLOBAL, "host", &value) != PMIX_SUCCESS || PMIx_Commit() != PMIX_SUCCESS) return 2;
  bool yes = true;
  pmix_info_t collect;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  if (PMIx_Fence(NULL, 0, &collect, 1) != PMIX_SUCCESS) return 3;
  PMIX_PROC_LOAD(&first, me.nspace, 0);
  pmix_value_t* got;
  if (PMIx_Get(&first, "host", NULL, 0, &got) != PMIX_SUCCESS) return 4;
  printf("rank %u on %s, rank 0 on %s\n", me.rank, host, got->data.string);
  return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 5;
}
