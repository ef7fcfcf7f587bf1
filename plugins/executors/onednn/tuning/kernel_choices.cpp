// SPDX-License-Identifier: Apache-2.0
#include "tuning/kernel_choices.hpp"

#include "runtime/instruction_set.hpp"

#include <algorithm>
#include <fstream>

namespace onednn {
namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown CPU";
}

std::string machine_of(const device& dev) {
  const dnnl_version_t* v = dnnl_version();
  return "oneDNN " + std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch) + ' ' +
         v->hash + "; " + isa_name() + "; " + cpu_name() + "; threads " + std::to_string(dev.threads) + "; ";
}

} // namespace

kernel_choices::kernel_choices(std::uint32_t mode, const char* given, const device& dev)
    : executors::kernel_choices("onednn", mode, given, machine_of(dev), dev.log) {}

float* kernel_choices::workspace(std::size_t bytes) {
  if (bytes > workspace_bytes_) {
    workspace_.reset(); // free the old one first
    workspace_ = allocate_zeroed(bytes);
    workspace_bytes_ = bytes;
    // Numbers around 0 in steps of 2^-8: some machines multiply zeros or denormals at another speed.
    auto* numbers = reinterpret_cast<float*>(workspace_.get());
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) {
      state = state * 1664525 + 1013904223;
      numbers[i] = static_cast<float>(static_cast<int>(state >> 24) - 128) / 256.0F;
    }
  }
  return reinterpret_cast<float*>(workspace_.get());
}

} // namespace onednn
