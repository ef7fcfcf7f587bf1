// SPDX-License-Identifier: Apache-2.0
#include "report/report_request.hpp"

#include "base/text.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"

namespace regatta {
namespace {

using nlohmann::json;

report_request request_of(const json& table) {
  report_request r;
  r.title = table.value("title", "");
  r.rows = table.value("rows", "");
  r.columns = table.value("columns", "");
  r.list = table.value("list", "");
  r.where = table.value("where", json::object());
  r.ratio_to = table.value("ratio_to", json::object());
  r.labels = table.value("labels", json::object());
  r.cell = cell_template_of(table.at("value"), !r.ratio_to.empty());
  for (const json& row : table.value("context", json::array()))
    r.context.push_back({row.at("row"), row.at("source"), row.at("values"), row.value("ratio", false)});
  return r;
}

} // namespace

std::string report_request::name_of(const std::string& path) const {
  return labels.value(path, short_name(path));
}

std::string report_request::label_of(const std::string& text) const {
  return labels.value(text, text);
}

std::string report_request::text_of(const json& values) const {
  std::vector<std::string> parts;
  for (const auto& [key, value] : values.items()) parts.push_back(name_of(key) + " " + label_of(plain_text(value)));
  return join(parts);
}

std::vector<report_request> report_requests(const json& result) {
  const json experiment = result.at("context").value("experiment", json::object());
  const json asked = experiment.value("report", json::array());
  std::vector<report_request> requests;
  for (const json& table : asked.is_array() ? asked : json::array({asked}))
    if (!table.value("rows", "").empty() && !table.value("columns", "").empty() && table.value("value", json()) != "")
      requests.push_back(request_of(table));
  return requests;
}

} // namespace regatta
