// SPDX-License-Identifier: Apache-2.0
//
// describe() loses decay, lr_scale and compressible of the graph.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  rg_model_info describe() {
    for (rg_tensor& t : tensors_) {
      t.decay = t.lr_scale = 1;
      t.compressible = 1;
    }
    return interpreted::describe();
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("forgets_decay", "1.0", rg::executor<executor>("forgets_decay", "broken: fields of tensors"))
