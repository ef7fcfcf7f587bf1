// SPDX-License-Identifier: Apache-2.0
//
// `regatta report`: formats, files and errors; and the page in a browser, if there is one.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "../core/timeline/synthetic_trace.hpp"
#include "program.hpp"
#include "timeline/perfetto.hpp"

using namespace regatta::test;

namespace {

const std::string stored = REGATTA_SOURCE "/tests/core/page/";

std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

const doctest::skip needs_browser(browser().empty());

// Measures the page in the browser: texts of a drawing that overlap, whether the page is wider than the window, and the
// files that it asked for.
constexpr const char* measuring = R"(<script>
const found = [];
for (const svg of document.querySelectorAll('figure svg')) {
  const texts = [...svg.querySelectorAll('text')].map(e => [e.textContent, e.getBoundingClientRect()]);
  const frame = svg.getBoundingClientRect();
  texts.forEach(([a, p], i) => {
    if (p.left < frame.left - 2 || p.right > frame.right + 2) found.push(a + ' leaves its drawing');
    for (const [b, q] of texts.slice(i + 1))
      if (p.left + 1 < q.right && q.left + 1 < p.right && p.top + 3 < q.bottom && q.top + 3 < p.bottom)
        found.push(a + ' | ' + b);
  });
}
document.body.setAttribute('measured-overlaps', found.join('; '));
document.body.setAttribute('measured-width', document.documentElement.scrollWidth <= innerWidth ? 'fits' : 'too wide');
document.body.setAttribute('measured-requests', performance.getEntriesByType('resource').length);
document.body.setAttribute('measured-figures', document.querySelectorAll('figure svg').length);
</script></body>)";

// Returns the trace of a step of two workers, which exchange eight buckets.
std::string trace_file() {
  synthetic_rank ranks[] = {synthetic_rank(0, "worker 0 + server 0"), synthetic_rank(1, "worker 1")};
  for (std::uint32_t r = 0; r < 2; ++r) {
    ranks[r].step(7, 1000 * r, 900'000);
    for (std::uint64_t l = 0; l < 16; ++l)
      ranks[r].layer("conv" + std::to_string(l), l < 8 ? "forward" : "backward", 1000 + 40'000 * l, 40'000 * (l + 1));
    for (std::uint32_t b = 0; b < 8; ++b) {
      const std::uint64_t ready = 40'000 * (b + 9);
      ranks[r].bucket(b, ready);
      ranks[r].message(regatta::event_kind::send, 1 - r, b, ready, ready + 90'000, b);
      ranks[r].message(regatta::event_kind::receive, 1 - r, b, ready, ready + 100'000, b);
      ranks[r].operation("apply", ready + 100'000, ready + 120'000);
    }
    ranks[r].compute("exchange", "wait", 640'000, 890'000);
  }
  return regatta::perfetto_file({ranks[0], ranks[1]});
}

std::string measured(const std::string& dom, const std::string& name) {
  const std::string key = "measured-" + name + "=\"";
  const std::size_t at = dom.find(key);
  if (at == std::string::npos) return "missing";
  return dom.substr(at + key.size(), dom.find('"', at + key.size()) - at - key.size());
}

} // namespace

TEST_CASE("a stored result is shown in every format, by name or by the ending of the file") {
  const temporary_folder s;
  s.write("r/result.json", read(stored + "example.json"));
  s.write("r/resolved-1.toml", "[model]\nplugin = \"mlp\"\n");
  CHECK(program(s, "report r").out.find("replicas identical") != std::string::npos);
  CHECK(program(s, "report r --format markdown").out.find("| allreduce |") != std::string::npos);
  CHECK(program(s, "report r/result.json -o x.csv").code == 0);
  const std::string csv = s.read("x.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 13); // headers, and three repeats of four cases
  CHECK(parsed(program(s, "report r --format json").out)["results"].size() == 4);
  const outcome page = program(s, "report r " + stored + "comm.json -o x.html --figures f");
  CHECK(page.code == 0);
  CHECK_MESSAGE(page.err.empty(), page.err);
  CHECK(s.read("x.html").starts_with("<!DOCTYPE html>"));
  CHECK(s.read("x.html").find("plugin = &quot;mlp&quot;") != std::string::npos); // the resolved TOML
  CHECK(s.read("f/r1-lost.svg").starts_with("<svg "));
  CHECK(s.read("f/r1-lost.csv").starts_with("row,"));
}

TEST_CASE("Markdown links to the figures that it writes, and shows a step of the trace beside the result") {
  const temporary_folder s;
  s.write("r/result.json", read(stored + "example.json"));
  s.write("r/traces/case-2-repeat-1.pftrace.gz", trace_file());
  s.write("r/traces/case-4-repeat-1.pftrace.gz", "no trace");
  REQUIRE(program(s, "report r -o x.md --figures f").code == 0);
  const std::string text = s.read("x.md");
  std::size_t links = 0;
  for (std::size_t at = 0; (at = text.find("](<", at)) != std::string::npos; ++links) {
    const std::string file = text.substr(at + 3, text.find('>', at) - at - 3);
    CHECK_MESSAGE(s.read(file).starts_with("<svg "), file);
    at += 3;
  }
  CHECK(links >= 9);
  CHECK(text.find("](<f/timeline-2.svg>)") != std::string::npos);
  CHECK(text.find("The trace cannot be shown: ") != std::string::npos);
  CHECK(text.find("case-4-repeat-1.pftrace.gz: ") != std::string::npos);
  // The entries of a result that lacks cases do not tell the numbers in the names of traces.
  json lacking = parsed(read(stored + "example.json"));
  lacking["context"]["cases"] = 5;
  s.write("r/result.json", lacking.dump());
  CHECK(program(s, "report r --format markdown").out.find("This result has no trace.") != std::string::npos);
}

TEST_CASE("files without a result are refused with the reason") {
  const temporary_folder s;
  s.write("other.json", "{\"schema\": \"regatta.check/1\"}");
  s.write("half.json", "{\"schema\": ");
  s.write("empty/x", "");
  const std::pair<const char*, const char*> wrong[] = {
      {"none.json", "none.json: cannot be read"},
      {"empty", "empty/result.json: cannot be read"},
      {"other.json", "got \"regatta.check/1\""},
      {"half.json", "half.json: "},
  };
  for (const auto& [file, reason] : wrong) {
    const outcome o = program(s, std::string("report ") + file);
    CHECK(o.code == 2);
    CHECK_MESSAGE(o.err.find(reason) != std::string::npos, o.err);
  }
  json lacking = parsed(read(stored + "example.json"));
  lacking["results"][0]["loss"].erase("curve");
  lacking["results"][1]["efficiency"]["low"] = "none";
  s.write("lacking.json", lacking.dump());
  CHECK(program(s, "report lacking.json").err.find("lacking.json: expected a complete result") != std::string::npos);
  json changed = parsed(read(stored + "example.json"));
  changed["context"]["experiment"]["report"]["value"] = "{efficiency";
  s.write("changed.json", changed.dump());
  CHECK(program(s, "report changed.json").err.find("changed.json: [report]: expected a }") != std::string::npos);
  const std::string example = "report " + stored + "example.json ";
  CHECK(program(s, example + "-o x.pdf").code == 2);
  CHECK(program(s, example + "--format pdf").code == 2);
  CHECK(program(s, example + "--figures f").code == 2);
  CHECK(program(s, example + stored + "comm.json --format csv").code == 2);
  CHECK(program(s, example + "-o none/x.html").code == 1);
}

TEST_CASE("in a browser without network, no texts overlap, and the page fits narrow and wide windows" * needs_browser) {
  const temporary_folder s;
  s.write("r/result.json", read(stored + "example.json"));
  for (const char* number : {"2", "4"})
    s.write(std::string("r/traces/case-") + number + "-repeat-1.pftrace.gz", trace_file());
  json comm = parsed(read(stored + "comm.json"));
  comm["context"]["machine"] = {
      {"fma", 5e11}, {"copy", 5e10}, {"line_round_trip_seconds", 3e-7}, {"clock_hz", nullptr}};
  s.write("comm.json", comm.dump());
  REQUIRE(program(s, "report r comm.json -o x.html").code == 0);
  std::string page = s.read("x.html");
  page.replace(page.rfind("</body>"), 7, measuring);
  s.write("x.html", page);
  const bool own_network = std::system("unshare -rn true 2>/dev/null") == 0;
  for (const int width : {480, 900, 1400}) {
    const std::string command = std::string("cd ") + s.path.string() + " && " + (own_network ? "unshare -rn " : "") +
                                "timeout 120 " + browser() +
                                " --headless=new --no-sandbox --disable-gpu --no-first-run "
                                "--host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir=" +
                                s.path.string() + "/profile --window-size=" + std::to_string(width) +
                                ",3000 --dump-dom file://" + s.path.string() + "/x.html >dom 2>err </dev/null";
    REQUIRE_MESSAGE(std::system(command.c_str()) == 0, s.read("err"));
    const std::string dom = s.read("dom");
    CHECK(measured(dom, "figures") == "20");
    CHECK_MESSAGE(measured(dom, "overlaps") == "", width, " pixels: ", measured(dom, "overlaps"));
    CHECK_MESSAGE(measured(dom, "width") == "fits", width, " pixels");
    CHECK(measured(dom, "requests") == "0");
  }
}
