// SPDX-License-Identifier: Apache-2.0
//
// Graphs of layers: a correct one that is hard to differentiate numerically, and some that no executor can compile.
#include "networks/conv_bn_relu.hpp"
#include "networks/no_loss.hpp"
#include "networks/unknown_op.hpp"

RG_PLUGIN("broken_networks", "1.0",
          rg::graph_model<conv_bn_relu>("conv_bn_relu", "nothing wrong: a network with many corners"),
          rg::graph_model<unknown_op>("unknown_op", "broken: an op that no executor has"),
          rg::graph_model<no_loss>("no_loss", "broken: does not end in a loss"))
