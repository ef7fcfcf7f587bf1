// SPDX-License-Identifier: Apache-2.0
#include "report/progress_line.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/text_table.hpp"

namespace regatta {
namespace {

using nlohmann::json;

struct part {
  std::string text;
  int dispensable; // the highest is left out first
};

std::string joined(const std::vector<part>& parts) {
  std::string line;
  for (const part& p : parts) line += (line.empty() ? "" : "   ") + p.text;
  return line;
}

// Returns the object of one line. Bytes that are not UTF-8 are replaced.
std::string object(const char* kind, json members) {
  members["schema"] = "regatta.progress/1";
  members["kind"] = kind;
  return members.dump(-1, ' ', false, json::error_handler_t::replace);
}

json number_or_null(const std::optional<double>& value) {
  return value ? json(*value) : json(nullptr);
}

} // namespace

std::string progress_object(const progress& p) {
  json j = {{"case", p.case_number},
            {"cases", p.cases},
            {"label", p.label},
            {"run", p.phase.empty() ? "case" : p.phase},
            {"repeat", p.repeat},
            {"repeats", p.repeats ? json(p.repeats) : json(nullptr)},
            {"half_width", number_or_null(p.half_width)},
            {"step", p.steps ? json(p.step) : json(nullptr)},
            {"steps", p.steps ? json(p.steps) : json(nullptr)},
            {"samples_per_second", number_or_null(p.samples_per_second)},
            {"seconds_left", number_or_null(p.seconds_left)}};
  return object("progress", std::move(j));
}

std::string message_object(const std::string& text) {
  return object("message", {{"text", text}});
}

std::string end_object(int exit_code, const std::string& result) {
  return object("end", {{"exit_code", exit_code}, {"result", result}});
}

std::string human_duration(double seconds) {
  const long s = std::max(0L, std::lround(seconds));
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {} s", s / 60, s % 60);
  return fmt::format("{} h {} min", s / 3600, s / 60 % 60);
}

std::string progress_line(const progress& p, std::size_t width) {
  std::vector<part> parts;
  const std::string number = fmt::format("[{}/{}]", p.case_number, p.cases);
  parts.push_back({p.label.empty() ? number : number + " " + p.label, 0});
  if (!p.phase.empty()) parts.push_back({p.phase, 2});
  if (p.repeats > 1) parts.push_back({fmt::format("repeat {}/{}", p.repeat, p.repeats), 4});
  if (p.repeats == 0) parts.push_back({fmt::format("repeat {}", p.repeat), 4});
  if (p.half_width) parts.push_back({fmt::format("±{:.1f} %", 100 * *p.half_width), 2});
  if (p.steps > 0) parts.push_back({fmt::format("step {}/{}", p.step, p.steps), 3});
  if (p.samples_per_second) parts.push_back({fmt::format("{:.1f} samples/s", *p.samples_per_second), 5});
  if (p.seconds_left)
    parts.push_back({(p.repeats == 0 ? "at most " : "") + human_duration(*p.seconds_left) + " left", 1});
  std::string line = joined(parts);
  while (width > 0 && display_width(line) > width && parts.size() > 1) {
    parts.erase(std::max_element(parts.begin(), parts.end(),
                                 [](const part& a, const part& b) { return a.dispensable < b.dispensable; }));
    line = joined(parts);
  }
  return width > 0 ? shortened(line, width) : line;
}

} // namespace regatta
