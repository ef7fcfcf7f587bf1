// SPDX-License-Identifier: Apache-2.0
#include "join/agent.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <regatta/clock.hpp>

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "join/frames.hpp"
#include "join/identity.hpp"
#include "join/keeper.hpp"
#include "join/merged_frames.hpp"
#include "join/own_path.hpp"
#include "join/packets.hpp"
#include "join/remote_host.hpp"
#include "join/requests.hpp"
#include "join/sockets.hpp"
#include "launch/local_host.hpp"
#include "launch/signals.hpp"
#include "text/values.hpp"

namespace regatta {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto tick = 250ms;
constexpr auto lateness = 1s; // the agent itself was stopped or starved

failure coordinator_gone() {
  return {exit_code::run, "the connection to process 0 of this launch has ended; its standard error says why"};
}

// One run on this host: a local_host whose events become frames to the coordinator.
class agent_run : private host_events {
public:
  agent_run(const unique_fd& coordinator, const blob& secret, keepers& processes, message begin)
      : coordinator_(coordinator), wire_(channel_over(io_, coordinator)), processes_(processes),
        limits_(limits_of(begin.header)),
        host_(io_, plan_of(begin, secret, processes), processes, *this,
              [this](asio::awaitable<void> coroutine) { spawn(std::move(coroutine)); }) {
    for (const std::uint32_t rank : begin.header.at("ranks").get<std::vector<std::uint32_t>>()) running_.insert(rank);
    ranks_ = {running_.begin(), running_.end()};
    // If only what this host sends is lost, the coordinator gives the host up, but its kernel holds back the end of the
    // connection until this host acknowledges what was sent before.
    if (!limits_.debugged) notice_lost_host(coordinator_, limits_.silence);
  }
  ~agent_run() override { notice_lost_host(coordinator_); }
  agent_run(const agent_run&) = delete;
  agent_run& operator=(const agent_run&) = delete;

  // Returns once all ranks have ended and the coordinator was told so. Throws failure (run) if the coordinator is gone,
  // or its host gives no sign of life.
  void run() {
    spawn(serve());
    spawn(keep_time());
    try {
      host_.start();
    } catch (const failure& e) {
      for (const std::uint32_t rank : ranks_) {
        certain(rank, e.what());
        ended(rank, "could not be started", false);
      }
      finished();
    }
    io_.run();
    if (!gone_) return;
    look_for_silence(std::chrono::steady_clock::now(), 0ns); // the kernel may have noticed it first
    throw coordinator_gone();
  }

private:
  static rank_limits limits_of(const json& h) {
    const auto milliseconds = [&](const char* name) {
      return std::chrono::milliseconds(h.at(name).get<std::int64_t>());
    };
    return {milliseconds("silence"), milliseconds("start"), milliseconds("stopped"), h.at("debugged")};
  }

  static local_plan plan_of(const message& begin, const blob& secret, keepers& processes) {
    const json& h = begin.header;
    const std::vector<std::uint32_t> ranks = h.at("ranks"), slots = h.at("slots");
    std::vector<std::shared_ptr<const json>> jobs;
    for (json& job : parse_cbor(begin.payload)) {
      if (const auto files = job.find("files"); files != job.end())
        for (json& file : *files) file = own_path(file, h.at("built_in"));
      jobs.push_back(std::make_shared<const json>(std::move(job)));
    }
    local_plan plan;
    std::map<std::uint32_t, std::uint32_t> slot_of_rank;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      plan.ranks[ranks[i]] = {h.at("roles").at(i), h.at("cpus").at(i), jobs.at(jobs.size() == 1 ? 0 : i), 0,
                              slots.at(i)};
      slot_of_rank[ranks[i]] = slots.at(i);
    }
    processes.assign(std::move(slot_of_rank), h.at("lasting"));
    plan.size = h.at("size");
    plan.address = "127.0.0.1";
    plan.limits = limits_of(h);
    plan.secret = run_secret(secret, h.at("nonce").get<blob>());
    return plan;
  }

  void spawn(asio::awaitable<void> coroutine) {
    asio::co_spawn(io_, std::move(coroutine), [](const std::exception_ptr& e) {
      if (e) std::rethrow_exception(e); // leaves io_context::run()
    });
  }

  asio::awaitable<void> serve() {
    try {
      while (handle(co_await wire_->receive())) {
      }
      co_return; // another receive() could take the first bytes of the frame after this run
    } catch (const boost::system::system_error&) {
    } catch (const json::exception& e) {
      throw failure(exit_code::run,
                    fmt::format("process 0 of this launch sent a frame with a missing or wrong member: {}", e.what()));
    }
    gone_ = true;
    io_.stop();
  }

  // Returns false after the last frame of the run: the next one is not for this object.
  bool handle(message&& f) {
    const std::string type = f.header.at("t");
    if (type == "over") { // the coordinator reads until the answer, which is the last frame of the run
      wire_->send({{"t", "over"}}, {}, [this] { io_.stop(); });
      return false;
    }
    if (type == "send") {
      const std::vector<std::uint32_t> ranks = running(f.header.at("ranks"), type);
      frames_.answered(ranks);
      host_.send(ranks, f.header.at("frame"), std::make_shared<const blob>(std::move(f.payload)));
    } else if (type == "end")
      host_.end(f.header.at("dead"), f.header.at("why"));
    else if (type == "kill")
      for (const std::uint32_t rank : running({f.header.at("rank")}, type)) host_.kill(rank);
    else if (type == "ping")
      wire_->send({{"t", "pong"}, {"at", f.header.at("at")}, {"clock", rg::steady_ns()}});
    return true;
  }

  // Returns those of the ranks that have not ended. Throws failure (run) if one of them is not of this host; `type` is
  // that of the frame that names them.
  std::vector<std::uint32_t> running(std::vector<std::uint32_t> ranks, const std::string& type) const {
    for (const std::uint32_t rank : ranks)
      if (!std::ranges::binary_search(ranks_, rank))
        throw failure(exit_code::run, fmt::format("process 0 of this launch sent a frame \"{}\" for rank {}: expected "
                                                  "one of those that run on this host ({})",
                                                  type, rank, ranks_.empty() ? "none" : ranges_of(ranks_)));
    std::erase_if(ranks, [this](std::uint32_t rank) { return !running_.contains(rank); });
    return ranks;
  }

  asio::awaitable<void> keep_time() {
    asio::steady_timer timer(io_);
    auto last = std::chrono::steady_clock::now();
    for (;;) {
      timer.expires_after(tick);
      co_await timer.async_wait(asio::use_awaitable);
      send_held_frames();
      const auto now = std::chrono::steady_clock::now();
      const auto late = now - last > lateness ? now - last - tick : 0ns;
      host_.tick(now, late);
      last = now;
      if (finished_) continue;
      look_for_silence(now, late);
      send_signs(ranks_);
    }
  }

  // Throws failure (run) if the host of process 0 is lost. Its kernel acknowledges the signs even while the coordinator
  // sends no ping, because it is stopped or busy, or waits for a pong over a slow network.
  void look_for_silence(std::chrono::steady_clock::time_point now, std::chrono::steady_clock::duration late) {
    heard_ = std::max(heard_ + late, now - silence_of(coordinator_));
    if (!limits_.debugged && now - heard_ > limits_.silence)
      throw failure(exit_code::run,
                    fmt::format("the host of process 0 of this launch gave no sign of life for {:.1f} s",
                                std::chrono::duration<double>(now - heard_).count()));
  }

  void send_signs(std::span<const std::uint32_t> ranks) {
    json signs = json::array();
    for (const std::uint32_t rank : ranks)
      if (running_.count(rank)) signs.push_back({rank, to_json(host_.sign(rank))});
    wire_->send({{"t", "signs"}, {"quiet", host_.quiet(std::chrono::steady_clock::now())}, {"ranks", signs}});
  }

  // The coordinator's message about a rank shows the rank's last state.
  void tell_with_sign(std::uint32_t rank, const json& what) {
    send_held_frames();
    if (started_.count(rank)) send_signs({&rank, 1});
    wire_->send(what);
  }

  void started(std::uint32_t rank, pid_t pid) override {
    started_.insert(rank);
    wire_->send({{"t", "started"}, {"rank", rank}, {"pid", pid}});
  }
  void connected(std::uint32_t rank) override { wire_->send({{"t", "connected"}, {"rank", rank}}); }
  void received(std::uint32_t rank, message&& f) override {
    if (!frames_.has_room(f)) send_held_frames();
    if (frames_.add(rank, std::move(f), running_.size())) send_held_frames();
  }
  void send_held_frames() {
    if (frames_.empty()) return;
    message merged = frames_.take();
    wire_->send(merged.header, std::make_shared<const blob>(std::move(merged.payload)));
  }
  void disconnected(std::uint32_t rank) override { tell_with_sign(rank, {{"t", "disconnected"}, {"rank", rank}}); }
  void certain(std::uint32_t rank, const std::string& what) override {
    tell_with_sign(rank, {{"t", "certain"}, {"rank", rank}, {"what", what}});
  }
  void warned(std::uint32_t rank, const std::string& what) override {
    wire_->send({{"t", "warned"}, {"rank", rank}, {"what", what}});
  }
  void ended(std::uint32_t rank, const std::string& how, bool well) override {
    tell_with_sign(rank, {{"t", "ended"}, {"rank", rank}, {"how", how}, {"well", well}});
    running_.erase(rank);
  }
  void finished() override {
    finished_ = true;
    wire_->send({{"t", "done"}, {"gone", processes_.gone()}});
  }
  void log(std::uint32_t rank, int level, const std::string& text) override {
    wire_->send({{"t", "log"}, {"rank", rank}, {"level", level}, {"text", text}});
  }

  const unique_fd& coordinator_;
  asio::io_context io_{1};
  std::shared_ptr<channel> wire_;
  const keepers& processes_;
  const rank_limits limits_;
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now(); // from the host of process 0
  local_host host_;
  std::vector<std::uint32_t> ranks_;
  std::set<std::uint32_t> running_, started_;
  merged_frames frames_; // sent at the latest with the next tick
  bool gone_ = false;
  bool finished_ = false; // from now on only answers go to the coordinator, which may end the run at any time
};

class agent {
public:
  explicit agent(agent_setup s) : setup_(std::move(s)) {
    json hello = describe_this_host(setup_.coordinator);
    hello["t"] = "hello";
    tell(hello);
  }

  void serve() {
    for (bool over = false; !over;) {
      const std::array<int, 2> both{setup_.processes.get(), setup_.coordinator.get()};
      if (wait_readable(both, std::chrono::steady_clock::time_point::max()) == 0)
        admit();
      else
        over = !handle(next_frame());
    }
  }

private:
  message next_frame() {
    try {
      return *receive_frame(setup_.coordinator);
    } catch (const failure&) {
      throw coordinator_gone();
    }
  }

  void tell(const json& what) {
    try {
      send_frame(setup_.coordinator, what);
    } catch (const failure&) {
      throw coordinator_gone();
    }
  }

  // Accepts a launched process of this host, and reports it to the coordinator.
  void admit() {
    pid_t pid = -1;
    unique_fd socket = accept_at(setup_.processes.get(), pid);
    if (socket.get() < 0 || !wait_readable(std::array{socket.get()}, std::chrono::steady_clock::now() + 2s)) return;
    const auto hello = get(socket.get());
    if (!hello || !hello->contains("slot")) return;
    const std::uint32_t slot = hello->at("slot");
    if (processes_.has(slot)) return;
    processes_.add(slot, std::move(socket), pid);
    tell({{"t", "joined"}, {"slot", slot}, {"pid", pid}, {"who", hello->value("who", json::object())}});
  }

  // Returns false once the launch is over.
  bool handle(message&& f) {
    const std::string type = f.header.at("t");
    if (type == "leave") return false;
    if (type == "run") {
      agent_run(setup_.coordinator, setup_.secret, processes_, std::move(f)).run();
    } else if (type == "join") {
      json answer{{"t", "done"}};
      try {
        processes_.join(own_path(f.header.at("file"), f.header.at("built_in")), f.header.at("transport"));
      } catch (const failure& e) {
        answer["error"] = e.what();
      }
      tell(answer);
    } else {
      tell(requests_.answer(f.header));
    }
    return true;
  }

  agent_setup setup_;
  keepers processes_;
  host_requests requests_;
};

} // namespace

int run_agent(agent_setup setup) {
  const signal_scope signals;
  agent(std::move(setup)).serve();
  return 0;
}

} // namespace regatta
