// SPDX-License-Identifier: Apache-2.0
//
// A GPU of the host's own, for tests: device memory is the host's, and a stream does nothing until somebody waits for
// it, so that what relies on an order that nothing enforces goes wrong every time. A call that was asked for
// (cudaLaunchHostFunc) is a wait of its own. With REGATTA_EMULATED_GPU=SEED in the environment streams go on whenever
// anything is asked for, in an order drawn from the seed, so that what begins too early goes wrong, too.
#pragma once

#include <functional>

#include <cuda_runtime_api.h>

namespace cudnn {

// Behind all that the stream was given so far.
void later(cudaStream_t s, std::function<void()> work);

} // namespace cudnn
