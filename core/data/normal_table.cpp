// SPDX-License-Identifier: Apache-2.0
#include "data/normal_table.hpp"

#include <cmath>

namespace regatta {

normal_table::normal_table() : quantiles_(65536) {
  // Newton's method on the distribution function; each quantile starts from the one before. The negative half is the
  // mirror image.
  double x = 0;
  for (std::size_t i = 0; i < 32768; ++i) {
    const double tail = (32767.5 - static_cast<double>(i)) / 65536; // probability above x
    for (int round = 0; round < 4; ++round) {
      const double density = std::exp(-x * x / 2) * 0.3989422804014327; // 1 / sqrt(2 pi)
      x += (std::erfc(x * 0.7071067811865476) / 2 - tail) / density;    // 1 / sqrt(2)
    }
    quantiles_[32768 + i] = static_cast<float>(x);
    quantiles_[32767 - i] = static_cast<float>(-x);
  }
}

} // namespace regatta
