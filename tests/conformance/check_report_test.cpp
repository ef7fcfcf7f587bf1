// SPDX-License-Identifier: Apache-2.0
//
// `regatta check --report`: all formats hold the same results, also of a plugin that fails, prints hostile text or
// never gets to its tests. HTML and XML are read by Python's XML parser, which accepts nothing that is not well-formed.
#include "broken.hpp"

#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

using namespace regatta::test;

namespace {

outcome check_in(const temporary_folder& s, const std::string& arguments) {
  return program(s, "check " + arguments + " --plugin-path " BROKEN_PLUGINS, "TMPDIR=" + s.path.string());
}

// Returns the elements of the document in their order, {"tag", "attributes", "text"}; fails if it is not well-formed.
json elements(const temporary_folder& s, const std::string& file) {
  std::ofstream(s.path / "read.py") << "import json, sys, xml.etree.ElementTree as tree\n"
                                       "print(json.dumps([{'tag': e.tag, 'attributes': e.attrib, 'text': e.text or ''}"
                                       " for e in tree.parse(sys.argv[1]).iter()]))\n";
  const std::string command = "cd " + s.path.string() + " && " PYTHON " read.py " + file + " >elements 2>python";
  const int status = std::system(command.c_str());
  INFO(read(s.path / "python"));
  REQUIRE(status == 0);
  return parsed(read(s.path / "elements"));
}

json with_tag(const json& all, const std::string& tag) {
  json found = json::array();
  for (const json& e : all)
    if (e.at("tag") == tag) found.push_back(e);
  return found;
}

std::string text_of_all(const json& all) {
  std::string text;
  for (const json& e : all) text += e.at("text").get<std::string>() + "\n";
  return text;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Returns the tests of the last subject.
json tests_in(const json& document) {
  return document.at("subjects").back().at("tests");
}

std::size_t leftovers(const temporary_folder& s) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(s.path)) count += entry.path().extension() == ".tmp";
  return count;
}

} // namespace

TEST_CASE("a plugin that fails and prints hostile text") {
  const temporary_folder s;
  const outcome o = check_in(s, "strategy/hostile_text --only plan --only parameters --seed 7 --json "
                                "--report a.html --report a.json --report a.xml --report b.junit");
  INFO(o.err);
  INFO(o.out);
  CHECK(o.code == 1);
  CHECK(leftovers(s) == 0);

  const json document = parsed(read(s.path / "a.json"));
  CHECK(document == parsed(o.out)); // --json prints the same document
  CHECK(document.at("schema") == "regatta.check/1");
  CHECK(document.at("verdict") == "failed");
  CHECK(document.at("seed") == 7);
  CHECK(document.at("not_run") == 0);
  const json& context = document.at("context");
  CHECK(context.at("hosts").at(0).at("cores").is_number());
  CHECK(context.at("abi") == "1.1");
  CHECK(holds(context.at("command"), "check strategy/hostile_text --only plan"));
  CHECK(context.at("plugins").at(0).at("sha256") == document.at("sha256"));
  CHECK(holds(document.at("subjects").back().at("unavailable"), "said </pre>")); // its plan cannot be asked for
  json plan;
  for (const json& test : tests_in(document))
    if (test.at("name") == "plan") plan = test;
  CHECK(plan.at("status") == "failed");
  CHECK(holds(plan.at("output"), "printed </pre></td><script>"));
  CHECK(holds(plan.at("output"), "\nsecond line\n"));
  CHECK(holds(plan.at("output"), "complained\n"));
  CHECK(holds(plan.at("rerun"), "--only plan --seed 7"));

  const json junit = elements(s, "a.xml");
  CHECK(read(s.path / "b.junit") == read(s.path / "a.xml"));
  const json failures = with_tag(junit, "failure");
  REQUIRE(failures.size() == document.at("failed").get<std::size_t>());
  CHECK(with_tag(junit, "testcase").size() == 2);
  CHECK(with_tag(junit, "testsuites").at(0).at("attributes").at("failures") ==
        std::to_string(document.at("failed").get<int>()));
  CHECK(holds(failures.back().at("attributes").at("message"), "said </pre></td><script>"));
  CHECK(holds(text_of_all(with_tag(junit, "system-out")),
              "printed </pre></td><script>alert('x')</script>]]> & \"quoted\""));

  const std::string page = read(s.path / "a.html");
  const json html = elements(s, "a.html");
  CHECK(with_tag(html, "script").empty());
  CHECK(!holds(page, "http"));
  CHECK(!holds(page, "\x1b"));
  CHECK(holds(text_of_all(with_tag(html, "pre")), "printed </pre></td><script>"));
  CHECK(with_tag(html, "h1").at(0).at("text") == "Conformance of strategy hostile_text");
  CHECK(holds(text_of_all(html), document.at("sha256").get<std::string>()));
}

TEST_CASE("a broken transport, and what a sound strategy declares") {
  const temporary_folder s;
  CHECK(check_in(s, "transport/reorders --only fifo --only sizes --report t.json --report t.html").code == 1);
  const json broken = parsed(read(s.path / "t.json"));
  CHECK(broken.at("failed") == 1);
  CHECK(broken.at("passed") == 1);
  CHECK(broken.at("subjects").back().at("capabilities").contains("adds_on_receive"));
  CHECK(holds(read(s.path / "t.html"), "href=\"#"));

  const outcome o = check_in(s, "strategy/sound --only plan --report s.html --report s.json");
  CHECK(o.code == 0);
  CHECK(holds(o.out, "report: s.html\nreport: s.json\n"));
  const json sound = parsed(read(s.path / "s.json"));
  CHECK(sound.at("verdict") == "passed");
  CHECK(sound.at("subjects").back().at("capabilities").at("synchronous") == true);
  CHECK(holds(read(s.path / "s.html"), "<td class=\"passed\">passed</td><td class=\"name\">plan</td>"));
}

TEST_CASE("the tests that did not run are named if the program is killed") {
  const temporary_folder s;
  const std::string plugin = "transport/never_returns"; // its first test hangs until the suite ends it
  const pid_t child = fork();
  if (child == 0) {
    const bool redirected = std::freopen((s.path / "out").c_str(), "w", stdout) != nullptr;
    if (!redirected || chdir(s.path.c_str()) != 0) _exit(9);
    execl(REGATTA_PROGRAM, REGATTA_PROGRAM, "check", plugin.c_str(), "--plugin-path", BROKEN_PLUGINS, "--only", "sizes",
          "--only", "fifo", "--report", "k.json", "--report", "k.xml", nullptr);
    _exit(9);
  }
  bool runs = true;
  while (runs && !holds(read(s.path / "out"), "transport never_returns")) // printed just before the first test
    runs = waitpid(child, nullptr, WNOHANG) == 0;
  REQUIRE(runs);
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 130);
  const json document = parsed(read(s.path / "k.json"));
  CHECK(document.at("verdict") == "unfinished");
  CHECK(document.at("not_run") == 2);
  CHECK(tests_in(document).at(0).at("message") == "it had not ended when this report was written");
  CHECK(tests_in(document).at(1).at("message") == "it had not begun when this report was written");
  CHECK(with_tag(elements(s, "k.xml"), "error").size() == 2);
}

TEST_CASE("a report that cannot be written") {
  const temporary_folder s;
  const outcome missing = check_in(s, "strategy/sound --only plan --report none/a.html");
  CHECK(missing.code == 1);
  CHECK(holds(missing.err, "cannot write none/a.html: "));
  CHECK(!holds(missing.out, "pass  plan")); // said before hours of tests
  const outcome format = check_in(s, "strategy/sound --report a.pdf");
  CHECK(format.code == 2);
  CHECK(holds(format.err, "--report a.pdf: expected a file name that ends in .html, .json, .xml or .junit"));
  CHECK(check_in(s, "strategy/sound --list --report a.html").code == 2);
  CHECK(!fs::exists(s.path / "a.html"));
}
