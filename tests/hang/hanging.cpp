// SPDX-License-Identifier: Apache-2.0
//
// A model, a strategy and a transport of which one rank does not go on, each where its parameter `at` says.
#include <regatta/model.hpp>
#include <regatta/strategy.hpp>

#include "../conformance/broken/unix.hpp"

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../examples/custom_model/linear_regression.cpp"
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

// Its workers train alone; worker 1 then awaits in step 1 what nobody sends, or does not return.
struct hanging_strategy {
  struct parameters {
    std::string at = "never";
  };
  static constexpr auto fields =
      rg::fields(rg::field("at", &parameters::at, "what worker 1 does in step 1").one_of("never", "receive", "return"));
  static rg_plan plan(const parameters&, const rg_cluster&) {
    rg_plan plan{};
    plan.lanes = 2;
    return plan;
  }
  hanging_strategy(rg::comm& c, const parameters& p) : comm(c), at(p.at) { comm.own_as_worker(comm.whole()); }
  rg::task<> end_step(std::uint64_t step) {
    co_await comm.apply_as_worker(0, comm.gradients(comm.whole()), step);
    if (at == "never" || step != 1 || comm.rank() != 1) co_return;
    if (at == "return") sleep_for_ever();
    co_await comm.recv(0, comm.gradients(comm.whole()), 1);
  }
  rg::comm& comm;
  std::string at;
};

// From the second message on it has no room for a receive.
struct refusing_transport : unix_transport {
  using unix_transport::unix_transport;
  rg_status recv(const rg_transfer& t) { return ++asked_ > 1 ? rg_status{RG_AGAIN} : unix_transport::recv(t); }
  int asked_ = 0;
};

} // namespace

RG_PLUGIN("hanging", "1.0", rg::model<hanging_model>("hanging_model", "does not go on"),
          rg::strategy<hanging_strategy>("hanging_strategy", "does not go on"),
          rg::transport<refusing_transport>("refusing", "refuses every receive but the first"))
