// SPDX-License-Identifier: Apache-2.0
//
// The description of a region that a transport receives. The descriptor of a device's memory is open only during that
// call.
#include "memory/regions.hpp"

#include "base/failure.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace regatta;

namespace {

// Memory that is exported as a file; `exports` is false for a device that exports none.
struct exporter final : processor {
  explicit exporter(bool e) : exports(e) {}
  void* allocate(std::uint64_t bytes) override {
    memory.push_back(allocate_aligned(bytes));
    return memory.back().get();
  }
  void* allocate_shared(std::uint64_t bytes) override { return allocate(bytes); }
  bool run(const rg_work&) override { return true; }
  void copy(void*, const void*, std::uint64_t) override {}
  rg::exported_memory export_memory(void* address, std::uint64_t bytes) override {
    asked.push_back({address, bytes});
    if (!exports) return {};
    return {last = memfd_create("memory", MFD_CLOEXEC), 4096 * asked.size()};
  }
  struct question {
    void* address;
    std::uint64_t bytes;
  };
  bool exports;
  int last = -1;
  std::vector<question> asked;
  std::vector<std::unique_ptr<void, aligned_free>> memory;
};

bool is_open(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

// A transport that notes what it is told.
struct listener {
  struct region {
    void* address;
    std::uint64_t bytes;
    rg_memory memory;
    bool open; // the descriptor, during the call
  };
  static rg_regions functions() {
    auto f = rg::make_versioned<rg_regions>();
    f.add = [](void* self, rg_region, void* address, std::uint64_t bytes, const rg_memory* memory) {
      auto& l = *static_cast<listener*>(self);
      l.told.push_back({address, bytes, *memory, memory->dma_buf >= 0 && is_open(memory->dma_buf)});
      return rg_status{l.refuses ? RG_E_OPERATION : RG_OK};
    };
    f.remove = [](void*, rg_region) {};
    return f;
  }
  std::vector<region> told;
  bool refuses = false;
};

constexpr std::uint32_t everywhere = RG_MEMORY_HOST | RG_MEMORY_DEVICE;

} // namespace

TEST_CASE("a transport gets the descriptor of a device's memory, which is closed after the call") {
  exporter device(true);
  listener transport;
  const rg_regions functions = listener::functions();
  region_table regions(&functions, &transport, false, everywhere, &device, 3);
  regions.allocate(RG_F32, 100, "a buffer");
  REQUIRE(transport.told.size() == 1);
  const listener::region& first = transport.told[0];
  CHECK(first.memory.place == RG_MEMORY_DEVICE);
  CHECK(first.memory.device == 3);
  CHECK(first.open);
  CHECK(first.memory.dma_buf_offset == 4096);
  CHECK(first.address == device.asked[0].address); // guards included
  CHECK(first.bytes == device.asked[0].bytes);
  CHECK(!is_open(device.last));

  // So does memory that is registered later, such as scratch.
  const rg_region scratch = regions.add(device.allocate(64), 64, RG_MEMORY_DEVICE);
  REQUIRE(transport.told.size() == 2);
  CHECK(transport.told[1].open);
  CHECK(transport.told[1].memory.dma_buf_offset == 8192);
  CHECK(!is_open(device.last));
  regions.remove(scratch);

  transport.refuses = true;
  CHECK_THROWS_AS(regions.allocate(RG_F32, 100, "another"), failure);
  CHECK(transport.told[2].open);
  CHECK(!is_open(device.last));
}

TEST_CASE("memory of the host, and of a device that exports none, has no descriptor") {
  exporter device(false);
  listener transport;
  const rg_regions functions = listener::functions();
  region_table regions(&functions, &transport, false, everywhere, &device, 0);
  regions.allocate(RG_F32, 100, "on the device");
  regions.allocate_on_host(RG_F32, 100, "on the host");
  REQUIRE(transport.told.size() == 2);
  CHECK(device.asked.size() == 1);
  CHECK(transport.told[0].memory.dma_buf == -1);
  CHECK(transport.told[1].memory.dma_buf == -1);
  CHECK(transport.told[1].memory.place == RG_MEMORY_HOST);
  CHECK(transport.told[1].memory.device == -1);
}
