// SPDX-License-Identifier: Apache-2.0
//
// Residual networks learn as vgg16 does in learn_test.cpp.
#include "learning.hpp"

using namespace regatta::test;

TEST_CASE("residual networks, with squeeze-and-excitation or not, read 70 % right after 60 steps of 32") {
  for (const std::string id : {"resnet50", "se_resnet50"}) {
    CAPTURE(id);
    reads_pictures({.model = "plugin = \"" + id + "\"\ninput = \"cifar10\"\ndepth = 18\nwidth = 8\n",
                    .steps = 60,
                    .batch = 32,
                    .lr = 0.01});
  }
}
