// SPDX-License-Identifier: Apache-2.0
//
// Training by the program, once in each precision, up to the metric on data that were never trained on.
#pragma once

#include "precisions.hpp"
#include "program.hpp"

#include "data/generate_datasets.hpp"

#include <cmath>
#include <vector>

namespace regatta::test {

struct lesson {
  std::string model, data = ""; // of the tables [model] and [data]
  int steps = 0, batch = 0;     // the batch is global
  double lr = 0;                // of Adam, falling to 0 at the last step: where a run ends is then no matter of luck
  const char* metric = "";
  std::string cluster = "[strategy]\nplugin = \"none\"\n[transport]\nplugin = \"null\"\n";
};

// Returns the metric in each of precisions(). Checks that the loss halved, at least.
inline std::vector<double> learnt(const temporary_folder& s, const lesson& l) {
  const std::string steps = std::to_string(l.steps);
  const std::string toml =
      "[model]\n" + l.model + "[data]\nsource = \"dataset\"\n" + l.data +
      "[train]\nscaling = \"strong\"\nkernels = \"fixed\"\nemulate = true\nbatch = " + std::to_string(l.batch) +
      "\n[optimizer]\nplugin = \"adam\"\nlr = " + std::to_string(l.lr) +
      "\n[optimizer.schedule]\nname = \"linear\"\nwarmup = 5\nlength = " + steps + "\n" + l.cluster +
      "[measure]\nwarmup = 0\nrepeats = 1\nbaseline = false\nsteps = " + steps + "\n";
  std::vector<double> reached;
  for (const std::string precision : precisions()) {
    CAPTURE(precision);
    const json r = results(s, toml, "--set train.precision=" + precision).at(0);
    CHECK(r.at("metric").at("name") == l.metric);
    CHECK(r.at("loss").at("last").get<double>() < 0.5 * r.at("loss").at("first").get<double>());
    if (r.at("workers") > 1) CHECK(r.at("replicas_identical") == true);
    reached.push_back(r.at("metric").at("value"));
  }
  return reached;
}

// Trains on images of ten classes, with seed 1. Checks that most unseen images are classified correctly, in either
// precision.
inline void reads_pictures(lesson l) {
  const temporary_folder s;
  generate_cifar10_like(s.path / "data", 400, 1);
  l.data = "format = \"cifar10\"\npath = \"data\"\nevaluation_path = \"data\"\n";
  l.metric = "top1";
  const std::vector<double> top1 = learnt(s, l);
  for (const double right : top1) {
    CHECK(right >= 0.7); // a guess is right one time in ten, a linear model half of the time
    CHECK(std::abs(right - top1[0]) < 0.1);
  }
}

} // namespace regatta::test
