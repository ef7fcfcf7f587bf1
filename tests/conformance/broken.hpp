// SPDX-License-Identifier: Apache-2.0
//
// Runs `regatta check` on plugins with a defect.
#pragma once

#include "program.hpp"

#include <set>
#include <string>

namespace regatta::test {

using names = std::set<std::string>;

// Runs some tests on a plugin; the names of those that failed and of those that passed.
struct findings {
  int code;
  names failed, passed, skipped;
  json document;
};

// Fails if a test is skipped that is not in `may_skip`.
inline findings check(const std::string& plugin, const names& tests, const names& may_skip = {},
                      const std::string& options = "") {
  const temporary_folder s;
  std::string only = " " + options;
  for (const auto& t : tests) only += " --only " + t;
  // Temporary files of the tests are removed with this folder.
  const outcome o =
      program(s, "check " + plugin + " --plugin-path " BROKEN_PLUGINS " --json" + only, "TMPDIR=" + s.path.string());
  INFO(o.err);
  INFO(o.out);
  REQUIRE((o.code == 0 || o.code == 1 || o.code == 77));
  findings f{o.code, {}, {}, {}, parsed(o.out)};
  for (const json& subject : f.document.at("subjects"))
    for (const json& t : subject.at("tests")) {
      const std::string status = t.at("status"), name = t.at("name");
      REQUIRE_MESSAGE((status != "skipped" || may_skip.contains(name)), text_of(t));
      (status == "failed" ? f.failed : status == "skipped" ? f.skipped : f.passed).insert(name);
      CHECK(t.at("message").is_null() == (status == "passed"));
    }
  return f;
}

inline void finds(const std::string& plugin, const names& broken, const names& sound) {
  CAPTURE(plugin);
  names all = broken;
  all.insert(sound.begin(), sound.end());
  const findings f = check(plugin, all);
  CAPTURE(f.document);
  CHECK(f.failed == broken);
  CHECK(f.passed == sound);
  CHECK(f.code == 1);
}

} // namespace regatta::test
