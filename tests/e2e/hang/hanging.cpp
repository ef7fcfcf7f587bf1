// SPDX-License-Identifier: Apache-2.0
//
// A model, a strategy and a transport of which one rank does not go on, each where its parameter `at` says.
#include <regatta/model.hpp>
#include <regatta/strategy.hpp>

#include "../../conformance/broken/unix.hpp"

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../examples/custom_model/linear_regression.cpp"
#pragma pop_macro("RG_PLUGIN")

#include <atomic>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include <unistd.h>

namespace {

// This process is rank 1: by its arguments, for a model is not told. False in the coordinator.
bool is_rank_1() {
  std::ifstream in("/proc/self/cmdline");
  std::stringstream text;
  text << in.rdbuf();
  return text.str().find(std::string("--rank\0"
                                     "1\0",
                                     9)) != std::string::npos;
}

[[noreturn, gnu::noinline]] void sleep_for_ever() {
  for (;;) ::pause();
}

[[noreturn, gnu::noinline]] void loop_for_ever() {
  static std::atomic<int> turns{0};
  for (;;) turns.fetch_add(1, std::memory_order_relaxed);
}

std::string at_exit; // what this process does then

struct last_words {
  ~last_words() {
    if (at_exit == "exit_hang") sleep_for_ever();
    if (at_exit == "exit_crash") std::raise(SIGSEGV);
    if (at_exit == "exit_code") ::_exit(3);
  }
} last;

class hanging_model : public linear_regression {
public:
  struct parameters {
    std::string at = "never";
    bool loops = false;
    std::int64_t features = 32;
  };
  static constexpr auto fields = rg::fields(rg::field("at", &parameters::at, "where rank 1 does not go on")
                                                .one_of("never", "init", "bind", "step", "need", "destructor", "slow",
                                                        "exit_hang", "exit_crash", "exit_code"),
                                            rg::field("loops", &parameters::loops, "it loops instead of sleeping"),
                                            rg::field("features", &parameters::features, "numbers that a sample has"));

  hanging_model(const rg_host* host, const parameters& p, const rg_model_setup& setup)
      : linear_regression(host, {p.features}, setup), at_(is_rank_1() ? p.at : "never"), loops_(p.loops) {}
  ~hanging_model() { hang("destructor"); }

  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
    hang("init");
    linear_regression::init(tensor, rows, seed, out);
  }
  void bind(const rg_model_memory& memory) {
    hang("bind");
    at_exit = at_;
    linear_regression::bind(memory);
  }
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    if (batch.step == 1) hang("step");
    if (at_ == "slow") std::this_thread::sleep_for(std::chrono::seconds(3));
    // A step that waits for itself: its gradients would only be ready afterwards.
    if (batch.step == 1 && at_ == "need") {
      hooks.need(1);
      hooks.backward();
      hooks.ready(0);
      sleep_for_ever();
    }
    return linear_regression::step(batch, hooks);
  }

private:
  void hang(const char* here) const {
    if (at_ != here) return;
    if (loops_)
      loop_for_ever();
    else
      sleep_for_ever();
  }
  std::string at_;
  bool loops_;
};

// Its workers train alone; worker 1 then awaits in step 1 a message that nobody sends, or does not return: from
// end_step, or from the call that ends an operation, which the exchange's poll makes, or from a function of its own.
struct hanging_strategy {
  struct parameters {
    std::string at = "never";
  };
  static constexpr auto fields = rg::fields(rg::field("at", &parameters::at, "what worker 1 does in step 1")
                                                .one_of("never", "receive", "return", "poll", "function"));
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.lanes = 2;
    return plan;
  }
  hanging_strategy(rg::comm& c, const parameters& p) : comm(c), at(p.at) { comm.own(comm.whole(), rg::role::worker); }
  rg::task<> end_step(std::uint64_t step) {
    co_await comm.apply(0, comm.gradients(comm.whole()), step, rg::role::worker);
    if (at == "never" || step != 1 || comm.rank() != 1) co_return;
    if (at == "poll") co_await comm.after(1'000'000);
    if (at == "return" || at == "poll") sleep_for_ever();
    if (at == "function")
      co_await comm.run([](void* const*) { sleep_for_ever(); }, {1, 0}, comm.gradients(comm.whole()));
    co_await comm.recv(0, comm.gradients(comm.whole()), 1);
  }
  rg::comm& comm;
  std::string at;
};

// From the second message on it has no room for a send or a receive; or rank 1's poll reports no end of an operation
// any more, or does not return; or its close gives up.
struct hanging_transport : unix_transport {
  struct parameters {
    std::string at = "never";
  };
  static constexpr auto fields = rg::fields(rg::field("at", &parameters::at, "the function that does not go on")
                                                .one_of("never", "send", "receive", "report", "poll", "close"));
  hanging_transport(const rg_host* host, const parameters& p) : unix_transport(host, {}), at_(p.at) {}

  rg_blob listen(const rg_world& world) {
    rank_ = world.rank;
    return unix_transport::listen(world);
  }
  rg_status send(const rg_transfer& t) {
    return ++sends_ > 1 && at_ == "send" ? rg_status{RG_AGAIN} : unix_transport::send(t);
  }
  rg_status recv(const rg_transfer& t) {
    return ++receives_ > 1 && at_ == "receive" ? rg_status{RG_AGAIN} : unix_transport::recv(t);
  }
  void close(std::uint64_t timeout_ns) {
    if (rank_ == 1 && at_ == "close") throw rg::error(RG_TIMEOUT, "rank 0 has not taken all that was sent");
    unix_transport::close(timeout_ns);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    const bool hangs = rank_ == 1 && sends_ > 1;
    if (hangs && at_ == "poll") sleep_for_ever();
    const std::uint32_t ended = unix_transport::poll(timeout_ns, spin_ns, out);
    return hangs && at_ == "report" ? 0 : ended;
  }

  std::string at_;
  std::uint32_t rank_ = 0;
  int sends_ = 0, receives_ = 0;
};

} // namespace

RG_PLUGIN("hanging", "1.0", rg::model<hanging_model>("hanging_model", "does not go on"),
          rg::strategy<hanging_strategy>("hanging_strategy", "does not go on"),
          rg::transport<hanging_transport>("hanging_transport", "does not go on"))
