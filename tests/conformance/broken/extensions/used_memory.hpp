// SPDX-License-Identifier: Apache-2.0
//
// Defect: allocated memory is not zeroed.
#pragma once

#include "../unix.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

namespace {

struct used_memory : unix_transport {
  using unix_transport::unix_transport;
  void* allocate(rg_region region, std::uint64_t bytes, const rg_memory&) {
    void* const p = std::aligned_alloc(64, bytes); // the suite asks for whole lines
    std::memset(p, 0x55, bytes);
    memory_[region].reset(p);
    return p;
  }
  void remove(rg_region region) noexcept { memory_.erase(region); }
  struct free_it {
    void operator()(void* p) const { std::free(p); }
  };
  std::map<rg_region, std::unique_ptr<void, free_it>> memory_;
};

} // namespace
