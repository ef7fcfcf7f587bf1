// SPDX-License-Identifier: Apache-2.0
#include "rank/state_report.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/syscall.h>
#include <unistd.h>

namespace regatta {

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t round_ns = 250'000'000;
constexpr auto answer_limit = 150ms;
constexpr std::size_t most_listed = 12; // there may be thousands

std::string listed(const std::vector<std::string>& names) {
  if (names.size() <= most_listed) return join(names);
  return fmt::format("{} and {} more", join({names.begin(), names.begin() + most_listed}), names.size() - most_listed);
}

std::string in_words(const transfers::open_operation& o) {
  std::string text = o.kind;
  if (o.peer != UINT32_MAX) text += fmt::format(" {} rank {}, lane {}", o.receives ? "from" : "to", o.peer, o.lane);
  if (o.peer != UINT32_MAX || o.bytes) text += fmt::format(", {} bytes", o.bytes);
  return text + (o.refused ? ": the transport is full (RG_AGAIN)" : "");
}

} // namespace

void state_report::watch(const strategy_host& strategy) {
  const std::lock_guard lock(mutex_);
  watched_ = &strategy;
  tensors_.clear();
  for (std::uint32_t i = 0; i < strategy.arena().slice_count; ++i) {
    const rg_slice& s = strategy.arena().slices[i];
    const char* name = strategy.arena().tensors[s.tensor].name;
    tensors_.push_back({name ? name : fmt::format("tensor {}", s.tensor), s.first, s.first + s.count});
  }
}

void state_report::end_watch() {
  const std::lock_guard lock(mutex_);
  watched_ = nullptr;
}

void state_report::poll(strategy_host& strategy, std::uint64_t spin_ns) {
  thread_local const auto me = static_cast<pid_t>(::syscall(SYS_gettid));
  control_.status().round();
  if (request_.load(std::memory_order_acquire)) {
    auto lines = describe_operations(strategy);
    const std::lock_guard lock(mutex_);
    request_.store(false, std::memory_order_relaxed);
    answer_ = std::move(lines);
    has_answer_ = true;
    answer_set_.notify_all();
  }
  polling_.store(me, std::memory_order_relaxed);
  bool moved = strategy.poll(round_ns, spin_ns);
  polling_.store(0, std::memory_order_relaxed);
  if (!moved) {
    const rg_counters c = transport_.counters();
    const std::uint64_t before = std::exchange(seen_bytes_, c.bytes_sent + c.bytes_received);
    moved = seen_bytes_ != before;
  }
  if (moved) control_.status().worked();
  if (control_.aborted()) throw peer_failure("ended because another rank failed");
}

void state_report::describe_tensors(std::vector<std::string>& lines) const {
  const std::string operation = control_.status().read().operation;
  const bool backward = operation == "backward pass";
  if (!backward && operation != "forward pass") return;
  const std::uint64_t here = watched_->weights_from(), ready = watched_->gradients_ready_to();
  std::vector<std::string> weights, gradients;
  for (const tensor& t : tensors_) {
    if (t.first < here) weights.push_back(t.name);
    if (t.end > ready) gradients.push_back(t.name);
  }
  if (!weights.empty()) lines.push_back("need() would wait for the weights of " + listed(weights));
  if (!gradients.empty()) lines.push_back(fmt::format("ready() was not called for {}", listed(gradients)));
}

std::vector<std::string> state_report::describe_operations(strategy_host& strategy) const {
  std::vector<std::string> lines;
  auto open = strategy.open_operations();
  // Operations that the transport refuses come first: the others may be waiting for them.
  std::stable_partition(open.begin(), open.end(),
                        [](const auto& o) { return o.refused; }); // ranges:: fails in clang 14
  for (std::size_t i = 0; i < std::min(open.size(), most_listed); ++i) lines.push_back(in_words(open[i]));
  if (open.size() > most_listed) lines.push_back(fmt::format("{} operations more", open.size() - most_listed));
  return lines;
}

nlohmann::json state_report::describe() {
  std::unique_lock lock(mutex_);
  if (!watched_) return {{"lines", nlohmann::json::array()}, {"waits", ""}, {"answers", true}, {"loop", 0}};
  std::vector<std::string> lines;
  describe_tensors(lines);
  has_answer_ = false;
  request_.store(true, std::memory_order_release);
  transport_.wake();
  const bool answers = answer_set_.wait_for(lock, answer_limit, [this] { return has_answer_; });
  request_.store(false, std::memory_order_relaxed);
  const pid_t loop = polling_.load(std::memory_order_relaxed);
  std::string waits;
  if (answers) {
    waits = answer_.empty() ? "no operation is open" : answer_.front();
    if (answer_.empty()) lines.push_back("no operation of the strategy is open");
    for (const std::string& line : answer_) lines.push_back("open: " + line);
  } else {
    lines.push_back(loop ? "the strategy does not answer: the code of the transport or the strategy does not return"
                         : "no thread runs the strategy");
  }
  return {{"lines", lines}, {"waits", waits}, {"answers", answers || loop == 0}, {"loop", answers ? 0 : loop}};
}

} // namespace regatta
