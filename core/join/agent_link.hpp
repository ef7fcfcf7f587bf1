// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "clocks/host_clock.hpp"
#include "control/blob.hpp"
#include "launch/host_link.hpp"

namespace regatta {

// A host of the launch, and the connection to its agent (join/agent.hpp).
class agent_link : public host_link {
public:
  std::unique_ptr<rank_host> ranks_of(asio::io_context& io, remote_plan plan, host_events& events,
                                      spawn_function spawn) override;
  nlohmann::json clock() const override { return to_json(timed_host{name, exchanges.course()}); }

  unique_fd socket;     // authenticated; between runs nothing is under way. -1: the host is lost
  blob secret;          // of the launch, known to all its processes
  host_clock exchanges; // with this process, in the last run
};

} // namespace regatta
