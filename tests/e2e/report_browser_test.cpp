// SPDX-License-Identifier: Apache-2.0
//
// The page of `regatta report` in a browser, if there is one (Debian: chromium).
#include <doctest/doctest.h>

#include <string>

#include "../core/timeline/synthetic_trace.hpp"
#include "program.hpp"

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

std::string measured(const std::string& dom, const std::string& name) {
  const std::string key = "measured-" + name + "=\"";
  const std::size_t at = dom.find(key);
  if (at == std::string::npos) return "missing";
  return dom.substr(at + key.size(), dom.find('"', at + key.size()) - at - key.size());
}

} // namespace

TEST_CASE("in a browser without network, no texts overlap, and the page fits narrow and wide windows" * needs_browser) {
  const temporary_folder s;
  s.write("r/result.json", read(stored + "example.json"));
  for (const char* number : {"2", "4"})
    s.write(std::string("r/traces/case-") + number + "-repeat-1.pftrace.gz", two_workers_trace());
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
