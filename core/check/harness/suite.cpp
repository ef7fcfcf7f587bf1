// SPDX-License-Identifier: Apache-2.0
#include "check/harness/suite.hpp"

namespace regatta::conformance {
namespace {

void append(std::vector<test>& all, const std::vector<test>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

void skip_without_launcher(const subject& s) {
  throw skipped("its ranks need a launcher; run: " + s.tested->launcher + " 4 regatta check transport/" + s.tested->id);
}
void skip_under_launcher(const subject& s) {
  throw skipped("not under " + s.tested->launcher +
                ": the test ends or starts single ranks, or needs sums in rank order");
}

} // namespace

std::vector<test> tests_of(const subject& s) {
  if (!s.tested) return plugin_tests();
  const component& c = *s.tested;
  std::vector<test> all = parameter_tests();
  switch (c.kind) {
  case kind::model:
  case kind::executor:
    // First: an executor that accepts what it does not know fails most of the other tests, too.
    if (c.kind == kind::executor) append(all, refusal_tests());
    append(all, model_tests());
    append(all, instance_tests());
    append(all, description_tests());
    if (c.is_graph) append(all, graph_tests());
    if (c.kind == kind::executor) {
      append(all, executor_tests());
      append(all, gemm_tests());
    }
    if (!s.reference.empty()) append(all, reference_tests());
    break;
  case kind::transport: {
    const std::size_t general = all.size();
    for (const auto& part :
         {message_tests(), reducing_receive_tests(), random_traffic_tests(), polling_tests(), connecting_tests(),
          failure_tests(), collective_tests(), one_sided_tests(), leak_tests(), unconnected_tests()})
      append(all, part);
    for (std::size_t i = general; i < all.size() && !c.launcher.empty(); ++i)
      if (!s.launcher_ranks || !all[i].under_launcher)
        all[i].run = s.launcher_ranks ? skip_under_launcher : skip_without_launcher;
    break;
  }
  case kind::strategy:
    append(all, strategy_tests());
    append(all, compressor_tests());
    break;
  }
  return all;
}

} // namespace regatta::conformance
