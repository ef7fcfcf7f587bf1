// SPDX-License-Identifier: Apache-2.0
//
// Defect: rejects a choice of its own parameter table, without a text.
#pragma once

#include "../unix.hpp"

#include <string>

namespace {

struct refuses_a_choice : unix_transport {
  struct parameters {
    std::string mode = "eager";
  };
  static constexpr auto fields =
      rg::fields(rg::field("mode", &parameters::mode, "how it behaves").one_of("eager", "rendezvous"));
  refuses_a_choice(const rg_host* host, const parameters& p) : unix_transport(host, {}) {
    if (p.mode == "rendezvous") throw rg::error(RG_E_CONFIG, "");
  }
};

} // namespace
