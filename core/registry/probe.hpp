// SPDX-License-Identifier: Apache-2.0
//
// Tries in a child process what could take this one along: running a plugin's constructors and reading what it says.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace regatta {

// Tells the parent how far the trial has come, for the text of a crash: "was being loaded". Static storage.
using stage_function = std::function<void(const char* stage)>;

// Runs `trial` in a forked child and returns what it returned: empty, or why the plugin cannot be used. Whatever else
// happens there (a signal, exit(), a hang) becomes a text as well. The child's output goes nowhere, but the end of what
// it wrote to standard error becomes part of a crash's text. Call it before this process has other threads: the child
// has none of them, and their locks stay as they were.
std::string probe(const std::function<std::string(const stage_function&)>& trial,
                  std::chrono::milliseconds patience = std::chrono::seconds(20));

} // namespace regatta
