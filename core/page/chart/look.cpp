// SPDX-License-Identifier: Apache-2.0
#include "page/chart/look.hpp"

#include <array>

namespace regatta::page {

std::string chart_style() {
  return R"(.chart{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--rule:#d8dee4;--page:#fff;
 font:11px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
.chart text{fill:var(--ink)}.chart .row{paint-order:stroke;stroke:var(--page);stroke-width:3px}
.chart .dim{fill:var(--dim)}.chart .title{font-size:13px;font-weight:600}
.chart .small{font-size:10px}.chart .grid{stroke:var(--rule);stroke-width:1;fill:none}
.chart .axis{stroke:var(--dim);stroke-width:1;fill:none}
.chart .ref{stroke:var(--dim);stroke-width:1;stroke-dasharray:4 3;fill:none}
.chart .l,.chart .ls>path{fill:none;stroke:currentColor;stroke-width:1.7;stroke-linejoin:round}
.chart .thin .ls>path{stroke-width:1}.chart .e,.chart .ls>path.e{fill:none;stroke:currentColor;stroke-width:1.3}
.chart use{fill:currentColor;stroke:var(--page);stroke-width:.8}
.chart .box{fill:currentColor;fill-opacity:.3;stroke:currentColor;stroke-width:1}
.chart .span{fill:currentColor;fill-opacity:.35;stroke:currentColor;stroke-width:.5}
.chart .mark{stroke:var(--ink);stroke-width:1.4}.chart .arrow{stroke:var(--dim);stroke-width:.7;fill:none}
.chart .bar{fill:currentColor}.chart .loss{stroke:currentColor;stroke-width:8}
.chart .gain{stroke:currentColor;stroke-width:3.5}
.c0{color:#0072b2}.c1{color:#d55e00}.c2{color:#009e73}.c3{color:#cc79a7}.c4{color:#e69f00}.c5{color:#56b4e9}
.c6{color:#000}.cn{color:#8c959f}
@media (prefers-color-scheme:dark){.chart{--ink:#e6edf3;--dim:#9aa5b1;--rule:#30363d;--page:#0f1318}.c6{color:#fff}}
@media print{.chart{--ink:#000;--dim:#444;--rule:#ccc;--page:#fff}.c6{color:#000}}
)";
}

std::string colour_class(std::size_t index) {
  return index == no_series ? "cn" : "c" + std::to_string(index % colours);
}

const char* marker_path(std::size_t index) {
  static constexpr std::array<const char*, markers> paths = {
      "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z",         // circle
      "M-3.2-3.2h6.4v6.4h-6.4z",                                  // square
      "M0-4.2L4 3.2H-4z",                                         // triangle
      "M0-4.6L4.2 0L0 4.6L-4.2 0z",                               // diamond
      "M0 4.2L4-3.2H-4z",                                         // triangle down
      "M-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z" // cross
  };
  return paths[index % markers];
}

std::string marker_id(std::size_t index) {
  return "m" + std::to_string(index % markers);
}

std::string marker_definitions() {
  std::string out = "<defs>";
  for (std::size_t i = 0; i < markers; ++i) out += "<path id=\"" + marker_id(i) + "\" d=\"" + marker_path(i) + "\"/>";
  return out + "</defs>\n";
}

} // namespace regatta::page
