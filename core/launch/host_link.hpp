// SPDX-License-Identifier: Apache-2.0
//
// A host on which a launcher has started processes, as a run sees it. join/agent_link.hpp implements it by a connection
// to the host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "control/asio.hpp"
#include "control/blob.hpp"
#include "launch/cpus.hpp"
#include "launch/launch.hpp"

namespace regatta {

class host_events; // launch/rank_host.hpp
class rank_host;

// The ranks of a run that one of the launcher's hosts starts.
struct remote_plan {
  std::map<std::uint32_t, rank_plan> ranks; // by number in the run
  std::uint32_t size = 0;                   // ranks of the run, on all hosts
  rank_limits limits;
  blob nonce;           // of the run, random
  bool lasting = false; // as launch_plan::lasting
};

class host_link {
public:
  using spawn_function = std::function<void(asio::awaitable<void>)>;

  virtual ~host_link() = default;
  // Returns the ranks of a run on this host. `spawn` runs a coroutine on `io`. This object and all arguments but `plan`
  // must outlive the result. One run at a time. [main]
  virtual std::unique_ptr<rank_host> ranks_of(asio::io_context& io, remote_plan plan, host_events& events,
                                              spawn_function spawn) = 0;
  // Returns the name of the host, and the course of its clock against that of this process in the last run, as a record
  // of a run keeps them (clocks/clock_course.hpp: timed_host).
  virtual nlohmann::json clock() const = 0;

  std::string name;                 // differs from that of all other hosts
  std::vector<std::uint32_t> slots; // numbers of the launcher's processes there, ascending
  cpu_supply cpus;                  // that ranks may use there
  std::string lost;                 // why the host can take part in no further run; empty: it can
  std::uint64_t free_bytes = 0;     // available_bytes() (launch/memory.hpp) there, as the launch began
};

} // namespace regatta
