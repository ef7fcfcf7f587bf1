// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/markup.hpp"
#include "base/text.hpp"
#include "page/sections.hpp"
#include "report/cases_table.hpp"
#include "report/fields.hpp"
#include "report/heading.hpp"
#include "report/result_checks.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

// Returns a number of a case in the line of noise, with its place in the document.
std::string number_of_case(std::size_t of_case, const std::string& path, double value) {
  return fmt::format("<span {}>{}</span>", data_attributes(of_case, path, json(value)), percent_text(value));
}

// Returns the largest spread between the repeats of a case and the largest share of stolen CPU time, as markup.
std::vector<std::string> noise_of(const result_view& r) {
  std::optional<std::pair<double, std::size_t>> spread;
  std::optional<std::pair<double, std::string>> steal;
  std::size_t steal_case = 0;
  for (const std::size_t i : r.measured()) {
    const json& entry = r.entry(i);
    if (const auto cv = number_at(entry, "samples_per_second.cv"); cv && (!spread || *cv > spread->first))
      spread = {*cv, i};
    const json repeats = entry.value("repeats", json());
    for (std::size_t n = 0; repeats.is_array() && n < repeats.size(); ++n) {
      const std::string path = fmt::format("repeats.{}.case.steal", n);
      const auto share = number_at(entry, path);
      if (!share || (steal && *share <= steal->first)) continue;
      steal = {*share, path};
      steal_case = i;
    }
  }
  std::vector<std::string> texts;
  if (spread)
    texts.push_back("samples/s spread between repeats by up to " +
                    number_of_case(spread->second, "samples_per_second.cv", spread->first) +
                    (r.size() > 1 ? " (" + markup_text(r.name_of(spread->second)) + ")" : ""));
  if (steal)
    texts.push_back("other virtual machines took up to " + number_of_case(steal_case, steal->second, steal->first) +
                    " of the processor time");
  // Members of context.noise are shares of 1, lists or texts; those that are numbers are shown.
  const json noise = r.document().at("context").value("noise", json::object());
  for (const auto& [name, value] : noise.items())
    if (value.is_number())
      texts.push_back(fmt::format("{} <span data-context=\"noise.{}\" data-value=\"{}\">{}</span>", markup_text(name),
                                  markup_text(name), value.dump(), markup_text(plain_text(value))));
  return texts;
}

void line(writer& w, const char* name, const std::string& markup, const char* css = "") {
  if (!markup.empty())
    w.raw(fmt::format("<dt>{}</dt><dd{}>{}</dd>\n", name, *css ? fmt::format(" class=\"{}\"", css) : "", markup));
}

std::string listed(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += fmt::format("<li>{}</li>", markup_text(text));
  return "<ul>" + out + "</ul>";
}

} // namespace

void write_trust(writer& w, const result_view& r) {
  constexpr std::size_t all_parts = 3;
  const json& result = r.document();
  const cases_table cases = table_of_cases(result, all_parts);
  const auto lines = heading_of(result, cases.constant);
  std::vector<std::string> settings;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) settings.insert(settings.end(), lines[i].begin(), lines[i].end());
  w.heading("What was measured, and whether to trust it", "trust");
  w.raw("<dl class=\"facts\">\n");
  if (!lines.empty()) {
    std::vector<std::string> measured = lines.front();
    measured.insert(measured.end(), settings.begin(), settings.end());
    line(w, "Measured", markup_text(join(measured, " · ")));
    if (lines.size() > 1) line(w, "Machine", markup_text(join(lines.back(), " · ")));
  }
  const auto wrong = check_results(result.at("results"));
  const auto verdict = verdict_of(result);
  line(w, "Checks", markup_text(join(verdict, " · ")) + (wrong.empty() ? "" : listed(wrong)),
       wrong.empty() ? "good" : "bad");
  line(w, "Noise", join(noise_of(r), " · "));
  const auto warnings = warnings_of(result);
  line(w, "Warnings", warnings.empty() ? "none" : listed(warnings));
  w.raw("</dl>\n");
}

} // namespace regatta::page
