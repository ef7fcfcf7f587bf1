// SPDX-License-Identifier: Apache-2.0
//
// `allreduce` measures which algorithm is fastest, keeps what it found, and says which it was; whatever becomes of the
// file, a run goes on.
#include "program.hpp"

#include <set>

using namespace regatta::test;

namespace {

// One bucket of 402 kB in one size class; 4 steps to measure in.
const std::string experiment = R"(
[model]
plugin = "mlp"
hidden = [32, 16]
[data]
source = "random"
[train]
batch = 8
kernels = "fixed"
[strategy]
plugin = "allreduce"
[transport]
plugin = "tcp"
[cluster]
workers = 2
[measure]
warmup = 0
steps = 10
repeats = 1
baseline = false
)";

const std::set<std::string> algorithms = {"ring", "halving_doubling", "recursive_doubling"};

struct cache : scratch {
  fs::path file = path / "cache" / "regatta" / "allreduce-picks";
  std::string environment() const { return "XDG_CACHE_HOME=" + (path / "cache").string(); }

  // Returns the strategy's report.
  json run(const std::string& options = "") const {
    const json all = results(*this, experiment, options, environment());
    REQUIRE(all.at(0).at("status") == "ok");
    CHECK(all.at(0).at("replicas_identical") == true);
    return all.at(0).at("strategy");
  }
  void write(const std::string& text) const { std::ofstream(file, std::ios::binary | std::ios::trunc) << text; }
  std::vector<std::string> lines() const {
    std::istringstream in(read(file));
    std::vector<std::string> all;
    for (std::string l; std::getline(in, l);) all.push_back(l);
    return all;
  }
};

// Buckets that were exchanged so, of both ranks.
std::int64_t count(const json& reported, const std::string& name) {
  std::int64_t sum = 0;
  if (reported.contains(name))
    for (const auto& [bytes, n] : reported.at(name).at("counts").items()) sum += n.get<std::int64_t>();
  return sum;
}

void is_measured(const json& reported) {
  CAPTURE(reported);
  CHECK(count(reported, "picks_measured") == 2 * 4);
  CHECK(count(reported, "picks_from_cache") == 0);
  std::int64_t all = 0;
  for (const std::string& a : algorithms) {
    CHECK(count(reported, a) >= 2 * 2); // each was tried twice
    all += count(reported, a);
  }
  CHECK(all == 2 * 10);
}
void is_remembered(const json& reported, const std::string& algorithm) {
  CAPTURE(reported);
  CHECK(count(reported, "picks_from_cache") == 2 * 10);
  CHECK(count(reported, "picks_measured") == 0);
  CHECK(count(reported, algorithm) == 2 * 10); // from the first step on, and no other
}

std::string algorithm_of(const std::string& line) {
  const auto first = line.find('\t');
  return line.substr(first + 1, line.find('\t', first + 1) - first - 1);
}

} // namespace

TEST_CASE("the first run measures, the next one takes what it found, and both say so") {
  const cache c;
  is_measured(c.run());
  const std::vector<std::string> found = c.lines();
  REQUIRE(found.size() == 2);
  for (const char* part : {"tcp ", "2 workers", "1 hosts", "wire fp32", "from 262144 bytes", " us"})
    CHECK_MESSAGE(found[1].find(part) != std::string::npos, found[1]);
  REQUIRE(algorithms.contains(algorithm_of(found[1])));
  is_remembered(c.run(), algorithm_of(found[1]));
  // It is the file that decides, not a measurement that happens to agree.
  for (const std::string& a : algorithms) {
    c.write(found[0] + "\n" + found[1].substr(0, found[1].find('\t')) + "\t" + a + "\tby hand\n");
    is_remembered(c.run(), a);
  }
  CHECK(c.lines().at(1).ends_with("by hand")); // what was only read is not written
}

TEST_CASE("what was measured holds for runs like it, and no others") {
  const cache c;
  is_measured(c.run());
  is_measured(c.run("--set strategy.allreduce.wire=bf16"));
  is_measured(c.run("--set transport.tcp.chunk=65536"));
  is_measured(c.run("--set strategy.allreduce.wire=fp16"));
  CHECK(c.lines().size() == 1 + 4);
  const json three = c.run("--set cluster.workers=3");
  CHECK(count(three, "picks_measured") == 3 * 4);
  CHECK(c.lines().size() == 1 + 5);
}

TEST_CASE("a file that cannot be read, or says nonsense, is measured over") {
  const cache c;
  c.run();
  const std::vector<std::string> found = c.lines();
  REQUIRE(found.size() == 2);
  const std::string key = found[1].substr(0, found[1].find('\t'));
  for (const std::string& broken :
       {std::string(), std::string("\0\xff\t\t\n\n\t", 8), found[0], found[0] + "\n" + key,
        found[0] + "\n" + key + "\ttelepathy\tfaster\n", "another format\n" + found[1] + "\n",
        found[0] + "\n\t\t\n" + std::string(100'000, 'x')}) {
    CAPTURE(broken.substr(0, 200));
    c.write(broken);
    is_measured(c.run());
    CHECK(algorithms.contains(algorithm_of(c.lines().back()))); // and mended
  }
  fs::remove(c.file);
  fs::create_directory(c.file); // nor can it be written
  is_measured(c.run());
  CHECK(fs::is_directory(c.file));
}

TEST_CASE("runs at the same time do each other's file no harm") {
  const cache c;
  std::ofstream(c.path / "x.toml") << experiment;
  const std::string command = "cd " + c.path.string() + " && export " + c.environment() +
                              " && for i in 1 2 3; do " REGATTA_PROGRAM
                              " run x.toml --out r$i --progress never --format json --set strategy.allreduce.lanes=$i"
                              " >out$i 2>err$i </dev/null & done; wait";
  REQUIRE(std::system(command.c_str()) == 0);
  for (const char* i : {"1", "2", "3"}) {
    INFO(read(c.path / ("err" + std::string(i))));
    CHECK(parsed(read(c.path / ("out" + std::string(i)))).at("results").at(0).at("status") == "ok");
  }
  const std::vector<std::string> found = c.lines();
  REQUIRE(found.size() >= 2); // of runs that ended at once one may be lost, which costs a measurement
  for (std::size_t i = 1; i < found.size(); ++i) CHECK(algorithms.contains(algorithm_of(found[i])));
  for (const auto& left : fs::directory_iterator(c.file.parent_path())) CHECK(left.path() == c.file);
}
