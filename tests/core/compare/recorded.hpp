// SPDX-License-Identifier: Apache-2.0
//
// Samples/s of real runs, one for each repeat: the mlp alone (hidden [1024], batch 128, 60 steps, 48 repeats), measured
// on 2026-11-25 on a virtual machine with two cores of an AMD EPYC (AVX-512, BF16), Linux 6.18, while other programs
// used it at times: regatta run x.toml, with strategy none, 1 worker and measure.baseline = false.
#pragma once

#include <vector>

namespace recorded {

inline const std::vector<double> samples_per_second = {
    15286.1, 15213.7, 15183.3, 15245.8, 15464.8, 16118.6, 16823.0, 17306.7, 16917.1, 16820.8, 17097.3, 15783.9,
    16575.3, 16186.5, 15465.1, 15774.1, 17323.4, 16063.4, 16237.2, 16161.7, 16348.9, 16175.4, 16668.6, 16868.3,
    17026.1, 17002.8, 16753.4, 16728.4, 17234.1, 16950.0, 16448.1, 16377.7, 16638.0, 16428.8, 16603.5, 16353.7,
    16373.5, 17050.4, 16172.4, 15960.8, 15999.7, 15689.2, 16624.3, 15729.1, 16582.9, 16552.5, 16319.3, 16143.0};

} // namespace recorded
