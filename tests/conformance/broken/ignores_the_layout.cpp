// SPDX-License-Identifier: Apache-2.0
//
// Mistake: PowerSGD reads tensors as matrices, but does not ask for row-major ones (RG_PLAN_ROW_MAJOR). Caught by test
// `shapes`.
#include <regatta/algorithms.hpp>

#define RG_PLAN_ROW_MAJOR 0U // in the plan of the example
#include "../../../examples/custom_strategy/powersgd.cpp"
