// SPDX-License-Identifier: Apache-2.0
//
// `./dev data KIND DIR`: writes a data set for trying things out where the real one cannot be had.
#include "base/failure.hpp"
#include "data/generate.hpp"

#include <cstdio>
#include <string>

#include <fmt/format.h>

int main(int argc, char** argv) {
  constexpr std::uint64_t samples_per_file = 10'000; // as CIFAR-10 has
  if (argc != 3 || std::string(argv[1]) != "cifar10-like") {
    fmt::print(
        stderr,
        "usage: regatta-data cifar10-like DIR\n\n"
        "  cifar10-like   learnable images of ten classes in CIFAR-10's binary format, 60,000 of them (184 MB)\n");
    return 2;
  }
  try {
    const int code = regatta::make_cifar10_like(argv[2], samples_per_file, 1);
    if (code == 0) fmt::print("{}: data_batch_1.bin to data_batch_5.bin, test_batch.bin\n", argv[2]);
    return code;
  } catch (const regatta::failure& e) {
    fmt::print(stderr, "regatta-data: {}\n", e.what());
    return static_cast<int>(e.code());
  }
}
