// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's periodic checks: ranks that are silent, stopped or without progress; and signals to the program.
#include "launch/coordinator.hpp"

#include <algorithm>

#include <fcntl.h>
#include <fmt/format.h>

#include <regatta/abi.h>

#include "base/failure.hpp"
#include "launch/stall_report.hpp"

namespace regatta {

using namespace std::chrono_literals;

namespace {

constexpr auto quiet = 400ms;              // a heartbeat is late, so silence may follow; less than suspicion_limit
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
    // While this process did not run, it could not receive from any rank.
    if (now - last > lateness) {
      for (auto& m : members_) {
        m->heard += now - last - tick;
        m->stopped.reset();
      }
      stalls_.forgive(now - last - tick);
    }
    last = now;
    if (hooks_.progress) {
      std::vector<rank_progress> all;
      for (const auto& m : members_) {
        const rank_status s = m->status.read();
        all.push_back({s.step, s.samples});
      }
      hooks_.progress(all);
    }
    if (!plan_.debugged) {
      look_for_silence(now);
      look_for_stopped(now);
    }
    look_for_standstill(now);
  }
}

void coordinator::look_for_silence(clock::time_point now) {
  for (const auto& m : members_) {
    if (!m->running || m->reported) continue;
    if (m->wire) m->heard = std::max(m->heard, m->wire->heard());
    const auto since = now - m->heard;
    const auto seconds = std::chrono::duration<double>(since).count();
    if (!m->wire) {
      if (since > plan_.start) certain(*m, fmt::format("did not connect within {:.1f} s of its start", seconds));
    } else if (since > plan_.silence && m->has_result) {
      warn(*m, fmt::format("did not end within {:.1f} s of its result and was killed", seconds));
      kill(*m);
    } else if (since > plan_.silence) {
      certain_of_lifeless(*m, fmt::format("sent no heartbeat for {:.1f} s", seconds));
    }
  }
}

void coordinator::look_for_stopped(clock::time_point now) {
  for (const auto& m : members_) {
    const bool heard = m->wire && now - m->wire->heard() < quiet;
    if (!m->running || m->reported || heard || !is_stopped(m->pid)) {
      m->stopped.reset();
    } else if (!m->stopped) {
      m->stopped = now;
    } else if (now - *m->stopped > plan_.stopped) {
      const auto seconds = std::chrono::duration<double>(now - *m->stopped).count();
      const auto what = fmt::format("stopped by a signal for {:.1f} s", seconds);
      if (m->has_result) {
        warn(*m, what + " after its result, and was killed");
        kill(*m);
      } else {
        certain_of_lifeless(*m, what);
      }
    }
  }
}

void coordinator::look_for_standstill(clock::time_point now) {
  if (!plan_.stall.watched || ending_ || describing_) return;
  for (const auto& m : members_)
    if (m->running && m->wire && !m->has_result && !m->reported) stalls_.note(m->rank, m->status.read(), now);
  if (connected_ < members_.size()) return; // connected ranks may wait for the others
  auto stuck = stalls_.stuck(now);
  if (stuck.empty()) return;
  describing_ = true;
  spawn(describe_standstill(std::move(stuck)));
}

asio::awaitable<void> coordinator::describe_standstill(std::vector<std::uint32_t> stuck) {
  for (const auto& m : members_)
    if (m->wire_open && !m->has_result) m->wire->send({{"t", "describe"}});
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
                     [](const auto& m) { return !m->wire_open || m->has_result || !m->state.is_null(); });
}

void coordinator::end_standstill(const std::vector<std::uint32_t>& stuck) {
  const auto now = clock::now();
  std::vector<rank_report> reports;
  for (const auto& m : members_)
    if (m->running && !m->has_result)
      reports.push_back({name_of(*m), m->status.read(), stalls_.still_for(m->rank, now), m->state});
  // If several ranks are stuck, blame one that does not answer first.
  const auto blamed =
      *std::ranges::min_element(stuck, {}, [&](std::uint32_t r) { return answers(members_[r]->state); });
  const member& m = *members_[blamed];
  const rank_report mine{name_of(m), m.status.read(), stalls_.still_for(m.rank, now), m.state};
  rank_failure f{m.rank, fmt::format("{}: {}", mine.name, stall_cause(mine)), static_cast<int>(exit_code::run),
                 stall_report(reports)};
  log(coordinator_rank, RG_LOG_WARNING,
      fmt::format("the run makes no progress ({}); state of each rank:", plan_.stall.setting));
  line_splitter lines([this](const std::string& line) { log(coordinator_rank, RG_LOG_WARNING, line); });
  lines.feed(f.dump);
  result_.failure = std::move(f);
  end(m.rank, result_.failure->message);
  // Ranks that wait receive the message that the run has ended; a rank that hangs in a call does not.
  if (!plan_.launcher && (mine.status.waits == waiting::nothing || !answers(mine.state))) kill(m);
}

bool coordinator::somebody_is_quiet(clock::time_point now) const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& m) {
    return m->running && m->wire_open && !m->reported && !m->has_result && now - m->wire->heard() > quiet;
  });
}

asio::awaitable<void> coordinator::heed_signals() {
  interrupted_.assign(::fcntl(interruption_.descriptor(), F_DUPFD_CLOEXEC, 3));
  co_await interrupted_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
  result_.interrupted = true;
  end(nobody, "interrupted");
}

} // namespace regatta
