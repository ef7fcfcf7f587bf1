// SPDX-License-Identifier: Apache-2.0
#include "launch/stall_report.hpp"

#include <fmt/format.h>

namespace regatta {

namespace {

using nlohmann::json;

// Returns "step 0, forward pass", or the operation alone if no step has begun.
std::string where(const rank_status& s) {
  const std::string operation = s.operation.empty() ? "its start" : s.operation;
  return s.pace == pace::step ? fmt::format("step {}, {}", s.step, operation) : operation;
}

// Returns the innermost function outside system libraries: the likely cause.
std::string culprit(const json& state) {
  for (const json& stack : state.value("stacks", json::array()))
    for (const json& f : stack.at("frames")) {
      const auto& frame = f.get_ref<const std::string&>();
      const bool system = frame.find("libc.so") != std::string::npos || frame.find("libpthread") != std::string::npos ||
                          frame.find("libstdc++") != std::string::npos || frame.find("libtsan") != std::string::npos ||
                          frame.find("libasan") != std::string::npos;
      if (!system) return frame;
    }
  return {};
}

std::string cause(const rank_report& a) {
  if (a.state.is_null()) return "its control thread does not answer either";
  const auto in = [&](const std::string& text) {
    const std::string function = culprit(a.state);
    return function.empty() ? text : text + ": " + function;
  };
  if (!a.state.value("answers", true)) return in("the code of the transport or the strategy does not return");
  if (a.status.waits == waiting::nothing) return in("the call does not return");
  if (a.status.waits == waiting::coordinator) return "waits for the other ranks";
  const std::string waits = a.state.value("waits", "");
  return waits.empty() ? "waits for its peers" : "waits for its peers; first: " + waits;
}

} // namespace

std::string stall_cause(const rank_report& a) {
  return fmt::format("no progress for {:.1f} s in {}: {}", std::chrono::duration<double>(a.still).count(),
                     where(a.status), cause(a));
}

std::string stall_report(const std::vector<rank_report>& ranks) {
  std::string text;
  for (const rank_report& a : ranks) {
    text += fmt::format("{}: {}, {}; last progress {:.1f} s ago\n", a.name, where(a.status),
                        a.status.waits == waiting::coordinator ? "waits for the other ranks"
                        : a.status.waits == waiting::peers     ? "waits for its peers"
                                                               : "works",
                        std::chrono::duration<double>(a.still).count());
    if (a.state.is_null()) text += "  no answer from its control thread\n";
    for (const json& line : a.state.is_null() ? json::array() : a.state.value("lines", json::array()))
      text += "  " + line.get<std::string>() + "\n";
    for (const json& stack : a.state.is_null() ? json::array() : a.state.value("stacks", json::array())) {
      text += fmt::format("  {} thread:{}\n", stack.at("thread").get<std::string>(),
                          stack.at("frames").empty() ? " does not handle the signal that reads its stack" : "");
      for (const json& f : stack.at("frames")) text += "    " + f.get<std::string>() + "\n";
    }
  }
  return text;
}

} // namespace regatta
