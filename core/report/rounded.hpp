// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace regatta {

// [any] Texts for tables, rounded to about three digits, in powers of 1000: 61018408 bytes -> "61.0 MB",
// 0.00125 s -> "1.25 ms". From 600 s on, a time is hours, minutes and seconds: 3725 s -> "1:02:05 h".
// Values must be finite, and times at least 0.
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);

} // namespace regatta
