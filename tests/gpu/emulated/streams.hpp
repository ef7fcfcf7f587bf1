// SPDX-License-Identifier: Apache-2.0
//
// An emulated GPU for tests. Device memory is host memory. A stream does nothing until somebody waits for it, so code
// that relies on an order without a fence fails every time. A callback (cudaLaunchHostFunc) counts as a wait. With
// REGATTA_EMULATED_GPU=SEED in the environment, streams progress at any call, in an order drawn from the seed, so that
// work that starts too early fails, too.
#pragma once

#include <functional>

#include <cuda_runtime_api.h>

namespace cudnn {

// Runs `work` after all earlier work of the stream.
void later(cudaStream_t s, std::function<void()> work);

} // namespace cudnn
