// SPDX-License-Identifier: Apache-2.0
#include "launch/local_host.hpp"

#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include <regatta/abi.h>

#include "base/failure.hpp"

namespace regatta {

using namespace std::chrono_literals;

namespace {

constexpr auto last_frames = 500ms;    // for the frames of a dead rank that are still in this host's socket buffers
constexpr auto grace = 1s;             // for the other ranks to end, after the run has failed
constexpr auto launcher_grace = 60s;   // as `grace`, but a kill would end the launcher's job, and a step may take long
constexpr auto late_heartbeat = 400ms; // silence may follow; less than the coordinator waits with a suspicion
constexpr std::uint32_t nobody = UINT32_MAX;

double seconds_of(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

} // namespace

local_host::member::member(local_host& h, std::uint32_t number)
    : rank(number), handle(h.io_), output(h.io_), errors(h.io_),
      output_lines([&h, number](const std::string& line) { h.events_.log(number, RG_LOG_INFO, line); }),
      error_lines([&h, number](const std::string& line) { h.events_.log(number, RG_LOG_WARNING, line); }),
      wire_ended(h.io_) {}

local_host::local_host(asio::io_context& io, local_plan plan, rank_starter& starter, host_events& events,
                       spawn_function spawn)
    : io_(io), plan_(std::move(plan)), starter_(starter), events_(events), spawn_(std::move(spawn)),
      acceptor_(io, {{plan_.secret},
                     plan_.ranks.size(),
                     [this](const proven_rank& who, tcp::socket& socket) { return admit(who.number, socket); },
                     spawn_,
                     [this](const std::string& text) { events_.log(coordinator_rank, RG_LOG_WARNING, text); }}) {}

local_host::~local_host() {
  local_host::kill_all();
}

// ------------------------------------------------------------------------------------------------------ rendezvous ---

void local_host::start() {
  acceptor_.open(plan_.address);
  events_.log(coordinator_rank, RG_LOG_DEBUG,
              fmt::format("waiting for {} ranks on {} port {}", plan_.ranks.size(), plan_.address, acceptor_.port()));
  for (const auto& [rank, plan] : plan_.ranks) members_.emplace(rank, std::make_unique<member>(*this, rank));
  acceptor_.begin();
  for (const auto& [rank, m] : members_) {
    if (ending_) {
      events_.ended(rank, "was not started", false);
      if (++ended_ == plan_.ranks.size()) events_.finished();
      continue;
    }
    start(*m);
    io_.poll(); // starting many ranks takes seconds, in which heartbeats must be sent and received
  }
}

void local_host::start(member& m) {
  const rank_starter::order order{
      m.rank, plan_.address, acceptor_.port(), plan_.secret, plan_.ranks.at(m.rank).cpus, m.status.descriptor()};
  process started = starter_.start(order);
  m.pid = started.pid;
  m.status.close_descriptor();
  m.running = true;
  m.heard = clock::now();
  m.handle.assign(started.handle.release());
  for (auto [fd, into, lines] : {std::tuple{&started.output, &m.output, &m.output_lines},
                                 std::tuple{&started.errors, &m.errors, &m.error_lines}})
    if (fd->get() >= 0) {
      into->assign(fd->release());
      spawn_(collect(*into, *lines));
    }
  events_.started(m.rank, m.pid);
  spawn_(watch(m));
}

std::string local_host::admit(std::uint32_t rank, tcp::socket& socket) {
  const auto found = members_.find(rank);
  if (found == members_.end()) return fmt::format("this run has no rank {} on this host", rank);
  member& m = *found->second;
  if (m.wire) return fmt::format("rank {} is connected already", rank);
  m.wire = std::make_shared<channel>(std::move(socket));
  m.wire_open = true;
  m.wire->send({{"t", "job"}, {"ranks", plan_.size}},
               std::make_shared<const blob>(nlohmann::json::to_cbor(*plan_.ranks.at(rank).job)));
  spawn_(serve(m));
  if (ending_) m.wire->send({{"t", "ended"}, {"rank", nobody}, {"why", "the case ended before this rank joined it"}});
  events_.connected(rank);
  if (++connected_ == members_.size()) acceptor_.close(); // any further connection is not a rank
  return "";
}

// ------------------------------------------------------------------------------------------------------- processes ---

asio::awaitable<void> local_host::collect(asio::posix::stream_descriptor& from, line_splitter& into) {
  std::array<char, 4096> text{};
  for (;;) {
    boost::system::error_code error;
    const auto got =
        co_await from.async_read_some(asio::buffer(text), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    into.feed({text.data(), got});
  }
}

asio::awaitable<void> local_host::watch(member& m) {
  co_await m.handle.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
  // Handle the frames that the rank sent before it died first.
  if (m.wire_open) {
    boost::system::error_code ended;
    m.wire_ended.expires_after(last_frames);
    co_await m.wire_ended.async_wait(asio::redirect_error(asio::use_awaitable, ended));
  }
  for (auto [from, into] : {std::pair{&m.output, &m.output_lines}, std::pair{&m.errors, &m.error_lines}}) {
    if (!from->is_open()) continue;
    std::array<char, 4096> text{};
    for (ssize_t got = 0; (got = ::read(from->native_handle(), text.data(), text.size())) > 0;)
      into->feed({text.data(), static_cast<std::size_t>(got)});
    into->flush();
  }
  rank_starter::end end = starter_.reap(m.rank);
  if (const std::string why = end.killed ? oom_.verdict() : ""; !why.empty()) end.how += ": " + why;
  m.running = false;
  events_.ended(m.rank, end.how, end.well);
  if (++ended_ == plan_.ranks.size()) events_.finished();
}

asio::awaitable<void> local_host::serve(member& m) {
  std::string broken;
  try {
    for (;;) {
      message f = co_await m.wire->receive();
      try {
        const std::string type = f.header.at("t");
        m.has_result |= type == "result";
        m.reported |= type == "failed";
        // The channel has noted when the heartbeat came; nobody else needs it.
        if (type != "beat") events_.received(m.rank, std::move(f));
      } catch (const nlohmann::json::exception& e) {
        throw failure(exit_code::run,
                      fmt::format("sent a control message with a missing or wrong member: {}", e.what()));
      }
    }
  } catch (const boost::system::system_error&) {
  } catch (const failure& e) {
    broken = e.what();
  }
  m.wire->close();
  m.wire_open = false;
  m.wire_ended.cancel();
  if (!broken.empty()) events_.certain(m.rank, broken);
  if (!m.has_result && !m.reported) events_.disconnected(m.rank);
}

// --------------------------------------------------------------------------------------------------------- checks ---

void local_host::tick(clock::time_point now, clock::duration late) {
  // While this process did not run, it could not receive from any rank.
  if (late > 0s)
    for (auto& [rank, m] : members_) {
      m->heard += late;
      m->stopped.reset();
    }
  if (plan_.limits.debugged) return;
  for (auto& [rank, m] : members_) {
    look_for_silence(*m, now);
    look_for_stopped(*m, now);
  }
}

void local_host::look_for_silence(member& m, clock::time_point now) {
  if (!m.running || m.reported) return;
  if (m.wire) m.heard = std::max(m.heard, m.wire->heard());
  const auto since = now - m.heard;
  if (!m.wire) {
    if (since > plan_.limits.start)
      events_.certain(m.rank, fmt::format("did not connect within {:.1f} s of its start", seconds_of(since)));
  } else if (since > plan_.limits.silence && m.has_result) {
    kill_after_result(m, fmt::format("did not end within {:.1f} s of its result and was killed", seconds_of(since)));
  } else if (since > plan_.limits.silence) {
    certain_of_lifeless(m, fmt::format("sent no heartbeat for {:.1f} s", seconds_of(since)));
  }
}

void local_host::look_for_stopped(member& m, clock::time_point now) {
  const bool heard = m.wire && now - m.wire->heard() < late_heartbeat;
  if (!m.running || m.reported || heard || !is_stopped(m.pid)) {
    m.stopped.reset();
  } else if (!m.stopped) {
    m.stopped = now;
  } else if (now - *m.stopped > plan_.limits.stopped) {
    const auto what = fmt::format("stopped by a signal for {:.1f} s", seconds_of(now - *m.stopped));
    if (m.has_result)
      kill_after_result(m, what + " after its result, and was killed");
    else
      certain_of_lifeless(m, what);
  }
}

void local_host::certain_of_lifeless(const member& m, const std::string& what) {
  events_.certain(m.rank, what);
  if (!starter_.lasting()) starter_.kill(m.rank);
}

void local_host::kill_after_result(const member& m, const std::string& what) {
  events_.warned(m.rank, what);
  starter_.kill(m.rank);
}

bool local_host::quiet(clock::time_point now) const {
  return std::any_of(members_.begin(), members_.end(), [&](const auto& entry) {
    const member& m = *entry.second;
    return m.running && m.wire_open && !m.reported && !m.has_result && now - m.wire->heard() > late_heartbeat;
  });
}

rank_sign local_host::sign(std::uint32_t rank) const {
  const member& m = *members_.at(rank);
  return {m.status.read(), m.error_lines.last()};
}

// --------------------------------------------------------------------------------------------------------- the end ---

void local_host::send(std::span<const std::uint32_t> ranks, const nlohmann::json& header,
                      std::shared_ptr<const blob> payload) {
  for (const std::uint32_t rank : ranks)
    if (member& m = *members_.at(rank); m.wire_open) m.wire->send(header, payload);
}

void local_host::end(std::uint32_t dead, const std::string& why) {
  if (ending_) return;
  ending_ = true;
  for (const auto& [rank, m] : members_) {
    if (m->wire_open)
      m->wire->send({{"t", "ended"}, {"rank", dead}, {"why", why}});
    else if (m->running && !m->wire && !starter_.lasting())
      starter_.kill(rank); // it has no connection over which it could be told
  }
  spawn_(kill_after_grace());
}

asio::awaitable<void> local_host::kill_after_grace() {
  asio::steady_timer timer(io_);
  timer.expires_after(starter_.lasting() ? std::chrono::seconds(launcher_grace) : std::chrono::seconds(grace));
  co_await timer.async_wait(asio::use_awaitable);
  kill_all();
}

void local_host::kill(std::uint32_t rank) {
  if (members_.at(rank)->running) starter_.kill(rank);
}

void local_host::kill_all() {
  for (const auto& [rank, m] : members_)
    if (m->running) starter_.kill(rank);
}

} // namespace regatta
