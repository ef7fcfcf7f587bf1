// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "campaign/progress.hpp"

#include <string>

namespace regatta {

// Standard error while a campaign runs: the progress line at the bottom of a terminal and lines that must not run into
// it, or one JSON object a line (schema regatta.progress/1) for programs. [main]
class run_screen {
public:
  // `when`: auto (a line if standard error is a terminal), always, never, or json.
  explicit run_screen(const std::string& when);
  ~run_screen() { clear(); }
  run_screen(const run_screen&) = delete;
  run_screen& operator=(const run_screen&) = delete;

  // Shows the progress, unless it looks as before.
  void show(const progress& p);
  // Prints a text for people: one or more lines, or with json one object.
  void say(const std::string& text);
  // Removes the progress line. With json prints how the campaign ended: `result` is the file of the result.
  void end(int exit_code, const std::string& result);
  // Removes the progress line, so that other output may follow.
  void clear();

private:
  bool live_, json_;
  std::string shown_;
};

} // namespace regatta
