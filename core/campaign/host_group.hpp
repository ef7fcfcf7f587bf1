// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/failure.hpp"
#include "cluster/layout.hpp"
#include "experiment/experiment.hpp"
#include "registry/registry.hpp"

namespace regatta {

class host_link; // launch/host_link.hpp

// Which host of a launch runs which rank.
struct placement {
  // By rank: the index of its host in host_group::hosts(), and the launcher's number of the process that is or starts
  // it.
  std::vector<std::uint32_t> host, slot;
};

struct placed_layout {
  cluster_layout layout;
  placement places;    // empty without a launcher
  std::string lacking; // why the launcher's processes do not suffice for the ranks (`places` is empty); empty: they do
};

// The hosts on which a launcher has started processes (join/launched_hosts.hpp). Functions that ask the hosts throw
// failure (run) if one is gone. [main]
class host_group {
public:
  virtual ~host_group() = default;
  virtual const std::string& launcher() const noexcept = 0;
  virtual const std::vector<host_link*>& hosts() const noexcept = 0; // valid as long as this object

  // Places the ranks of `layout`, by cluster.place and cluster.server_hosts. With several hosts, the result's layout
  // has these instead of those of `layout`. With `own_processes` rank r is process r of the launcher instead. Throws
  // failure (usage) if there are several hosts and cluster.hosts is not 1.
  virtual placed_layout place(const cluster_layout& layout, const cluster_config& c, bool own_processes) const = 0;
  // Makes every launched process load the plugin `file` and call the join() of its component `transport`
  // (regatta.launcher/1); does nothing if it has done so before. Throws failure (run) if a process cannot.
  virtual void join(const std::string& file, const std::string& transport) = 0;
  // Returns for each host the addresses of `interface` (cluster.interface) there, valid as long as this object; "auto":
  // the one by which other hosts reach it. Throws failure (usage), which names the host, if it has no such interface,
  // or if a host cannot connect to an address of another one; another call for this interface then throws the same.
  virtual const std::vector<std::vector<std::string>>& addresses(const std::string& interface) = 0;
  // Throws failure (usage), which names files and hosts, if a host lacks one of `paths`, or if a file of `read`, a
  // subset of `paths`, differs from that of the first host; the latter is only a warning with
  // --allow-different-binaries. Does not ask again for paths that were found.
  virtual void require_files(const std::vector<std::string>& paths, const std::vector<std::string>& read) = 0;

  // Throws failure (usage), which names the instruction set of each host, if they differ under this value of train.isa.
  virtual void require_equal_isa(const std::string& choice) const = 0;

  std::uint32_t size() const noexcept; // launched processes: each can be or start one rank at a time
};

// Returns the layout of a case with `servers` servers. Without a launcher (`hosts` is null), and with one on a single
// host, cluster.hosts says how many hosts strategy and transport are told of. Throws as host_group::place() does.
placed_layout place_case(const registry& plugins, const case_config& c, std::uint32_t servers, const host_group* hosts);

// Returns, but does not throw, the error (usage) for a run without launcher whose transport needs one. The error tells
// the user to start "COMMAND RANKS regatta VERB": `command` is the launcher's up to the number of processes, such as
// "mpirun -n"; `ranks` the number of processes that the run needs; `verb` the arguments of regatta, such as
// "run FILE.toml".
failure launcher_missing(const std::string& transport, const std::string& command, std::uint32_t ranks,
                         const std::string& verb);

} // namespace regatta
