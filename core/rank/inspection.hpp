// SPDX-License-Identifier: Apache-2.0
//
// A look at a rank's memory while nothing is under way and nothing is timed: after warm-up and after the last step.
#pragma once

#include "rank/exchange.hpp"

#include <cstdint>
#include <string>

namespace regatta {

// Throws failure (plugin) where somebody wrote outside of a buffer: the guards around each region must be as they were
// made, and the padding behind each tensor zero, in weights and in gradients. `when` begins the text: "after warm-up".
// [loop] On a rank of any role; waits for a device.
void require_no_damage(const exchange& x, const std::string& when);

// What it throws: `what` was written. "memory behind the gradients"
[[noreturn]] void report_damage(const std::string& when, const std::string& what);

// Throws failure (wrong) where a gradient has elements that are infinite or not a number. `when` as above. Returns
// whether a tensor that is trained (lr_scale above 0) has an element whose gradient is not 0. [loop] On a worker.
bool require_finite_gradients(const exchange& x, const std::string& when);
// The same without throwing: for fp16, whose gradients may overflow. Then nothing is known: false.
bool finite_and_not_zero(const exchange& x);

// Equal weights have equal sums; others hardly ever. Of the dense weights of a worker. [loop] Waits for a device.
std::uint64_t checksum_of_weights(const exchange& x);
// Whether this rank holds a row of a table that is no longer as it began. [loop]
bool any_row_changed(const exchange& x);

} // namespace regatta
