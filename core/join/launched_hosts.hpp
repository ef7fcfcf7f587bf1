// SPDX-License-Identifier: Apache-2.0
//
// The campaign's side of a launch: all hosts on which the launcher has started processes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/descriptor.hpp"
#include "base/failure.hpp"
#include "campaign/host_group.hpp"
#include "control/blob.hpp"
#include "join/agent_link.hpp"
#include "join/environment.hpp"

namespace regatta {

// How the processes of a launch find the campaign.
struct launch_meeting {
  unique_fd port;  // listens for agents, TCP
  unique_fd local; // listens for processes of this host that ask for port and secret; join/packets.hpp
  blob secret;
  std::vector<std::string> codes = {}; // one for each host that joins by `regatta join`; join/codes.hpp
};

class launched_hosts : public host_group {
public:
  // Waits until all processes of the launch have joined, at most 60 s, or without a limit if the meeting has codes.
  // Throws failure (run) if some have not, and names them, or if a host leaves meanwhile; failure (usage) if the hosts
  // or the processes of one host run different programs, with a table of who has what, unless `allow_different`. [main]
  launched_hosts(launch_meeting meeting, const launcher_environment& self, bool allow_different);
  ~launched_hosts() override; // tells the agents that the launch is over; does not wait for them
  launched_hosts(const launched_hosts&) = delete;
  launched_hosts& operator=(const launched_hosts&) = delete;

  const std::string& launcher() const noexcept override { return launcher_; }
  const std::vector<host_link*>& hosts() const noexcept override { return hosts_; }
  placed_layout place(const cluster_layout& layout, const cluster_config& c, bool own_processes) const override;
  void join(const std::string& file, const std::string& transport) override;
  const std::vector<std::vector<std::string>>& addresses(const std::string& interface) override;
  void require_equal_isa(const std::string& choice) const override;
  void require_files(const std::vector<std::string>& paths, const std::vector<std::string>& read) override;

  // Describe hosts(), in the same order (machine/host.hpp), with "name": host_link::name, "address": by which other
  // hosts reach it, and "links" (network/interfaces.hpp) of the interfaces that addresses() was asked for.
  const std::vector<nlohmann::json>& descriptions() const noexcept { return descriptions_; }
  // The programs of the agents of hosts(): describe_this_program() (join/identity.hpp).
  const std::vector<nlohmann::json>& programs() const noexcept { return programs_; }
  // Returns for each host the SHA-256 of these files by path: "" for a folder or a file that is not among `read`, null
  // if it is missing. Throws failure (run) if a host is gone or does not answer within 60 s.
  std::vector<nlohmann::json> file_sums(const std::vector<std::string>& paths, const std::vector<std::string>& read);
  // Adds the shared libraries that these plugins load on each host, as "libraries.of_plugins", to descriptions(), and a
  // warning if they differ.
  void compare_libraries(const std::vector<std::string>& plugins);
  // Of the launch, and of require_files() and compare_libraries() so far.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

private:
  // Tells the agents that the launch is over.
  void dismiss() noexcept;
  // Sends a request to each host and returns their answers. Throws failure with the host's name: usage for an "error",
  // run if a host is lost.
  std::vector<nlohmann::json> ask_all(const std::vector<nlohmann::json>& requests);
  std::vector<std::string> names_of_hosts() const;
  // As addresses(), but asks the hosts each time.
  std::vector<std::vector<std::string>> find_addresses(const std::string& interface);
  void check_reachability(const std::vector<std::vector<std::string>>& addresses);

  std::string launcher_;
  bool allow_different_;
  std::vector<std::unique_ptr<agent_link>> links_;
  std::vector<host_link*> hosts_; // links_
  std::vector<nlohmann::json> descriptions_, programs_;
  std::vector<std::string> warnings_;
  std::vector<std::pair<std::string, std::string>> joined_; // file and transport, joined by all processes
  std::map<std::string, std::vector<std::vector<std::string>>> addresses_;
  std::map<std::string, failure> unusable_; // by interface: why addresses() failed
  std::set<std::string> checked_;           // paths of require_files()
};

} // namespace regatta
