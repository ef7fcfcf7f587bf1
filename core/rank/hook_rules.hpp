// SPDX-License-Identifier: Apache-2.0
//
// Checks the rules of rg_hooks at each call from a model's step: need() and ready() name tensors of the model; ready()
// is called in tensor order, at most once for each; and the last micro-batch of a step calls ready() for every dense
// tensor, or for a later one. All functions are [compute]. A check costs a few comparisons and allocates nothing while
// the rules are kept.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class hook_rules {
public:
  // `model` names the model in errors: "model mlp". `tensors` must outlive this object. `last_dense` is the last tensor
  // whose ready() is required; -1: there is none.
  hook_rules(std::string model, const std::vector<rg_tensor>& tensors, std::int64_t last_dense);

  void begin(std::uint64_t step) noexcept {
    step_ = step;
    last_ = -1;
  }
  // Return null if the call keeps the rules, else the failure to throw once the step has returned.
  std::exception_ptr need(std::uint32_t tensor) const noexcept;
  std::exception_ptr ready(std::uint32_t tensor) noexcept;
  // Call it when the last micro-batch has returned. Throws failure (plugin) if a ready() is missing.
  void require_all_ready() const;

private:
  std::string call(const char* hook, std::uint32_t tensor) const;

  std::string model_;
  const std::vector<rg_tensor>& tensors_;
  std::int64_t last_dense_;
  std::uint64_t step_ = 0;
  std::int64_t last_ = -1; // the tensor of the last ready() in this step
};

} // namespace regatta
