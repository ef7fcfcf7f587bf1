// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "markup.hpp"
#include "page/chart/heat_map.hpp"
#include "page/chart/line_chart.hpp"
#include "page/chart/look.hpp"
#include "page/chart/rows_chart.hpp"
#include "page/chart/timeline_chart.hpp"

using namespace regatta::page;
using regatta::test::element;
using regatta::test::parsed_markup;

namespace {

std::vector<std::string> tick_texts(const scale& s) {
  std::vector<std::string> texts;
  for (const tick& t : s.ticks()) texts.push_back(t.text);
  return texts;
}

element drawing_of(const figure& f) {
  return parsed_markup(f.drawing.element(f.width, f.height, f.title)).children.at(0);
}

// Checks that no two texts of a drawing overlap, by the estimated widths, and that all lie within it.
void check_texts_apart(const figure& f) {
  struct rectangle {
    double left, right, y;
    std::string text;
  };
  std::vector<rectangle> placed;
  drawing_of(f).each([&](const element& e) {
    if (e.name != "text") return;
    const double x = std::stod(e.attribute("x")), y = std::stod(e.attribute("y"));
    const double width = text_width(e.text, e.attribute("class") == "title" ? 13 : 11);
    const std::string anchor = e.attribute("text-anchor");
    const double left = anchor == "end" ? x - width : anchor == "middle" ? x - width / 2 : x;
    CHECK_MESSAGE(left >= -0.5, e.text);
    CHECK_MESSAGE(left + width <= f.width + 0.5, e.text);
    CHECK_MESSAGE(y <= f.height, e.text);
    for (const rectangle& other : placed) {
      const bool apart = std::abs(other.y - y) >= 10 || other.right <= left || other.left >= left + width;
      CHECK_MESSAGE(apart, other.text, " overlaps ", e.text);
    }
    placed.push_back({left, left + width, y, e.text});
  });
  CHECK(placed.size() > 4);
}

line_chart lines(std::size_t count, std::size_t points) {
  line_chart chart{
      "n",  "A title", {"step", measure::plain, false, true, {}}, {"time", measure::seconds, false, true, {}}, {},
      true, {}};
  for (std::size_t l = 0; l < count; ++l) {
    chart_line line{"a name of some length, number " + std::to_string(l),
                    "a name of some length, number " + std::to_string(l),
                    l,
                    {}};
    for (std::size_t p = 0; p < points; ++p)
      line.points.push_back({static_cast<double>(p), 0.001 * static_cast<double>(l + p), std::pair(0.0, 0.02), "", ""});
    chart.lines.push_back(line);
  }
  return chart;
}

} // namespace

TEST_CASE("ticks of linear axes are round values, in the unit of the largest") {
  CHECK(tick_texts(scale({"t", measure::seconds, false, true, {}}, 0.001, 0.0087, 0, 300)) ==
        std::vector<std::string>{"0", "2", "4", "6", "8", "10"});
  CHECK(scale({"t", measure::seconds, false, true, {}}, 0.001, 0.0087, 0, 300).title() == "t [ms]");
  CHECK(tick_texts(scale({"E", measure::plain, false, true, {}}, 0.2, 1, 0, 300)) ==
        std::vector<std::string>{"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  const scale negative({"x", measure::plain, false, false, {}}, -3, 4, 0, 300);
  CHECK(negative.low() <= -3);
  CHECK(negative.high() >= 4);
  CHECK(tick_texts(negative).front() == "-3");
}

TEST_CASE("ticks of logarithmic axes are powers of ten, of sizes powers of two, with their units") {
  CHECK(tick_texts(scale({"t", measure::seconds, true, false, {}}, 2e-6, 3e-2, 0, 300)) ==
        std::vector<std::string>{"10 us", "100 us", "1 ms", "10 ms"});
  CHECK(tick_texts(scale({"size", measure::bytes, true, false, {}}, 8, 1 << 20, 0, 300)) ==
        std::vector<std::string>{"8B", "128B", "2KiB", "32KiB", "512KiB"});
}

TEST_CASE("a scale maps its ends to its pixels, and equal values to the middle") {
  const scale linear({"x", measure::plain, false, true, {}}, 0, 10, 40, 240);
  CHECK(linear.at(0) == doctest::Approx(40));
  CHECK(linear.at(10) == doctest::Approx(240));
  const scale logarithmic({"x", measure::plain, true, false, {1, 2, 4}}, 1, 4, 0, 100);
  CHECK(logarithmic.at(2) == doctest::Approx(50));
  const scale flat({"x", measure::plain, false, false, {3}}, 3, 3, 0, 100);
  CHECK(flat.at(3) == doctest::Approx(50));
  CHECK_FALSE(scale({"x", measure::plain, true, false, {}}, 0, 4, 0, 100).log()); // 0 has no logarithm
}

TEST_CASE("legends, ticks and titles do not overlap") {
  for (const std::size_t count : {1, 2, 5, 7}) check_texts_apart(*draw(lines(count, 12)));
  line_chart given = lines(2, 3);
  given.x.at = {0, 0.01, 0.02, 1, 1.99, 2}; // most of their texts do not fit
  check_texts_apart(*draw(given));
  rows_chart rows{"n", "A title", {"E", measure::plain, false, true, {}}, {{"compute", 0}, {"wait", 1}}, {}, {1}};
  for (const char* label :
       {"allreduce, shm", "a label that is much too long to stand beside the marks of its row, really"}) {
    chart_row& row = rows.rows.emplace_back();
    row.label = label;
    row.marks.emplace_back(dot{0.7, std::pair(0.6, 0.8), "", ""});
    check_texts_apart(*draw(rows));
  }
  heat_map map{"n", "A title", "workers", "batch", {"1", "2"}, {"16", "a very long name of a column", "64"}, {}};
  map.cells = {{heat_cell{0.5, "0.50", "", ""}, std::nullopt, heat_cell{1, "1.00", "", ""}},
               {heat_cell{0.6, "0.60", "", ""}, heat_cell{0.7, "0.70", "", ""}, std::nullopt}};
  check_texts_apart(*draw(map));
}

TEST_CASE("where texts of ticks do not fit, those that stay are equally far apart") {
  const scale wide({"samples/s", measure::plain, false, true, {}}, 0, 50000, 0, 400);
  svg d;
  draw_tick_texts(d, wide, 10, 400);
  std::vector<double> values;
  parsed_markup(d.element(400, 20, "n")).each([&](const element& e) {
    if (e.name == "text") values.push_back(std::stod(e.text));
  });
  REQUIRE(values.size() >= 3);
  CHECK(values.size() < wide.ticks().size());
  for (std::size_t i = 2; i < values.size(); ++i)
    CHECK(values[i] - values[i - 1] == doctest::Approx(values[1] - values[0]));
}

TEST_CASE("a bound is a line that the axis contains, with its text apart from others") {
  for (const double at : {0.0001, 50.0, 1e6}) {
    line_chart chart = lines(2, 5);
    chart.y.log = true;
    chart.references = {{at, "a bound", "data-value=\"1\""}};
    const auto f = draw(chart);
    REQUIRE(f);
    check_texts_apart(*f);
    std::size_t found = 0;
    drawing_of(*f).each([&](const element& e) { found += e.text == "a bound" && e.attribute("data-value") == "1"; });
    CHECK(found == 1);
    CHECK(f->csv.find("a bound,,") != std::string::npos);
  }
}

TEST_CASE("a timeline joins narrow spans until few are left, and keeps wide ones with their names") {
  timeline_chart chart{"t", "A title", {{"forward", 0}, {"backward", 1}}, {}, {}, 50};
  timeline_group& rank = chart.groups.emplace_back(timeline_group{"rank 0: worker 0", {}});
  timeline_row& row = rank.rows.emplace_back(timeline_row{"compute", {}, {{0.25, "ready"}}});
  row.spans.push_back({0, 0.5, 0, "the wide one", "tip"});
  for (int i = 0; i < 5000; ++i)
    row.spans.push_back({0.5 + 1e-4 * i, 0.5 + 1e-4 * (i + 1), static_cast<std::size_t>(i % 2), "narrow", ""});
  const auto f = draw(chart);
  REQUIRE(f);
  check_texts_apart(*f);
  std::size_t spans = 0, named = 0, tips = 0, marks = 0;
  drawing_of(*f).each([&](const element& e) {
    spans += e.attribute("class") == "span";
    named += e.name == "text" && e.text == "the wide one";
    tips += e.name == "title" && e.text == "tip";
    marks += e.attribute("class") == "mark";
  });
  CHECK(spans <= 50);
  CHECK(spans > 10);
  CHECK(named == 1);
  CHECK(tips == 1);
  CHECK(marks == 1);
  CHECK(std::count(f->csv.begin(), f->csv.end(), '\n') == 5003); // the data are complete
  CHECK_FALSE(draw(timeline_chart{}));
}

TEST_CASE("series differ in colour or shape") {
  std::set<std::pair<std::string, std::string>> looks;
  for (std::size_t i = 0; i < colours * markers; ++i) looks.emplace(colour_class(i), marker_path(i));
  CHECK(looks.size() == colours * markers);
}

TEST_CASE("a line breaks at values that are not finite, and a chart without any is none") {
  line_chart chart = lines(1, 5);
  chart.markers = false;
  chart.lines[0].points[2].y = std::nan("");
  const auto f = draw(chart);
  REQUIRE(f);
  bool broken = false;
  drawing_of(*f).each([&](const element& e) {
    if (e.name != "path" || e.children.empty()) return; // the line has a tooltip
    broken = e.attribute("d").rfind('M') > 0;
    CHECK(e.attribute("d").find("nan") == std::string::npos);
  });
  CHECK(broken);
  for (chart_point& p : chart.lines[0].points) p.y = std::nan("");
  CHECK_FALSE(draw(chart));
}

TEST_CASE("thinned curves keep their ends and spikes, and change no point") {
  std::vector<chart_point> points;
  for (int i = 0; i < 5000; ++i)
    points.push_back({static_cast<double>(i), i == 3333 ? 9.0 : std::sin(i), std::nullopt, "", ""});
  const auto kept = thinned_points(points, 100);
  CHECK(kept.size() <= 100);
  CHECK(kept.front().x == 0);
  CHECK(kept.back().x == 4999);
  bool spike = false;
  double before = -1;
  for (const chart_point& p : kept) {
    CHECK(p.x > before);
    before = p.x;
    CHECK(p.y == points[static_cast<std::size_t>(p.x)].y);
    spike = spike || p.y == 9;
  }
  CHECK(spike);
  CHECK(thinned_points({points.begin(), points.begin() + 50}, 100).size() == 50);
}

TEST_CASE("the data of a figure have full precision, and a drawing is a file of its own") {
  line_chart chart = lines(1, 1);
  chart.lines[0].points[0].y = 0.1 + 0.2;
  const auto f = draw(chart);
  REQUIRE(f);
  CHECK(f->csv.find("0.30000000000000004") != std::string::npos);
  CHECK(f->csv.find("\"a name of some length, number 0\",") != std::string::npos);
  const std::string file = f->drawing.file(f->width, f->height, f->title);
  CHECK(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  CHECK(file.find(".chart text{") != std::string::npos);
  CHECK(parsed_markup(file).children.at(0).name == "svg");
}
