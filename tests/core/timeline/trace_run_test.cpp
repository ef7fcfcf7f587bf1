// SPDX-License-Identifier: Apache-2.0
//
// Traces of real runs: nesting, arrows and clocks, over all of their messages.
#include "program.hpp"

#include "decoded_trace.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

using namespace regatta::test;

namespace {

using span = decoded_trace::span;

std::string traced(const std::string& more) {
  return small_experiment(6) + "trace = 2\n[cluster]\nworkers = 2\n" + more;
}

decoded_trace trace_of(const temporary_folder& s, const std::string& toml, const std::string& options = "") {
  std::ofstream(s.path / "x.toml") << toml;
  const outcome o = program(s, "run x.toml --out r " + options);
  INFO(o.err);
  REQUIRE(o.code == 0);
  return decode_trace(read(s.path / "r/traces/case-1-repeat-1.pftrace.gz"));
}

// Returns how many messages have both sides.
std::size_t check_messages(const decoded_trace& t) {
  std::map<std::uint64_t, const span*> sends;
  std::size_t pairs = 0;
  for (const span& s : t.spans)
    for (const std::uint64_t f : s.begins) CHECK(sends.emplace(f, &s).second);
  for (const span& r : t.spans)
    for (const std::uint64_t f : r.ends) {
      REQUIRE(sends.count(f) == 1);
      const span& s = *sends.at(f);
      ++pairs;
      CHECK(s.begin <= r.end); // no receive ends before its send begins
      CHECK(s.numbers.at("bytes") == r.numbers.at("bytes"));
      CHECK(s.numbers.at("lane") == r.numbers.at("lane"));
      CHECK(t.process_of(r).pid == static_cast<int>(s.numbers.at("peer")) + 1);
      CHECK(t.process_of(s).pid == static_cast<int>(r.numbers.at("peer")) + 1);
    }
  CHECK(pairs == sends.size());
  return pairs;
}

std::vector<const span*> of_process(const decoded_trace& t, int pid, const std::string& category) {
  std::vector<const span*> found;
  for (const span& s : t.spans)
    if (s.category == category && t.process_of(s).pid == pid) found.push_back(&s);
  return found;
}

std::set<std::string> names_of(const std::vector<const span*>& spans) {
  std::set<std::string> names;
  for (const span* s : spans) names.insert(s->name);
  return names;
}

} // namespace

TEST_CASE("all-reduce over tcp: two steps of two ranks, with layers, hooks, waits, updates and messages") {
  const temporary_folder s;
  const decoded_trace t =
      trace_of(s, traced("[transport]\nplugin = \"tcp\"\n[strategy]\nplugin = \"allreduce\"\nbucket = \"64KiB\"\n"));
  REQUIRE(t.processes.size() == 2);
  for (const int pid : {1, 2}) {
    const auto steps = of_process(t, pid, "step");
    REQUIRE(steps.size() == 2);
    CHECK(steps[0]->numbers.at("step") == 1); // the first timed step is 0
    CHECK(steps[1]->numbers.at("step") == 2);
    CHECK(steps[0]->end <= steps[1]->begin);
    // Every layer, in every step, within its pass within the step.
    const auto forward = of_process(t, pid, "forward"), backward = of_process(t, pid, "backward");
    CHECK(forward.size() % 2 == 0);
    CHECK(forward.size() >= 6);
    CHECK(backward.size() >= 6);
    for (const span* layer : forward) CHECK(layer->depth == 2);
    CHECK(names_of(of_process(t, pid, "phase")).count("input") == 1);
    CHECK(names_of(of_process(t, pid, "wait")).count("exchange") == 1);
    const auto hooks = names_of(of_process(t, pid, "hook"));
    CHECK(std::any_of(hooks.begin(), hooks.end(), [](const std::string& n) { return n.rfind("ready ", 0) == 0; }));
    CHECK(std::any_of(hooks.begin(), hooks.end(), [](const std::string& n) { return n.rfind("need ", 0) == 0; }));
    CHECK(hooks.count("bucket ready") == 1);
    CHECK(names_of(of_process(t, pid, "update")).count("apply") == 1);
    CHECK(names_of(of_process(t, pid, "strategy")).count("end_step") == 1);
    CHECK_FALSE(of_process(t, pid, "communication").empty()); // of the transport itself
    CHECK_FALSE(names_of(of_process(t, pid, "message")).empty());
  }
  const auto messages = of_process(t, 1, "message");
  CHECK(std::any_of(messages.begin(), messages.end(), [](const span* m) { return m->numbers.count("bucket") == 1; }));
  CHECK(check_messages(t) >= 8);
  std::set<std::string> counters;
  for (const auto& v : t.samples) {
    counters.insert(t.tracks.at(v.track).name);
    CHECK(v.value >= 0);
  }
  CHECK(counters == std::set<std::string>{"bytes in flight", "cores busy"});

  // The records keep no trace.
  CHECK(read(s.path / "r/records.jsonl").find("\"trace\":{") == std::string::npos);

  const outcome path = program(s, "trace r/traces/case-1-repeat-1.pftrace.gz --step 2 --top 1000");
  INFO(path.err);
  CHECK(path.code == 0);
  CHECK(path.out.find("critical path of step 2: ") != std::string::npos);
  // Where the system delays a rank, the path may hold messages alone: critical_path_test has the exact paths.
  const auto links = {" forward\n", " backward\n", "waiting for bucket "};
  CHECK(std::ranges::any_of(links, [&](const char* link) { return path.out.find(link) != std::string::npos; }));
  const outcome missing = program(s, "trace r/traces/case-1-repeat-1.pftrace.gz --step 9");
  CHECK(missing.code == 2);
  CHECK(missing.err.find("--step 9: expected one of the steps in r/traces/case-1-repeat-1.pftrace.gz: 1, 2") !=
        std::string::npos);
  const outcome other = program(s, "trace x.toml");
  CHECK(other.code == 2);
  CHECK(other.err.find("x.toml: expected a whole file in the format of gzip") != std::string::npos);
}

TEST_CASE("a server is a process without steps, and its events are those of the workers' steps") {
  const temporary_folder s;
  const decoded_trace t = trace_of(s, traced("[transport]\nplugin = \"shm\"\n[strategy]\nplugin = \"sync_ps\"\n"));
  REQUIRE(t.processes.size() == 3);
  std::uint64_t first = UINT64_MAX, last = 0;
  for (const span& x : t.spans)
    if (x.category == "step") {
      first = std::min(first, x.begin);
      last = std::max(last, x.end);
    }
  CHECK(of_process(t, 3, "step").empty());
  const auto updates = of_process(t, 3, "update");
  REQUIRE_FALSE(updates.empty());
  CHECK(updates[0]->name == "apply as server");
  for (const span* u : updates) {
    CHECK(u->end >= first);
    CHECK(u->begin <= last);
  }
  CHECK(check_messages(t) >= 8); // two workers, two directions, two steps
}

TEST_CASE("messages of all strategies have both sides, in order") {
  const std::pair<std::string, std::string> pairs[] = {
      {"async_ps", "tcp"}, {"dgc", "shm"}, {"geo_ps", "auto"}, {"local_sgd", "tcp"}, {"sync_ps", "auto"}};
  for (const auto& [strategy, transport] : pairs) {
    CAPTURE(strategy);
    const temporary_folder s;
    // Without k = 1 these two exchange nothing in the traced steps.
    const std::string options = strategy == "local_sgd" || strategy == "geo_ps" ? "k = 1\n" : "";
    const decoded_trace t = trace_of(s, traced("colocate = true\n[transport]\nplugin = \"" + transport +
                                               "\"\n[strategy]\nplugin = \"" + strategy + "\"\n" + options));
    CHECK(check_messages(t) > 0);
  }
}

TEST_CASE("without measure.trace there is none; as many steps as there are may be traced") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << small_experiment(3);
  REQUIRE(program(s, "run x.toml --out none").code == 0);
  CHECK_FALSE(fs::exists(s.path / "none/traces"));
  REQUIRE(program(s, "run x.toml --out all --set measure.trace=5").code == 0);
  const decoded_trace t = decode_trace(read(s.path / "all/traces/case-1-repeat-1.pftrace.gz"));
  CHECK(of_process(t, 1, "step").size() == 3);
}

TEST_CASE("a simulated run has the trace of a real one, on the clock of the simulation") {
  const temporary_folder s;
  std::ofstream(s.path / "m.toml") << "[compute]\nbatch = 32\nsamples_per_second = 1000\n"
                                      "[transport.tcp]\nlatency = \"20us\"\noverhead = \"5us\"\nadd_per_byte = 0.1\n";
  for (const std::string strategy : {"allreduce", "sync_ps", "geo_ps"}) {
    CAPTURE(strategy);
    std::ofstream(s.path / "x.toml") << traced("[transport]\nplugin = \"tcp\"\n[strategy]\nplugin = \"" + strategy +
                                               "\"\n" + (strategy == "geo_ps" ? "k = 1\n" : ""));
    const outcome o = program(s, "simulate x.toml --machine m.toml --format json --out " + strategy);
    INFO(o.err);
    REQUIRE(o.code == 0);
    const std::string file = strategy + "/traces/case-1-repeat-1.pftrace.gz";
    const decoded_trace t = decode_trace(read(s.path / file));
    CHECK(t.processes.size() == (strategy == "allreduce" ? 2 : 3));
    CHECK(check_messages(t) >= 4);
    const json per_rank = json::parse(o.out)["results"][0]["repeats"][0]["case"]["step_seconds"]["per_rank"];
    for (const int pid : {1, 2}) {
      const auto steps = of_process(t, pid, "step");
      REQUIRE(steps.size() == 2);

      CHECK(steps[1]->numbers.at("step") == steps[0]->numbers.at("step") + 1);
      for (std::size_t n : {0, 1})
        CHECK(static_cast<double>(steps[n]->end - steps[n]->begin) ==
              doctest::Approx(1e9 * per_rank[pid - 1][n + 1].get<double>()));
      const auto forward = of_process(t, pid, "forward"), backward = of_process(t, pid, "backward");
      CHECK(forward.size() == backward.size());
      CHECK(forward.size() >= 2 * 4);
      const std::set<std::string> passes = names_of(of_process(t, pid, "phase"));
      CHECK(passes == std::set<std::string>{"backward pass", "forward pass", "input"});
      if (strategy == "sync_ps") { // all of whose weights come from the server
        CHECK(std::ranges::any_of(of_process(t, pid, "wait"),
                                  [](const span* w) { return w->name.starts_with("need ") && w->begin < w->end; }));
      } else {
        CHECK(names_of(of_process(t, pid, "update")).count("apply") == 1);
      }
    }
    const outcome path = program(s, "trace " + file);
    INFO(path.err);
    CHECK(path.code == 0);
    if (strategy != "geo_ps") CHECK(path.out.find(" backward\n") != std::string::npos); // its steps wait for nothing
  }
}
