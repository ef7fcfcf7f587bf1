// SPDX-License-Identifier: Apache-2.0
//
// A rank's end of the control channel: a TCP connection to the coordinator, authenticated by challenge and response. It
// carries rare messages (set-up, blobs, barriers, progress, results, abort), never the traffic that is measured.
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

// Whom a rank blames for its failure. The coordinator accepts `peer` (a lost connection) only if no process died;
// otherwise the death is the cause.
enum class blame { own, peer };

class control_client {
public:
  // Connects, authenticates and waits for the job, at most 10 s. `secret` comes from the pipe that the coordinator left
  // in this process (read_invitation), `page` is the status page that it left. Throws failure. If the connection is
  // lost later (the coordinator was killed), this process has 1 s to end; then the control thread ends it by _exit.
  control_client(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret, status_page page);
  ~control_client(); // sends what was logged

  // This rank's number, and the number of ranks of the case.
  std::uint32_t rank() const noexcept;
  std::uint32_t ranks() const noexcept;
  // The job of this rank, from the coordinator's launch_plan.
  const nlohmann::json& job() const;

  // exchange(), barrier() and sum() are collective: all ranks of the case call them in the same order with the same
  // tag. They throw failure (run) if the case ends meanwhile: a rank died, Ctrl-C, the coordinator is gone.
  //
  // [main] All-gather. Returns every rank's blob, by rank. All blobs together are at most 1 GiB.
  std::vector<blob> exchange(std::string_view tag, const blob& mine);
  // [main] Returns once every rank of the case has called it with this name.
  void barrier(std::string_view name);
  // [main] Sums elementwise, in the order of ranks, so that the result is bit-identical on all. All ranks pass the same
  // number of values.
  std::vector<double> sum(std::string_view tag, const std::vector<double>& mine);

  // [main] The two halves of sum(), for work in between. No other collective call may come in between.
  void begin_sum(std::string_view tag, const std::vector<double>& mine);
  std::vector<double> end_sum();

  // [any] Publishes the steps and samples done; the coordinator sees them at once, like everything on status().
  // Lock-free.
  void progress(std::uint64_t step, std::uint64_t samples) noexcept;
  // [any] Publishes the operation that this rank begins and how long it may show no progress. Errors name it if the
  // rank dies or hangs. Lock-free.
  void operation(const char* what, pace p = pace::step) noexcept;
  // [any] The status page that the coordinator reads.
  status_page& status() noexcept;
  // [main] Sends this rank's result; the last call. Returns once the coordinator has it.
  void result(const nlohmann::json& j);
  // [any] Reports why this rank ends; the coordinator ends the case. `code` is an exit_code. Returns once the message
  // was passed to the kernel, after at most 1 s, so that the process may end at once. Never throws.
  void failed(const std::string& why, int code, blame b = blame::own) noexcept;
  // [any] Sends a line for the coordinator's standard error or log; `level` as RG_LOG_*.
  void log(int level, const std::string& text) noexcept;

  // [main] Sets the callback for an early end of the case. It runs once, on the control thread, at once: with the
  // number of the rank that died, or UINT32_MAX for another reason; also if that happened before this call. Replaces
  // the previous callback, which no longer runs when this returns; an empty function withdraws it. Do not call this
  // from the callback.
  void on_death(std::function<void(std::uint32_t rank)> f);
  // [main] Sets the function that describes this rank when the run stands still. The coordinator prints its answer with
  // the stacks: an object with "lines" and, if another thread's stack is of interest, its id as "loop". It runs on the
  // control thread, even while all others hang, and must not take longer than some 100 ms. Replaced as for on_death().
  void on_describe(std::function<nlohmann::json()> f);
  // [any] Returns whether the case has ended early. Lock-free.
  bool aborted() const noexcept;

  // [any] Computes HMAC-SHA-256 with a key derived from the run's secret, for transports that authenticate their peers.
  void mac(const void* data, std::size_t bytes, std::uint8_t out[32]) const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace regatta
