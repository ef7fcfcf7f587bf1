// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program.hpp"

namespace onednn {

// Translates the graph's nodes into ops of `p`, and sets the layouts of their weights. Nodes are fused where that saves
// a pass over memory. The ops can run only after op::prepare(). Throws RG_E_CONFIG if the graph is inconsistent, and
// RG_E_UNSUPPORTED for an op that it does not know.
void compile(const rg_graph& graph, program& p);

} // namespace onednn
