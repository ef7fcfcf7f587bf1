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

namespace regatta {

using blob = std::vector<std::uint8_t>;

class control_client {
public:
  // Connects and authenticates. `secret` was read from the pipe that the coordinator left in this process. Throws
  // failure.
  control_client(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret);
  ~control_client();

  // The job of this rank, as the coordinator's launch_plan gave it.
  const nlohmann::json& job() const;

  // All-gather among all ranks of the case: everyone calls it with the same tag; returns every rank's blob. [main]
  std::vector<blob> exchange(std::string_view tag, const blob& mine);
  // Returns when every rank of the case has called it with this name; the return is the start of what follows. [main]
  void barrier(std::string_view name);
  // As exchange, but summed elementwise: doubles, equal length everywhere. [main]
  std::vector<double> sum(std::string_view tag, const std::vector<double>& mine);

  // Step and samples done, kept in two atomics and sent by the control thread a few times a second. Lock-free. [any]
  void progress(std::uint64_t step, std::uint64_t samples) noexcept;
  // What this rank is doing, a string with static storage; sent with every heartbeat, and shown if the rank dies. [any]
  void operation(const char* what) noexcept;
  // The last call: what this rank measured. Returns once the coordinator has it. [main]
  void result(const nlohmann::json& j);
  // Why this rank gives up; the coordinator ends the case. `code` is an exit_code. Never throws. [any]
  void failed(const std::string& why, int code) noexcept;
  // A line for the coordinator's standard error or log. [any]
  void log(int level, const std::string& text) noexcept;

  // Called on the control thread, at once: another rank died (its number), or the case is aborted (UINT32_MAX).
  void on_death(std::function<void(std::uint32_t rank)> f);
  bool aborted() const noexcept;

  // HMAC-SHA-256 with the run's secret, for transports that authenticate their peers. [any]
  void mac(const void* data, std::size_t bytes, std::uint8_t out[32]) const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace regatta
