// SPDX-License-Identifier: Apache-2.0
#include "simulate/measured_network.hpp"

#include "base/failure.hpp"
#include "report/stored_document.hpp"
#include "simulate/fit.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {

using nlohmann::json;

measured_sends read_measured_sends(const std::string& given, const std::vector<std::string>& transports) {
  const stored_document stored = read_stored(given, {"regatta.comm/1"});
  const auto refuse = [&](const std::string& why) {
    return failure(exit_code::usage, fmt::format("{}: {}", stored.file.string(), why));
  };
  // Between these sizes a link may send faster than its rate: what a limit lets pass after a pause, buffers of a card.
  constexpr double most_of_small = 1 << 10, least_of_large = 1 << 20;
  std::vector<std::pair<double, double>> times, work; // ns by bytes; the latter of processors, and of all sizes
  std::size_t large = 0;
  std::string transport;
  try {
    if (const std::size_t hosts = stored.document.at("context").at("hosts").size(); hosts != 2)
      throw refuse(fmt::format("expected messages between two hosts, got {} {}: start a process on each of two "
                               "(docs/cluster.md), with --op send",
                               hosts, hosts == 1 ? "host" : "hosts"));
    for (const json& row : stored.document.at("results")) {
      if (row.at("op") != "send" || row.at("ranks") != 2) continue;
      if (!transport.empty() && row.at("transport") != transport)
        throw refuse("expected messages of one transport, got several");
      transport = row.at("transport");
      const double bytes = row.at("bytes");
      work.emplace_back(bytes, 1e9 * row.at("cpu_seconds").get<double>());
      if (bytes > most_of_small && bytes < least_of_large) continue;
      large += bytes >= least_of_large;
      times.emplace_back(bytes, 1e9 * row.at("seconds").at("median").get<double>());
    }
  } catch (const json::exception& e) {
    throw refuse(e.what());
  }
  if (!large || large == times.size())
    throw refuse(
        fmt::format("expected sends of at most 1 KiB and of 1 MiB or more between two ranks, got {} and {}: add "
                    "--op send --ranks 2",
                    times.size() - large, large));
  if (std::ranges::find(transports, transport) == transports.end())
    throw refuse(fmt::format("its messages go over {}, which is not measured on this host: add --transport {}",
                             transport, transport));
  const line_fit line = fit_line(times);
  require_good_fit("messages between hosts", line.residual);
  return {transport, line.constant, line.slope, line.residual, fit_work(work)};
}

machine_file::network network_of(const measured_sends& sends, const message_costs& costs) {
  machine_file::network n;
  // A link that is slower than the processors at its ends hides their work on all bytes but the first and the last.
  n.bytes_per_ns = 1 / std::max(sends.ns_per_byte, 1e-3);
  n.latency_ns = std::max(0.0, sends.ns - costs.latency_ns - 2 * costs.overhead_ns);
  n.residual = sends.residual;
  return n;
}

} // namespace regatta
