// SPDX-License-Identifier: Apache-2.0
//
// Executors that run the reference: a sound one, and some with one defect each.
#include "executors/blames_the_graph.hpp"
#include "executors/dilated.hpp"
#include "executors/five_percent_in_avg_pool.hpp"
#include "executors/has_no_convolution.hpp"
#include "executors/has_nothing.hpp"
#include "executors/ignores_attributes.hpp"
#include "executors/initialises_by_its_own_rule.hpp"

RG_PLUGIN("broken_executors", "1.0", rg::executor<sound>("runs_the_reference", "nothing wrong: the reference in fp64"),
          rg::executor<five_percent_in_avg_pool>("five_percent_in_avg_pool", "broken: one gradient"),
          rg::executor<initialises_by_its_own_rule>("initialises_by_its_own_rule", "broken: initial values"),
          rg::executor<ignores_attributes>("ignores_attributes", "broken: unknown attributes"),
          rg::executor<blames_the_graph>("blames_the_graph", "broken: the wrong status"),
          rg::executor<has_no_convolution>("has_no_convolution", "nothing wrong: lacks an op"),
          rg::executor<has_nothing>("has_nothing", "nothing wrong: lacks all ops"),
          rg::graph_model<dilated>("dilated", "a convolution with an attribute that no executor knows"))
