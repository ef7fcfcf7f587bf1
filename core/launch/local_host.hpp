// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a run on this host: starts them, accepts their connections, passes their frames on, and detects ranks
// that end, fall silent or are stopped. It draws no conclusion about the run: the coordinator does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "control/asio.hpp" // before any other of Asio's

#include <boost/asio/posix/stream_descriptor.hpp>

#include "control/proven_acceptor.hpp"
#include "launch/launch.hpp"
#include "launch/line_splitter.hpp"
#include "launch/memory.hpp"
#include "launch/rank_host.hpp"
#include "launch/rank_starter.hpp"

namespace regatta {

struct local_plan {
  std::map<std::uint32_t, rank_plan> ranks; // by number in the run
  std::uint32_t size = 0;                   // ranks of the run, on all hosts
  std::string address;                      // numeric, to listen on
  rank_limits limits;
  blob secret;
};

class local_host : public rank_host {
public:
  using spawn_function = std::function<void(asio::awaitable<void>)>;

  // `spawn` runs a coroutine on `io`. All but `plan` must outlive this object.
  local_host(asio::io_context& io, local_plan plan, rank_starter& starter, host_events& events, spawn_function spawn);
  ~local_host() override;
  local_host(const local_host&) = delete;
  local_host& operator=(const local_host&) = delete;

  void start() override;
  void send(std::span<const std::uint32_t> ranks, const nlohmann::json& header,
            std::shared_ptr<const blob> payload = {}) override;
  void end(std::uint32_t dead, const std::string& why) override;
  void kill(std::uint32_t rank) override;
  void kill_all() override;
  rank_sign sign(std::uint32_t rank) const override;
  bool quiet(std::chrono::steady_clock::time_point now) const override;
  void tick(std::chrono::steady_clock::time_point now, std::chrono::steady_clock::duration late) override;

private:
  using clock = std::chrono::steady_clock;

  struct member {
    member(local_host& h, std::uint32_t number);

    std::uint32_t rank;
    pid_t pid = -1;
    asio::posix::stream_descriptor handle, output, errors; // handle: readable once the process has ended
    line_splitter output_lines, error_lines;
    std::shared_ptr<channel> wire; // null until the rank has proven that it knows the secret
    asio::steady_timer wire_ended; // serve() cancels it when the connection has ended; watch() waits for that
    bool wire_open = false;        // `wire` has not ended
    bool running = false;          // its process has not ended
    bool reported = false;         // it has sent "failed"
    bool has_result = false;       // it has sent "result"
    clock::time_point heard{};     // when bytes last came from it; before the first, its start
    status_page status;
    std::optional<clock::time_point> stopped; // since when it was seen stopped by a signal
  };

  // Makes the socket the rank's connection: sends the job, and serves it. Returns the reason if it is refused.
  std::string admit(std::uint32_t rank, tcp::socket& socket);
  // Splits the output of a rank into lines, until its end.
  asio::awaitable<void> collect(asio::posix::stream_descriptor& from, line_splitter& into);
  // Waits for the end of the process, then handles the frames and lines that it left, and reaps it.
  asio::awaitable<void> watch(member& m);
  // Receives the rank's frames and passes them on, until its connection ends.
  asio::awaitable<void> serve(member& m);
  void start(member& m);
  void look_for_silence(member& m, clock::time_point now);
  void look_for_stopped(member& m, clock::time_point now);
  // Reports what ended a rank that can receive no message, and kills it unless it is a launcher's own process.
  void certain_of_lifeless(const member& m, const std::string& what);
  // Reports how a rank ends wrongly after its result, and kills it.
  void kill_after_result(const member& m, const std::string& what);
  asio::awaitable<void> kill_after_grace();

  asio::io_context& io_;
  const local_plan plan_;
  rank_starter& starter_;
  host_events& events_;
  const spawn_function spawn_;
  const oom_watch oom_;
  proven_acceptor acceptor_;
  std::map<std::uint32_t, std::unique_ptr<member>> members_;
  std::size_t connected_ = 0, ended_ = 0;
  bool ending_ = false; // end() was called
};

} // namespace regatta
