// SPDX-License-Identifier: Apache-2.0
//
// A step computes in threads of its own, more than rg_model_setup.threads allows.
#include "interpreted.hpp"

#include <thread>

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  double forward(const reference::batch& b) override {
    const auto spin = [] {
      volatile int sum = 0;
      for (int i = 0; i < 5000000; ++i) sum = sum + 1;
    };
    std::jthread one(spin), two(spin);
    return interpreted::forward(b);
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("starts_threads", "1.0", rg::executor<executor>("starts_threads", "broken: threads"))
