// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/failure.hpp"

#include <string>

#include <fmt/format.h>
#include <regatta/abi.h>
#include <regatta/operation_names.hpp>

namespace regatta {

// Throw failure (plugin), which refuses a call or an operation of the strategy; refuse_operation() with the name of the
// operation before `why`.
[[noreturn]] inline void refuse_call(const std::string& why) {
  throw failure(exit_code::plugin, why);
}
[[noreturn]] inline void refuse_operation(const rg_op& op, const std::string& why) {
  refuse_call(fmt::format("{}: {}", rg::operation_name(op.kind), why));
}

} // namespace regatta
