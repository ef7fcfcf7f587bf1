// SPDX-License-Identifier: Apache-2.0
#include "registry/transport_host.hpp"

#include "base/failure.hpp"
#include "registry/launched.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {

transport_host::transport_host(const registry& plugins, log_function log, extension_function more)
    : plugin_host(std::move(log),
                  [this, more = std::move(more)](std::string_view id) -> const void* {
                    return id == RG_EXT_NEST ? &nest_ : more ? more(id) : nullptr;
                  }),
      plugins_(plugins), nest_(rg::make_versioned<rg_nest>()) {
  nest_.context = this;
  nest_.open = [](void* context, const char* id, rg_nested* out) -> rg_status {
    auto& self = *static_cast<transport_host*>(context);
    return rg::fence(self.c(), [&] { return self.open(id, *out); });
  };
}

rg_status transport_host::open(const char* id, rg_nested& out) {
  try {
    const component& c = plugins_.find(kind::transport, id);
    if (const rg_launched* l = launched_of(c))
      throw failure(exit_code::usage,
                    fmt::format("transport {} cannot be inside another one: its ranks have to meet as "
                                "processes of `{} N` before; use transport.plugin = \"{}\" itself",
                                c.id, l->launcher, c.id));
    const parameter_values values(c, {});
    auto made = rg::make_versioned<rg_nested>();
    made.functions = &c.transport;
    if (const rg_status s = c.transport.create(this->c(), values.data(), &made.self); s < 0) return s;
    rg::fill_versioned(&out, made);
    nested_files_.push_back(c.file.string());
    return RG_OK;
  } catch (const failure& f) {
    throw rg::error(RG_E_CONFIG, f.what());
  }
}

} // namespace regatta
