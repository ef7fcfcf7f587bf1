// SPDX-License-Identifier: Apache-2.0
#include "registry/plugin_host.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <regatta/plugin.hpp>

#include <fmt/core.h>

namespace regatta {

plugin_host::plugin_host(log_function log, extension_function extension)
    : host_(rg::make_versioned<rg_host>()), log_(std::move(log)), extension_(std::move(extension)) {
  host_.abi_major = RG_ABI_MAJOR;
  host_.abi_minor = RG_ABI_MINOR;
  host_.context = this;
  // Plugins that call these may be C: exceptions (out of memory, a log that cannot be written) must end here.
  host_.log = [](void* context, std::int32_t level, const char* text) {
    try {
      auto& self = *static_cast<plugin_host*>(context);
      if (self.log_) self.log_(level, one_line(text ? text : ""));
    } catch (...) {
    }
  };
  host_.fail = [](void* context, rg_status status, const char* text) {
    try {
      auto& self = *static_cast<plugin_host*>(context);
      auto line = one_line(text ? text : "");
      std::lock_guard lock(self.mutex_);
      self.error_ = std::move(line);
    } catch (...) {
    }
    return status;
  };
  host_.extension = [](void* context, const char* id) -> const void* {
    try {
      auto& self = *static_cast<plugin_host*>(context);
      return self.extension_ && id ? self.extension_(id) : nullptr;
    } catch (...) {
      return nullptr;
    }
  };
}

std::string plugin_host::take_error() {
  std::lock_guard lock(mutex_);
  return std::exchange(error_, {});
}

namespace {

// Returns the meaning of a status, for plugins that fail without a text.
std::string_view meaning_of(rg_status status) noexcept {
  switch (status) {
  case RG_TIMEOUT: return "it was not done before its timeout";
  case RG_E_CONFIG: return "it cannot run as configured";
  case RG_E_OPERATION: return "an operation failed";
  case RG_E_PEER: return "a peer is gone or broke the protocol";
  case RG_E_DEVICE: return "the device or its memory is unusable";
  case RG_E_PLUGIN: return "a bug of the plugin";
  case RG_E_UNSUPPORTED: return "not available on this machine";
  case RG_E_CANCELLED: return "it was cancelled";
  default: return status < 0 ? "an unknown status" : "no failure";
  }
}

std::string text_of(rg_status status, plugin_host& host) {
  const std::string text = host.take_error();
  return text.empty() ? fmt::format("{} (status {}; the plugin gave no text)", meaning_of(status), status) : text;
}

} // namespace

void check(rg_status status, plugin_host& host, std::string_view what) {
  if (status >= 0) return;
  const std::string text = text_of(status, host);
  if (status == RG_E_PEER || status == RG_E_CANCELLED) throw peer_failure(fmt::format("{}: {}", what, text));
  auto code = exit_code::run;
  if (status == RG_E_CONFIG) code = exit_code::usage;
  if (status == RG_E_UNSUPPORTED) code = exit_code::skipped;
  if (status == RG_E_PLUGIN) code = exit_code::plugin;
  throw failure(code, fmt::format("{}: {}", what, text));
}

void check_in_time(rg_status status, plugin_host& host, std::string_view what) {
  check(status, host, what);
  if (status == RG_TIMEOUT) throw failure(exit_code::run, fmt::format("{}: {}", what, text_of(status, host)));
}

} // namespace regatta
