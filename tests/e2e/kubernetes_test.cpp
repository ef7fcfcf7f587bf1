// SPDX-License-Identifier: Apache-2.0
//
// `regatta kubernetes`: from an experiment to objects, and what it refuses.
#include "program.hpp"

#include <algorithm>

using namespace regatta::test;

namespace {

const std::string experiment = R"(
[model]
plugin = "mlp"
hidden = [16]
[cluster]
workers = 3
[transport]
plugin = "tcp"
[sweep]
"strategy.plugin" = ["allreduce", "sync_ps"]
)";

outcome printed(const temporary_folder& s, const std::string& options, const std::string& toml = experiment) {
  std::ofstream(s.path / "My Test.toml") << toml;
  return program(s, "kubernetes 'My Test.toml' --image example.org/regatta:1 " + options);
}

json job_of(const outcome& o) {
  INFO(o.err);
  REQUIRE(o.code == 0);
  return parsed(o.out).at("items").at(3);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("as many pods as the largest case has ranks, with the file as it is") {
  const temporary_folder s;
  const outcome o = printed(s, "--format json");
  const json job = job_of(o), items = parsed(o.out).at("items");
  CHECK(job.at("metadata").at("name") == "regatta-my-test");
  CHECK(job.at("spec").at("completions") == 4); // sync_ps has a server
  CHECK(items.at(1).at("data") == json{{"My-Test.toml", experiment}});
  CHECK(o.err.empty());
  CHECK(!fs::exists(s.path / "results"));
  CHECK(job_of(printed(s, "--format json --processes 9 --name x")).at("spec").at("parallelism") == 9);
}

TEST_CASE("the example for clusters runs with one process for each worker") {
  const temporary_folder s;
  const std::string file = "'" REGATTA_SOURCE "/examples/cluster/cluster.toml'";
  const outcome o = program(s, "kubernetes " + file + " --image regatta --format json");
  CHECK(job_of(o).at("spec").at("completions") == 4);
  CHECK(o.err.empty());
  const outcome run =
      program(s, "run " + file + " --set model.hidden=[16] --set measure.steps=2 --set measure.repeats=1" +
                     " --set measure.baseline=false --out r --progress never --format json");
  INFO(run.err);
  CHECK(run.code == 0);
}

TEST_CASE("each print has a new secret of 32 bytes in base64") {
  const temporary_folder s;
  std::vector<std::string> secrets;
  for (int i = 0; i < 2; ++i)
    secrets.push_back(parsed(printed(s, "--format json").out).at("items").at(0).at("stringData").at("secret"));
  CHECK(secrets[0] != secrets[1]);
  for (const std::string& secret : secrets) {
    CHECK(secret.size() == 44);
    CHECK(secret.ends_with("="));
    CHECK(std::all_of(secret.begin(), secret.end() - 1,
                      [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '/'; }));
  }
}

TEST_CASE("cases that one host must hold are refused, or named beside others") {
  const temporary_folder s;
  std::string shared = experiment;
  shared.replace(shared.find("\"tcp\""), 5, "\"shm\"");
  const outcome refused = printed(s, "", shared);
  CHECK(refused.code == 2);
  CHECK(refused.out.empty());
  CHECK(has(refused.err, "expected 1 over transport shm"));

  const outcome some = printed(s, "--format json", experiment + "\"transport.plugin\" = [\"shm\", \"tcp\"]\n");
  CHECK(job_of(some).at("spec").at("completions") == 4);
  CHECK(has(some.err, "warning: a case will not run in pods: "));
}

TEST_CASE("files of this machine are named") {
  const temporary_folder s;
  s.write("words.txt", "a b c d e f g h\n");
  const outcome o = printed(s, "--format json", R"(
[model]
plugin = "word2vec"
[data]
source = "dataset"
format = "words"
path = "words.txt"
[cluster]
workers = 2
interface = "127.0.0.1"
[transport]
plugin = "tcp"
)");
  CHECK(has(o.err, "must have " + (s.path / "words.txt").string()));
}

TEST_CASE("wrong options are refused by name, with what was expected") {
  const temporary_folder s;
  for (const auto& [options, error] : std::vector<std::pair<std::string, std::string>>{
           {"--processes 3", "--processes: expected at least 4, the ranks of the largest case, got 3"},
           {"--name My_Job", "--name: expected a DNS label"},
           {"--namespace a.b", "--namespace: expected a DNS label"},
           {"--results /data", "--results: expected a DNS label"},
           {"--cpu many", "--cpu: expected a number of CPUs above 0, such as 4, 0.5 or 500m, got \"many\""},
           {"--memory 16", "--memory: expected a size of at least 1 MiB, such as 16GiB, got \"16\""},
           {"--image 'a b'", "--image"},
           {"--format toml", "--format"}}) {
    CAPTURE(options);
    const outcome o = printed(s, options);
    CAPTURE(o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(has(o.err, error));
  }
}
