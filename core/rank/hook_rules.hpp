// SPDX-License-Identifier: Apache-2.0
//
// Checks the hooks need() and ready() of rg_hooks, which a model calls in its step(). Both must name tensors of the
// model. In the last micro-batch of a step the model must call ready() with ascending tensors, each at most once, and
// cover every dense tensor; ready(t) also covers all tensors before t. In other micro-batches it must not call ready().
// All functions but the constructor are [compute]. A check costs a few comparisons and allocates nothing while the
// rules are kept.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

class hook_rules {
public:
  // `model` names the model in errors: "model mlp". `tensors` must outlive this object. `last_dense` is the index
  // of the last tensor that ready() must cover; -1: there is none.
  hook_rules(std::string model, const std::vector<rg_tensor>& tensors, std::int64_t last_dense);

  // Begins a micro-batch, in which no ready() was called yet. `step` is the number of its step, for errors; `last`: it
  // is the last micro-batch of that step.
  void begin(std::uint64_t step, bool last) noexcept {
    step_ = step;
    last_micro_batch_ = last;
    last_ = -1;
  }
  // Check a call of need() or ready(). Return null if it keeps the rules, else a failure (plugin): the caller throws it
  // once the model's step() has returned, because no exception may pass through the model.
  std::exception_ptr need(std::uint32_t tensor) const noexcept { return require_known("need", tensor); }
  std::exception_ptr ready(std::uint32_t tensor) noexcept;
  // Call it when step() has returned from the last micro-batch. Throws failure (plugin) if no ready() since begin()
  // covered the last dense tensor.
  void require_all_ready() const;

private:
  std::string call(const char* hook, std::uint32_t tensor) const;
  std::exception_ptr require_known(const char* hook, std::uint32_t tensor) const noexcept;

  std::string model_;
  const std::vector<rg_tensor>& tensors_;
  std::int64_t last_dense_;
  std::uint64_t step_ = 0;
  bool last_micro_batch_ = true;
  std::int64_t last_ = -1; // the tensor of the last ready() since begin(); -1: none
};

} // namespace regatta
