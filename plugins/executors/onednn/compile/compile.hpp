// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/program.hpp"

namespace onednn {

// Translates the graph's nodes into values, weights and ops of `p`, and sets the layouts of the weights. Requires a `p`
// of which only `dev` and `batch` are set. Nodes are fused where that saves a pass over memory. The ops can run only
// after op::prepare() and plan_memory(). `graph` is not read after the call. Throws RG_E_CONFIG if the graph is
// inconsistent, and RG_E_UNSUPPORTED for an op that it does not know.
void compile(const rg_graph& graph, program& p);

} // namespace onednn
