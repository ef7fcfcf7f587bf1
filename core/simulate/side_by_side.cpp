// SPDX-License-Identifier: Apache-2.0
#include "simulate/side_by_side.hpp"

#include "registry/child.hpp"

#include <memory>
#include <optional>

namespace regatta {
namespace {

using nlohmann::json;
using namespace children;

// A child that runs beside others, for one item.
struct child_of_item {
  std::size_t item;
  clock_type::time_point deadline;
  std::unique_ptr<child> process;

  // Returns the result once it is known; `readable`: there is something to read.
  std::optional<child_result> look(bool readable, const child_options& options) {
    json frame;
    try {
      if (readable && !process->read_some()) return result_of(*process, child::event::ended, frame, options);
      if (process->take_answer(frame)) return result_of(*process, child::event::answer, frame, options);
      if (clock_type::now() >= deadline) return result_of(*process, child::event::late, frame, options);
    } catch (const failure& e) { // thrown by take()
      return failed_result(e.code(), e.what());
    } catch (const json::exception&) {
      return failed_result(exit_code::plugin, process->death_message("wrote to a file descriptor of regatta"));
    }
    return {};
  }
};

// Waits until one of the children has written, at most 50 ms. Returns which ones have.
std::vector<bool> wait_for_some(const std::vector<child_of_item>& running) {
  std::vector<pollfd> waits;
  for (const child_of_item& c : running) waits.push_back({c.process->descriptor(), POLLIN, 0});
  ::poll(waits.data(), waits.size(), 50);
  std::vector<bool> readable;
  for (const pollfd& p : waits) readable.push_back(p.revents != 0);
  return readable;
}

} // namespace

void run_side_by_side(std::size_t count, const std::function<json(std::size_t, const stage_function&)>& work,
                      const side_by_side& how, const child_options& options) {
  std::vector<child_of_item> running;
  std::size_t next = 0;
  const auto may_begin = [&] {
    if (next == count || running.size() >= std::max<std::size_t>(how.jobs, 1)) return false;
    if (running.empty() || !how.may_begin) return next < count;
    std::vector<int> processes;
    for (const child_of_item& c : running) processes.push_back(c.process->process());
    return how.may_begin(next, processes);
  };
  while (next < count || !running.empty()) {
    if (options.interrupted && options.interrupted()) {
      for (const child_of_item& c : running) how.take(c.item, failed_result(exit_code::interrupted, "interrupted"));
      for (; next < count; ++next) how.take(next, failed_result(exit_code::interrupted, "interrupted"));
      return;
    }
    while (may_begin()) {
      const std::size_t item = next++;
      if (how.begun) how.begun(item);
      try {
        running.push_back({item, clock_type::now() + options.limit,
                           std::make_unique<child>(0, 1, [&, item](std::size_t, const stage_function& stage) {
                             return work(item, stage);
                           })});
      } catch (const failure& e) {
        how.take(item, failed_result(e.code(), e.what()));
      }
    }
    const std::vector<bool> readable = wait_for_some(running);
    for (std::size_t i = running.size(); i-- > 0;)
      if (auto result = running[i].look(readable[i], options)) {
        const std::size_t item = running[i].item;
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
        how.take(item, std::move(*result));
      }
  }
}

} // namespace regatta
