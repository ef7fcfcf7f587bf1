// SPDX-License-Identifier: Apache-2.0
#include "rank/model_memory.hpp"

#include "rank/inspection.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr std::size_t state_margin = 16; // in floats: a cache line

} // namespace

// Zeros before and behind a state show whether the model writes out of bounds.
std::span<float> model_memory::allocate_state(std::uint64_t count) {
  processor& unit = device_ ? static_cast<processor&>(*device_) : host_;
  return {static_cast<float*>(unit.allocate((count + 2 * state_margin) * sizeof(float))) + state_margin, count};
}

void model_memory::bind(strategy_host& strategy, std::uint32_t kind, control_client& control) {
  control.operation("initialising the weights", pace::rare);
  const rg_arena& arena = strategy.arena();
  const std::size_t n = model_.tensors().size();
  std::vector<float*> weights(n, nullptr), gradients(n, nullptr);
  for (std::uint32_t i = 0; i < arena.slice_count; ++i) {
    const rg_slice& s = arena.slices[i];
    weights[s.tensor] = strategy.weights().data() + s.first;
    gradients[s.tensor] = strategy.gradients().data() + s.first;
  }
  states_.resize(n);
  std::vector<float> start; // initial values of a tensor on a device
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t count = rg::storage_of(model_.tensors()[i]);
    if (model_.tensors()[i].kind == RG_TENSOR_STATE) {
      states_[i] = allocate_state(count);
      weights[i] = states_[i].data();
    }
    if (!weights[i]) continue;
    if (device_) start.assign(count, 0.0f);
    model_.init(static_cast<std::uint32_t>(i), seed_, device_ ? start.data() : weights[i]);
    if (device_) device_->write(weights[i], start.data(), count * sizeof(float));
  }
  auto memory = rg::make_versioned<rg_model_memory>();
  memory.tensor_count = static_cast<std::uint32_t>(n);
  const std::vector<void*> untyped_weights(weights.begin(), weights.end()),
      untyped_gradients(gradients.begin(), gradients.end());
  memory.weights = untyped_weights.data();
  memory.gradients = untyped_gradients.data();
  memory.memory = kind;
  control.operation("binding the model to its weights", pace::rare);
  model_.check_status(model_.functions().bind(model_.self(), &memory), "bind");
}

// A server's shard may begin and end within a tensor, but a model initialises only whole tensors.
void model_memory::initialise(const rg_arena& arena, std::uint64_t first, std::uint64_t count, float* out) {
  for (std::uint32_t i = 0; i < arena.slice_count; ++i) {
    const rg_slice& s = arena.slices[i];
    const std::uint64_t from = std::max(first, s.first), to = std::min(first + count, s.first + s.count);
    if (from >= to) continue;
    if (initialised_tensor_ != s.tensor) {
      initialised_.assign(s.count, 0.0f);
      model_.init(s.tensor, seed_, initialised_.data());
      initialised_tensor_ = s.tensor;
    }
    std::memcpy(out + (from - first), initialised_.data() + (from - s.first), (to - from) * sizeof(float));
  }
}

void model_memory::average_states(control_client& control, std::uint32_t workers) {
  for (const std::span<float> state : states_) {
    if (state.empty()) continue;
    std::vector<float> values(state.size());
    if (device_)
      device_->read(values.data(), state.data(), state.size_bytes());
    else
      values.assign(state.begin(), state.end());
    const auto sums = control.sum("state", std::vector<double>(values.begin(), values.end()));
    std::transform(sums.begin(), sums.end(), values.begin(), [&](double v) { return static_cast<float>(v / workers); });
    if (device_)
      device_->write(state.data(), values.data(), state.size_bytes());
    else
      std::copy(values.begin(), values.end(), state.begin());
  }
}

void model_memory::require_no_damage(const std::string& when) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].empty()) continue;
    for (const bool behind : {false, true}) {
      const float* const at = behind ? states_[i].data() + states_[i].size() : states_[i].data() - state_margin;
      float margin[state_margin];
      if (device_)
        device_->read(margin, at, sizeof margin);
      else
        std::memcpy(margin, at, sizeof margin);
      if (std::any_of(std::begin(margin), std::end(margin), [](float x) { return x != 0; }))
        report_damage(when, fmt::format("memory {} the state of tensor {}", behind ? "behind" : "before",
                                        model_.tensors()[i].name));
    }
  }
}

} // namespace regatta
