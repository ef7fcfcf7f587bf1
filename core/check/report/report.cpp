// SPDX-License-Identifier: Apache-2.0
#include "check/report/report.hpp"

#include "base/json.hpp"

#include <nlohmann/json.hpp>

namespace regatta::conformance {

bool has_report_format(const std::filesystem::path& file) {
  const std::string ending = file.extension();
  return ending == ".html" || ending == ".json" || ending == ".xml" || ending == ".junit";
}

std::string report_text(const std::filesystem::path& file, const nlohmann::ordered_json& document) {
  const std::string ending = file.extension();
  if (ending == ".html") return html_report(document);
  return ending == ".json" ? document_text(document) : junit_report(document);
}

} // namespace regatta::conformance
