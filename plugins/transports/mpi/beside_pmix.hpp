// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <dlfcn.h>
#include <mpi.h>

// [main] Calls begin(), which initialises MPI, in a process that may use PMIx already: the engine does if the processes
// of a launch meet by PMIx. Open MPI 4 shares that PMIx and counts its users. Open MPI 5 takes an initialised PMIx for
// its own one and then fails for want of its local rank; so the other use is ended before, and begun again afterwards.
template <class Begin> void begin_mpi_beside_pmix(const Begin& begin) {
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5
  // Found if libpmix.so.2 is loaded for all (RTLD_GLOBAL), as the engine loads it.
  const auto initialized = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "PMIx_Initialized"));
  const auto finalize = reinterpret_cast<int (*)(const void*, std::size_t)>(::dlsym(RTLD_DEFAULT, "PMIx_Finalize"));
  const auto init = reinterpret_cast<int (*)(void*, void*, std::size_t)>(::dlsym(RTLD_DEFAULT, "PMIx_Init"));
  // An end without a beginning would succeed, too, and PMIx count wrongly.
  const bool used = initialized && finalize && init && initialized() && finalize(nullptr, 0) == 0;
  begin();
  if (used) init(nullptr, nullptr, 0);
#else
  begin();
#endif
}
