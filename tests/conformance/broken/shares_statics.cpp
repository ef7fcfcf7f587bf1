// SPDX-License-Identifier: Apache-2.0
//
// All instances use the memory that the last one was bound to: a mutable static.
#include "interpreted.hpp"

namespace {

struct mistaken : broken::interpreted {
  using interpreted::interpreted;
  static inline std::vector<float*> last;
  void bind(const rg_model_memory& memory) {
    interpreted::bind(memory);
    last = weights_;
  }
  void read_weights() override {
    weights_ = last;
    interpreted::read_weights();
  }
};

struct executor : broken::runs<mistaken> {};

} // namespace

RG_PLUGIN("shares_statics", "1.0", rg::executor<executor>("shares_statics", "broken: a mutable static"))
