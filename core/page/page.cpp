// SPDX-License-Identifier: Apache-2.0
#include "page/page.hpp"

#include <fmt/format.h>

#include "files/markup.hpp"
#include "page/chart/look.hpp"
#include "page/sections.hpp"
#include "report/fields.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

constexpr const char* page_style = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#57606a;--rule:#d8dee4;--page:#fff;--soft:#f3f5f7;--good:#116329;
 --bad:#b3141c}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--dim:#9aa5b1;--rule:#30363d;--page:#0f1318;--soft:#1a2028;
 --good:#57c974;--bad:#ff7b72}}
body{color:var(--ink);background:var(--page);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",
 sans-serif;max-width:74rem;margin:1.5rem auto 3rem;padding:0 1rem}
h1{font-size:1.6rem;margin:0 0 .2rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.6rem 0 .6rem;padding-top:.6rem;border-top:1px solid var(--rule)}
h3{font-size:1rem;margin:1.4rem 0 .4rem}p{margin:.4rem 0;overflow-wrap:anywhere}
p.note,p.about{color:var(--dim);font-size:.88rem;max-width:60rem}
nav{margin:.6rem 0 0;font-size:.9rem}nav a{color:inherit;margin-right:1.1rem;display:inline-block}
dl.facts{display:grid;grid-template-columns:max-content 1fr;gap:.35rem 1rem;margin:0}
dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}dd ul{margin:0;padding-left:1.1rem}
.good{color:var(--good)}.bad{color:var(--bad)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,24rem),1fr));gap:1.4rem 2rem;
 margin:.8rem 0;align-items:start}
figure{margin:0;max-width:38rem}figure.broad{grid-column:1/-1;max-width:none;overflow-x:auto}
figure.broad svg{min-width:46rem}figure svg{display:block;width:100%;height:auto;overflow:visible}
.wide{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{text-align:left;font-weight:normal;padding:.22rem .9rem .22rem 0;border-bottom:1px solid var(--rule);
 white-space:nowrap;vertical-align:top}
thead th{color:var(--dim)}th[title]{text-decoration:underline dotted;text-underline-offset:3px;cursor:help}
.n,td[data-value]{text-align:right}td.bad{white-space:normal}
td.text{white-space:normal;min-width:18rem}
pre{background:var(--soft);padding:.6rem .8rem;margin:.5rem 0;font-size:.82rem;white-space:pre-wrap;
 overflow-wrap:anywhere}
summary{cursor:pointer;margin:.6rem 0}
@media (max-width:40rem){dl.facts{grid-template-columns:1fr;gap:0}dt{margin-top:.5rem}}
@media print{:root{--ink:#000;--dim:#444;--rule:#bbb;--page:#fff;--soft:#fff;--good:#000;--bad:#000}
 body{max-width:none;margin:0;padding:0;font-size:10pt}nav{display:none}
 .figures{grid-template-columns:1fr 1fr;gap:.8rem 1.2rem}figure,tr{break-inside:avoid}h2,h3{break-after:avoid}
 .wide,figure.broad{overflow:visible}figure.broad svg{min-width:0}
 th[title]{text-decoration:none}table{font-size:7.5pt}p.note{font-size:8pt}th,td{padding-right:.5rem}}
)";

bool is_comm(const json& document) {
  return document.value("schema", json()) == "regatta.comm/1";
}

std::string title_of(const json& document) {
  if (is_comm(document)) return "Transports and collectives";
  const json experiment = document.at("context").value("experiment", json::object());
  const json name = value_at(experiment, "experiment.name");
  return name.is_string() && name != "" ? plain_text(name) : "Result";
}

void write_document(writer& w, const source& s, std::size_t number) {
  const json& context = s.document.at("context");
  w.begin_document(number, title_of(s.document),
                   fmt::format("{} · regatta {}", plain_text(context.value("date", json())),
                               plain_text(context.value("regatta", json()))));
  if (is_comm(s.document)) {
    write_comm(w, s.document);
    write_again(w, context, "");
    return w.end_document();
  }
  std::vector<std::pair<const char*, const char*>> sections = {{"trust", "What, and whether to trust it"},
                                                               {"speed", "How fast"},
                                                               {"losses", "Why not faster"},
                                                               {"steps", "Steps"},
                                                               {"learning", "Learning"},
                                                               {"again", "Run it again"}};
  if (!s.document.value("claims", json::array()).empty()) sections.insert(sections.begin() + 1, {"claims", "Claims"});
  w.navigation(sections);
  const result_view r(s.document);
  write_trust(w, r);
  write_claims(w, r);
  if (!r.measured().empty()) {
    write_speed(w, r);
    write_losses(w, r);
    write_steps(w, r);
    write_timeline(w, r, s.traces);
    write_learning(w, r);
  } else {
    w.paragraph("No case has run.");
    w.table(r.table_of_cases(true));
  }
  write_again(w, context, s.toml);
  w.end_document();
}

} // namespace

page render_page(const std::vector<source>& sources, const std::string& figure_folder) {
  writer w(figure_folder);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources.size() > 1) w.set_prefix(fmt::format("r{}-", i + 1));
    write_document(w, sources[i], i);
  }
  std::string html = fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                                 "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n"
                                 "<svg class=\"chart\" width=\"0\" height=\"0\" style=\"position:absolute\">{}</svg>\n"
                                 "{}</body>\n</html>\n",
                                 markup_text(title_of(sources.at(0).document)), page_style, chart_style(),
                                 marker_definitions(), w.markup());
  return {std::move(html), w.markdown(), w.take_figures()};
}

} // namespace regatta::page
