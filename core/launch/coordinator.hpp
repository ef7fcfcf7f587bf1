// SPDX-License-Identifier: Apache-2.0
//
// One run from start to end: rendezvous, frames, and the cause if it ends early. All in one thread. control/client.hpp
// is the rank's side. This file has the parts that react to ranks; coordinator_watch.cpp has those that detect ranks
// without progress.
//
// The first cause is reported. A process that died, an exception in a rank, and a rank that fell silent are certain
// causes. A rank that lost its connection to a peer is only a suspicion: it may notice the death of the peer before the
// coordinator does, so such a report waits a moment for a better cause.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/asio.hpp" // before any other of Asio's

#include <boost/asio/posix/stream_descriptor.hpp>

#include "control/channel.hpp"
#include "control/status_page.hpp"
#include "launch/gathering.hpp"
#include "launch/interruption.hpp"
#include "launch/launch.hpp"
#include "launch/lines.hpp"
#include "launch/memory.hpp"
#include "launch/process.hpp"
#include "launch/signals.hpp"
#include "launch/standstill.hpp"

namespace regatta {

class coordinator {
public:
  // Both must outlive this object.
  coordinator(const launch_plan& plan, const launch_hooks& hooks);
  ~coordinator(); // kills and reaps all processes of the run
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  // Call once. Throws failure if the run cannot start; rethrows exceptions of hooks.
  launch_result run();

private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds tick{250};
  static constexpr std::uint32_t nobody = UINT32_MAX;

  struct member {
    member(coordinator& c, std::uint32_t number);

    std::uint32_t rank;
    struct process process;
    pid_t pid = -1; // for messages; stays after the process has ended
    asio::posix::stream_descriptor handle, output, errors;
    line_splitter output_lines, error_lines;
    std::shared_ptr<channel> wire; // null until the rank has proven that it knows the secret
    asio::steady_timer wire_ended;
    bool wire_open = false, running = false, reported = false, has_result = false, warned = false;
    clock::time_point heard{};
    status_page status;
    std::optional<clock::time_point> stopped; // since when it was seen stopped by a signal
    nlohmann::json state;                     // its answer to "describe"; null: none yet
  };

  struct stranger {
    explicit stranger(tcp::socket s) : socket(std::move(s)), patience(socket.get_executor()) {}
    void drop();
    tcp::socket socket;
    asio::steady_timer patience;
    bool proven = false; // it is a rank, and is never dropped
  };

  // Runs the coroutine on io_. An exception in it ends the run, and run() rethrows it.
  void spawn(asio::awaitable<void> coroutine);

  void listen();
  asio::awaitable<void> accept();
  bool drop_oldest_stranger();
  asio::awaitable<void> admit(std::shared_ptr<stranger> s);
  void refuse(const std::string& who, const std::string& why);
  void welcome(member& m, tcp::socket socket);

  void start(member& m);
  asio::awaitable<void> collect(asio::posix::stream_descriptor& from, line_splitter& into);
  asio::awaitable<void> watch(member& m);
  void ended(member& m, const std::string& how, bool well);

  asio::awaitable<void> serve(member& m);
  void handle(member& m, message&& f);

  asio::awaitable<void> keep_time();
  void look_for_silence(clock::time_point now);
  void look_for_stopped(clock::time_point now);
  void look_for_standstill(clock::time_point now);
  asio::awaitable<void> describe_standstill(std::vector<std::uint32_t> stuck);
  bool all_described() const;
  void end_standstill(const std::vector<std::uint32_t>& stuck);
  bool somebody_is_quiet(clock::time_point now) const;
  asio::awaitable<void> heed_signals();

  std::string name_of(const member& m) const;
  rank_failure make_failure(const member& m, const std::string& what, int code) const;
  void certain(const member& m, const std::string& what, int code);
  void certain_of_lifeless(const member& m, const std::string& what);
  void warn(const member& m, const std::string& what);
  void suspect(const member& m, const std::string& what, int code);
  asio::awaitable<void> settle_suspicion();
  void end(std::uint32_t dead, const std::string& why);
  asio::awaitable<void> kill_after_grace();
  void kill_all();
  void kill(const member& m) const;
  void log(std::uint32_t rank, int level, const std::string& text) const;

  const launch_plan& plan_;
  const launch_hooks& hooks_;
  signal_scope signal_scope_;
  interruption interruption_;
  const blob secret_;
  const oom_watch oom_;

  asio::io_context io_{1};
  asio::posix::stream_descriptor interrupted_{io_};
  tcp::acceptor acceptor_{io_};
  std::list<std::shared_ptr<stranger>> strangers_; // the oldest first
  std::size_t refused_ = 0;
  std::vector<std::unique_ptr<member>> members_;
  std::size_t connected_ = 0, running_ = 0;
  gathering gathering_;
  standstill standstill_;
  bool describing_ = false;

  bool ending_ = false;
  std::optional<rank_failure> suspicion_;
  launch_result result_;
  std::exception_ptr broken_;
};

} // namespace regatta
