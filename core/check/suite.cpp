// SPDX-License-Identifier: Apache-2.0
#include "check/suite.hpp"

#include "registry/launched.hpp"

namespace regatta::conformance {
namespace {

void append(std::vector<test>& all, const std::vector<test>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void needs_launcher(const subject& s) {
  throw skipped(std::string("its ranks must be started by ") + launched_of(*s.what)->launcher +
                " N, and this suite's are threads");
}

} // namespace

std::vector<test> tests_of_file() {
  return plugin_tests();
}

std::vector<test> tests_of(const component& c) {
  std::vector<test> all = parameter_tests();
  switch (c.kind) {
  case kind::model:
  case kind::executor: append(all, model_tests()); break;
  case kind::transport: {
    const std::size_t general = all.size();
    for (const auto* part : {&message_tests(), &add_tests(), &traffic_tests(), &waiting_tests(), &failure_tests(),
                             &collective_tests(), &leftover_tests(), &unconnected_tests()})
      append(all, *part);
    if (launched_of(c))
      for (std::size_t i = general; i < all.size(); ++i) all[i].run = needs_launcher;
    break;
  }
  case kind::strategy: append(all, strategy_tests()); break;
  }
  return all;
}

} // namespace regatta::conformance
