// SPDX-License-Identifier: Apache-2.0
//
// The model of simulations with bytes: a formula for the gradients, and references that train with it without a
// strategy.
#pragma once

#include "simulation.hpp"

#include <cstdint>
#include <vector>

namespace regatta {

// Reference: the same training on one worker, with gradients summed in the order of the workers, in double. Of the
// optimizer it applies lr, momentum and clip_norm only. Returns the final weights: the arena, padding included, then
// all rows of the table.
std::vector<double> train_serially(const simulation_setup& setup);
// Returns the rows that worker w touches in a step, ascending; may be none. Requires a table.
std::vector<std::uint64_t> rows_touched(const simulation_setup& setup, std::uint32_t w, std::uint64_t step);

// Reference: every worker trains by itself, with a gradient divided by its own batch; weights are averaged over workers
// every k steps and at the end, momentum is not. Applies lr and momentum only. The gradients are those of
// gradient_of(): `pull`, `constant`, `cancelling`, `late_tensor` and `flat_tensor` of the setup are ignored. Returns
// the weights as train_serially() does.
std::vector<double> train_locally(const simulation_setup& setup, std::uint64_t k);

// The simulated model. `element` is an index into the arena, or into the table with its rows one after the other.
float initial_weight(std::uint64_t element);
// Returns the gradient of worker `w` at `weight`, divided by the `n` workers so that the sum over workers is the mean.
// Knows no setup: the gradient is that without `pull`, `constant`, `cancelling`, `late_tensor` and `flat_tensor`.
float gradient_of(std::uint32_t w, std::uint32_t n, std::uint64_t step, std::uint64_t element, float weight);
// Returns worker `w`'s gradient with simulation_setup::constant, divided by the number of workers. Its sum over the
// workers is an element's mean gradient: from 1 to 1.75 for the first of each 16 elements, 0.0025 to 0.0035 or the
// negative for the others. Quantising to 127 levels of the largest value rounds the small ones to 0. Those of the flat
// tensor are the products of a factor by row (1 of the first, else 0.25) and one by column (1 of the first, then 0.01
// and -0.014 in turn). The steps only matter for the late tensor.
double constant_gradient(const simulation_setup& setup, std::uint32_t w, std::uint64_t step, std::uint64_t element);
// Returns worker `w`'s gradient of an element of the arena with the setup's model.
float gradient_at(const simulation_setup& setup, std::uint32_t w, std::uint64_t step, std::uint64_t element,
                  float weight);
// The gradient of simulation_setup::late_tensor is 0 in so many first steps.
constexpr std::uint64_t late_steps = 2;

// Returns for each element of the arena whether it is padding behind a tensor: its gradient is 0.
std::vector<char> padding_of(const simulation_setup& setup);

// Returns the number of elements of the arena, padding included: each tensor takes a multiple of 16.
std::uint64_t arena_elements(const simulation_setup& setup);

} // namespace regatta
