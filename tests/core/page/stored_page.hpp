// SPDX-License-Identifier: Apache-2.0
//
// Reads pages of results that were measured (example.json by `regatta run`, comm.json by `regatta comm`), and checks
// their numbers against the documents.
#pragma once

#include "page/page.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "json.hpp"
#include "markup.hpp"

namespace regatta::test {

inline json stored(const std::string& name) {
  std::ifstream in(REGATTA_SOURCE "/tests/core/page/" + name);
  return parsed({std::istreambuf_iterator<char>(in), {}});
}

// Follows a path such as "repeats.0.case.steal".
inline json at_path(json value, const std::string& path) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    value = value.is_array() ? value.at(std::stoul(name)) : value.at(name);
    begin = end + 1;
  }
  return value;
}

// Checks that a rounded text is the value: "1.25 ms" is 0.00125, with an error of at most half of its last digit.
inline void check_rounded(const std::string& text, double value) {
  static const std::map<std::string, double> units = {{"", 1},        {" %", 0.01},   {" s", 1},      {" ms", 1e-3},
                                                      {" us", 1e-6},  {" ns", 1e-9},  {" B", 1},      {" kB", 1e3},
                                                      {" MB", 1e6},   {" GB", 1e9},   {" B/s", 1},    {" kB/s", 1e3},
                                                      {" MB/s", 1e6}, {" GB/s", 1e9}, {" TB/s", 1e12}};
  std::size_t length = 0;
  const double number = std::stod(text, &length);
  const std::string digits = text.substr(0, length);
  const auto unit = units.find(text.substr(length));
  REQUIRE_MESSAGE(unit != units.end(), text);
  const std::size_t e = digits.find('e'), point = digits.find('.');
  const int exponent = e == std::string::npos ? 0 : std::stoi(digits.substr(e + 1));
  const auto mantissa_end = std::min(e, digits.size());
  const int decimals = point == std::string::npos ? 0 : static_cast<int>(mantissa_end - point - 1);
  const double last_digit = std::pow(10, exponent - decimals);
  CHECK_MESSAGE(std::abs(number * unit->second - value) <= 0.5000001 * last_digit * unit->second, text, " is not ",
                value);
}

using paths_by_case = std::map<std::size_t, std::set<std::string>>;

// Checks all numbers of the page's tables, texts and markers against the entries, and returns what it has seen.
inline paths_by_case check_numbers(const element& page, const json& document) {
  paths_by_case seen;
  const auto check = [&](const element& e, std::size_t of_case, const std::string& path) {
    REQUIRE(of_case < document["results"].size());
    const json truth = at_path(document["results"][of_case], path);
    REQUIRE_MESSAGE(truth.is_number(), path);
    CHECK_MESSAGE(parsed(e.attribute("data-value")).get<double>() == truth.get<double>(), path, " of case ", of_case);
    if (e.name == "td" || e.name == "span") check_rounded(e.text, truth.get<double>());
    seen[of_case].insert(path);
  };
  page.each([&](const element& e) {
    if (const std::string path = e.attribute("data-context"); !path.empty())
      CHECK_MESSAGE(parsed(e.attribute("data-value")) == at_path(document["context"], path), path, " of the context");
    if (e.name == "table") {
      std::vector<std::string> paths; // of the columns
      for (const element& header : e.children.at(0).children.at(0).children)
        paths.push_back(header.attribute("data-path"));
      for (std::size_t r = 0; r < e.children.at(1).children.size(); ++r) {
        const element& row = e.children.at(1).children[r];
        for (std::size_t c = 0; c < row.children.size(); ++c) {
          const element& cell = row.children[c];
          if (cell.attribute("data-value").empty()) continue;
          const std::string own = cell.attribute("data-path"), path = own.empty() ? paths.at(c) : own;
          if (path.empty())
            check_rounded(cell.text, parsed(cell.attribute("data-value")).get<double>()); // of [report]'s table
          else
            check(cell, r, path);
        }
      }
    } else if (e.name != "td" && !e.attribute("data-value").empty() && !e.attribute("data-case").empty()) {
      check(e, std::stoul(e.attribute("data-case")), e.attribute("data-path"));
    }
  });
  return seen;
}

inline std::string page_of(const json& document) {
  return page::render_page({{document, "[model]\nplugin = \"mlp\"\n"}}).html;
}

// Returns the texts of the cells below a header in the table that has this header first, by row.
inline std::vector<std::string> column(const std::string& html, const std::string& first, const std::string& wanted) {
  std::vector<std::string> texts;
  parsed_markup(html).each([&](const element& e) {
    if (e.name != "table" || !texts.empty()) return;
    const auto& headers = e.children.at(0).children.at(0).children;
    const auto place = [&](const std::string& text) {
      return std::find_if(headers.begin(), headers.end(), [&](const element& h) { return h.text == text; }) -
             headers.begin();
    };
    const auto at = static_cast<std::size_t>(place(wanted));
    if (at == headers.size() || static_cast<std::size_t>(place(first)) == headers.size()) return;
    for (const element& row : e.children.at(1).children) texts.push_back(row.children.at(at).text);
  });
  return texts;
}

} // namespace regatta::test
