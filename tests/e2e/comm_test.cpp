// SPDX-License-Identifier: Apache-2.0
//
// `regatta comm`: every operation and algorithm gives right results between real processes, and says so in every
// format.
#include "program.hpp"

#include <set>

using namespace regatta::test;

namespace {

json document(const temporary_folder& s, const std::string& options) {
  const outcome o = program(s, "comm --seconds 0.002 --format json " + options);
  INFO(o.err);
  REQUIRE(o.code == 0);
  return parsed(o.out);
}

} // namespace

TEST_CASE("all operations over both transports, with 2 and 3 ranks") {
  const temporary_folder s;
  const json d =
      document(s, "--op allreduce,reducescatter,allgather,alltoall,broadcast,send,push_pull --transport shm,tcp "
                  "--ranks 2,3 --min 8B --max 100000B --factor 100");
  CHECK(d.at("schema") == "regatta.comm/1");
  CHECK(d.at("context").at("hosts").size() == 1);
  CHECK(d.at("context").at("plugins").size() == 2);
  if (const json& machine = d.at("context").at("machine"); !machine.is_null()) { // null: one CPU
    CHECK(machine.at("fma") > 0);
    CHECK(machine.at("copy") > 0);
  }
  std::set<std::string> seen;
  for (const json& r : d.at("results")) {
    CAPTURE(r);
    CHECK(r.at("wrong") == 0);
    CHECK(r.at("iterations") >= 5);
    const double median = r.at("seconds").at("median"), bytes = r.at("bytes"), n = r.at("ranks");
    CHECK(r.at("seconds").at("min") <= median);
    CHECK(median <= r.at("seconds").at("p99"));
    CHECK(r.at("algorithm_bandwidth").get<double>() == doctest::Approx(bytes / median));
    const std::string op = r.at("op");
    const std::map<std::string, double> factors = {{"allreduce", 2 * (n - 1) / n},
                                                   {"reducescatter", (n - 1) / n},
                                                   {"allgather", (n - 1) / n},
                                                   {"alltoall", (n - 1) / n},
                                                   {"broadcast", 1},
                                                   {"send", 1},
                                                   {"push_pull", 2}};
    const double factor = factors.at(op);
    CHECK(r.at("bus_bandwidth").get<double>() == doctest::Approx(factor * bytes / median));
    CHECK(r.at("wait") == "blocking");
    seen.insert(r.at("transport").get<std::string>() + " " + op +
                (r.at("algorithm").is_null() ? "" : " " + r.at("algorithm").get<std::string>()));
  }
  for (const char* transport : {"shm", "tcp"})
    for (const char* what : {" allreduce ring", " allreduce halving_doubling", " allreduce recursive_doubling",
                             " allreduce circulant", " reducescatter ring", " allgather ring", " alltoall pairwise",
                             " broadcast tree", " broadcast scatter_gather", " send", " push_pull"})
      CHECK(seen.contains(transport + std::string(what)));
  for (const char* what : {" allreduce native", " reducescatter native", " allgather native", " broadcast native"}) {
    CHECK(seen.contains("shm" + std::string(what)));
    CHECK(!seen.contains("tcp" + std::string(what)));
  }
}

TEST_CASE("collectives between 5 ranks, more than a power of two, also over a transport made of others") {
  const temporary_folder s;
  const json d = document(
      s, "--op allreduce,reducescatter,allgather,alltoall,broadcast --transport auto --ranks 5 --min 4B --max 50004B "
         "--factor 25");
  std::set<std::string> seen;
  for (const json& r : d.at("results")) {
    CAPTURE(r);
    CHECK(r.at("wrong") == 0);
    seen.insert(r.at("op").get<std::string>() + " " + r.at("algorithm").get<std::string>());
  }
  CHECK(seen.size() == 5 + 2 + 2 + 1 + 3);
}

TEST_CASE("an algorithm is asked for only where an operation has it") {
  const temporary_folder s;
  std::set<std::string> seen;
  const json d = document(s, "--op broadcast,reducescatter,send --algorithm tree,ring --transport shm --max 8B");
  for (const json& r : d.at("results")) seen.insert(r.at("op"));
  CHECK(seen == std::set<std::string>{"broadcast", "reducescatter", "send"});
  const outcome o = program(s, "comm --op broadcast --algorithm ring");
  CHECK(o.code == 2);
  CHECK(o.err.find("expected native, tree, scatter_gather") != std::string::npos);
  const outcome one_way = program(s, "comm --op send --algorithm ring");
  CHECK(one_way.code == 2);
  CHECK(one_way.err.find("send has only one algorithm") != std::string::npos);
}

TEST_CASE("sizes go from the least to the largest, by the factor") {
  const temporary_folder s;
  std::vector<std::int64_t> sizes;
  const json d = document(s, "--transport shm --op send --min 8B --max 1KiB --factor 8");
  for (const json& r : d.at("results")) sizes.push_back(r.at("bytes"));
  CHECK(sizes == std::vector<std::int64_t>{8, 64, 512, 1024});
}

TEST_CASE("tables and CSV have a row a measurement") {
  const temporary_folder s;
  const std::string options = "comm --seconds 0.002 --transport shm --op send --min 8B --max 64B --factor 8 ";
  const outcome csv = program(s, options + "--format csv");
  REQUIRE(csv.code == 0);
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 3);
  CHECK(csv.out.starts_with("transport,op,algorithm,ranks,"));
  const outcome table = program(s, options);
  REQUIRE(table.code == 0);
  CHECK(table.out.find("busbw     algbw x 2(n-1)/n") != std::string::npos);
  CHECK(table.out.find("#wrong") != std::string::npos);
  const outcome markdown = program(s, options + "--format markdown");
  REQUIRE(markdown.code == 0);
  CHECK(markdown.out.starts_with("| transport"));
}

TEST_CASE("lines of ranks and coordinator are shown up to a level") {
  const temporary_folder s;
  const std::string options = "comm --seconds 0.002 --transport shm --op send --min 8B --max 8B --timeout none ";
  const outcome quiet = program(s, options), detailed = program(s, options + "--log debug");
  REQUIRE(quiet.code == 0);
  REQUIRE(detailed.code == 0);
  CHECK(quiet.err.find("waiting for 2 ranks on ") == std::string::npos);
  CHECK(detailed.err.find("waiting for 2 ranks on ") != std::string::npos);
}

TEST_CASE("invalid options are refused before anything runs") {
  const temporary_folder s;
  for (const char* wrong : {"--op gather", "--min 8", "--min 1MiB --max 8B", "--ranks 1", "--set tcp.chunk",
                            "--set mpi.x=1", "--set tcp.nonsense=1", "--algorithm tree", "--spin long", "--format xml",
                            "--timeout 20", "--timeout 1ms", "--log loud"}) {
    CAPTURE(wrong);
    const outcome o = program(s, std::string("comm --transport tcp ") + wrong);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(!o.err.empty());
  }
  CHECK(program(s, "comm --transport carrier_pigeon").code == 3);
  CHECK(program(s, "comm --transport null --op send").code == 2); // it connects no ranks
}
