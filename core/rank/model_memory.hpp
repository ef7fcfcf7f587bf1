// SPDX-License-Identifier: Apache-2.0
//
// Initial values of a model's weights, and the memory of its state tensors (such as running statistics), which are part
// of no arena.
#pragma once

#include "control/client.hpp"
#include "device/device.hpp"
#include "device/host.hpp"
#include "rank/model.hpp"
#include "runtime/strategy_host.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace regatta {

class model_memory {
public:
  // `d` is null on the host. Both must outlive this object. After bind() the model keeps pointers into this object's
  // memory and the strategy's arena. `seed` is that of the initial values.
  model_memory(model_instance& model, device* d, std::uint64_t seed) : model_(model), device_(d), seed_(seed) {}

  // [main] Workers only. Initialises the weights in the arena of `strategy`, allocates and initialises the states, and
  // passes all pointers to the model. `kind` is that of the memory (RG_MEMORY_*). Tells `control` what it does.
  void bind(strategy_host& strategy, std::uint32_t kind, control_client& control);
  // [main] Writes the initial weights of elements [first, first + count) of the arena, which a server owns, to `out` in
  // host memory.
  void initialise(const rg_arena& arena, std::uint64_t first, std::uint64_t count, float* out);
  // [main] Averages the states over the workers. Collective on the control channel: ranks that are no workers call
  // evaluation::attend() instead. Waits for a device.
  void average_states(control_client& control, std::uint32_t workers);
  // [loop] Throws failure (plugin) if memory before or behind a state was written. `when` begins the text. Waits for a
  // device.
  void require_no_damage(const std::string& when);

private:
  std::span<float> allocate_state(std::uint64_t count);

  model_instance& model_;
  device* device_;
  std::uint64_t seed_;
  host_processor host_;
  std::vector<std::span<float>> states_; // by tensor, on the model's device; empty for other tensors
  // Last tensor of initialise(), complete: the next range often begins in it.
  std::uint32_t initialised_tensor_ = UINT32_MAX;
  std::vector<float> initialised_;
};

} // namespace regatta
