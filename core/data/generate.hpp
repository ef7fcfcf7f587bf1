// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace regatta {

// Writes data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt into `dir`, made if need be: a
// learnable set in CIFAR-10's binary format, for where the real one cannot be had. The same arguments make the same
// files; every seed draws other samples of the same ten classes. A linear model gets about half of the test right, a
// small convolutional network nearly all. Each file has samples_per_file records (CIFAR-10: 10000) of 3073 bytes.
// Returns 0; throws failure (run) where it cannot write. [main]
int make_cifar10_like(const std::filesystem::path& dir, std::uint64_t samples_per_file, std::uint64_t seed);

} // namespace regatta
