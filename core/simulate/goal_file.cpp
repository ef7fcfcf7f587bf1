// SPDX-License-Identifier: Apache-2.0
#include "simulate/goal_file.hpp"

#include "base/failure.hpp"
#include "simulator/goal_recorder.hpp"

#include <fstream>

#include <fmt/format.h>

namespace regatta {

simulation_result simulate_to_goal(const registry& loading, simulation_setup setup, const std::string& file) {
  goal_recorder recorder;
  setup.recorder = &recorder;
  simulation_result result = simulate(loading, setup);
  if (recorder.incomplete())
    throw failure(exit_code::usage, "--export goal: expected messages between ranks, got native collectives, which "
                                    "GOAL cannot express: set strategy.algorithm or transport.plugin");
  const network_options& n = setup.network;
  std::string heading = fmt::format("{}, {} workers, {} servers, {} steps; times in ns\nends at {}", setup.strategy,
                                    setup.workers, setup.servers, setup.steps, result.virtual_ns);
  if (!n.links.empty())
    heading += fmt::format("\nbetween hosts: L {}, o {}, g {}, G {}, O {}", n.links[0].latency_ns, n.overhead_ns,
                           n.gap_ns, 1 / n.links[0].out_bytes_per_ns, n.overhead_ns_per_byte);
  if (n.large_factor != 1)
    heading += fmt::format("\nbytes of a message beyond {} take {} times O, which GOAL does not say", n.large_from,
                           n.large_factor);
  std::ofstream out(file);
  recorder.write(out, static_cast<std::uint32_t>(result.counted.size()), heading);
  out.close();
  if (!out) throw failure(exit_code::run, fmt::format("{}: cannot be written", file));
  return result;
}

} // namespace regatta
