// SPDX-License-Identifier: Apache-2.0
//
// The host that the engine passes to every plugin instance: for logging, reporting failures and finding extensions.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <regatta/plugin.hpp>

namespace regatta {

// Owns an rg_host. It must outlive the instance that received it, and it cannot move: plugins keep its address.
class plugin_host {
public:
  // Both may be empty, and may be called from any thread; what they throw is dropped. `level` is an RG_LOG_*, `text`
  // one line. `extension` returns null for an id that it does not have; a table that it returns must outlive this host.
  using log_function = std::function<void(int level, const std::string& text)>;
  using extension_function = std::function<const void*(std::string_view id)>;

  explicit plugin_host(log_function log = {}, extension_function extension = {});
  plugin_host(const plugin_host&) = delete;
  plugin_host& operator=(const plugin_host&) = delete;

  const rg_host* c() const noexcept { return &host_; }
  // Returns and clears the text of the plugin's last rg_host.fail(), one line; empty if there was none since the last
  // call of this function. [any]
  std::string take_error();

private:
  rg_host host_;
  log_function log_;
  extension_function extension_;
  std::mutex mutex_; // guards error_
  std::string error_;
};

// Throws failure with "<what>: <the plugin's text>" if `status` is an error, that is below 0; RG_OK, RG_DONE, RG_AGAIN
// and RG_TIMEOUT pass. `what` names the instance: "transport tcp". Exit codes: RG_E_CONFIG usage, RG_E_UNSUPPORTED
// skipped, RG_E_PLUGIN plugin, others run; RG_E_PEER and RG_E_CANCELLED throw peer_failure. [any]
void check(rg_status status, plugin_host& host, std::string_view what);

// As check(), but RG_TIMEOUT throws failure (run) too: for a call after whose deadline the engine cannot go on, such as
// a transport's connect() and close(). [any]
void check_in_time(rg_status status, plugin_host& host, std::string_view what);

// Calls `f`, which calls a plugin and returns an rg_status, then check(). An exception of the plugin, which the
// interface forbids, becomes a failure too, as for rg::fence().
template <class F> void call(plugin_host& host, std::string_view what, F&& f) {
  check(rg::fence(host.c(), std::forward<F>(f)), host, what);
}

} // namespace regatta
