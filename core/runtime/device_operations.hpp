// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// Operations whose result the host reads when the device has computed it: a SELECT, because the size of its result is
// not known before, or a COMMIT, because the host needs the norm. [loop]
class device_operations {
public:
  using operation = std::variant<rg_op_select, rg_op_commit>;

  // `d` may be null, for a rank without a device: then only empty() may be called. It must outlive this object.
  explicit device_operations(device* d) : device_(d) {}

  // Returns pinned memory for a result: two doubles, or less. It is reused after complete_passed().
  device::host_memory pinned_pair() {
    if (pinned_.empty()) return device_->allocate_host(2 * sizeof(double));
    auto memory = std::move(pinned_.back());
    pinned_.pop_back();
    return memory;
  }
  // Adds an operation, which completes when all work that stream `computing` has so far is done; that work writes
  // `result`. Does not block; the device then calls wake().
  void add(const operation& op, device::host_memory result) {
    device_->wait_for_stream(device::watching, device::computing);
    operations_.push_back({op, device_->record(device::watching), std::move(result)});
    device_->notify(device::watching); // notify() comes after record(), so that the woken thread finds the fence passed
  }
  // Calls complete(op, result) for each operation that the device has completed, in order. `complete` must not call
  // add().
  template <class F> void complete_passed(F&& complete) {
    const auto passed = std::find_if(operations_.begin(), operations_.end(),
                                     [&](const pending& o) { return !device_->passed(o.fence); });
    for (auto o = operations_.begin(); o != passed; ++o) {
      complete(o->op, static_cast<const void*>(o->result.get()));
      pinned_.push_back(std::move(o->result));
    }
    operations_.erase(operations_.begin(), passed);
  }
  bool empty() const { return operations_.empty(); }

private:
  struct pending {
    operation op;
    rg_fence fence;
    device::host_memory result;
  };
  device* device_;
  std::vector<pending> operations_;
  std::vector<device::host_memory> pinned_; // free
};

} // namespace regatta
