// SPDX-License-Identifier: Apache-2.0
#include "registry/run_in_child.hpp"

#include "registry/child.hpp"

namespace regatta {
namespace {

using nlohmann::json;
using namespace children;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

} // namespace

std::chrono::milliseconds child_options::default_limit() {
  return std::chrono::seconds(sanitized ? 120 : 10);
}

std::vector<child_result> run_all_in_child(std::size_t count,
                                           const std::function<json(std::size_t, const stage_function&)>& work,
                                           const child_options& options) {
  std::vector<child_result> answers;
  const auto fail = [&](exit_code code, const std::string& text) { answers.push_back({{}, failure(code, text)}); };
  while (answers.size() < count) {
    std::optional<child> running;
    try {
      running.emplace(answers.size(), count, work);
    } catch (const failure& e) { // no other child can be started: the answers so far stay
      while (answers.size() < count) fail(e.code(), e.what());
      break;
    }
    child& c = *running;
    for (bool lives = true; lives && answers.size() < count;) {
      json frame;
      try {
        const child::event e = c.next(options, frame);
        answers.push_back(result_of(c, e, frame, options));
        lives = e == child::event::answer;
        while (e == child::event::interrupted && answers.size() < count) fail(exit_code::interrupted, "interrupted");
      } catch (const failure& e) { // thrown by take()
        fail(e.code(), e.what());
        lives = false;
      } catch (const json::exception&) {
        fail(exit_code::plugin, c.death_message("wrote to a file descriptor of regatta"));
        lives = false;
      }
    }
  }
  return answers;
}

json run_in_child(const std::function<json(const stage_function&)>& work, const child_options& options) {
  auto all = run_all_in_child(
      1, [&](std::size_t, const stage_function& stage) { return work(stage); }, options);
  if (all[0].failed) throw *all[0].failed;
  return std::move(all[0].value);
}

} // namespace regatta
