// SPDX-License-Identifier: Apache-2.0
//
// rg::hooks calls the host's functions or the device's, never both.
#include <regatta/model.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

// Records the calls of a model's hooks.
struct recorded {
  std::string calls;
  rg_hooks host = rg::make_versioned<rg_hooks>();
  rg_device_hooks device = rg::make_versioned<rg_device_hooks>();

  static std::string& of(void* self) { return static_cast<recorded*>(self)->calls; }
  recorded() {
    host.context = device.context = this;
    host.need = [](void* self, std::uint32_t t) -> rg_status {
      of(self) += "need " + std::to_string(t) + "; ";
      return RG_OK;
    };
    host.done = [](void* self, std::uint32_t t) { of(self) += "done " + std::to_string(t) + "; "; };
    device.need = [](void* self, std::uint32_t t, rg_fence* after) -> rg_status {
      of(self) += "device need " + std::to_string(t) + "; ";
      *after = 70 + t;
      return RG_OK;
    };
    device.done = [](void* self, std::uint32_t t, rg_fence f) {
      of(self) += "device done " + std::to_string(t) + " after " + std::to_string(f) + "; ";
    };
  }
};

} // namespace

TEST_CASE("a weight is needed and released in each pass, on the host and on a device") {
  recorded r;
  const auto two_passes = [&] {
    r.calls.clear();
    const rg::hooks hooks(&r.host);
    REQUIRE(hooks.releases());
    for (const rg_fence pass : {1, 2}) {
      CHECK(hooks.need(3) == (r.host.device ? 73 : 0));
      hooks.done(3, pass);
    }
    return r.calls;
  };
  CHECK(two_passes() == "need 3; done 3; need 3; done 3; ");
  r.host.device = &r.device;
  CHECK(two_passes() == "device need 3; device done 3 after 1; device need 3; device done 3 after 2; ");
}

TEST_CASE("weights stay in memory where the hooks that are used have no done()") {
  recorded r;
  r.host.device = &r.device;
  r.device.done = nullptr;
  const rg::hooks hooks(&r.host); // the host's done() is not the device's
  CHECK(!hooks.releases());
  hooks.done(3, 1);
  CHECK(r.calls.empty());
}

TEST_CASE("the hooks of a plugin that knows no done() are read as if it were null") {
  recorded r;
  r.host.device = &r.device;
  r.device.struct_size = offsetof(rg_device_hooks, done);
  CHECK(!rg::hooks(&r.host).releases());
}
