// SPDX-License-Identifier: Apache-2.0
//
// The ranks of a run on another host, which its agent starts and watches there. Frames (control/channel.hpp) over the
// agent's connection, by their member "t":
//
//   to the agent    run     begin a run; the payload has the jobs, as CBOR
//                   send    pass the frame "frame" and the payload on to the ranks "ranks"
//                   end     the run has ended because of rank "dead", for the reason "why"
//                   kill    kill rank "rank"
//                   ping    answer with pong and the same "at"
//                   over    the last frame of the run; answered by the same
//   from the agent  started, connected, disconnected, certain, warned, ended, log: as host_events, for "rank"
//                   frames  frames of its ranks, as one (join/merged_frames.hpp)
//                   signs   the state of its ranks (rank_sign), every 250 ms: also the heartbeat of the host
//                   pong    "clock": the time there, rg::steady_ns(). The clocks are compared often at the begin and at
//                           the end of a run, when few processes use the CPUs, and every 500 ms in between
//                   done    all ranks have ended: only pongs follow, and then over
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/asio.hpp"
#include "control/channel.hpp"
#include "join/agent_link.hpp"
#include "launch/host_link.hpp"
#include "launch/launch.hpp"
#include "launch/rank_host.hpp"

namespace regatta {

// Returns the secret of one run, on every host of the launch; `nonce`: of remote_plan.
blob run_secret(const blob& launch_secret, const blob& nonce);

// To and from the members of a frame "signs".
nlohmann::json to_json(const rank_sign& s);
rank_sign rank_sign_from_json(const nlohmann::json& j); // throws nlohmann::json::exception

class remote_host : public rank_host {
public:
  // As host_link::ranks_of(). `link` must outlive this object.
  remote_host(asio::io_context& io, remote_plan plan, agent_link& link, host_events& events,
              host_link::spawn_function spawn);

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

  // Receives frames until "done" or the end of the connection.
  asio::awaitable<void> serve();
  // Handles one frame. Returns false after the last one.
  bool handle(message&& f);
  // Passes the frames of ranks on.
  void take_frames(const message& merged);
  // Throws failure (run) if the rank is none of this host's.
  void expect_own(std::uint32_t rank) const;
  // The host cannot take part any more: the connection is closed, and all of its ranks count as ended.
  void lose(const std::string& why);
  // Begins to compare the clocks several times, one exchange after the other.
  void compare_clocks();
  void ping(); // requires that none is without an answer, and that finish() was not called
  // Ends the run there: all of its ranks have ended.
  void finish();

  asio::io_context& io_;
  const remote_plan plan_;
  agent_link& link_;
  host_events& events_;
  const host_link::spawn_function spawn_;
  std::shared_ptr<channel> wire_;
  std::map<std::uint32_t, rank_sign> signs_;
  bool some_are_quiet_ = false; // by the latest "signs"
  bool broken_ = false;         // the connection has ended, and lose() follows
  bool ranks_ended_ = false;    // "done" has come
  bool over_ = false;           // finish() or lose() was called: no more frames are sent
  bool done_ = false;           // the agent has sent its last frame of this run, or lose() was called
  int pings_left_ = 0;          // of compare_clocks()
  bool asked_ = false;          // a ping has no answer yet. One at a time, so that no answer comes after finish()
  clock::time_point heard_{}, pinged_{}, ended_at_{};
};

} // namespace regatta
