// SPDX-License-Identifier: Apache-2.0
//
// What the engine hands every plugin instance: where it says things and why it failed, and what it may ask for.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <regatta/plugin.hpp>

namespace regatta {

// Owns an rg_host. It must outlive the instance that it was handed to, and stays where it is: plugins keep its address.
class plugin_host {
public:
  // Both may be empty, and are called in any thread; the table that `extension` returns outlives this host.
  using log_function = std::function<void(int level, const std::string& text)>;
  using extension_function = std::function<const void*(std::string_view id)>;

  explicit plugin_host(log_function log = {}, extension_function extension = {});
  plugin_host(const plugin_host&) = delete;
  plugin_host& operator=(const plugin_host&) = delete;

  const rg_host* c() const noexcept { return &host_; }
  // The text of the last fail(), one line, and forgets it; empty: none since the last call. [any]
  std::string take_error();

private:
  rg_host host_;
  log_function log_;
  extension_function extension_;
  std::mutex mutex_; // of error_
  std::string error_;
};

// Throws regatta::failure with "<what>: <the plugin's text>" unless `status` says that all is well (RG_OK, RG_DONE,
// RG_AGAIN, RG_TIMEOUT). `what` names the instance: "transport tcp". Exit codes: RG_E_CONFIG usage, RG_E_UNSUPPORTED
// skipped, RG_E_PLUGIN plugin, else run; RG_E_PEER and RG_E_CANCELLED throw peer_failure. [any]
void check(rg_status status, plugin_host& host, std::string_view what);

// Calls into a plugin: what it throws against the rules becomes RG_E_PLUGIN, then as check(). `f` returns an rg_status.
template <class F> void call(plugin_host& host, std::string_view what, F&& f) {
  check(rg::fence(host.c(), std::forward<F>(f)), host, what);
}

// "it cannot run as configured": for plugins that fail without a text.
std::string_view meaning_of(rg_status status) noexcept;

} // namespace regatta
