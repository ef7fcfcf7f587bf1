// SPDX-License-Identifier: Apache-2.0
#include "rank/hook_rules.hpp"

#include "base/failure.hpp"

#include <utility>

#include <fmt/format.h>

namespace regatta {
namespace {

std::exception_ptr broken_rule(const std::string& text) {
  return std::make_exception_ptr(failure(exit_code::plugin, text));
}

} // namespace

hook_rules::hook_rules(std::string model, const std::vector<rg_tensor>& tensors, std::int64_t last_dense)
    : model_(std::move(model)), tensors_(tensors), last_dense_(last_dense) {}

// Returns for example "ready(1) of tensor weight"; only the number if there is no such tensor.
std::string hook_rules::call(const char* hook, std::uint32_t tensor) const {
  return tensor < tensors_.size() ? fmt::format("{}({}) of tensor {}", hook, tensor, tensors_[tensor].name)
                                  : fmt::format("{}({})", hook, tensor);
}

std::exception_ptr hook_rules::require_known(const char* hook, std::uint32_t tensor) const noexcept {
  if (tensor < tensors_.size()) return nullptr;
  return broken_rule(fmt::format("{}: step {} calls {}, but the model has tensors 0 to {}: name one of them", model_,
                                 step_, call(hook, tensor), tensors_.size() - 1));
}

std::exception_ptr hook_rules::ready(std::uint32_t tensor) noexcept {
  if (auto unknown = require_known("ready", tensor)) return unknown;
  if (!last_micro_batch_)
    return broken_rule(
        fmt::format("{}: step {} calls {} in a micro-batch that is not the step's last: call ready() only "
                    "with RG_BATCH_LAST",
                    model_, step_, call("ready", tensor)));
  if (tensor <= last_)
    return broken_rule(fmt::format("{}: step {} calls {} after {}: call ready() in the order of the tensors, for each "
                                   "at most once",
                                   model_, step_, call("ready", tensor),
                                   call("ready", static_cast<std::uint32_t>(last_))));
  last_ = tensor;
  return nullptr;
}

void hook_rules::require_all_ready() const {
  if (last_ >= last_dense_) return;
  std::int64_t missing = last_ + 1; // the first dense tensor that no ready() covers
  while (missing < last_dense_ && tensors_[static_cast<std::size_t>(missing)].kind != RG_TENSOR_DENSE) ++missing;
  throw failure(exit_code::plugin,
                fmt::format("{}: step {} returned without {}: call ready() for every dense tensor, or for a later one, "
                            "in the last micro-batch of a step",
                            model_, step_, call("ready", static_cast<std::uint32_t>(missing))));
}

} // namespace regatta
