// SPDX-License-Identifier: Apache-2.0
#include "check/harness/suite.hpp"

namespace regatta::conformance {
namespace {

void append(std::vector<test>& all, const std::vector<test>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void needs_launcher(const subject& s) {
  throw skipped("its ranks must be started by a launcher: " + s.what->launcher + " 4 regatta check transport/" +
                s.what->id);
}
void needs_own_processes(const subject& s) {
  throw skipped("not among processes of " + s.what->launcher +
                ": they live and die together, and sums are in an order of their library's");
}

} // namespace

std::vector<test> tests_of_file() {
  return plugin_tests();
}

std::vector<test> tests_of(const subject& s) {
  const component& c = *s.what;
  std::vector<test> all = parameter_tests();
  switch (c.kind) {
  case kind::model:
  case kind::executor:
    append(all, model_tests());
    if (!s.reference.empty()) append(all, reference_tests());
    break;
  case kind::transport: {
    const std::size_t general = all.size();
    for (const auto* part : {&message_tests(), &add_tests(), &traffic_tests(), &waiting_tests(), &failure_tests(),
                             &collective_tests(), &leftover_tests(), &unconnected_tests()})
      append(all, *part);
    for (std::size_t i = general; i < all.size() && !c.launcher.empty(); ++i)
      if (!s.launched || !all[i].launched) all[i].run = s.launched ? needs_own_processes : needs_launcher;
    break;
  }
  case kind::strategy: append(all, strategy_tests()); break;
  }
  return all;
}

} // namespace regatta::conformance
