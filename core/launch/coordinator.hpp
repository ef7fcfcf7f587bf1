// SPDX-License-Identifier: Apache-2.0
//
// One run from start to end: starts the ranks, accepts their connections, handles their frames (control/channel.hpp),
// and finds the cause if the run ends early. All of it runs on the thread that calls run(). control/client.hpp is the
// rank's side. coordinator.cpp reacts to ranks; coordinator_watch.cpp detects silent and stopped ranks and ranks
// without progress.
//
// The run ends at the first certain cause, and reports it: for example a process that died, an exception in a rank, or
// a rank that fell silent. A lost connection between two ranks, or between a rank and the coordinator, is only a
// suspicion: the process at one end may have died, and the coordinator may learn that later than the loss. So the first
// suspicion waits 500 ms, and longer while a heartbeat is late. It becomes the cause if no certain one comes.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/asio.hpp" // before any other of Asio's

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/failure.hpp"
#include "control/channel.hpp"
#include "control/status_page.hpp"
#include "launch/all_gather.hpp"
#include "launch/interruption.hpp"
#include "launch/launch.hpp"
#include "launch/line_splitter.hpp"
#include "launch/memory.hpp"
#include "launch/process.hpp"
#include "launch/signals.hpp"
#include "launch/stall_detector.hpp"

namespace regatta {

class coordinator {
public:
  // Both must outlive this object.
  coordinator(const launch_plan& plan, const launch_hooks& hooks);
  ~coordinator(); // kills all processes of the run that are left, and reaps those that run() started
  coordinator(const coordinator&) = delete;
  coordinator& operator=(const coordinator&) = delete;

  // Returns when all ranks have ended. If the run ends early, the result has the cause. Call it once. Throws failure if
  // the run cannot start; rethrows exceptions of hooks. launch() (launch/launch.hpp) has the whole contract.
  launch_result run();

private:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds tick{250};
  static constexpr std::uint32_t nobody = UINT32_MAX;

  struct member {
    member(coordinator& c, std::uint32_t number);

    std::uint32_t rank;
    struct process process;
    pid_t pid = -1;                                        // stays after the process has ended, for messages
    asio::posix::stream_descriptor handle, output, errors; // handle: readable once the process has ended
    line_splitter output_lines, error_lines;
    std::shared_ptr<channel> wire; // null until the rank has proven that it knows the secret
    asio::steady_timer wire_ended; // serve() cancels it when the connection has ended; watch() waits for that
    bool wire_open = false;        // `wire` has not ended
    bool running = false;          // its process has not ended
    bool reported = false;         // it has sent "failed"
    bool has_result = false;       // it has sent "result"
    bool warned = false;           // warn() was called for it
    clock::time_point heard{};     // when bytes last came from it; before the first, its start
    status_page status;
    std::optional<clock::time_point> stopped; // since when it was seen stopped by a signal
    nlohmann::json state;                     // its answer to "describe"; null: none yet
  };

  // A connection that has not proven yet to be a rank.
  struct pending_connection {
    explicit pending_connection(tcp::socket s) : socket(std::move(s)), proof_timer(socket.get_executor()) {}
    void drop(); // closes the socket, which ends admit()
    tcp::socket socket;
    asio::steady_timer proof_timer; // drops it if the proof takes too long
    bool proven = false;            // it is a rank, and is never dropped
  };

  // Runs the coroutine on io_. An exception in it ends the run, and run() rethrows it.
  void spawn(asio::awaitable<void> coroutine);

  // Opens the port for ranks. Throws failure (run) if that is impossible.
  void listen();
  // Accepts connections, and calls admit() for each, until all ranks are connected.
  asio::awaitable<void> accept();
  bool drop_oldest_pending(); // returns false if there is none to drop
  // Authenticates a connection, then calls welcome() or refuse().
  asio::awaitable<void> admit(std::shared_ptr<pending_connection> s);
  // Logs why a connection of `who`, an address and port, is not accepted; only the first 20 times.
  void refuse(const std::string& who, const std::string& why);
  // Makes the socket the rank's connection: sends the job, and serves it.
  void welcome(member& m, tcp::socket socket);

  // Starts the rank's process, or makes a launcher's process begin the run, and watches it.
  void start(member& m);
  // Splits the output of a rank into lines, until its end.
  asio::awaitable<void> collect(asio::posix::stream_descriptor& from, line_splitter& into);
  // Waits for the end of the process, then handles the frames and lines that it left, reaps it, and calls ended().
  asio::awaitable<void> watch(member& m);
  // Handles the end of a process; `how` is a text such as "killed by SIGKILL", `well` is true for exit code 0.
  void ended(member& m, const std::string& how, bool well);

  // Receives the rank's frames and calls handle() for each, until its connection ends.
  asio::awaitable<void> serve(member& m);
  // Handles one frame of the rank. Throws nlohmann::json::exception if a member of the frame is missing or wrong,
  // failure (run) if the frame is not allowed now.
  void handle(member& m, message&& f);

  // Every `tick`: reports progress to the hook, and calls the three functions look_for_...().
  asio::awaitable<void> keep_time();
  void look_for_silence(clock::time_point now);
  void look_for_stopped(clock::time_point now);
  void look_for_standstill(clock::time_point now);
  // Asks all ranks to describe what they do, waits at most 1.5 s for their answers, and calls end_standstill().
  asio::awaitable<void> describe_standstill(std::vector<std::uint32_t> stuck);
  // Returns whether every connected rank without a result has answered.
  bool all_described() const;
  // Ends the run because of one of the ranks `stuck`, and logs the answers of all.
  void end_standstill(const std::vector<std::uint32_t>& stuck);
  // Returns whether the heartbeat of a connected rank is late.
  bool somebody_is_quiet(clock::time_point now) const;
  // Ends the run when the user interrupts it.
  asio::awaitable<void> heed_signals();

  std::string name_of(const member& m) const;
  rank_failure make_failure(const member& m, const std::string& what, int code) const;
  // Ends the run with this cause; does nothing if the run is ending already. `code` is an exit_code.
  void certain(const member& m, const std::string& what, int code = static_cast<int>(exit_code::run));
  // As certain(), for a rank that can receive no message: also kills it at once, unless a launcher started it.
  void certain_of_lifeless(const member& m, const std::string& what);
  // Adds a warning about how a rank ended after its result; only the first one of each rank.
  void warn(const member& m, const std::string& what);
  // Ends the run with this cause unless a certain one comes first. Only the first suspicion counts.
  void suspect(const member& m, const std::string& what, int code = static_cast<int>(exit_code::run));
  // Makes the suspicion the cause of the end, unless a certain one comes first.
  asio::awaitable<void> settle_suspicion();
  // Tells every rank that the run has ended because of rank `dead` (`nobody`: of no rank), kills ranks that have not
  // connected unless a launcher started them, and after a grace period all that are left.
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
  std::list<std::shared_ptr<pending_connection>> pending_; // the oldest first
  std::size_t refused_ = 0;                                // calls of refuse()
  std::vector<std::unique_ptr<member>> members_;
  std::size_t connected_ = 0, running_ = 0;
  all_gather all_gather_;
  stall_detector stalls_;
  bool describing_ = false; // describe_standstill() has begun

  bool ending_ = false; // end() was called
  std::optional<rank_failure> suspicion_;
  launch_result result_;
  std::exception_ptr broken_; // the first exception of a coroutine, for run()
};

} // namespace regatta
