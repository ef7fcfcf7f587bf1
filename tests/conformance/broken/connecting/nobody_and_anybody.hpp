// SPDX-License-Identifier: Apache-2.0
//
// Connects no ranks. Defects: accepts peers, and reports a completion when it is woken.
#pragma once

#include "../unix.hpp"

#include <span>

namespace {

struct nobody_and_anybody {
  nobody_and_anybody(const rg_host*, const rg::parameters_t<nobody_and_anybody>&) {}
  static rg_transport_caps caps() { return {.flags = RG_CAP_NONE, .memory = RG_MEMORY_HOST, .p2p = RG_P2P_NONE}; }
  static rg_blob listen(const rg_world&) { return {}; }
  static void connect(std::span<const rg_blob>, std::uint64_t) {}
  static rg_status send(const rg_transfer&) { return RG_OK; }
  static rg_status recv(const rg_transfer&) { return RG_OK; }
  static std::uint32_t poll(std::uint64_t, std::uint64_t, std::span<rg_completion> out) {
    out[0] = {.cookie = 0, .status = RG_OK, .bytes = 0};
    return 1;
  }
  static void wake() noexcept {}
  static void cancel(std::uint32_t) {}
  static void close(std::uint64_t) {}
  static rg_counters counters() { return {}; }
};

} // namespace
