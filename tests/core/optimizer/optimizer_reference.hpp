// SPDX-License-Identifier: Apache-2.0
//
// Every optimiser's formula in plain doubles, element by element.
#pragma once

#include "experiment/experiment.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace optimizer_reference {

using regatta::optimizer_config;

inline optimizer_config configured(const std::string& plugin) {
  optimizer_config c;
  c.plugin = plugin;
  c.lr = plugin == "adam" ? 0.001 : 0.05;
  c.weight_decay = 0.01;
  return c;
}

// The formulas of optimizer.hpp in plain doubles; one object an element.
struct element {
  double w, a = 0, b = 0;
  int t = 0;
  void update(const optimizer_config& c, double g, double decay, double lr) {
    g += c.weight_decay * decay * w;
    ++t;
    if (c.plugin == "sgd") {
      w -= lr * g;
    } else if (c.plugin == "momentum") {
      a = c.momentum * a + g;
      w -= lr * (c.nesterov ? g + c.momentum * a : a);
    } else if (c.plugin == "adagrad") {
      a += g * g;
      w -= lr * g / (std::sqrt(a) + c.epsilon);
    } else {
      a = c.beta1 * a + (1 - c.beta1) * g;
      b = c.beta2 * b + (1 - c.beta2) * g * g;
      w -= lr * (a / (1 - std::pow(c.beta1, t))) / (std::sqrt(b / (1 - std::pow(c.beta2, t))) + c.epsilon);
    }
  }
};

inline std::vector<optimizer_config> every_kind() {
  std::vector<optimizer_config> all;
  for (const char* name : {"sgd", "momentum", "adagrad", "adam"}) all.push_back(configured(name));
  all.push_back(configured("momentum"));
  all.back().nesterov = true;
  return all;
}

} // namespace optimizer_reference
