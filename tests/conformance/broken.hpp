// SPDX-License-Identifier: Apache-2.0
//
// Runs `regatta check` on plugins with a defect.
#pragma once

#include "program.hpp"

#include <atomic>
#include <exception>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

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

// A plugin with a defect: tests that must find it, and tests that must pass.
struct defect {
  std::string plugin;
  names broken, sound;
};

inline void verify(const defect& d, const findings& f) {
  CAPTURE(d.plugin);
  CAPTURE(f.document);
  CHECK(f.failed == d.broken);
  CHECK(f.passed == d.sound);
  CHECK(f.code == 1);
}

inline findings find(const defect& d) {
  names all = d.broken;
  all.insert(d.sound.begin(), d.sound.end());
  return check(d.plugin, all);
}

inline void finds(const std::string& plugin, const names& broken, const names& sound) {
  const defect d{plugin, broken, sound};
  verify(d, find(d));
}

// The same for several plugins, four at a time: tests of transports spend most of their time waiting.
inline void finds_all(const std::vector<defect>& defects) {
  std::vector<std::promise<findings>> found(defects.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < defects.size();) try {
        found[i].set_value(find(defects[i]));
      } catch (...) {
        found[i].set_exception(std::current_exception());
      }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::size_t i = 0; i < defects.size(); ++i) verify(defects[i], found[i].get_future().get());
}

} // namespace regatta::test
