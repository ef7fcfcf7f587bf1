// SPDX-License-Identifier: Apache-2.0
//
// One rank's instance of a transport, from its creation to its destruction.
//
// Order of calls: create(), connect(), then counters() and everything that uses instance(), then close(). After a
// failure, destroy this object without close().
//
// Ownership: holds the instance, and everything that the instance may point to until it is destroyed: its host, its
// parameters, rg_authenticate, rg_world. It therefore cannot move.
// Threads: wake() is [any], also before create() and after destroy(), but no call of it may be in progress when
// destroy() begins; everything else is [main], except where noted.
// Errors: all functions throw failure with the transport's own text, which begins with "transport ID". Its exit code is
// by the status: RG_E_CONFIG usage, RG_E_UNSUPPORTED skipped, RG_E_PLUGIN plugin, others run; RG_E_PEER and
// RG_E_CANCELLED throw peer_failure.
#pragma once

#include "experiment/experiment.hpp"
#include "registry/registry.hpp"
#include "registry/transport_host.hpp"
#include "runtime/transport_instance.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <regatta/abi.h>
#include <regatta/ext/authenticate.h>
#include <regatta/ext/counters.h>
#include <regatta/ext/exchange.h>

namespace regatta {

// Numeric addresses by host.
using host_addresses = std::vector<std::vector<std::string>>;

class connected_transport {
public:
  using bytes = std::vector<std::uint8_t>;
  // [any] Writes the 32 bytes of the authentication code of `data`, which only ranks of this run can compute.
  using mac_function = std::function<void(const void* data, std::uint64_t size, std::uint8_t* out)>;
  // [main] Sends `mine` to all members, ascending ranks with this one among them (empty: all ranks), and returns what
  // they have sent, in that order. Blocks until all members have called it.
  using exchange_function =
      std::function<std::vector<bytes>(const bytes& mine, std::span<const std::uint32_t> members)>;

  // Loads the transport. `plugins` must outlive this object. The host's extensions "regatta.exchange/1" (by
  // `exchange`), "regatta.authenticate/1" (by `mac`) and "regatta.nest/1" come from this object; `extensions` resolves
  // all others, and may be empty. Throws failure: (usage) for invalid parameters, (plugin) if there is no such
  // transport or its file cannot be loaded.
  connected_transport(const registry& plugins, const component_choice& choice, const plugin_host::log_function& log,
                      mac_function mac, exchange_function exchange, plugin_host::extension_function extensions = {});
  ~connected_transport() { destroy(); }
  connected_transport(const connected_transport&) = delete;
  connected_transport& operator=(const connected_transport&) = delete;

  // Creates the instance and reads its capabilities. Throws failure, also (plugin) if they, or the table of an
  // extension, are invalid.
  void create();
  // Listens at the addresses of this rank's host, exchanges the ranks' blobs, and connects to `peers` (ascending,
  // without this rank). Collective. `addresses`: those of each host of cluster.host_of, at least one. The arrays of
  // `cluster` must outlive this object. Throws failure, also (run) if the transport takes longer than 20 s, and what
  // `exchange` throws.
  void connect(const rg_cluster& cluster, std::uint32_t lanes, std::vector<std::uint32_t> peers,
               host_addresses addresses);
  // Waits until everything that was sent has arrived. Requires that no operation is pending. Throws failure, also (run)
  // if that takes longer than 10 s.
  void close();
  // Destroys the instance now; afterwards only wake() may be called, and does nothing.
  void destroy() noexcept;

  const std::string& id() const { return component_.id; }
  const std::string& plugin_version() const { return component_.plugin_version; }
  const rg_transport_caps& caps() const { return caps_; }
  // Returns the instance for a strategy_host, after create(). Valid as long as this object.
  transport_instance instance();
  // Returns the instance's extension, or null. Requires create().
  const void* extension(const char* id) const;
  // [loop] Returns the counters since connect().
  rg_counters counters();
  // [loop] Returns the values of "regatta.counters/1" by name, added up where a name occurs twice; none without it.
  // Requires connect().
  std::map<std::string, double> own_counters();
  // [any] Makes a poll() of the instance return. Does nothing while there is no instance.
  void wake() noexcept;

private:
  const rg_transport& functions() const { return component_.transport; }
  void all_gather(std::span<const std::uint32_t> members, const rg_blob& mine, rg_blob* parts);

  const component& component_;
  std::string name_; // begins errors
  parameter_values values_;
  mac_function mac_;
  rg_authenticate authenticate_;
  exchange_function exchange_;
  rg_exchange exchange_table_;
  std::vector<bytes> exchanged_; // by the last call of exchange_table_
  bool has_listened_ = false;
  transport_host host_;
  rg_transport_caps caps_{};
  std::vector<std::uint32_t> peers_;
  host_addresses addresses_;
  std::vector<std::vector<const char*>> address_texts_; // of addresses_, for addresses_of_
  std::vector<rg_addresses> addresses_of_;              // by rank, for world_
  rg_world world_{};
  std::atomic<void*> self_{nullptr}; // atomic: other threads call wake()
};

} // namespace regatta
