// SPDX-License-Identifier: Apache-2.0
//
// Transports that run only among processes of a launcher (regatta.launcher/1): a sound one, and one with a defect.
#include "unix.hpp"

#include <regatta/ext/launcher.h>

#include <cstring>

namespace {

// Long messages arrive a byte shorter.
struct launched_and_short : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(rg_transfer t) {
    if (t.buffer.type == RG_U8 && t.bytes > 4096) --t.bytes;
    return unix_transport::send(t);
  }
};

template <class T> rg_component launched(const char* id, const char* summary) {
  rg_component c = rg::transport<T>(id, summary);
  c.extension = [](const char* name) -> const void* {
    static const rg_launcher functions = [] {
      auto l = rg::make_versioned<rg_launcher>();
      l.launcher = "mpiexec -n";
      l.join = [](const rg_host*) -> rg_status { return RG_OK; };
      return l;
    }();
    return std::strcmp(name, RG_EXT_LAUNCHER) == 0 ? &functions : nullptr;
  };
  return c;
}

} // namespace

RG_PLUGIN("broken_launcher_ranks", "1.0", launched<unix_transport>("launched", "nothing wrong: it needs a launcher"),
          launched<launched_and_short>("launched_and_short", "broken: long messages arrive a byte shorter"))
