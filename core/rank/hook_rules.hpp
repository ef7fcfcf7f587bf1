// SPDX-License-Identifier: Apache-2.0
//
// The rules of rg_hooks that a model's step must keep, looked at call by call: need() and ready() name tensors that the
// model has, ready() goes through them in their order, each at most once, and the last micro-batch of a step says ready()
// for every dense tensor. All [compute]. A call costs a few comparisons and allocates nothing.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class hook_rules {
public:
  // `model` is how errors name it: "model mlp". `tensors` outlive this. `last_dense`: the last tensor whose ready() is
  // waited for; -1: there is none.
  hook_rules(std::string model, const std::vector<rg_tensor>& tensors, std::int64_t last_dense);

  void begin(std::uint64_t step) noexcept {
    step_ = step;
    last_ = -1;
  }
  // Null: the call keeps the rules. Else what to throw once the step has returned.
  std::exception_ptr need(std::uint32_t tensor) const noexcept;
  std::exception_ptr ready(std::uint32_t tensor) noexcept;
  // The last micro-batch has returned. Throws failure (plugin) where a ready() is missing.
  void require_all_ready() const;

private:
  std::string call(const char* hook, std::uint32_t tensor) const;

  std::string model_;
  const std::vector<rg_tensor>& tensors_;
  std::int64_t last_dense_;
  std::uint64_t step_ = 0;
  std::int64_t last_ = -1; // the tensor of this step's last ready()
};

} // namespace regatta
