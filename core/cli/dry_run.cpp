// SPDX-License-Identifier: Apache-2.0
#include "cli/dry_run.hpp"

#include "base/failure.hpp"
#include "base/units.hpp"
#include "campaign/prepare.hpp"
#include "cli/columns.hpp"
#include "launch/memory.hpp"
#include "report/progress.hpp"

#include <fmt/format.h>

namespace regatta {

int dry_run(plugin_answers& answers, const experiment& e, format) {
  const double flops = measure_flops();
  answers.ask(e.cases);
  std::vector<std::vector<std::string>> rows;
  double total = 0;
  int code = 0;
  for (std::size_t i = 0; i < e.cases.size(); ++i) {
    const case_config& c = e.cases[i];
    std::string label;
    for (const auto& [key, value] : c.swept)
      label += fmt::format("{}{} = {}", label.empty() ? "" : ", ", key, value.dump());
    if (label.empty()) label = fmt::format("{}, {}, {}", c.model.id, c.strategy.id, c.transport.id);
    try {
      const model_facts& m = answers.of(c).model;
      const prepared_run run = prepare(answers, c, "");
      check_tables(c, m, run.exchanges_rows);
      // With its baseline and the control under `none`, where they run.
      const double runs = static_cast<double>(c.measure.repeats) * (c.measure.baseline && !is_baseline(c) ? 2.5 : 1.0);
      const double seconds = estimated_seconds(c, m, flops) * runs;
      const std::uint64_t bytes = estimated_bytes(c, m, run.job.layout.servers), there = available_bytes();
      total += seconds;
      const std::string note = there && bytes > there ? "skipped: more memory than is free" : "";
      rows.push_back({std::to_string(i + 1), label, std::to_string(run.ranks.size()),
                      seconds > 0 ? human_duration(seconds) : "unknown", human_bytes(static_cast<double>(bytes)),
                      note});
    } catch (const failure& f) {
      rows.push_back({std::to_string(i + 1), label, "-", "-", "-", fmt::format("skipped: {}", f.what())});
      if (e.cases.size() == 1) code = static_cast<int>(f.code());
    }
  }
  fmt::print("{}\n", indented({{"", true}, {"case"}, {"ranks", true}, {"time", true}, {"memory", true}, {""}}, rows));
  fmt::print("{} case{}, about {} in all, if a core keeps up {:.0f} GFLOP/s; nothing was run\n", e.cases.size(),
             e.cases.size() == 1 ? "" : "s", total > 0 ? human_duration(total) : "an unknown time", flops * 1e-9);
  return code;
}

} // namespace regatta
