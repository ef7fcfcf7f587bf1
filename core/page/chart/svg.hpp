// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace regatta::page {

// [any] Returns a coordinate with at most one decimal: a tenth of a pixel cannot be seen, and digits fill the page.
std::string coordinate(double value);

// [any] Returns about the width of a text in pixels at this font size. Fonts differ, so it is rather too wide.
double text_width(std::string_view text, double size = 11);

// Builds the commands of an SVG path. move() and line() take absolute coordinates in pixels; begin with move(). A line
// is written relative to the point before, which is shorter. [any]
class course {
public:
  // Points are rounded to multiples of `grid`: 0.1, or 1 where a drawing has very many.
  explicit course(double grid = 0.1) : grid_(grid) {}
  void move(double x, double y);
  void line(double x, double y);
  const std::string& text() const { return text_; }

private:
  double grid_, x_ = 0, y_ = 0;
  std::string text_;
};

// Builds an SVG drawing. Coordinates are in pixels from the top left. `css` is the value of the class attribute: names
// of classes of chart_style() (look.hpp), separated by spaces, such as "bar c0". `tip` is the tooltip. `text`, `tip`
// and `name` are escaped; the other texts are not. [any]
class svg {
public:
  enum class anchor { start, middle, end };

  void text(double x, double y, std::string_view text, anchor at = anchor::start, std::string_view css = "",
            std::string_view attributes = "");
  void line(double x1, double y1, double x2, double y2, std::string_view css);
  void rect(double x, double y, double width, double height, std::string_view css, std::string_view tip = "");
  // A rectangle filled with the colour of its group at this opacity. `attributes` as of marker().
  void shade(double x, double y, double width, double height, double opacity, std::string_view tip,
             std::string_view attributes);
  void path(std::string_view commands, std::string_view css, std::string_view tip = "");
  // Draws the marker of a series at a position; `shape` is the index of the series (marker_id()). `attributes` is
  // markup and stands as it is.
  void marker(double x, double y, std::size_t shape, std::string_view tip = "", std::string_view attributes = "");
  void begin_group(std::string_view css);
  void end_group() { body_ += "</g>\n"; }

  // Returns the drawing as an element of a page. The page needs chart_style() and, for markers, marker_definitions()
  // (look.hpp). Screen readers read `name` aloud.
  std::string element(double width, double height, std::string_view name) const;
  // Returns the drawing as a file of its own, with style and markers included.
  std::string file(double width, double height, std::string_view name) const;

private:
  std::string body_;
};

} // namespace regatta::page
