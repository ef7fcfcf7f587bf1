// SPDX-License-Identifier: Apache-2.0
#include "cli/launcher_ranks.hpp"

#include "base/console.hpp"
#include "base/failure.hpp"
#include "comm/rank.hpp"
#include "control/client.hpp"
#include "rank/rank.hpp"
#include "registry/transport_host.hpp"

#include <exception>

#include <fmt/format.h>
#include <regatta/ext/launcher.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

// Calls f(). Prints an exception and returns its exit code.
template <class F> int guarded(F&& f) {
  try {
    return f();
  } catch (const failure& e) {
    print_error(fmt::format("{}\n", e.what()));
    return static_cast<int>(e.code());
  } catch (const std::exception& e) {
    print_error(fmt::format("regatta: {}\n", e.what()));
    return static_cast<int>(exit_code::run);
  }
}

int join_transport(const std::string& file, const std::string& transport) {
  static std::vector<std::unique_ptr<plugin_host>> hosts; // live until the process ends: it stays joined until then
  const registry plugins = registry::of_files({file});
  const component& c = plugins.find(kind::transport, transport);
  const auto* launched = static_cast<const rg_launcher*>(c.extension(RG_EXT_LAUNCHER)); // the registry checked it
  plugin_host& host = *hosts.emplace_back(std::make_unique<plugin_host>());
  check(launched->join(host.c()), host, "transport " + transport);
  return 0;
}

} // namespace

int run_rank_process(control_client& control) {
  return comm::is_job(control) ? comm::run_rank(control) : run_rank(control, control.rank());
}

launcher_request_handlers make_launcher_request_handlers() {
  launcher_request_handlers handlers;
  handlers.join = [](const std::string& file, const std::string& transport) {
    return guarded([&] { return join_transport(file, transport); });
  };
  handlers.run = [](const std::string& host, std::uint16_t port, std::uint32_t rank, blob secret, int status_fd) {
    return guarded([&] {
      control_client control(host, port, rank, std::move(secret), status_page(status_fd));
      return run_rank_process(control);
    });
  };
  return handlers;
}

} // namespace regatta
