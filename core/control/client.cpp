// SPDX-License-Identifier: Apache-2.0
#include "control/client.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/failure.hpp"
#include "base/json.hpp"
#include "control/channel.hpp"
#include "control/crypto.hpp"
#include "control/handshake.hpp"
#include "control/stack_trace.hpp"

namespace regatta {

using namespace std::chrono_literals;

namespace {

constexpr auto heartbeat = 250ms;
constexpr auto join_limit = 10s;
constexpr auto join_pause = 50ms;
// limit for sending queued frames at the end, and for the process once the coordinator is gone
constexpr auto last_words = 1s;
constexpr std::uint32_t nobody = UINT32_MAX;
// In bytes, of a text that may come from a plugin: far below max_header_bytes, even where JSON writes a byte as \u00XX.
constexpr std::size_t longest_text = 64 << 10;

std::string cut(const std::string& text) {
  if (text.size() <= longest_text) return text;
  std::size_t end = longest_text;
  while (end > longest_text - 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end; // within a character
  return fmt::format("{} ... ({} bytes left out)", text.substr(0, end), text.size() - end);
}

} // namespace

// The threads share `mutex` with the three members below it, and the atomics; the two other mutexes guard the members
// below them. The rest belongs to the control thread, except as noted.
struct control_client::state {
  explicit state(status_page p) : page(std::move(p)) {}

  asio::io_context io{1};
  asio::steady_timer beat{io}, deadline{io};
  std::shared_ptr<channel> wire;
  bool closing = false;

  std::optional<std::string> summing; // [main] tag of the sum that was begun
  std::size_t summing_values = 0;
  std::uint32_t rank = 0, ranks = 0;
  nlohmann::json job;
  digest plugin_key{};

  status_page page;
  std::atomic<bool> aborted{false};

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<message> reply;     // for the one call of the main thread that waits
  std::optional<std::string> ended; // reason why the case has ended
  std::uint32_t dead = nobody;

  std::mutex callback_mutex; // held while `callback` runs
  std::function<void(std::uint32_t)> callback;
  bool called = false;

  std::mutex describe_mutex; // held while `description` runs
  std::function<nlohmann::json()> description;
  pid_t main_thread = 0;

  std::thread thread;

  asio::awaitable<void> join(asio::ip::address address, std::uint16_t port, blob secret);
  void take_job(const message& m);
  asio::awaitable<void> listen();
  asio::awaitable<void> keep_beating();
  void start();
  void stop();

  void send(nlohmann::json header, std::shared_ptr<const blob> payload = {});
  void send_now(const nlohmann::json& header, std::shared_ptr<const blob> payload = {}); // [loop]
  // begin() sends a request, finish() waits for the reply to it.
  void begin(nlohmann::json header, std::shared_ptr<const blob> payload);
  message finish();
  void begin_gathering(std::string_view tag, const blob& mine, std::span<const std::uint32_t> members);
  std::vector<blob> finish_gathering();
  void end(std::uint32_t dead_rank, const std::string& why);
  void call_back();
  void describe();
};

asio::awaitable<void> control_client::state::join(asio::ip::address address, std::uint16_t port, blob secret) {
  // A coordinator that is busy with unproven connections may drop this one too, so retry until the caller's limit.
  for (;;) {
    tcp::socket socket(io);
    co_await socket.async_connect({address, port}, asio::use_awaitable);
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    std::optional<message> first;
    try {
      co_await prove_rank(socket, secret, rank);
      wire = std::make_shared<channel>(std::move(socket));
      first = co_await wire->receive();
    } catch (const boost::system::system_error&) {
    } catch (const proof_refused&) { // dropped after the proof was sent
    }
    if (first) {
      take_job(*first);
      co_return;
    }
    deadline.expires_after(join_pause);
    co_await deadline.async_wait(asio::use_awaitable);
  }
}

void control_client::state::take_job(const message& m) {
  if (m.header.value("t", "") != "job")
    throw failure(exit_code::run, "expected a job as the coordinator's first message, got another type");
  ranks = m.header.at("ranks").get<std::uint32_t>();
  job = parse_cbor(m.payload);
}

asio::awaitable<void> control_client::state::listen() {
  std::string why = "the coordinator is gone";
  try {
    for (;;) {
      message m = co_await wire->receive();
      const auto type = m.header.value("t", "");
      if (type == "ended") {
        end(m.header.value("rank", nobody), m.header.value("why", ""));
      } else if (type == "describe") {
        describe();
      } else {
        const std::lock_guard lock(mutex);
        reply = std::move(m);
        changed.notify_all();
      }
    }
  } catch (const boost::system::system_error&) {
  } catch (const std::exception& e) {
    why = e.what();
  }
  wire->close();
  beat.cancel();
  if (closing) co_return;
  end(nobody, why);
  deadline.expires_after(last_words);
  deadline.async_wait([](boost::system::error_code cancelled) {
    if (!cancelled) ::_exit(static_cast<int>(exit_code::run));
  });
}

asio::awaitable<void> control_client::state::keep_beating() {
  boost::system::error_code cancelled;
  while (!cancelled) {
    send({{"t", "beat"}});
    beat.expires_after(heartbeat);
    co_await beat.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
  }
}

void control_client::state::start() {
  thread = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "control");
    const auto rethrow = [](const std::exception_ptr& e) {
      if (e) std::rethrow_exception(e);
    };
    asio::co_spawn(io, listen(), rethrow);
    asio::co_spawn(io, keep_beating(), rethrow);
    io.run();
  });
}

void control_client::state::stop() {
  asio::post(io, [this] {
    closing = true;
    deadline.expires_after(last_words);
    deadline.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) io.stop();
    });
    // This frame is the last of the queue: once it is sent, all others are.
    wire->send({{"t", "beat"}}, {}, [this] {
      beat.cancel();
      deadline.cancel();
      wire->close();
    });
  });
  thread.join();
}

void control_client::state::send(nlohmann::json header, std::shared_ptr<const blob> payload) {
  asio::post(io, [this, header = std::move(header), payload = std::move(payload)] { send_now(header, payload); });
}

void control_client::state::send_now(const nlohmann::json& header, std::shared_ptr<const blob> payload) {
  try {
    wire->send(header, std::move(payload));
  } catch (const failure& e) { // a frame above the limits: the main thread waits for a reply to it, and throws this
    end(nobody, e.what());
  }
}

void control_client::state::begin(nlohmann::json header, std::shared_ptr<const blob> payload) {
  const std::lock_guard lock(mutex);
  if (ended) throw failure(exit_code::run, *ended);
  reply.reset();
  send(std::move(header), std::move(payload));
}

message control_client::state::finish() {
  const waiting_scope waits(page, waiting::coordinator);
  std::unique_lock lock(mutex);
  changed.wait(lock, [this] { return reply || ended; });
  page.worked();
  if (!reply) throw failure(exit_code::run, *ended);
  return std::move(*reply);
}

void control_client::state::begin_gathering(std::string_view tag, const blob& mine,
                                            std::span<const std::uint32_t> members) {
  if (summing) throw failure(exit_code::run, fmt::format("exchange \"{}\" within the sum \"{}\"", tag, *summing));
  if (mine.size() > max_payload_bytes / ranks)
    throw failure(exit_code::run,
                  fmt::format("exchange \"{}\": {} bytes are too many for the control channel ({} ranks "
                              "can exchange {} bytes each)",
                              tag, mine.size(), ranks, max_payload_bytes / ranks));
  nlohmann::json header{{"t", "gather"}, {"tag", tag}};
  if (!members.empty()) header["members"] = std::vector<std::uint32_t>(members.begin(), members.end());
  begin(header, std::make_shared<const blob>(mine));
}

std::vector<blob> control_client::state::finish_gathering() {
  const message all = finish();
  std::vector<blob> out;
  auto at = all.payload.begin();
  for (const auto& size : all.header.at("sizes")) {
    const auto end = at + size.get<std::ptrdiff_t>();
    out.emplace_back(at, end);
    at = end;
  }
  return out;
}

void control_client::state::end(std::uint32_t dead_rank, const std::string& why) {
  {
    const std::lock_guard lock(mutex);
    if (ended) return;
    ended = why;
    dead = dead_rank;
    aborted.store(true, std::memory_order_release);
  }
  changed.notify_all();
  call_back();
}

void control_client::state::call_back() {
  const std::lock_guard lock(callback_mutex);
  if (!callback || called) return;
  called = true;
  callback(dead);
}

// Sends {"t": "state", "lines": [...], "stacks": [{"thread": "main", "frames": [...]}, ...]} and the members that the
// description adds.
void control_client::state::describe() {
  nlohmann::json answer{{"lines", nlohmann::json::array()}};
  try {
    const std::lock_guard lock(describe_mutex);
    if (description) answer.update(description());
  } catch (const std::exception& e) {
    answer["lines"].push_back(e.what());
  }
  answer["t"] = "state";
  answer["stacks"] = nlohmann::json::array();
  const auto loop = answer.value("loop", pid_t{0});
  if (loop && loop != main_thread) answer["stacks"].push_back({{"thread", "exchange"}, {"frames", stack_of(loop)}});
  answer["stacks"].push_back({{"thread", "main"}, {"frames", stack_of(main_thread)}});
  send_now(answer);
}

control_client::control_client(const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret,
                               status_page page)
    : state_(std::make_unique<state>(std::move(page))) {
  auto& s = *state_;
  s.rank = rank;
  s.main_thread = static_cast<pid_t>(::syscall(SYS_gettid));
  prepare_stacks();
  s.plugin_key = hmac_sha256(secret, {bytes_of("regatta 1: key for plugins")});

  const auto where = fmt::format("rank {}: the coordinator at {} port {}", rank, host, port);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) throw failure(exit_code::usage, fmt::format("{}: {} is no IP address", where, host));
  bool done = false;
  std::exception_ptr problem;
  asio::co_spawn(s.io, s.join(address, port, std::move(secret)), [&](const std::exception_ptr& e) {
    done = true;
    problem = e;
  });
  s.io.run_for(join_limit);
  try {
    if (problem) std::rethrow_exception(problem);
  } catch (const std::exception& e) {
    throw failure(exit_code::run, fmt::format("{}: {}", where, e.what()));
  }
  if (!done)
    throw failure(exit_code::run,
                  fmt::format("{}: expected it to accept this rank within {} s, got no answer; has the run ended?",
                              where, join_limit.count()));
  s.io.restart();
  s.start();
}

control_client::~control_client() {
  state_->stop();
}

std::uint32_t control_client::rank() const noexcept {
  return state_->rank;
}
std::uint32_t control_client::ranks() const noexcept {
  return state_->ranks;
}
const nlohmann::json& control_client::job() const {
  return state_->job;
}

std::vector<blob> control_client::exchange(std::string_view tag, const blob& mine,
                                           std::span<const std::uint32_t> members) {
  state_->begin_gathering(tag, mine, members);
  return state_->finish_gathering();
}

void control_client::barrier(std::string_view name) {
  exchange(fmt::format("barrier {}", name), {});
}

std::vector<double> control_client::sum(std::string_view tag, const std::vector<double>& mine) {
  begin_sum(tag, mine);
  return end_sum();
}

void control_client::begin_sum(std::string_view tag, const std::vector<double>& mine) {
  blob bytes(mine.size() * sizeof(double));
  if (!mine.empty()) std::memcpy(bytes.data(), mine.data(), bytes.size());
  state_->begin_gathering(fmt::format("sum {}", tag), bytes, {});
  state_->summing = tag;
  state_->summing_values = mine.size();
}

std::vector<double> control_client::end_sum() {
  const std::string tag = std::exchange(state_->summing, std::nullopt).value_or("");
  const auto all = state_->finish_gathering();
  const std::size_t count = state_->summing_values;
  std::vector<double> out(count, 0.0), part(count);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].size() != count * sizeof(double))
      throw failure(exit_code::run, fmt::format("sum \"{}\": rank {} gave {} values, rank {} gave {}: a plugin "
                                                "counts differently on them",
                                                tag, rank(), count, r, all[r].size() / sizeof(double)));
    if (count) std::memcpy(part.data(), all[r].data(), all[r].size());
    for (std::size_t i = 0; i < count; ++i) out[i] += part[i];
  }
  return out;
}

void control_client::progress(std::uint64_t step, std::uint64_t samples) noexcept {
  state_->page.progress(step, samples);
}

void control_client::operation(const char* what, pace p) noexcept {
  state_->page.operation(what, p);
}

status_page& control_client::status() noexcept {
  return state_->page;
}

void control_client::result(const nlohmann::json& j) {
  // CBOR, unlike JSON, keeps infinities and NaN.
  state_->begin({{"t", "result"}}, std::make_shared<const blob>(nlohmann::json::to_cbor(j)));
  state_->finish();
}

void control_client::failed(const std::string& why, int code, blame b) noexcept {
  try {
    nlohmann::json header{{"t", "failed"}, {"why", cut(why)}, {"code", code}, {"peer", b == blame::peer}};
    const auto sent = std::make_shared<std::promise<void>>();
    asio::post(state_->io, [s = state_.get(), header = std::move(header), sent] {
      s->wire->send(header, {}, [sent] { sent->set_value(); });
    });
    if (std::this_thread::get_id() != state_->thread.get_id()) sent->get_future().wait_for(last_words);
  } catch (...) {
    // Out of memory: the coordinator then sees that this process ends.
  }
}

void control_client::log(int level, const std::string& text) noexcept {
  try {
    state_->send({{"t", "log"}, {"level", level}, {"text", cut(text)}});
  } catch (...) {
    // Out of memory: a lost line of log is no reason to end.
  }
}

void control_client::on_death(std::function<void(std::uint32_t)> f) {
  {
    const std::lock_guard lock(state_->callback_mutex);
    state_->callback = std::move(f);
  }
  if (aborted()) asio::post(state_->io, [s = state_.get()] { s->call_back(); });
}

void control_client::on_describe(std::function<nlohmann::json()> f) {
  const std::lock_guard lock(state_->describe_mutex);
  state_->description = std::move(f);
}

bool control_client::aborted() const noexcept {
  return state_->aborted.load(std::memory_order_acquire);
}

void control_client::mac(const void* data, std::size_t bytes, std::uint8_t out[32]) const {
  const digest d = hmac_sha256(state_->plugin_key, {bytes_view(static_cast<const std::uint8_t*>(data), bytes)});
  std::memcpy(out, d.data(), d.size());
}

} // namespace regatta
