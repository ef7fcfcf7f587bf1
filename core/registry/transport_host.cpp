// SPDX-License-Identifier: Apache-2.0
#include "registry/transport_host.hpp"

#include "base/failure.hpp"
#include "registry/extension_tables.hpp"
#include "registry/validate.hpp"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/ext/collectives.h>
#include <regatta/ext/nest.h>
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
  nest_.new_region = [](void* context) { return static_cast<transport_host*>(context)->last_region_--; };
}

rg_status transport_host::open(const char* id, rg_nested& out) {
  try {
    const component& c = plugins_.find(kind::transport, id);
    if (!c.launcher.empty())
      throw failure(exit_code::usage,
                    fmt::format("transport {} cannot be inside another one: its ranks have to connect as "
                                "processes of `{} N` before; use transport.plugin = \"{}\" itself",
                                c.id, c.launcher, c.id));
    const parameter_values values(c, {});
    auto made = rg::make_versioned<rg_nested>();
    made.functions = &c.transport;
    if (const rg_status s = c.transport.create(this->c(), values.data(), &made.self); s < 0) return s;
    rg::fill_versioned(&out, made);
    nested_.push_back(c.id);
    return RG_OK;
  } catch (const failure& f) {
    throw rg::error(RG_E_CONFIG, f.what());
  }
}

transport_summary summarise_transport(const registry& plugins, const std::string& id,
                                      const std::map<std::string, nlohmann::json>& parameters,
                                      const stage_function& stage) {
  const std::string name = "transport " + id;
  stage(fmt::format("{} ({})", name, plugins.described(kind::transport, id).file.string()), "was being loaded");
  const component& c = plugins.find(kind::transport, id);
  const parameter_values values(c, parameters);
  const std::string who = fmt::format("{} ({})", name, c.file.string());
  transport_host host(plugins);
  void* self = nullptr;
  stage(who, "was made");
  call(host, name, [&] { return c.transport.create(host.c(), values.data(), &self); });
  // A transport that throws, against the interface, is not destroyed; the process that runs this ends soon.
  transport_summary s{rg::make_versioned<rg_transport_caps>(), "", {}, false, host.nested()};
  stage(who, "was described");
  call(host, name, [&] { return c.transport.caps(self, &s.caps); });
  for (const char* e : checked_extensions(c.transport, self, name)) {
    s.extensions.emplace_back(e);
    if (std::string_view(e) == RG_EXT_COLLECTIVES)
      s.collectives = rg::copy_versioned(*static_cast<const rg_collectives*>(c.transport.extension(self, e)))
                          .offers(self, RG_OP_ALL_REDUCE, RG_SUM, RG_F32, 0);
  }
  stage(who, "was ended");
  c.transport.destroy(self);
  s.transports.push_back(id);
  validate(s.caps, name);
  if (s.caps.device) s.device = s.caps.device;
  return s;
}

} // namespace regatta
