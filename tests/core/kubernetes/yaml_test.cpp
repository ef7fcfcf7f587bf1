// SPDX-License-Identifier: Apache-2.0
//
// PyYAML, a parser of YAML 1.1, reads back what yaml_text() wrote. Its rules for plain texts are the widest: "no" and
// "1:20" are no texts there.
#include "json.hpp"
#include "temporary_folder.hpp"

#include "kubernetes/manifest.hpp"
#include "kubernetes/yaml.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using namespace regatta;
using namespace regatta::test;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

// Returns the documents of a YAML stream.
json read_back(const std::string& yaml) {
  const temporary_folder s;
  std::ofstream(s.path / "in", std::ios::binary) << yaml;
  std::ofstream(s.path / "read.py") << "import json, sys, yaml\n"
                                       "with open(sys.argv[1], 'rb') as f:\n"
                                       "  json.dump(list(yaml.safe_load_all(f)), open(sys.argv[2], 'w'))\n";
  const std::string in = s.path.string();
  const int status =
      std::system((PYTHON " " + in + "/read.py " + in + "/in " + in + "/out 2>" + in + "/errors").c_str());
  std::stringstream out, errors;
  errors << std::ifstream(s.path / "errors").rdbuf();
  REQUIRE_MESSAGE(status == 0, errors.str());
  out << std::ifstream(s.path / "out").rdbuf();
  return parsed(out.str());
}

json read_back(const std::vector<ordered_json>& documents) {
  std::string stream;
  for (const auto& d : documents) stream += "---\n" + yaml_text(d);
  return read_back(stream);
}

} // namespace

TEST_CASE("every text is read back as this text") {
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "a",
                                          "no",
                                          "Yes",
                                          "on",
                                          "OFF",
                                          "y",
                                          "N",
                                          "true",
                                          "False",
                                          "null",
                                          "~",
                                          "NULL",
                                          "0",
                                          "00",
                                          "0400",
                                          "0o400",
                                          "0x1F",
                                          "1e3",
                                          "1_000",
                                          "-1",
                                          "+1",
                                          ".5",
                                          ".inf",
                                          ".NaN",
                                          "1:20",
                                          "190:20:30",
                                          "2001-12-14",
                                          "16Gi",
                                          "500m",
                                          "-",
                                          "- a",
                                          "?",
                                          "? a",
                                          ": a",
                                          "a: b",
                                          "a:",
                                          ":a",
                                          "a #b",
                                          "#",
                                          "# a",
                                          "&a",
                                          "*a",
                                          "!a",
                                          "!!str a",
                                          "|",
                                          ">",
                                          "%a",
                                          "@a",
                                          "`a",
                                          "'",
                                          "\"",
                                          "'a'",
                                          "\"a\"",
                                          "\\",
                                          "\\n",
                                          "{a}",
                                          "[a]",
                                          "{",
                                          "]",
                                          ",",
                                          "a, b",
                                          "---",
                                          "...",
                                          "--- a",
                                          "<<",
                                          "=",
                                          "a ",
                                          " a",
                                          "\ta",
                                          "a\t",
                                          "a\\b",
                                          "/a/b_c.toml",
                                          "a\nb",
                                          "a\nb\n",
                                          "a\n\n",
                                          "a\n\n\nb",
                                          "\n",
                                          "\n\n",
                                          "\na",
                                          " a\nb",
                                          "\ta\nb",
                                          "a\n b\n  c\n",
                                          "a \nb\t\n",
                                          "  \na\n",
                                          "a\n   \n",
                                          "a\r\nb\r\n",
                                          "a\rb",
                                          "a\n---\nb\n",
                                          "a\n...\n",
                                          "# a\nb: c\n",
                                          "\x01",
                                          "\x1b[31m",
                                          "\x7f",
                                          "\x7f\n",
                                          "\xC2\x85",
                                          "a\n\xC2\x85\n",
                                          "\xC2\x9F",
                                          "\xC2\xA0",
                                          "\xE2\x80\xA8",
                                          "a\n\xE2\x80\xA9\nb",
                                          "\xEF\xBB\xBF",
                                          "\xEF\xBF\xBE\n",
                                          "gr\xC3\xBC\xC3\x9F",
                                          "\xF0\x9F\x98\x80\nx\n",
                                          std::string(500, 'x'),
                                          std::string("a\0b", 3)};
  std::vector<ordered_json> documents;
  for (const std::string& text : texts)
    documents.push_back({{"value", text}, {"list", {text, text}}, {"deep", {{"text", text}, {"after", 1}}}});
  for (const std::string& text : texts) documents.push_back({{text, "key"}});
  const json back = read_back(documents);
  REQUIRE(back.size() == documents.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    CAPTURE(documents[i].dump());
    CAPTURE(back[i].dump());
    CHECK(back[i] == json(documents[i]));
  }
}

TEST_CASE("random texts and structures are read back") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::string> pieces = {"a",
                                           "B",
                                           " ",
                                           "  ",
                                           "\n",
                                           "\n\n",
                                           "\t",
                                           ":",
                                           "-",
                                           "#",
                                           "\"",
                                           "'",
                                           "\\",
                                           "|",
                                           ">",
                                           "0",
                                           "1",
                                           ".",
                                           ",",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           "&",
                                           "*",
                                           "!",
                                           "%",
                                           "\r",
                                           "\x7f",
                                           "\xC3\xBC",
                                           "\xE2\x80\xA8",
                                           "true",
                                           "---"};
  const auto text = [&] {
    std::string t;
    for (std::size_t i = below(9); i > 0; --i) t += pieces[below(pieces.size())];
    return t;
  };
  std::function<ordered_json(int)> value = [&](int depth) -> ordered_json {
    switch (below(depth > 0 ? 6 : 4)) {
    case 0: return static_cast<int>(below(2000)) - 1000;
    case 1: return below(2) == 1;
    case 2: return below(8) ? ordered_json(text()) : ordered_json(nullptr);
    case 3: return text();
    case 4: {
      ordered_json list = ordered_json::array();
      for (std::size_t i = below(4); i > 0; --i) list.push_back(value(depth - 1));
      return list;
    }
    default: {
      ordered_json object = ordered_json::object();
      for (std::size_t i = below(4); i > 0; --i) object[text()] = value(depth - 1);
      return object;
    }
    }
  };
  std::vector<ordered_json> documents;
  for (int i = 0; i < 400; ++i) documents.push_back({{"v", value(4)}, {"after", text()}});
  const json back = read_back(documents);
  REQUIRE(back.size() == documents.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    CAPTURE(documents[i].dump());
    CHECK(back[i] == json(documents[i]));
  }
}

TEST_CASE("comments change nothing, and stand above their member") {
  const ordered_json value = {{"a", 1}, {"b", {{"c", "x\n\n"}, {"d", ordered_json::array({{{"e", 2}, {"f", 3}}, 4})}}}};
  const yaml_comments comments = {{"/a", "first\nsecond"}, {"/b/d", "list"}, {"/b/d/0/e", "dash"}, {"/b/d/0/f", "in"}};
  CHECK(yaml_text(value, comments) == "# first\n# second\na: 1\nb:\n  c: |+\n    x\n\n  # list\n  d:\n    # dash\n"
                                      "    - e: 2\n      # in\n      f: 3\n    - 4\n");
  CHECK(read_back(yaml_text(value, comments))[0] == json(value));
  CHECK(yaml_comment("a\n\nb: \x1b[1m\n", 2) == "  # a\n  #\n  # b:  [1m\n");
}

TEST_CASE("the YAML and the JSON of a job are the same objects") {
  kubernetes_job job;
  job.name = "on"; // a truth value in YAML 1.1
  job.namespace_ = "404";
  job.image = "registry:5000/regatta@sha256:0123";
  job.processes = 3;
  job.cpu = "1";
  job.memory = "1Gi";
  job.gpus = 1;
  job.file_name = "1.5";
  job.experiment = "# a\r\nb = \"\\u00e9\"\n\n";
  job.secret = "1e3=";
  job.one_per_node = true;
  for (const bool claim : {false, true}) {
    job.results_claim = claim ? "null" : "";
    CHECK(read_back(kubernetes_yaml(job)) == parsed(kubernetes_json(job)).at("items"));
  }
}
