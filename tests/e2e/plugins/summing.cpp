// SPDX-License-Identifier: Apache-2.0
//
// A model that sums numbers over the workers within its step, of which worker 1 goes wrong as the parameter `wrong`
// says, a transport that orders the messages of all lanes, and an executor of few ops.
#include <regatta/executor.hpp>
#include <regatta/step_collectives.hpp>

#include "../../conformance/broken/unix.hpp"

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../examples/custom_model/linear_regression.cpp"
#pragma pop_macro("RG_PLUGIN")

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

namespace {

// The rank of this process, by its arguments: a model is not told. -1 in the coordinator and its children.
int rank_of_process() {
  std::ifstream in("/proc/self/cmdline");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string option("--rank\0", 7);
  const auto at = text.find(option);
  return at == std::string::npos ? -1 : std::atoi(text.c_str() + at + option.size());
}

struct summing : linear_regression {
  struct parameters : linear_regression::parameters {
    std::string wrong = "nothing";
  };
  static constexpr auto fields = rg::fields(rg::field("wrong", &parameters::wrong, "what worker 1 does in step 1")
                                                .one_of("nothing", "dies", "hangs", "fewer", "more"));

  summing(const rg_host* host, const parameters& p, const rg_model_setup& setup)
      : linear_regression(host, {p.features}, setup), collectives_(host), wrong_(p.wrong), rank_(rank_of_process()) {
    collectives_.reserve(3);
  }

  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    const bool goes_wrong = rank_ == 1 && batch.step == 1;
    if (goes_wrong && wrong_ == "dies") std::raise(SIGKILL);
    while (goes_wrong && wrong_ == "hangs") ::pause();
    // In ascending order 1e16 + 1 is 1e16, so that the sum of the first numbers is 0; in other orders it is 1.
    const double first = rank_ == 0 ? 1e16 : rank_ == 1 ? 1 : -1e16;
    std::array<double, 4> n = {first, static_cast<double>(batch.step), static_cast<double>(rank_), 0};
    const std::size_t count = !goes_wrong ? 3 : wrong_ == "fewer" ? 2 : wrong_ == "more" ? 4 : 3;
    collectives_.all_reduce("numbers of a test", {n.data(), count});
    const double workers = collectives_.workers();
    if (workers == 3 &&
        (n[0] != 0 || n[1] != workers * static_cast<double>(batch.step) || n[2] != workers * (workers - 1) / 2))
      throw rg::error(RG_E_PLUGIN, "wrong sums");
    return linear_regression::step(batch, hooks);
  }

private:
  rg::step_collectives collectives_;
  std::string wrong_;
  int rank_;
};

struct ordered : unix_transport {
  struct parameters {};
  ordered(const rg_host* host, const parameters&) : unix_transport(host, {}) {}
  rg_transport_caps caps() const {
    rg_transport_caps c = unix_transport::caps();
    c.p2p = RG_P2P_ORDERED;
    return c;
  }
};

struct runs_few_ops {
  struct parameters {};
  using model = linear_regression; // never made
  static constexpr std::uint32_t memory = RG_MEMORY_HOST;
  static std::unique_ptr<model> compile(const rg_host*, const parameters&, const rg_graph& graph,
                                        const rg_model_setup&) {
    for (std::uint32_t k = 0; k < graph.node_count; ++k) {
      const rg_node n = rg::copy_versioned(rg::at_stride(graph.nodes, k));
      if (const std::string op = n.op; op != "input" && op != "conv2d")
        throw rg::error(RG_E_UNSUPPORTED, std::string("layer ") + n.name + ": no op " + op);
    }
    throw rg::error(RG_E_UNSUPPORTED, "it has no losses");
  }
};

} // namespace

RG_PLUGIN("summing", "1.0", rg::model<summing>("summing", "sums numbers over the workers"),
          rg::transport<ordered>("ordered", "orders the messages of all lanes"),
          rg::executor<runs_few_ops>("runs_few_ops", "lacks most ops"))
