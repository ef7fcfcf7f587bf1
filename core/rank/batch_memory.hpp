// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/regions.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <regatta/plugin.hpp>

namespace regatta {

// One buffer an input, for a batch of `samples`.
class batch_memory {
public:
  batch_memory(const std::vector<rg_input>& inputs, std::uint64_t samples) : samples_(samples) {
    for (const rg_input& in : inputs) {
      std::uint64_t elements = samples;
      for (std::uint32_t d = 0; d < in.ndim; ++d) elements *= static_cast<std::uint64_t>(in.shape[d]);
      memory_.push_back(allocate_aligned(elements * rg::size_of(in.type)));
      pointers_.push_back(memory_.back().get());
    }
  }

  std::span<void* const> pointers() const { return pointers_; }

  // A batch as a model sees it: this memory, and nothing else said.
  rg_batch batch() const {
    auto b = rg::make_versioned<rg_batch>();
    b.input_count = static_cast<std::uint32_t>(pointers_.size());
    b.inputs = pointers_.data();
    b.samples = b.valid = b.global_samples = samples_;
    return b;
  }

private:
  std::uint64_t samples_;
  std::vector<std::unique_ptr<void, aligned_free>> memory_;
  std::vector<void*> pointers_;
};

} // namespace regatta
