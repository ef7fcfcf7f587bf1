// SPDX-License-Identifier: Apache-2.0
//
// The timing of a device, on one whose memory is the host's.
#include "comm/device_checks.hpp"

#include "base/failure.hpp"
#include "conformance/broken/host_device.hpp"

#include <cstring>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <regatta/clock.hpp>

using namespace regatta;
using nlohmann::json;

namespace {

// The products that watched_device received, and which of its functions fail.
struct requests {
  std::vector<std::uint64_t> rows;       // of matrices, each size once
  bool computes = true;                  // else only the first product of a size takes time, to load a kernel
  bool multiplies = true, copies = true; // within its memory
  int status = RG_E_UNSUPPORTED;         // with which it refuses products
} seen;

struct watched_device : broken::host_device {
  using host_device::host_device;
  void gemm(std::uint32_t stream, const rg_gemm& what, const void* a, const void* b, void* c) {
    if (!seen.multiplies) throw rg::error(seen.status, "no products here");
    if (seen.rows.empty() || seen.rows.back() != what.n) {
      seen.rows.push_back(what.n);
      const std::int64_t loaded = rg::steady_ns() + 30'000'000;
      while (!seen.computes && rg::steady_ns() < loaded) {
      }
    }
    const bool whole = what.m == what.n && what.k == what.n && what.a_row == what.n && what.b_row == what.n &&
                       what.c_row == what.n && a == b && a != c;
    if (!whole || static_cast<const float*>(a)[0] == static_cast<const float*>(a)[1])
      throw rg::error(RG_E_PLUGIN, "not a square of random values");
    if (seen.computes) host_device::gemm(stream, what, a, b, c);
  }
  void copy(std::uint32_t stream, void* to, const void* from, std::uint64_t bytes) {
    if (!seen.copies && bytes > 4 << 20) throw rg::error(RG_E_DEVICE, "its memory is broken");
    host_device::copy(stream, to, from, bytes);
  }
  rg_sensors sensors() {
    rg_sensors s = rg::no_sensors();
    std::strcpy(s.name, "watched");
    s.utilisation = seen.rows.empty() ? 0 : 1;
    return s;
  }
};

struct timing {
  explicit timing(const rg_device* functions) : d(*functions, "executor test", 0, {}, {}) { seen = {}; }
  device d;
  json figures = {{"gemm", nullptr}, {"copy", nullptr}, {"before", nullptr}, {"during", nullptr}};
};

} // namespace

TEST_CASE("a device is timed, and its sensors are read before and during products") {
  timing t(rg::device_functions<watched_device>());
  comm::time_device(t.d, t.figures);
  CHECK(t.figures.at("gemm") > 0);
  CHECK(t.figures.at("copy") > 0);
  CHECK(t.figures.at("before").at("name") == "watched");
  CHECK(t.figures.at("before").at("utilisation") == 0);
  CHECK(t.figures.at("during").at("utilisation") == 1);
}

TEST_CASE("a fast device multiplies the largest matrices") {
  timing t(rg::device_functions<watched_device>());
  seen.computes = false;
  comm::time_device(t.d, t.figures);
  CHECK(seen.rows == std::vector<std::uint64_t>{256, 512, 1024, 2048, 4096});
}

TEST_CASE("a device without sensors or products has the other figures") {
  timing bare(rg::device_functions<broken::host_device>());
  comm::time_device(bare.d, bare.figures);
  CHECK(bare.figures.at("gemm") > 0);
  CHECK(bare.figures.at("before").is_null());
  timing t(rg::device_functions<watched_device>());
  seen.multiplies = false;
  comm::time_device(t.d, t.figures);
  CHECK(t.figures.at("gemm").is_null());
  CHECK(t.figures.at("copy") > 0);
}

TEST_CASE("a failure of the device is thrown, and what was known before stays") {
  timing t(rg::device_functions<watched_device>());
  seen.copies = false;
  CHECK_THROWS_WITH_AS(comm::time_device(t.d, t.figures), doctest::Contains("its memory is broken"), failure);
  CHECK(t.figures.at("gemm") > 0);
  CHECK(t.figures.at("copy").is_null());
  timing u(rg::device_functions<watched_device>());
  seen.multiplies = false;
  seen.status = RG_E_DEVICE;
  CHECK_THROWS_WITH_AS(comm::time_device(u.d, u.figures), doctest::Contains("no products here"), failure);
  CHECK(u.figures.at("before").is_object());
}
