// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"
#include "memory/regions.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <regatta/plugin.hpp>

namespace regatta {

// Holds one buffer per input for a batch of `samples`. With a `reader` the buffers are its pinned memory, which
// outlives this object: the device's destructor frees it. The constructor throws failure if there is not enough memory:
// run on the host, by the status of the executor's function on a device.
class batch_memory {
public:
  batch_memory(const std::vector<rg_input>& inputs, std::uint64_t samples, device* reader = nullptr)
      : samples_(samples) {
    for (const rg_input& in : inputs) {
      std::uint64_t elements = samples;
      for (std::uint32_t d = 0; d < in.ndim; ++d) elements *= static_cast<std::uint64_t>(in.shape[d]);
      const std::uint64_t bytes = elements * rg::size_of(in.type);
      if (reader) { // the device frees it: its streams may still read it where a run ends early
        pointers_.push_back(reader->allocate_host(bytes).release());
        continue;
      }
      memory_.push_back(allocate_aligned(bytes));
      pointers_.push_back(memory_.back().get());
    }
  }

  // Returns the buffers, by input.
  std::span<void* const> pointers() const { return pointers_; }

  // Returns a batch over this memory, with `valid` and `global_samples` set to `samples`; step, first_sample, seed,
  // flags, tables and global_counts are not set. Valid as long as this object.
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
