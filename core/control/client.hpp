// SPDX-License-Identifier: Apache-2.0
//
// A rank's end of the control channel: a TCP connection to the coordinator, authenticated by challenge and response. It
// carries rare messages (set-up, blobs, barriers, progress, results, abort), never the traffic that is measured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "control/blob.hpp"
#include "control/status_page.hpp"

namespace regatta {

// The cause of a rank's failure. own: an error of this rank. peer: a consequence, for example a lost connection to
// another rank; the coordinator reports it only if no process died, because the death is then the cause.
enum class blame { own, peer };

class control_client {
public:
  // [main] Connects, authenticates and receives the job, within 10 s; then starts the control thread. `secret` comes
  // from read_rank_arguments(), `page` is the page that the coordinator reads. Throws failure: usage if `host` is no IP
  // address, else run. The calling thread is the one that dumps show as main. If the connection is lost later (the
  // coordinator was killed), this process has 1 s to end; then the control thread ends it by _exit(1).
  control_client(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret, status_page page);
  // Waits at most 1 s until queued messages are passed to the kernel. Must not run on the control thread.
  ~control_client();

  // This rank's number, and the number of ranks of the case.
  std::uint32_t rank() const noexcept;
  std::uint32_t ranks() const noexcept;
  // Returns the job of this rank: rank_plan::job of the coordinator (launch/launch.hpp). Valid as long as this object.
  const nlohmann::json& job() const;

  // exchange(), barrier() and sum() are collective and block: all ranks of the case call them in the same order with
  // the same tag; otherwise the coordinator ends the case. They throw failure (run) if the case has ended or ends
  // meanwhile: a rank died, Ctrl-C, the coordinator is gone.
  //
  // [main] All-gather among `members`: ascending ranks with this one among them; empty: all ranks. Returns their blobs
  // in that order; sizes may differ. Throws failure (run) if `mine` is larger than 1 GiB / ranks().
  std::vector<blob> exchange(std::string_view tag, const blob& mine, std::span<const std::uint32_t> members = {});
  // [main] Returns once every rank of the case has called barrier(name).
  void barrier(std::string_view name);
  // [main] Returns the elementwise sum over all ranks, added in the order of ranks, so that it is bit-identical on all.
  // Throws failure (run) if ranks pass different numbers of values.
  std::vector<double> sum(std::string_view tag, const std::vector<double>& mine);

  // [main] The two halves of sum(), for work in between: begin_sum() sends the values and returns, end_sum() blocks and
  // returns the sum. No result() may come in between; another collective call there throws failure (run).
  void begin_sum(std::string_view tag, const std::vector<double>& mine);
  std::vector<double> end_sum();

  // [any] Publishes the total numbers of steps and samples done so far, on the status page, where the coordinator sees
  // them at once. Lock-free.
  void progress(std::uint64_t step, std::uint64_t samples) noexcept;
  // [any] Publishes on the status page which operation this rank begins and how long it may show no progress. Errors
  // name it if the rank dies or hangs. Copies at most 59 bytes of `what`. Lock-free.
  void operation(const char* what, pace p = pace::step) noexcept;
  // [any] The status page that the coordinator reads.
  status_page& status() noexcept;
  // [main] Sends this rank's result. Returns once the coordinator has it; throws failure (run) if the case ends before.
  // Collective calls are not allowed afterwards.
  void result(const nlohmann::json& j);
  // [any] Reports why this rank ends; the coordinator ends the case. `code` is an exit_code. Returns once the message
  // was passed to the kernel, after at most 1 s, so that the process may end at once; on the control thread it only
  // queues the message. Never throws. Of `why` the first 64 KiB are sent.
  void failed(const std::string& why, int code, blame b = blame::own) noexcept;
  // [any] Queues a line for the coordinator's standard error or log; `level` is RG_LOG_*. The line is lost if the
  // connection is. A line above 64 KiB is cut there, and ends with the number of bytes that were left out.
  void log(int level, const std::string& text) noexcept;

  // [main] Sets the callback for an early end of the case. It runs on the control thread, with the number of the rank
  // that died, or UINT32_MAX for another reason; soon after this call if the case has ended already. At most one
  // callback runs, once in the life of this object. It must not block. Replaces the previous callback, which no longer
  // runs when this returns; an empty function withdraws it. Do not call this from the callback.
  void on_death(std::function<void(std::uint32_t rank)> f);
  // [main] Sets the function that describes this rank when the run makes no progress. It returns an object with
  // "lines", texts that the coordinator prints, "waits", the first of its pending operations as text, "answers", false
  // if the thread that runs the exchange hangs, and "loop", the id (gettid) of that thread, whose stack is printed
  // beside the main thread's; all optional. It runs on the control thread, even while all others hang, and must not
  // take longer than some 100 ms; the text of an exception becomes a line. Replaces the previous function as on_death()
  // does.
  void on_describe(std::function<nlohmann::json()> f);
  // [any] Returns whether the case has ended early, or the connection is lost. Lock-free.
  bool aborted() const noexcept;

  // [any] Writes the HMAC-SHA-256 of `data` to `out`, with a key that is derived from the run's secret and is the same
  // on all ranks: transports authenticate their peers with it.
  void mac(const void* data, std::size_t bytes, std::uint8_t out[32]) const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace regatta
