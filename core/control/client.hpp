// SPDX-License-Identifier: Apache-2.0
//
// A rank's end of the control channel: a TCP connection to the coordinator, proven by challenge and response, that
// carries what is rare (set-up, blobs, barriers, progress, results, abort), never what is measured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "control/blob.hpp"
#include "control/status_page.hpp"

namespace regatta {

// Where a rank puts the cause of its failure. What blames a peer (a lost connection) is believed only when no process
// turns out to have died: then that is the cause.
enum class blame { own, peer };

class control_client {
public:
  // Connects, authenticates and waits for the job, 10 s at most. `secret` was read from the pipe that the coordinator
  // left in this process (read_invitation), `page` is the one it left. Throws failure. If the connection is ever lost (the coordinator was killed)
  // this process has 1 s to end, then the control thread ends it by _exit.
  control_client(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret, status_page page);
  ~control_client(); // what was logged still gets out

  // This rank, and the number of ranks of the case.
  std::uint32_t rank() const noexcept;
  std::uint32_t ranks() const noexcept;
  // The job of this rank, as the coordinator's launch_plan gave it.
  const nlohmann::json& job() const;

  // These three throw failure (run) when the case has ended meanwhile: a rank died, Ctrl-C, the coordinator is gone.
  // All-gather among all ranks of the case: everyone calls it with the same tag; returns every rank's blob, by rank.
  // All blobs together are at most 1 GiB. [main]
  std::vector<blob> exchange(std::string_view tag, const blob& mine);
  // Returns when every rank of the case has called it with this name; the return is the start of what follows. [main]
  void barrier(std::string_view name);
  // As exchange, but summed elementwise in the order of ranks, so to the bit the same on all: doubles, equal length
  // everywhere. [main]
  std::vector<double> sum(std::string_view tag, const std::vector<double>& mine);

  // The same in two halves, so that something else can be done meanwhile: nothing of the above in between. [main]
  void begin_sum(std::string_view tag, const std::vector<double>& mine);
  std::vector<double> end_sum();

  // Step and samples done; the coordinator sees them at once, as all that is said to status(). Lock-free. [any]
  void progress(std::uint64_t step, std::uint64_t samples) noexcept;
  // Tells the coordinator the operation that this rank begins, and how long it may show no progress. The operation is
  // named if the rank dies or hangs. Lock-free. [any]
  void operation(const char* what, pace p = pace::step) noexcept;
  // Where this rank stands, as the coordinator sees it. [any]
  status_page& status() noexcept;
  // The last call: what this rank measured. Returns once the coordinator has it. [main]
  void result(const nlohmann::json& j);
  // Why this rank gives up; the coordinator ends the case. `code` is an exit_code. Returns once it is on its way (1 s
  // at most), so that the process may end at once. Never throws. [any]
  void failed(const std::string& why, int code, blame b = blame::own) noexcept;
  // A line for the coordinator's standard error or log; `level` as RG_LOG_*. [any]
  void log(int level, const std::string& text) noexcept;

  // Called once, on the control thread, at once, when the case ends before its time: because another rank died (its
  // number), or for another reason (UINT32_MAX). Called also when that was before on_death. Replaces the callback there
  // was, which is not running any more when this returns; so an empty one withdraws it. Not from the callback. [main]
  void on_death(std::function<void(std::uint32_t rank)> f);
  // Sets the function that describes this rank when the run stands still. The coordinator prints its answer beside the
  // stacks: an object with "lines" and, where a thread of its own is to be looked at too, its number as "loop". Called
  // on the control thread, also while all others hang; it takes no longer than some 100 ms. Replacing it works as for
  // on_death. [main]
  void on_describe(std::function<nlohmann::json()> f);
  // The case has ended before its time. Lock-free. [any]
  bool aborted() const noexcept;

  // HMAC-SHA-256 with a key made from the run's secret, for transports that authenticate their peers. [any]
  void mac(const void* data, std::size_t bytes, std::uint8_t out[32]) const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace regatta
