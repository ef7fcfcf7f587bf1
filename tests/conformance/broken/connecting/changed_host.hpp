// SPDX-License-Identifier: Apache-2.0
//
// The host as a transport sees it whose handshake computes MACs by another function.
#pragma once

#include "../unix.hpp"

#include <cstring>

#include <regatta/ext/authenticate.h>

namespace {

struct changed_host {
  using mac_function = rg_status(const rg_authenticate& real, const void* data, std::uint64_t bytes,
                                 std::uint8_t out[32]);
  changed_host(const rg_host* host, mac_function* changed)
      : real(host), mac(changed),
        real_macs(static_cast<const rg_authenticate*>(real->extension(real->context, RG_EXT_AUTHENTICATE))) {
    as_seen.context = this;
    as_seen.log = [](void* self, std::int32_t level, const char* text) { of(self).log(of(self).context, level, text); };
    as_seen.fail = [](void* self, rg_status s, const char* text) { return of(self).fail(of(self).context, s, text); };
    as_seen.extension = [](void* self, const char* id) -> const void* {
      if (std::strcmp(id, RG_EXT_AUTHENTICATE) == 0) return &static_cast<changed_host*>(self)->macs;
      return of(self).extension(of(self).context, id);
    };
  }
  static const rg_host& of(void* self) { return *static_cast<changed_host*>(self)->real; }

  const rg_host* real;
  mac_function* mac;
  const rg_authenticate* real_macs;
  rg_host as_seen = *real;
  rg_authenticate macs = {.struct_size = sizeof(rg_authenticate),
                          .context = this,
                          .mac = [](void* self, const void* data, std::uint64_t bytes, std::uint8_t out[32]) {
                            const auto& me = *static_cast<changed_host*>(self);
                            return me.mac(*me.real_macs, data, bytes, out);
                          }};
};

// Returns whether the data of a MAC are those by which the listening rank proves itself (meeting::prove()).
inline bool is_of_the_listener(const void* data) {
  std::uint32_t from, to;
  std::memcpy(&from, static_cast<const char*>(data) + 16, sizeof from);
  std::memcpy(&to, static_cast<const char*>(data) + 20, sizeof to);
  return from < to;
}

} // namespace
