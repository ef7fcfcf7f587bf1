// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "registry/run_in_child.hpp"

#include <cstddef>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// How run_side_by_side() runs its children.
struct side_by_side {
  std::size_t jobs = 1; // the most children at once
  // Asked before a child begins with an item while others run, whose process ids are given. If it returns false, the
  // child waits, and this is asked again. May be empty.
  std::function<bool(std::size_t item, const std::vector<int>& running)> may_begin;
  // Called before a child is started for an item. May be empty.
  std::function<void(std::size_t item)> begun;
  // Takes the result of an item; called once for each, as they end, also for those whose child cannot be started, and
  // those that have not begun when child_options::interrupted returns true.
  std::function<void(std::size_t item, child_result&& result)> take;
};

// [main] As run_all_in_child(), but each item has a child of its own, and several run at once, in the order of the
// items. Requires that this process has no other threads.
void run_side_by_side(std::size_t count, const std::function<nlohmann::json(std::size_t, const stage_function&)>& work,
                      const side_by_side& how, const child_options& options = {});

} // namespace regatta
