// SPDX-License-Identifier: Apache-2.0
#include "join/remote_host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <regatta/abi.h>
#include <regatta/clock.hpp>

#include "base/failure.hpp"
#include "control/crypto.hpp"
#include "join/merged_frames.hpp"
#include "registry/registry.hpp"
#include "text/values.hpp"

namespace regatta {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr auto late_host = 1s; // of a host; the network between hosts may delay some
constexpr auto ping_pause = 500ms;
constexpr int burst = 8;                 // exchanges that compare the clocks at the begin and the end of a run
constexpr auto final_comparison = 300ms; // no further exchange begins then: the network is slow
constexpr auto loss_pause = 500ms;

} // namespace

blob run_secret(const blob& launch_secret, const blob& nonce) {
  const digest d = hmac_sha256(launch_secret, {bytes_of("regatta run"), nonce});
  return {d.begin(), d.end()};
}

json to_json(const rank_sign& s) {
  const rank_status& r = s.status;
  return {r.step, r.samples, r.work, r.waits, r.rounds, r.operation, r.pace, s.last_error};
}

rank_sign rank_sign_from_json(const json& j) {
  rank_sign s;
  s.status = {j.at(0), j.at(1), j.at(2), j.at(3).get<waiting>(), j.at(4), j.at(5), j.at(6).get<pace>()};
  s.last_error = j.at(7);
  return s;
}

std::unique_ptr<rank_host> agent_link::ranks_of(asio::io_context& io, remote_plan plan, host_events& events,
                                                spawn_function spawn) {
  return std::make_unique<remote_host>(io, std::move(plan), *this, events, std::move(spawn));
}

remote_host::remote_host(asio::io_context& io, remote_plan plan, agent_link& link, host_events& events,
                         host_link::spawn_function spawn)
    : io_(io), plan_(std::move(plan)), link_(link), events_(events), spawn_(std::move(spawn)) {}

void remote_host::start() {
  if (link_.socket.get() < 0)
    throw failure(exit_code::run, fmt::format("host {} has left this launch: {}", link_.name, link_.lost));
  wire_ = channel_over(io_, link_.socket);
  heard_ = clock::now();
  json ranks = json::array(), slots = json::array(), roles = json::array(), cpus = json::array(), jobs = json::array();
  for (const auto& [rank, plan] : plan_.ranks) {
    signs_[rank];
    ranks.push_back(rank);
    slots.push_back(plan.slot);
    roles.push_back(plan.role);
    cpus.push_back(plan.cpus);
    // Most runs have one job for all ranks: it is sent once.
    if (jobs.empty() || *plan.job != jobs.back()) jobs.push_back(*plan.job);
  }
  if (jobs.size() > 1 && jobs.size() < plan_.ranks.size()) {
    jobs = json::array();
    for (const auto& entry : plan_.ranks) jobs.push_back(*entry.second.job);
  }
  const auto milliseconds = [](std::chrono::milliseconds m) { return m.count(); };
  wire_->send({{"t", "run"},
               {"ranks", ranks},
               {"slots", slots},
               {"roles", roles},
               {"cpus", cpus},
               {"size", plan_.size},
               {"silence", milliseconds(plan_.limits.silence)},
               {"start", milliseconds(plan_.limits.start)},
               {"stopped", milliseconds(plan_.limits.stopped)},
               {"debugged", plan_.limits.debugged},
               {"lasting", plan_.lasting},
               {"nonce", plan_.nonce},
               {"built_in", built_in_folder().string()}},
              std::make_shared<const blob>(json::to_cbor(jobs)));
  link_.exchanges.clear(); // exchanges of the last run are too old to bound the offset
  compare_clocks();
  spawn_(serve());
}

void remote_host::compare_clocks() {
  pings_left_ = burst;
  if (!asked_) ping();
}

void remote_host::ping() {
  asked_ = true;
  wire_->send({{"t", "ping"}, {"at", rg::steady_ns()}});
}

void remote_host::finish() {
  if (!over_) wire_->send({{"t", "over"}});
  over_ = true;
}

void remote_host::send(std::span<const std::uint32_t> ranks, const json& header, std::shared_ptr<const blob> payload) {
  if (!over_) wire_->send({{"t", "send"}, {"ranks", ranks}, {"frame", header}}, std::move(payload));
}

void remote_host::end(std::uint32_t dead, const std::string& why) {
  if (!over_) wire_->send({{"t", "end"}, {"dead", dead}, {"why", why}});
}

void remote_host::kill(std::uint32_t rank) {
  if (!over_) wire_->send({{"t", "kill"}, {"rank", rank}});
}

void remote_host::kill_all() {
  for (const auto& entry : plan_.ranks) kill(entry.first);
}

rank_sign remote_host::sign(std::uint32_t rank) const {
  const auto s = signs_.find(rank);
  return s == signs_.end() ? rank_sign{} : s->second;
}

bool remote_host::quiet(clock::time_point now) const {
  return !done_ && (broken_ || some_are_quiet_ || now - wire_->heard() > late_host);
}

void remote_host::tick(clock::time_point now, clock::duration late) {
  if (done_) return;
  heard_ = std::max(heard_ + late, wire_->heard());
  if (!plan_.limits.debugged && now - heard_ > plan_.limits.silence) {
    lose(fmt::format("no sign of life for {:.1f} s", std::chrono::duration<double>(now - heard_).count()));
  } else if (now - pinged_ > ping_pause && !asked_ && !over_) {
    pinged_ = now;
    ping();
  }
}

asio::awaitable<void> remote_host::serve() {
  std::string why;
  try {
    while (handle(co_await wire_->receive())) {
    }
    co_return;
  } catch (const boost::system::system_error& e) {
    why = fmt::format("its connection ended: {}", e.code().message());
  } catch (const json::exception& e) {
    why = fmt::format("its agent sent a frame with a missing or wrong member: {}", e.what());
  } catch (const failure& e) {
    why = e.what();
  }
  broken_ = true; // the cause of what ranks of other hosts may suspect meanwhile
  // If the launcher ends its whole job, its signal to this process may come a moment later, and says more.
  asio::steady_timer timer(io_);
  timer.expires_after(loss_pause);
  co_await timer.async_wait(asio::use_awaitable);
  lose(why);
}

bool remote_host::handle(message&& f) {
  const std::string type = f.header.at("t");
  if (type == "signs") {
    some_are_quiet_ = f.header.at("quiet");
    for (const json& one : f.header.at("ranks")) signs_.at(one.at(0)) = rank_sign_from_json(one.at(1));
    return true;
  }
  if (type == "pong") {
    link_.exchanges.add(f.header.at("at"), rg::steady_ns(), f.header.at("clock"));
    asked_ = false;
    if (pings_left_ > 0 && --pings_left_ > 0 && !(ranks_ended_ && clock::now() - ended_at_ > final_comparison)) {
      ping();
    } else if (ranks_ended_) {
      finish();
    }
    return true;
  }
  if (type == "over") {
    done_ = true;
    events_.finished();
    return false;
  }
  if (type == "done") {
    ranks_ended_ = true;
    if (const std::vector<std::uint32_t> gone = f.header.at("gone"); !gone.empty())
      link_.lost = fmt::format("its launched {} {} ended", gone.size() == 1 ? "process" : "processes",
                               ranges_of(gone) + (gone.size() == 1 ? " has" : " have"));
    ended_at_ = clock::now();
    compare_clocks();
    return true;
  }
  if (type == "frames") {
    take_frames(f);
    return true;
  }
  const std::uint32_t rank = f.header.at("rank");
  if (type == "log") {
    events_.log(rank, f.header.at("level"), f.header.at("text"));
    return true;
  }
  expect_own(rank);
  if (type == "started") {
    events_.started(rank, f.header.at("pid"));
  } else if (type == "connected") {
    events_.connected(rank);
  } else if (type == "disconnected") {
    events_.disconnected(rank);
  } else if (type == "certain") {
    events_.certain(rank, f.header.at("what"));
  } else if (type == "warned") {
    events_.warned(rank, f.header.at("what"));
  } else if (type == "ended") {
    events_.ended(rank, f.header.at("how"), f.header.at("well"));
  }
  return true;
}

void remote_host::expect_own(std::uint32_t rank) const {
  if (!plan_.ranks.contains(rank))
    throw failure(exit_code::run, fmt::format("its agent sent a frame of rank {}, which runs elsewhere", rank));
}

void remote_host::take_frames(const message& merged) {
  for (auto& [rank, frame] : split_frames(merged)) {
    expect_own(rank);
    // A wrong frame is the rank's fault, not its host's.
    try {
      events_.received(rank, std::move(frame));
    } catch (const json::exception& e) {
      events_.certain(rank, fmt::format("sent a control message with a missing or wrong member: {}", e.what()));
    } catch (const failure& e) {
      events_.certain(rank, e.what());
    }
  }
}

void remote_host::lose(const std::string& why) {
  if (done_) return;
  done_ = over_ = true;
  wire_->close();
  link_.socket = {};
  link_.lost = why;
  if (ranks_ended_) return events_.finished();
  std::vector<std::uint32_t> ranks;
  for (const auto& entry : plan_.ranks) ranks.push_back(entry.first);
  events_.certain(ranks.front(), fmt::format("host {} ({} {}): {}", link_.name, ranks.size() == 1 ? "rank" : "ranks",
                                             ranges_of(ranks), why));
  for (const std::uint32_t rank : ranks) events_.ended(rank, "lost with its host", false);
  events_.finished();
}

} // namespace regatta
