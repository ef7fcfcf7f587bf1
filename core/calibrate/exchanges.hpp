// SPDX-License-Identifier: Apache-2.0
//
// The costs of messages in training: steps of two workers with messages, measured, and fitted by their simulation.
#pragma once

#include "calibrate/measured_run.hpp"
#include "simulate/machine_file.hpp"

namespace regatta {

// [main] Measures steps of two workers with messages beside steps without them, each worker on its own core. Fits
// o, O, its share of senders, and computing_loss of each transport in `m` to them, and measures the update on received
// gradients. Does nothing on fewer cores than the two have threads, on a device, or without dense tensors. Throws
// failure (run) if a fit is bad. `alone` is the case of one worker.
void add_exchanges(machine_file& m, const measuring& by, const case_config& alone);

} // namespace regatta
