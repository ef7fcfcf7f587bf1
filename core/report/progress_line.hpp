// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "campaign/progress.hpp"

#include <cstddef>
#include <string>

namespace regatta {

// Returns one line for a terminal, without line end, of at most `width` columns (0: unlimited). A line that is too long
// loses its least important parts first, then the end of its text.
//   [2/6] allreduce, shm, 2 workers   repeat 1/3   step 17/35   271.3 samples/s   1 min 20 s left
// To draw: "\r" + line + "\x1b[K"; to clear: "\r\x1b[K".
std::string progress_line(const progress& p, std::size_t width);

// Return one JSON object without line end, for programs (schema regatta.progress/1, docs/experiments.md). Its "kind" is
// "progress", "message" (a text for people) or "end"; `result` is the path of result.json, or empty.
std::string progress_object(const progress& p);
std::string message_object(const std::string& text);
std::string end_object(int exit_code, const std::string& result);

// Returns "45 s", "3 min 20 s", "1 h 5 min"; "0 s" for a negative duration.
std::string human_duration(double seconds);

} // namespace regatta
