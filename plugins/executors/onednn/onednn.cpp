// SPDX-License-Identifier: Apache-2.0
//
// The executor for CPUs. It runs oneDNN's kernels, and its own where oneDNN has no fast one.
#include "runtime/instruction_set.hpp"
#include "runtime/model.hpp"

#include <regatta/executor.hpp>

namespace {

struct executor {
  using model = onednn::model;
  static constexpr std::uint32_t memory = RG_MEMORY_HOST;

  static std::unique_ptr<model> compile(const rg_host* host, const rg::parameters_t<executor>&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    onednn::obey_cap();
    return std::make_unique<model>(host, graph, setup);
  }
};

} // namespace

RG_PLUGIN("onednn", "0.1.0", rg::executor<executor>("onednn", "networks on the CPU, by oneDNN"))
