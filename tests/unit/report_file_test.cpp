// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <doctest/doctest.h>

#include "base/failure.hpp"
#include "report/result_file.hpp"

using namespace regatta;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

struct temporary_folder {
  temporary_folder() {
    std::string name = (fs::temp_directory_path() / "regatta-test-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~temporary_folder() { fs::remove_all(path); }
  fs::path path;
};

std::string content_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

json context() {
  return {{"regatta", "0.1.0"},
          {"git", "abc"},
          {"build", "Release"},
          {"date", "2026-01-01T00:00:00Z"},
          {"experiment", {{"train", {{"batch", 32}}}}},
          {"hosts", json::array({{{"name", "a"}, {"cpu", "b"}, {"cores", 2}}})},
          {"plugins", json::array({{{"kind", "model"}, {"id", "mlp"}, {"sha256", "12"}}})}};
}

json entry(int batch, const std::string& status) {
  return {{"case", {{"train.batch", batch}}}, {"status", status}};
}

const std::vector<json> cases = {{{"train.batch", 32}}, {{"train.batch", 64}}, {{"train.batch", 128}}};

// What the failure says; empty where there is none.
template <class F> std::string refusal(F f) {
  try {
    f();
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::usage);
    return e.what();
  }
  return "";
}

} // namespace

TEST_CASE("a file is replaced as a whole, and nothing else is left") {
  temporary_folder folder;
  const fs::path file = folder.path / "result.json";
  write_atomically(file, "one");
  write_atomically(file, "two");
  CHECK(content_of(file) == "two");
  CHECK(files_in(folder.path) == 1);
  CHECK_THROWS_AS(write_atomically(folder.path / "no" / "folder.json", "x"), failure);
}

TEST_CASE("where the file cannot be replaced, the old one stays") {
  temporary_folder folder;
  const fs::path file = folder.path / "result.json";
  fs::create_directories(file / "occupied"); // rename() does not replace a folder by a file
  CHECK_THROWS_AS(write_atomically(file, "x"), failure);
  CHECK(files_in(folder.path) == 1);
}

TEST_CASE("entries come in the order of the cases, and lie in the file after each") {
  temporary_folder folder;
  result_file file(folder.path / "new" / "folder", context(), cases, false);
  file.store({nullptr, nullptr, entry(128, "ok")});
  CHECK(load_result(file.path())["results"].size() == 1);
  file.store({entry(32, "failed"), nullptr, entry(128, "ok")});
  const json document = load_result(file.path());
  CHECK(document == file.document());
  CHECK(document["results"][0]["case"] == cases[0]);
  CHECK(document["results"][1]["case"] == cases[2]);
  CHECK(document["schema"] == "regatta.result/1");
}

TEST_CASE("a text that is no UTF-8 does not lose the result") {
  temporary_folder folder;
  result_file file(folder.path, context(), cases, false);
  json broken = entry(32, "failed");
  broken["error"] = "name \xff";
  file.store({broken, nullptr, nullptr});
  CHECK(load_result(file.path())["results"][0]["error"].get<std::string>().starts_with("name "));
}

TEST_CASE("a folder that holds a result is refused, unless it is resumed") {
  temporary_folder folder;
  {
    result_file file(folder.path, context(), cases, false);
    file.store({entry(32, "ok"), entry(64, "failed"), nullptr});
  }
  CHECK(refusal([&] { result_file(folder.path, context(), cases, false); }) ==
        (folder.path / "result.json").string() +
            ": this folder already holds a result; choose another with --out, or add --resume");
  json later = context();
  later["date"] = "2026-01-02T00:00:00Z";
  result_file resumed(folder.path, later, cases, true);
  CHECK(resumed.entries() == std::vector<json>{entry(32, "ok"), nullptr, nullptr}); // only what is ok is kept
  resumed.store({entry(32, "ok"), entry(64, "ok"), nullptr});
  CHECK(load_result(resumed.path())["results"].size() == 2);
  CHECK(resumed.document()["context"]["date"] == "2026-01-01T00:00:00Z");
}

TEST_CASE("resuming where there is nothing begins") {
  temporary_folder folder;
  const result_file file(folder.path, context(), cases, true);
  CHECK(file.entries() == std::vector<json>(3));
}

TEST_CASE("a damaged result is refused by name when it is resumed") {
  temporary_folder folder;
  const fs::path path = folder.path / "result.json";
  const auto resumed = [&](const std::string& text) {
    write(path, text);
    const std::string said = refusal([&] { result_file(folder.path, context(), cases, true); });
    CHECK(said.starts_with(path.string() + ": "));
    return said;
  };
  const auto damaged = [&](const json& at, const json& value, const char* entry_member = nullptr) {
    json document = {{"schema", "regatta.result/1"}, {"context", context()}, {"results", {entry(32, "ok")}}};
    if (entry_member)
      document["results"][0][entry_member] = value;
    else
      document["context"].update({{at.get<std::string>(), value}});
    return resumed(document.dump());
  };
  for (const char* key : {"plugins", "hosts"}) {
    CAPTURE(key);
    CHECK(damaged(key, {1, 2}).find("the file is damaged") != std::string::npos);
  }
  CHECK(damaged("plugins", json::array({{{"kind", 5}}})).find("the file is damaged") != std::string::npos);
  CHECK(damaged({}, "much", "samples_per_second").find("the file is damaged") != std::string::npos);
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  CHECK(resumed(R"({"schema": "regatta.result/1", "context": {"experiment": )" + deep + R"(}, "results": []})") ==
        path.string() + ": JSON nested more than 64 deep");
  CHECK(resumed("{").find("no JSON") != std::string::npos);
}

TEST_CASE("what would mix two measurements is refused") {
  CHECK(resume_conflict(context(), context()) == "");
  json other = context();
  other["experiment"]["train"]["batch"] = 33;
  CHECK(resume_conflict(context(), other) == "the experiment is another");
  other = context();
  other["git"] = "def";
  CHECK(resume_conflict(context(), other) == "regatta was rebuilt from other sources");
  other = context();
  other["plugins"][0]["sha256"] = "13";
  CHECK(resume_conflict(context(), other) == "the plugins are other binaries");
  other = context();
  other["hosts"][0]["cores"] = 4;
  CHECK(resume_conflict(context(), other) == "the hosts are others");
  other = context();
  other["hosts"][0]["memory_bytes"] = 1; // free memory may differ
  CHECK(resume_conflict(context(), other) == "");

  temporary_folder folder;
  result_file(folder.path, context(), cases, false).store({entry(32, "ok"), nullptr, nullptr});
  other["git"] = "def";
  CHECK(refusal([&] {
          result_file(folder.path, other, cases, true);
        }).find("cannot resume: regatta was rebuilt from other sources") != std::string::npos);
}

TEST_CASE("a file that is no result says what is wrong with it") {
  temporary_folder folder;
  const fs::path file = folder.path / "r.json";
  const auto says = [&](const std::string& text, const std::string& expected) {
    write(file, text);
    const std::string said = refusal([&] { load_result(file); });
    CHECK_MESSAGE(said.find(file.string() + ": " + expected) == 0, said);
  };
  CHECK(refusal([&] { load_result(folder.path / "none.json"); }).find("No such file") != std::string::npos);
  says("", "no JSON: ");
  says(R"({"schema": "regatta.result/1", "context")", "no JSON: ");
  says("[]", R"(expected a result of schema "regatta.result/1")");
  says(R"({"schema": "regatta.result/2"})", R"(expected a result of schema "regatta.result/1")");
  says(R"({"schema": "regatta.result/1"})", R"("context" is missing)");
  says(R"({"schema": "regatta.result/1", "context": {}})", R"("results" is missing)");
  says(R"({"schema": "regatta.result/1", "context": {}, "results": [{"case": {}}]})",
       R"(an entry of "results" has no "case" or no "status")");
}
