// SPDX-License-Identifier: Apache-2.0
#include "launch/coordinator.hpp"

#include <algorithm>
#include <array>

#include <csignal>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regatta/abi.h>

#include "base/failure.hpp"
#include "base/json.hpp"
#include "control/crypto.hpp"
#include "control/handshake.hpp"
#include "control/rank_arguments.hpp"
#include "launch/launcher_ranks.hpp"

namespace regatta {

using namespace std::chrono_literals;

namespace {

constexpr auto proof_limit = 2s; // from accepting a connection to its proof of the secret
constexpr std::size_t pending_beyond_ranks = 64;
constexpr std::size_t refusals_logged = 20;
constexpr auto suspicion_limit = 500ms;
constexpr auto last_frames = 500ms;  // for the frames of a dead rank that are still in this host's socket buffers
constexpr auto grace = 1s;           // for the other ranks to end, after the run has failed
constexpr auto launcher_grace = 60s; // as `grace`, but a kill would end the whole campaign, and a step may take long
constexpr auto accept_pause = 100ms; // if no descriptor is free

} // namespace

coordinator::member::member(coordinator& c, std::uint32_t number)
    : rank(number), handle(c.io_), output(c.io_), errors(c.io_),
      output_lines([&c, number](const std::string& line) { c.log(number, RG_LOG_INFO, line); }),
      error_lines([&c, number](const std::string& line) { c.log(number, RG_LOG_WARNING, line); }), wire_ended(c.io_) {}

void coordinator::pending_connection::drop() {
  boost::system::error_code ignored;
  socket.close(ignored);
  proof_timer.cancel();
}

coordinator::coordinator(const launch_plan& plan, const launch_hooks& hooks)
    : plan_(plan), hooks_(hooks), secret_(random_bytes(secret_bytes)), all_gather_(plan.ranks.size()),
      stalls_(plan.stall, plan.ranks.size()) {
  result_.results.resize(plan.ranks.size());
}

coordinator::~coordinator() {
  kill_all();
  for (auto& m : members_)
    if (m->running && !plan_.launcher) reap_process(m->process);
}

void coordinator::spawn(asio::awaitable<void> coroutine) {
  asio::co_spawn(io_, std::move(coroutine), [this](const std::exception_ptr& e) {
    if (!e) return;
    if (!broken_) broken_ = e;
    io_.stop();
  });
}

launch_result coordinator::run() {
  if (plan_.ranks.empty()) return result_;
  listen();
  spawn(heed_signals());
  for (std::uint32_t r = 0; r < plan_.ranks.size(); ++r) {
    members_.push_back(std::make_unique<member>(*this, r));
    start(*members_.back());
  }
  spawn(accept());
  spawn(keep_time());
  io_.run();
  if (broken_) std::rethrow_exception(broken_);
  if (!result_.failure && !result_.interrupted) result_.failure = suspicion_;
  return std::move(result_);
}

// ------------------------------------------------------------------------------------------------------ rendezvous ---

void coordinator::listen() {
  try {
    const tcp::endpoint where(asio::ip::make_address(plan_.address), 0);
    acceptor_.open(where.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true)); // connections in TIME_WAIT do not block the port
    acceptor_.bind(where);
    acceptor_.listen();
  } catch (const boost::system::system_error& e) {
    throw failure(exit_code::run, fmt::format("cannot listen on {}: {}", plan_.address, e.code().message()));
  }
  log(coordinator_rank, RG_LOG_DEBUG,
      fmt::format("waiting for {} ranks on {} port {}", plan_.ranks.size(), plan_.address,
                  acceptor_.local_endpoint().port()));
}

asio::awaitable<void> coordinator::accept() {
  asio::steady_timer pause(io_);
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  const std::size_t most_pending = std::min<std::size_t>(plan_.ranks.size() + pending_beyond_ranks,
                                                         std::max<std::size_t>(descriptors.rlim_cur / 4, 4));
  while (connected_ < plan_.ranks.size()) {
    boost::system::error_code error;
    tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::operation_aborted) co_return;
    // If unproven connections hold all descriptors, close the oldest, and accept the next.
    if (error == asio::error::no_descriptors && drop_oldest_pending()) {
      pause.expires_after(0s); // its coroutine must run to release the descriptor
      co_await pause.async_wait(asio::use_awaitable);
      continue;
    }
    if (error) {
      log(coordinator_rank, RG_LOG_WARNING, fmt::format("cannot accept a connection: {}", error.message()));
      pause.expires_after(accept_pause);
      co_await pause.async_wait(asio::use_awaitable);
      continue;
    }
    if (pending_.size() >= most_pending) drop_oldest_pending();
    auto s = std::make_shared<pending_connection>(std::move(socket));
    pending_.push_back(s);
    spawn(admit(std::move(s)));
  }
}

// Closes the oldest unproven connection. It is the least likely to be a rank: a rank sends its proof at once, and
// connects again if it is dropped.
bool coordinator::drop_oldest_pending() {
  const auto oldest = std::ranges::find_if(pending_, [](const auto& s) { return !s->proven && s->socket.is_open(); });
  if (oldest == pending_.end()) return false;
  (*oldest)->drop();
  return true;
}

asio::awaitable<void> coordinator::admit(std::shared_ptr<pending_connection> s) {
  boost::system::error_code error;
  const auto peer = s->socket.remote_endpoint(error);
  const auto who = fmt::format("{} port {}", peer.address().to_string(), peer.port());
  s->proof_timer.expires_after(proof_limit);
  s->proof_timer.async_wait([s](boost::system::error_code cancelled) {
    if (!cancelled && !s->proven) s->drop();
  });

  std::uint32_t rank = nobody;
  std::string why;
  try {
    rank = co_await admit_rank(s->socket, secret_, s->proven);
  } catch (const boost::system::system_error& e) {
    why = s->socket.is_open() ? e.code().message() : "it did not authenticate in time";
  } catch (const failure& e) {
    why = e.what();
  }
  s->proof_timer.cancel();
  pending_.remove(s);
  if (!why.empty()) {
    refuse(who, why);
  } else if (rank >= members_.size()) {
    refuse(who, fmt::format("this run has no rank {}", rank));
  } else if (members_[rank]->wire) {
    refuse(who, fmt::format("rank {} is connected already", rank));
  } else if (s->socket.is_open()) {
    welcome(*members_[rank], std::move(s->socket));
  }
}

void coordinator::refuse(const std::string& who, const std::string& why) {
  if (++refused_ > refusals_logged) return;
  log(coordinator_rank, RG_LOG_WARNING,
      fmt::format("refused a connection from {}: {}{}", who, why,
                  refused_ == refusals_logged ? "; no more of these are logged" : ""));
}

void coordinator::welcome(member& m, tcp::socket socket) {
  m.wire = std::make_shared<channel>(std::move(socket));
  m.wire_open = true;
  m.wire->send({{"t", "job"}, {"ranks", members_.size()}},
               std::make_shared<const blob>(nlohmann::json::to_cbor(plan_.ranks[m.rank].job)));
  spawn(serve(m));
  if (ending_) m.wire->send({{"t", "ended"}, {"rank", nobody}, {"why", "the case ended before this rank joined it"}});
  if (++connected_ < plan_.ranks.size()) return;
  // All ranks are connected.
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (const auto& s : pending_) s->drop(); // any further connection is not a rank
}

// ------------------------------------------------------------------------------------------------------- processes ---

void coordinator::start(member& m) {
  const auto& plan = plan_.ranks[m.rank];
  const std::uint16_t port = acceptor_.local_endpoint().port();
  unique_fd handle;
  if (plan_.launcher) {
    plan_.launcher->start_run(m.rank, plan_.address, port, secret_, plan.cpus, m.status.descriptor());
    m.pid = plan_.launcher->pid(m.rank);
    handle = plan_.launcher->watch(m.rank);
  } else {
    const auto arguments = [&](int secret_fd) {
      return to_command_line(plan_.address, port, m.rank, secret_fd, m.status.descriptor());
    };
    m.process = start_process(plan_.program.empty() ? "/proc/self/exe" : plan_.program, arguments, secret_, plan.cpus,
                              m.status.descriptor());
    m.pid = m.process.pid;
    handle = std::move(m.process.handle);
  }
  m.status.close_descriptor();
  m.running = true;
  ++running_;
  m.heard = clock::now();
  m.handle.assign(handle.release());
  if (!plan_.launcher) {
    m.output.assign(m.process.output.release());
    m.errors.assign(m.process.errors.release());
    spawn(collect(m.output, m.output_lines));
    spawn(collect(m.errors, m.error_lines));
  }
  spawn(watch(m));
}

asio::awaitable<void> coordinator::collect(asio::posix::stream_descriptor& from, line_splitter& into) {
  std::array<char, 4096> text{};
  for (;;) {
    boost::system::error_code error;
    const auto got =
        co_await from.async_read_some(asio::buffer(text), asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    into.feed({text.data(), got});
  }
}

asio::awaitable<void> coordinator::watch(member& m) {
  co_await m.handle.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
  // Handle the frames that the rank sent before it died first.
  if (m.wire_open) {
    boost::system::error_code ended;
    m.wire_ended.expires_after(last_frames);
    co_await m.wire_ended.async_wait(asio::redirect_error(asio::use_awaitable, ended));
  }
  if (plan_.launcher) {
    const auto code = plan_.launcher->outcome(m.rank);
    ended(m, code ? fmt::format("ended with code {}", *code) : "died", code == 0);
    co_return;
  }
  for (auto [from, into] : {std::pair{&m.output, &m.output_lines}, std::pair{&m.errors, &m.error_lines}}) {
    std::array<char, 4096> text{};
    for (ssize_t got = 0; (got = ::read(from->native_handle(), text.data(), text.size())) > 0;)
      into->feed({text.data(), static_cast<std::size_t>(got)});
    into->flush();
  }
  const int status = reap_process(m.process);
  std::string how = describe_status(status);
  if (const std::string why = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? oom_.verdict() : ""; !why.empty())
    how += ": " + why;
  ended(m, how, status == 0);
}

void coordinator::ended(member& m, const std::string& how, bool well) {
  m.running = false;
  --running_;
  stalls_.leave(m.rank);
  if (m.has_result) {
    if (!well) warn(m, how + " after its result");
  } else if (!m.reported) {
    certain(m, how + " before its result");
  }
  if (running_ == 0) io_.stop();
}

// ---------------------------------------------------------------------------------------------------------- frames ---

asio::awaitable<void> coordinator::serve(member& m) {
  std::string broken;
  try {
    for (;;) {
      message f = co_await m.wire->receive();
      try {
        handle(m, std::move(f));
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
  if (!broken.empty()) certain(m, broken);
  if (!m.has_result && !m.reported) suspect(m, "closed its connection to the coordinator");
}

void coordinator::handle(member& m, message&& f) {
  const std::string type = f.header.at("t");
  if (type == "log") {
    log(m.rank, f.header.at("level"), f.header.at("text"));
  } else if (type == "gather") {
    const auto members = f.header.value("members", std::vector<std::uint32_t>());
    auto all = all_gather_.add(m.rank, f.header.at("tag"), std::move(f.payload), members);
    if (!all) {
      if (const auto deadlock = all_gather_.deadlock()) certain(m, *deadlock);
      return;
    }
    auto payload = std::make_shared<blob>();
    auto sizes = nlohmann::json::array();
    for (const auto& part : *all) {
      sizes.push_back(part.size());
      payload->insert(payload->end(), part.begin(), part.end());
    }
    const nlohmann::json header{{"t", "gathered"}, {"sizes", std::move(sizes)}};
    for (const auto& other : members_)
      if (members.empty() || std::ranges::binary_search(members, other->rank)) other->wire->send(header, payload);
  } else if (type == "result") {
    result_.results[m.rank] = parse_cbor(f.payload);
    m.has_result = true;
    stalls_.leave(m.rank);
    all_gather_.leave(m.rank);
    m.wire->send({{"t", "taken"}});
    if (const auto deadlock = all_gather_.deadlock()) certain(m, *deadlock);
  } else if (type == "state") {
    m.state = std::move(f.header);
  } else if (type == "failed") {
    const std::string why = f.header.at("why");
    const int code = f.header.at("code");
    m.reported = true;
    if (f.header.at("peer"))
      suspect(m, why, code);
    else
      certain(m, why, code);
  }
}

// --------------------------------------------------------------------------------------------------------- the end ---

std::string coordinator::name_of(const member& m) const {
  return fmt::format("rank {} ({}, pid {})", m.rank, plan_.ranks[m.rank].role, m.pid);
}

rank_failure coordinator::make_failure(const member& m, const std::string& what, int code) const {
  auto text = fmt::format("{}: {}", name_of(m), what);
  if (const rank_status s = m.status.read(); !s.operation.empty()) {
    text += fmt::format("; last operation: {}", s.operation);
    if (s.step > 0) text += fmt::format(" ({} steps done)", s.step);
  }
  if (!m.reported && !m.error_lines.last().empty())
    text += fmt::format("; its last line on standard error: {}", m.error_lines.last());
  return {m.rank, std::move(text), code, {}};
}

void coordinator::certain(const member& m, const std::string& what, int code) {
  if (ending_) return;
  result_.failure = make_failure(m, what, code);
  end(m.rank, result_.failure->message);
}

// Ends the run and kills the rank at once: it cannot receive the message that the run has ended.
void coordinator::certain_of_lifeless(const member& m, const std::string& what) {
  certain(m, what);
  if (!plan_.launcher) kill(m);
}

void coordinator::warn(const member& m, const std::string& what) {
  auto& w = members_[m.rank]->warned;
  if (std::exchange(w, true)) return;
  result_.warnings.emplace_back(m.rank, fmt::format("{}: {}", name_of(m), what));
  log(coordinator_rank, RG_LOG_WARNING, result_.warnings.back().second);
}

void coordinator::suspect(const member& m, const std::string& what, int code) {
  if (ending_ || suspicion_) return;
  suspicion_ = make_failure(m, what, code);
  spawn(settle_suspicion());
}

asio::awaitable<void> coordinator::settle_suspicion() {
  asio::steady_timer timer(io_);
  auto pause = suspicion_limit;
  do {
    timer.expires_after(pause);
    co_await timer.async_wait(asio::use_awaitable);
    pause = tick;
  } while (!ending_ && somebody_is_quiet(clock::now()));
  if (ending_) co_return;
  result_.failure = suspicion_;
  end(suspicion_->rank, suspicion_->message);
}

void coordinator::end(std::uint32_t dead, const std::string& why) {
  if (ending_) return;
  ending_ = true;
  for (const auto& m : members_) {
    if (m->wire_open)
      m->wire->send({{"t", "ended"}, {"rank", dead}, {"why", why}});
    else if (m->running && !m->wire && !plan_.launcher)
      kill(*m); // it has no connection over which it could be told
  }
  spawn(kill_after_grace());
}

asio::awaitable<void> coordinator::kill_after_grace() {
  asio::steady_timer timer(io_);
  timer.expires_after(plan_.launcher ? launcher_grace : grace);
  co_await timer.async_wait(asio::use_awaitable);
  kill_all();
}

void coordinator::kill_all() {
  for (const auto& m : members_)
    if (m->running) kill(*m);
}

void coordinator::kill(const member& m) const {
  if (plan_.launcher)
    ::kill(m.pid, SIGKILL); // the launcher then ends the other ranks
  else
    kill_process(m.process);
}

void coordinator::log(std::uint32_t rank, int level, const std::string& text) const {
  if (hooks_.log) hooks_.log(rank, level, text);
}

launch_result launch(const launch_plan& plan, const launch_hooks& hooks) {
  return coordinator(plan, hooks).run();
}

} // namespace regatta
