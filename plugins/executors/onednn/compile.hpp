// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program.hpp"

namespace onednn {

// Makes ops of the graph's nodes, fused where that saves a pass over memory, with the layouts of their weights; nothing
// is prepared to run yet. Throws RG_E_CONFIG where the graph contradicts itself, RG_E_UNSUPPORTED for an op it does not
// know.
void compile(const rg_graph& graph, program& p);

} // namespace onednn
