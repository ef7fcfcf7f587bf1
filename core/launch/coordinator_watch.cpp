// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's periodic checks of the run's progress, and signals to the program.
#include "launch/coordinator.hpp"

#include <algorithm>

#include <fcntl.h>
#include <fmt/format.h>

#include <regatta/abi.h>

#include "base/failure.hpp"
#include "launch/line_splitter.hpp"
#include "launch/stall_report.hpp"

namespace regatta {

using namespace std::chrono_literals;

namespace {

constexpr auto lateness = 1s;              // the coordinator itself was stopped or starved
constexpr auto description_limit = 1500ms; // for the answers of all ranks to "describe"
constexpr auto description_pause = 20ms;

// Returns true if a rank has answered "describe", and the thread that runs its exchange could take part in the answer.
bool answers(const nlohmann::json& state) {
  return !state.is_null() && state.value("answers", true);
}

} // namespace

asio::awaitable<void> coordinator::keep_time() {
  asio::steady_timer timer(io_);
  auto last = clock::now();
  for (;;) {
    timer.expires_after(tick);
    co_await timer.async_wait(asio::use_awaitable);
    const auto now = clock::now();
    // While this process did not run, it learned nothing.
    const auto late = now - last > lateness ? now - last - tick : clock::duration::zero();
    if (late > 0s) stalls_.forgive(late);
    last = now;
    if (hooks_.progress) {
      std::vector<rank_progress> all;
      for (const member& m : members_) {
        const rank_status s = m.host->sign(m.rank).status;
        all.push_back({s.step, s.samples});
      }
      hooks_.progress(all);
    }
    for (const auto& host : hosts_) host->tick(now, late);
    look_for_standstill(now);
  }
}

void coordinator::look_for_standstill(clock::time_point now) {
  if (!plan_.stall.watched || ending_ || describing_) return;
  for (const member& m : members_)
    if (m.running && m.connected && !m.has_result && !m.reported)
      stalls_.note(m.rank, m.host->sign(m.rank).status, now);
  if (connected_ < members_.size()) return; // connected ranks may wait for the others
  auto stuck = stalls_.stuck(now);
  if (stuck.empty()) return;
  describing_ = true;
  spawn(describe_standstill(std::move(stuck)));
}

asio::awaitable<void> coordinator::describe_standstill(std::vector<std::uint32_t> stuck) {
  for (const member& m : members_)
    if (m.open && !m.has_result) m.host->send({&m.rank, 1}, {{"t", "describe"}});
  asio::steady_timer timer(io_);
  const auto until = clock::now() + description_limit;
  while (!all_described() && clock::now() < until && !ending_) {
    timer.expires_after(description_pause);
    co_await timer.async_wait(asio::use_awaitable);
  }
  if (!ending_) end_standstill(stuck);
}

bool coordinator::all_described() const {
  return std::all_of(members_.begin(), members_.end(),
                     [](const member& m) { return !m.open || m.has_result || !m.state.is_null(); });
}

void coordinator::end_standstill(const std::vector<std::uint32_t>& stuck) {
  const auto now = clock::now();
  std::vector<rank_report> reports;
  const auto report_of = [&](const member& m) {
    return rank_report{name_of(m), m.host->sign(m.rank).status, stalls_.still_for(m.rank, now), m.state};
  };
  for (const member& m : members_)
    if (m.running && !m.has_result) reports.push_back(report_of(m));
  // If several ranks are stuck, blame one that does not answer first.
  const auto blamed = *std::ranges::min_element(stuck, {}, [&](std::uint32_t r) { return answers(members_[r].state); });
  const member& m = members_[blamed];
  const rank_report mine = report_of(m);
  rank_failure f{m.rank, fmt::format("{}: {}", mine.name, stall_cause(mine)), static_cast<int>(exit_code::run),
                 stall_report(reports)};
  log(coordinator_rank, RG_LOG_WARNING,
      fmt::format("the run makes no progress ({}); state of each rank:", plan_.stall.setting));
  line_splitter lines([this](const std::string& line) { log(coordinator_rank, RG_LOG_WARNING, line); });
  lines.feed(f.dump);
  result_.failure = std::move(f);
  end(m.rank, result_.failure->message);
  // Ranks that wait receive the message that the run has ended; a rank that hangs in a call does not.
  if (!plan_.lasting && (mine.status.waits == waiting::nothing || !answers(mine.state))) m.host->kill(m.rank);
}

bool coordinator::somebody_is_quiet(clock::time_point now) const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& host) { return host->quiet(now); });
}

asio::awaitable<void> coordinator::heed_signals() {
  interrupted_.assign(::fcntl(interruption_.descriptor(), F_DUPFD_CLOEXEC, 3));
  co_await interrupted_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
  result_.interrupted = true;
  end(nobody, "interrupted");
}

} // namespace regatta
