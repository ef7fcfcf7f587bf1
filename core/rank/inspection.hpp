// SPDX-License-Identifier: Apache-2.0
//
// Checks of a rank's memory, gradients and weights after warm-up and after the last step, while nothing is pending and
// nothing is timed.
#pragma once

#include "runtime/strategy_host.hpp"

#include <cstdint>
#include <string>

namespace regatta {

// [loop] Throws failure (plugin) if memory outside of a buffer was written: the guards around each region must be
// unchanged, and the padding behind each tensor must be zero in weights and gradients. `when` begins the text: "after
// warm-up". Works in any role; waits for a device.
void require_no_damage(const strategy_host& strategy, const std::string& when);

// Throws the failure of require_no_damage(). `what` names the memory that was written: "memory behind the gradients".
[[noreturn]] void report_damage(const std::string& when, const std::string& what);

// [loop] Throws failure (wrong) if a gradient has elements that are infinite or NaN. `when` as in require_no_damage().
// Returns whether a trained tensor (lr_scale above 0) has an element whose gradient is not 0. On workers only; waits
// for a device.
bool require_finite_gradients(const strategy_host& strategy, const std::string& when);
// [loop] Returns whether all gradients are finite and a trained tensor has one that is not 0. For fp16, whose gradients
// may overflow. On workers only; waits for a device.
bool finite_and_not_zero(const strategy_host& strategy);

// [loop] Returns a hash of a worker's dense weights: equal for equal weights, and almost always different otherwise.
// Waits for a device.
std::uint64_t checksum_of_weights(const strategy_host& strategy);
// [loop] Returns whether this rank, as worker or server, has updated or written a row of a sparse table; it does not
// compare the values.
bool any_row_changed(const strategy_host& strategy);

} // namespace regatta
