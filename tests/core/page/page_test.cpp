// SPDX-License-Identifier: Apache-2.0
//
// The page of results that were measured (example.json by `regatta run`, comm.json by `regatta comm`): every number in
// it is one of the document.
#include "page/page.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "json.hpp"
#include "markup.hpp"

using namespace regatta::test;
using regatta::page::render_page;

namespace {

json stored(const std::string& name) {
  std::ifstream in(REGATTA_SOURCE "/tests/core/page/" + name);
  return parsed({std::istreambuf_iterator<char>(in), {}});
}

// Follows a path such as "repeats.0.case.steal".
json at_path(json value, const std::string& path) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    value = value.is_array() ? value.at(std::stoul(name)) : value.at(name);
    begin = end + 1;
  }
  return value;
}

// Checks that a rounded text is the value: "1.25 ms" is 0.00125, with an error of at most half of its last digit.
void check_rounded(const std::string& text, double value) {
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
paths_by_case check_numbers(const element& page, const json& document) {
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

std::string page_of(const json& document) {
  return render_page({{document, "[model]\nplugin = \"mlp\"\n"}}).html;
}

// Returns a result with this many cases, over workers and batches, with curves as long as a result has.
json many_cases(std::size_t cases) {
  json result = stored("example.json");
  const json like = result["results"][1];
  result["results"] = json::array();
  for (std::size_t i = 0; i < cases; ++i) {
    json entry = like;
    entry["case"] = {{"strategy.plugin", i % 2 ? "sync_ps" : "allreduce"},
                     {"cluster.workers", 1 << (i / 2 % 5)},
                     {"train.batch", 16 << (i / 10 % 10)}};
    for (const char* member : {"steps", "curve", "seconds"}) entry["loss"][member] = json::array();
    for (int s = 0; s < 1000; ++s) {
      entry["loss"]["steps"].push_back(s);
      entry["loss"]["curve"].push_back(2.3 / (1 + 0.01 * s) + 0.001 * static_cast<double>(i));
      entry["loss"]["seconds"].push_back(0.0123456789 * s);
    }
    json steps = json::array(), numbers = json::array();
    for (int s = 0; s < 1000; ++s) {
      steps.push_back(0.01 + 0.001 * std::sin(s + static_cast<double>(i)));
      numbers.push_back(s);
    }
    entry["repeats"] = {like["repeats"][0]};
    entry["repeats"][0]["case"]["step_seconds"] = {{"per_rank", {steps, steps}}, {"steps", {numbers, numbers}}};
    result["results"].push_back(std::move(entry));
  }
  return result;
}

} // namespace

TEST_CASE("every number of the page is one of the result, in full and rounded, for every case") {
  const json result = stored("example.json");
  const paths_by_case seen = check_numbers(parsed_markup(page_of(result)), result);
  REQUIRE(seen.size() == result["results"].size());
  for (const auto& entry : seen)
    for (const char* path :
         {"samples_per_second.median", "samples_per_second.low", "samples_per_second.high", "efficiency.median",
          "efficiency.low", "efficiency.high", "lost.compute", "lost.wait", "lost.exposed_communication", "lost.update",
          "lost.input", "lost.other", "step_seconds.median", "step_seconds.p99", "bytes.sent_per_step.worker",
          "loss.last", "metric.value"})
      CHECK_MESSAGE(entry.second.count(path) == 1, path, " of case ", entry.first);
}

TEST_CASE("the time to a target has its interval and its repeats") {
  json result = stored("example.json");
  CHECK(page_of(result).find("Time to a ") == std::string::npos);
  for (json& entry : result["results"]) {
    entry["target"] = {{"metric", "top1"}, {"value", 0.5}, {"side", "at_least"}, {"reached", 2}};
    entry["steps_to_target"] = {{"n", 3}, {"median", 120.0}, {"low", 110.0}, {"high", nullptr}, {"coverage", 0.75}};
    entry["seconds_to_target"] = {{"n", 3}, {"median", 1.25}, {"low", 1.125}, {"high", nullptr}, {"coverage", 0.75}};
    entry["evaluation_seconds"] = 0.375;
  }
  const std::string page = page_of(result);
  CHECK(page.find("Time to a top1 of at least 0.5") != std::string::npos);
  const paths_by_case seen = check_numbers(parsed_markup(page), result);
  for (const auto& entry : seen)
    for (const char* path : {"seconds_to_target.median", "seconds_to_target.low", "steps_to_target.median",
                             "target.reached", "evaluation_seconds"})
      CHECK_MESSAGE(entry.second.count(path) == 1, path, " of case ", entry.first);
}

TEST_CASE("the numbers of regatta comm are those of its document") {
  const json document = stored("comm.json");
  const paths_by_case seen = check_numbers(parsed_markup(page_of(document)), document);
  REQUIRE(seen.size() == document["results"].size());
  for (const auto& entry : seen)
    for (const char* path : {"seconds.median", "seconds.p99", "bus_bandwidth", "cpu_seconds", "wrong"})
      CHECK_MESSAGE(entry.second.count(path) == 1, path, " of entry ", entry.first);
}

TEST_CASE("a changed number changes the page") {
  json result = stored("example.json");
  const std::string before = page_of(result);
  result["results"][2]["lost"]["wait"] = 0.0875;
  const std::string after = page_of(result);
  CHECK(before.find("data-value=0.0875") == std::string::npos);
  CHECK(after.find("data-value=0.0875>8.8 %") != std::string::npos);
}

TEST_CASE("the waterfall of every case begins at 1 and ends at E") {
  const json result = stored("example.json");
  const auto page = render_page({{result, ""}});
  std::map<std::string, std::pair<double, double>> ends; // first and last position by row
  std::map<std::string, double> efficiencies;
  for (const auto& figure : page.figures) {
    if (figure.name != "lost") continue;
    std::size_t line_begin = figure.csv.find('\n') + 1;
    for (std::size_t end; (end = figure.csv.find('\n', line_begin)) != std::string::npos; line_begin = end + 1) {
      const std::string line = figure.csv.substr(line_begin, end - line_begin);
      const std::size_t name_end = line.find('"', 1) + 1; // names have commas, so they are quoted
      std::vector<std::string> fields;
      for (std::size_t at = name_end; at < line.size();) {
        const std::size_t next = std::min(line.find(',', at + 1), line.size());
        fields.push_back(line.substr(at + 1, next - at - 1));
        at = next;
      }
      const std::string name = line.substr(0, name_end);
      if (!fields.at(0).empty()) efficiencies[name] = std::stod(fields[0]);
      if (fields.at(9).empty()) continue;
      if (!ends.count(name)) ends[name].first = std::stod(fields[9]);
      ends[name].second = std::stod(fields.at(10));
    }
  }
  REQUIRE(ends.size() == result["results"].size());
  for (const auto& end : ends) {
    CHECK(end.second.first == 1);
    CHECK_MESSAGE(std::abs(end.second.second - efficiencies.at(end.first)) < 1e-9, end.first);
  }
}

TEST_CASE("hostile texts stay texts") {
  const std::string hostile = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>";
  json result = stored("example.json");
  result["context"]["experiment"]["experiment"]["name"] = hostile;
  result["context"]["command"] = hostile;
  result["context"]["warnings"] = {hostile};
  result["context"]["hosts"][0]["cpu"] = hostile;
  result["context"]["plugins"][0]["id"] = hostile;
  for (json& entry : result["results"])
    entry["case"]["strategy.plugin"] = hostile + entry["case"]["strategy.plugin"].get<std::string>();
  result["results"][0]["status"] = "failed";
  result["results"][0]["error"] = hostile;
  result["results"][1]["metric"]["name"] = hostile;
  const auto page = render_page({{result, hostile}});
  std::size_t found = 0;
  const auto check = [&](const element& e) {
    CHECK(e.name != "script");
    CHECK(e.name != "img");
    for (const auto& [name, value] : e.attributes) CHECK_FALSE(name.starts_with("on"));
    found += e.text.find("<script>") != std::string::npos;
  };
  parsed_markup(page.html).each(check);
  CHECK(found >= 8);
  for (const auto& figure : page.figures) {
    parsed_markup(figure.drawing.file(figure.width, figure.height, figure.title)).each(check);
    CHECK(figure.name.find('<') == std::string::npos);
  }
}

TEST_CASE("the page of a hundred cases has at most 300 kB, asks for nothing and names every case") {
  const json result = many_cases(100);
  const std::string html = page_of(result);
  CHECK(html.size() <= 300'000);
  for (const char* request : {"<script", "<link", "<img", "<iframe", "src=", "url(", "@import", "http:", "https:"})
    CHECK_MESSAGE(html.find(request) == std::string::npos, request);
  CHECK(check_numbers(parsed_markup(html), result).size() == 100);
}

TEST_CASE("a case that failed stands in the tables with its error") {
  json result = stored("example.json");
  result["results"][3]["status"] = "failed";
  result["results"][3]["error"] = "rank 1 was killed by SIGKILL";
  CHECK(page_of(result).find("failed: rank 1 was killed by SIGKILL") != std::string::npos);
  for (json& entry : result["results"]) entry["status"] = "skipped";
  CHECK(page_of(result).find("No case has run") != std::string::npos);
}

TEST_CASE("the time that bytes take on a shaped link stands beside the step") {
  json result = stored("example.json");
  CHECK(page_of(result).find("link bound") == std::string::npos); // shm: unknown
  for (json& entry : result["results"]) {
    entry["case"]["transport.plugin"] = "shaped";
    entry["case"]["transport.bandwidth"] = "1Gbit/s";
    entry["bytes"]["sent_per_step"]["worker"] = 500'000;
    entry["bytes"]["received_per_step"]["worker"] = 625'000;
  }
  const std::string page = page_of(result); // 625 kB at 125 MB/s
  CHECK(page.find("link bound") != std::string::npos);
  CHECK(page.find(">5.00 ms</td>") != std::string::npos);
}

TEST_CASE("noise that the context states stands in the first section") {
  json result = stored("example.json");
  result["context"]["noise"] = {{"floor", 0.0213}};
  CHECK(page_of(result).find("floor <span data-context=\"noise.floor\" data-value=\"0.0213\">0.0213</span>") !=
        std::string::npos);
}

TEST_CASE("several documents stand on one page, with names of their own") {
  const auto page =
      render_page({{stored("example.json"), ""}, {stored("example.json"), ""}, {stored("comm.json"), ""}});
  std::set<std::string> ids;
  std::size_t articles = 0;
  parsed_markup(page.html).each([&](const element& e) {
    articles += e.name == "article";
    if (!e.attribute("id").empty()) CHECK_MESSAGE(ids.insert(e.attribute("id")).second, e.attribute("id"));
  });
  CHECK(articles == 3);
  std::set<std::string> names;
  for (const auto& figure : page.figures) CHECK_MESSAGE(names.insert(figure.name).second, figure.name);
}

TEST_CASE("sweeps over numbers are drawn as lines, two of them also as a map, others as dots") {
  const auto names_of = [](const json& result) {
    std::set<std::string> names;
    for (const auto& figure : render_page({{result, ""}}).figures) names.insert(figure.name);
    return names;
  };
  const auto one = names_of(stored("example.json"));
  CHECK(one.count("efficiency-over-workers") == 1);
  CHECK(one.count("efficiency-map-1") == 0);
  const auto two = names_of(many_cases(20));
  CHECK(two.count("samples_per_second-over-batch") == 1);
  CHECK(two.count("efficiency-map-2") == 1);
  json none = stored("example.json");
  none["results"] = {none["results"][1], none["results"][3]}; // two strategies with two workers each
  const auto dots = names_of(none);
  CHECK(dots.count("efficiency") == 1);
  CHECK(dots.count("efficiency-over-workers") == 0);
}
