// SPDX-License-Identifier: Apache-2.0
//
// The executor's use of NVML, and its behaviour without NVML: on the emulated GPU, with a fake NVML library of fixed
// answers (emulated/nvml.cpp) that LD_LIBRARY_PATH finds; see CMakeLists.txt.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>

#include <dlfcn.h>
#include <regatta/device.hpp>

namespace {

struct executor {
  const rg_devices* devices = nullptr;
  const rg_device* device = nullptr;
  std::string error;
  rg_host host{};
  executor() {
    host.struct_size = sizeof host;
    host.context = this;
    host.log = [](void*, std::int32_t, const char*) {};
    host.fail = [](void* self, rg_status s, const char* text) {
      static_cast<executor*>(self)->error = text;
      return s;
    };
    host.extension = [](void*, const char*) -> const void* { return nullptr; };
    void* const library = dlopen(REGATTA_EXECUTOR, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library, dlerror());
    const auto entry = reinterpret_cast<rg_entry>(dlsym(library, RG_ENTRY_SYMBOL));
    const rg_component& c = *entry(&host)->components[0];
    devices = static_cast<const rg_devices*>(c.extension(RG_EXT_DEVICES));
    device = static_cast<const rg_device*>(c.extension(RG_EXT_DEVICE));
  }
  std::string topology(std::uint32_t a, std::uint32_t b) {
    std::array<char, 64> text{};
    REQUIRE(devices->topology(&host, a, b, text.data(), text.size()) == RG_OK);
    return text.data();
  }
  rg_status sensors(rg_sensors& s) {
    void* self = nullptr;
    REQUIRE(device->open(&host, 0, 1, &self) == RG_OK);
    s = rg::no_sensors();
    const rg_status status = device->sensors(self, &s);
    device->close(self);
    return status;
  }
};

} // namespace

TEST_CASE("the sensors of a GPU, in the interface's units; what NVML does not know stays unknown") {
  executor e;
  rg_sensors s;
  REQUIRE(e.sensors(s) == RG_OK);
  CHECK(std::string(s.name) == "made up 0");
  CHECK(std::string(s.driver) == "999.1");
  CHECK(s.utilisation == 0.87);
  CHECK(s.memory_used == 4e10);
  CHECK(s.memory_total == 1.5e11);
  CHECK(s.clock == 1.98e9);
  CHECK(std::isnan(s.memory_clock));
  CHECK(s.power == doctest::Approx(612.5));
  CHECK(s.energy == doctest::Approx(5000.25));
  CHECK(s.temperature == 61);
}

TEST_CASE("how GPUs reach each other, as nvidia-smi says it") {
  executor e;
  CHECK(e.topology(0, 1) == "NV4");
  CHECK(e.topology(0, 2) == "NV2");
  CHECK(e.topology(4, 5) == "NV18");
  CHECK(e.topology(0, 3) == "SYS");
  CHECK(e.topology(0, 4) == "SYS");
  CHECK(e.topology(0, 0).empty()); // there is no such device in /sys
}

TEST_CASE("without NVML the sensors are refused, saying why" * doctest::skip()) { // run alone: see CMakeLists.txt
  executor e;
  rg_sensors s;
  CHECK(e.sensors(s) == RG_E_UNSUPPORTED);
  CHECK_FALSE(e.error.empty()); // with a driver NVML is found but does not know the emulated GPU
  CHECK(s.name[0] == 0);
}
