// SPDX-License-Identifier: Apache-2.0
//
// vgg16 learns, at a fraction of its width and on a set like CIFAR-10, a stated accuracy in a stated number of steps,
// in bf16 as in fp32.
#include "learning.hpp"

using namespace regatta::test;

TEST_CASE("vgg16 without dropout reads 70 % of unseen images right after 80 steps of 32 that two workers share") {
  reads_pictures({.model = "plugin = \"vgg16\"\ninput = \"cifar10\"\nwidth = 16\ndropout = 0.0\n",
                  .steps = 80,
                  .batch = 32,
                  .lr = 0.003,
                  .cluster = "[cluster]\nworkers = 2\n"});
}
