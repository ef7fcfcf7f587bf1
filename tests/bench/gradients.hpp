// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace regatta::bench {

// How far the gradients of a step lie from those in fp32 by the direct algorithms (train.kernels = "fixed"), relative
// to the length of these, all dense gradients as one vector.
struct gradient_differences {
  double algorithms;          // in fp32 by the algorithms that are the fastest
  std::optional<double> bf16; // in bf16 by these; nothing on a CPU that does not compute in it
};

// Of model `id` in plugin file `file` (vgg.so) with its defaults, at its start. Nothing where it is no graph.
std::optional<gradient_differences> differences_of(const std::string& file, const std::string& id, std::uint64_t batch);

} // namespace regatta::bench
