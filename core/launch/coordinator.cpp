// SPDX-License-Identifier: Apache-2.0
#include "launch/coordinator.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <regatta/abi.h>

#include "base/json.hpp"
#include "control/crypto.hpp"
#include "control/rank_arguments.hpp"
#include "launch/host_link.hpp"
#include "launch/local_host.hpp"

namespace regatta {

using namespace std::chrono_literals;

namespace {

constexpr auto suspicion_limit = 500ms;
constexpr int run_failed = static_cast<int>(exit_code::run);

} // namespace

coordinator::coordinator(const launch_plan& plan, const launch_hooks& hooks)
    : plan_(plan), hooks_(hooks), starter_(plan.program), all_gather_(plan.ranks.size()),
      stalls_(plan.stall, plan.ranks.size()) {
  result_.results.resize(plan.ranks.size());
}

coordinator::~coordinator() = default;

void coordinator::spawn(asio::awaitable<void> coroutine) {
  asio::co_spawn(io_, std::move(coroutine), [this](const std::exception_ptr& e) {
    if (!e) return;
    if (!broken_) broken_ = e;
    io_.stop();
  });
}

void coordinator::divide_ranks() {
  for (std::uint32_t r = 0; r < plan_.ranks.size(); ++r) members_.push_back({r});
  const auto spawned = [this](asio::awaitable<void> coroutine) { spawn(std::move(coroutine)); };
  std::map<std::uint32_t, std::map<std::uint32_t, rank_plan>> by_host;
  for (std::uint32_t r = 0; r < plan_.ranks.size(); ++r) by_host[plan_.ranks[r].host][r] = plan_.ranks[r];
  const auto size = static_cast<std::uint32_t>(plan_.ranks.size());
  const blob nonce = random_bytes(secret_bytes);
  for (auto& [number, ranks] : by_host) {
    std::vector<std::uint32_t> mine;
    for (const auto& entry : ranks) mine.push_back(entry.first);
    if (plan_.hosts.empty())
      hosts_.push_back(
          std::make_unique<local_host>(io_, local_plan{std::move(ranks), size, plan_.address, plan_.limits, nonce},
                                       plan_.starter ? *plan_.starter : starter_, *this, spawned));
    else
      hosts_.push_back(plan_.hosts.at(number)->ranks_of(
          io_, {std::move(ranks), size, plan_.limits, nonce, plan_.lasting}, *this, spawned));
    for (const std::uint32_t r : mine) members_[r].host = hosts_.back().get();
  }
}

launch_result coordinator::run() {
  if (plan_.ranks.empty()) return result_;
  divide_ranks();
  spawn(heed_signals());
  unfinished_hosts_ = hosts_.size();
  for (member& m : members_) m.running = true;
  for (const auto& host : hosts_) host->start();
  spawn(keep_time());
  io_.run();
  if (broken_) std::rethrow_exception(broken_);
  if (!result_.failure && !result_.interrupted) result_.failure = suspicion_;
  for (std::uint32_t h = 0; h < plan_.hosts.size(); ++h)
    if (std::ranges::any_of(plan_.ranks, [h](const rank_plan& r) { return r.host == h; }))
      result_.hosts.push_back(plan_.hosts[h]->clock());
  return std::move(result_);
}

// ---------------------------------------------------------------------------------------------------------- events ---

void coordinator::started(std::uint32_t rank, pid_t pid) {
  members_.at(rank).pid = pid;
}

void coordinator::connected(std::uint32_t rank) {
  member& m = members_.at(rank);
  m.connected = m.open = true;
  ++connected_;
}

void coordinator::disconnected(std::uint32_t rank) {
  member& m = members_.at(rank);
  m.open = false;
  suspect(m, "closed its connection to the coordinator", run_failed);
}

void coordinator::certain(std::uint32_t rank, const std::string& what) {
  fail(members_.at(rank), what, run_failed);
}

void coordinator::warned(std::uint32_t rank, const std::string& what) {
  warn(members_.at(rank), what);
}

void coordinator::ended(std::uint32_t rank, const std::string& how, bool well) {
  member& m = members_.at(rank);
  if (!m.running) return;
  m.running = m.open = false;
  stalls_.leave(rank);
  if (m.has_result) {
    if (!well) warn(m, how + " after its result");
  } else if (!m.reported) {
    // A launcher that ends its job sends SIGTERM to ranks as well, perhaps before this process.
    if (!plan_.hosts.empty() && how.starts_with("killed by SIGTERM"))
      suspect(m, how + " before its result", run_failed);
    else
      fail(m, how + " before its result", run_failed);
  }
}

void coordinator::finished() {
  if (--unfinished_hosts_ == 0) io_.stop();
}

void coordinator::received(std::uint32_t rank, message&& f) {
  member& m = members_.at(rank);
  const std::string type = f.header.at("t");
  if (type == "log") {
    log(rank, f.header.at("level"), f.header.at("text"));
  } else if (type == "gather") {
    gather(m, std::move(f));
  } else if (type == "result") {
    result_.results[rank] = parse_cbor(f.payload);
    m.has_result = true;
    stalls_.leave(rank);
    all_gather_.leave(rank);
    m.host->send({&m.rank, 1}, {{"t", "taken"}});
    if (const auto deadlock = all_gather_.deadlock()) fail(m, *deadlock, run_failed);
  } else if (type == "state") {
    m.state = std::move(f.header);
  } else if (type == "failed") {
    const std::string why = f.header.at("why");
    const int code = f.header.at("code");
    m.reported = true;
    if (f.header.at("peer"))
      suspect(m, why, code);
    else
      fail(m, why, code);
  }
}

void coordinator::gather(const member& m, message&& f) {
  const auto members = f.header.value("members", std::vector<std::uint32_t>());
  const auto all = all_gather_.add(m.rank, f.header.at("tag"), std::move(f.payload), members);
  if (!all) {
    if (const auto deadlock = all_gather_.deadlock()) fail(m, *deadlock, run_failed);
    return;
  }
  auto payload = std::make_shared<blob>();
  auto sizes = nlohmann::json::array();
  for (const auto& part : *all) {
    sizes.push_back(part.size());
    payload->insert(payload->end(), part.begin(), part.end());
  }
  send(members, {{"t", "gathered"}, {"sizes", std::move(sizes)}}, payload);
}

void coordinator::send(std::span<const std::uint32_t> ranks, const nlohmann::json& header,
                       const std::shared_ptr<const blob>& payload) {
  std::map<rank_host*, std::vector<std::uint32_t>> by_host;
  for (const member& m : members_)
    if (ranks.empty() || std::ranges::binary_search(ranks, m.rank)) by_host[m.host].push_back(m.rank);
  for (const auto& [host, mine] : by_host) host->send(mine, header, payload);
}

void coordinator::log(std::uint32_t rank, int level, const std::string& text) {
  if (hooks_.log) hooks_.log(rank, level, text);
}

// --------------------------------------------------------------------------------------------------------- the end ---

std::string coordinator::name_of(const member& m) const {
  const auto& plan = plan_.ranks[m.rank];
  const std::string where = plan_.hosts.empty() ? "" : fmt::format(", host {}", plan_.hosts[plan.host]->name);
  const std::string pid = m.pid < 0 ? "" : fmt::format(", pid {}", m.pid); // it was not started
  return fmt::format("rank {} ({}{}{})", m.rank, plan.role, where, pid);
}

rank_failure coordinator::make_failure(const member& m, const std::string& what, int code) const {
  auto text = fmt::format("{}: {}", name_of(m), what);
  const rank_sign s = m.host->sign(m.rank);
  if (!s.status.operation.empty()) {
    text += fmt::format("; last operation: {}", s.status.operation);
    if (s.status.step > 0) text += fmt::format(" ({} steps done)", s.status.step);
  }
  if (!m.reported && !s.last_error.empty()) text += fmt::format("; its last line on standard error: {}", s.last_error);
  return {m.rank, std::move(text), code, {}};
}

void coordinator::fail(const member& m, const std::string& what, int code) {
  if (ending_) return;
  result_.failure = make_failure(m, what, code);
  end(m.rank, result_.failure->message);
}

void coordinator::warn(member& m, const std::string& what) {
  if (std::exchange(m.warned, true)) return;
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
  for (const auto& host : hosts_) host->end(dead, why);
}

launch_result launch(const launch_plan& plan, const launch_hooks& hooks) {
  return coordinator(plan, hooks).run();
}

} // namespace regatta
