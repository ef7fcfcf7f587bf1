// SPDX-License-Identifier: Apache-2.0
//
// Colours, marker shapes and sizes of the charts. Colours are those of Okabe and Ito (Color Universal Design, 2008),
// which the colour-blind tell apart; each series has a marker of its own as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace regatta::page {

inline constexpr std::size_t colours = 7; // yellow is left out: it is hardly visible on white
inline constexpr std::size_t markers = 6;
inline constexpr std::size_t no_series = SIZE_MAX; // grey: of a mark that belongs to no series

// The CSS that all charts share, for the page and for a chart's own file. Colours follow the reader's light or dark
// theme; on paper they are those of the light one.
std::string chart_style();

// Returns the class that sets the colour of series `index`: "c0" to "c6", "cn" for no_series.
std::string colour_class(std::size_t index);

// Returns the id of the marker of series `index`, which marker_definitions() defines.
std::string marker_id(std::size_t index);
// Returns an element that draws nothing and defines the markers. A page has it once, a drawing's own file has its own.
std::string marker_definitions();

// Returns the outline of the marker of series `index`, centred at 0, 0, as the commands of a path: circle, square,
// triangle, diamond, triangle down, cross. With 7 colours, 42 series differ in colour or shape.
const char* marker_path(std::size_t index);

} // namespace regatta::page
