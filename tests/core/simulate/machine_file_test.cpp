// SPDX-License-Identifier: Apache-2.0
#include "simulate/machine_file.hpp"

#include "base/failure.hpp"
#include "temporary_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>

using namespace regatta;

namespace {

// Returns the text of the failure.
std::string refusal(const std::string& text, const std::string& network = "") {
  try {
    parse_machine("m.toml", text, network.empty() ? "" : "n.toml", network);
  } catch (const failure& f) {
    CHECK(f.code() == exit_code::usage);
    return f.what();
  }
  return "";
}

const std::string rates = "[compute]\nbatch = [32, 64]\nsamples_per_second = [10, 16]\n";

} // namespace

TEST_CASE("errors have positions, and all are shown at once") {
  const std::string text = refusal("[compute]\nbatch = 32\nsamples_per_second = -1\nforward_shar = 0.3\n"
                                   "[transport.tcp]\nlatency = \"fast\"\n");
  CHECK(text.find("m.toml:3:22: error: compute.samples_per_second: expected") != std::string::npos);
  CHECK(text.find("m.toml:4:1: error: compute.forward_shar: unknown key") != std::string::npos);
  CHECK(text.find("forward_share") != std::string::npos); // the near name
  CHECK(text.find("m.toml:6:11: error: transport.tcp.latency: expected a time such as \"20us\"") != std::string::npos);
  CHECK(refusal("[compute]\ninput = \"1ms\"\n").find("got none of them") != std::string::npos);
  CHECK(refusal("[compute]\nafter = \"2ms\"\n").find("compute.batch: expected the samples of the step") !=
        std::string::npos);
  CHECK(refusal(rates, "[network]\nservers = \"far\"\n").find("n.toml:2:11: error: network.servers") !=
        std::string::npos);
  CHECK(refusal(rates, "[network]\ngoodput = 1.1\n").find("n.toml:2:11: error: network.goodput") == 0);
  CHECK(refusal("[compute\n").find("m.toml:1:") == 0);
  CHECK(refusal("schema = \"regatta.machine/9\"\n" + rates).find("m.toml:1:10: error: schema") == 0);
}

TEST_CASE("a conversion to fp16 takes as long as one to bf16 unless it is given, and both as long as the default") {
  const auto ns = [](const std::string& work) {
    const machine_file m = parse_machine("m.toml", rates + "[work]\n" + work);
    return std::pair(conversion_ns_per_byte(m, false), conversion_ns_per_byte(m, true));
  };
  CHECK(ns("default = 0.25\n") == std::pair(0.25, 0.25));
  CHECK(ns("default = 0.25\nconvert = 0.5\n") == std::pair(0.5, 0.5));
  CHECK(ns("default = 0.25\nconvert_fp16 = 2\n") == std::pair(0.25, 2.0));
  CHECK(ns("convert = 0.5\nconvert_fp16 = 2\n") == std::pair(0.5, 2.0));
}

TEST_CASE("a share of the sender's is from 0 to 1, and half by default") {
  const auto costs = [](const std::string& text) {
    return parse_machine("m.toml", rates + "[transport.tcp]\n" + text).transports.at("tcp");
  };
  CHECK(costs("overhead_per_byte = 1\n").send_share == 0.5);
  CHECK(costs("send_share = 1\n").send_share == 1);
  CHECK(costs("apply_in_training = 1.5\n").apply_in_training == 1.5);
  CHECK(refusal(rates + "[transport.tcp]\nsend_share = 1.1\n")
            .find("m.toml:5:14: error: transport.tcp.send_share: "
                  "expected a number from 0 to 1, got 1.1") != std::string::npos);
}

TEST_CASE("large messages, and those between hosts, have costs of their own, which are written and read back") {
  const std::string tcp = rates + "[transport.tcp]\noverhead_per_byte = 0.1\n";
  const machine_file m = parse_machine("m.toml", tcp + "large_from = \"512KiB\"\nlarge_factor = 2.5\n"
                                                       "[transport.tcp.between_hosts]\noverhead = \"20us\"\n"
                                                       "overhead_per_byte = 0.4\n");
  const message_costs& c = m.transports.at("tcp");
  CHECK(static_cast<const message_work&>(c) == message_work{0, 0.1, 512 << 10, 2.5});
  CHECK(c.between_hosts == message_work{20'000, 0.4});
  CHECK(parse_machine("m.toml", machine_text(m)).transports == m.transports);
  CHECK(machine_text(parse_machine("m.toml", tcp)).find("large") == std::string::npos);
  CHECK(
      refusal(tcp + "large_factor = 2\n").find("m.toml:6:16: error: transport.tcp.large_factor: expected large_from") ==
      0);
  CHECK(refusal(tcp + "[transport.tcp.between_hosts]\nlatency = 0\n")
            .find("m.toml:7:1: error: transport.tcp.between_hosts.latency: unknown key") == 0);
  CHECK(refusal(tcp + "large_from = \"big\"\n").find("expected bytes such as \"512KiB\"") != std::string::npos);
}

TEST_CASE("units are converted, and a network file takes the machine's place") {
  const machine_file m =
      parse_machine("m.toml", rates + "[transport.tcp]\nlatency = \"20us\"\nbandwidth = \"8Gbit/s\"\n[network]\n"
                                      "bandwidth = \"1Gbit/s\"\n");
  CHECK(m.transports.at("tcp").latency_ns == 20'000);
  CHECK(m.transports.at("tcp").bytes_per_ns == doctest::Approx(1));
  CHECK(m.between.bytes_per_ns == doctest::Approx(0.125));
  const machine_file other =
      parse_machine("m.toml", rates, "n.toml", "[network]\nbandwidth = \"16Gbit/s\"\ngoodput = 0.5\n");
  CHECK(other.between.bytes_per_ns == doctest::Approx(2));
  CHECK(m.between.goodput == 1);
  CHECK(other.between.goodput == 0.5);
  CHECK(parse_machine("m.toml", machine_text(other)).between == other.between);
  CHECK(other.text_hash != m.text_hash);
}

TEST_CASE("a model may have sparse tables only, whose rows are given as a number or as an exponent") {
  const machine_file m = parse_machine("m.toml", "[compute]\nbatch = 100\nafter = \"2ms\"\n[[compute.table]]\n"
                                                 "name = \"input\"\nrows = 90\n");
  CHECK(m.batch == 100);
  CHECK(m.after_ns == 2e6);
  CHECK(m.tables.at(0).batch == 100);
  const std::string table = "[[compute.table]]\nname = \"input\"\n";
  CHECK(refusal(rates + table).find("m.toml:4:1: error: compute.table: expected either rows of a step, or") == 0);
  CHECK(refusal(rates + table + "rows = 90\n").find("error: compute.table.batch: expected the samples") !=
        std::string::npos);
  CHECK(refusal(rates + table + "rows = 90\nbatch = 32\n").empty());
  CHECK(refusal(rates + table + "zipf = 1\nrow = 3\n").find("m.toml:7:1: error: compute.table.row: unknown key") == 0);
}

TEST_CASE("a step between two batches is interpolated, beyond them proportional") {
  const machine_file m = parse_machine("m.toml", rates);
  CHECK(step_ns_of(m, 32) == doctest::Approx(3.2e9));
  CHECK(step_ns_of(m, 48) == doctest::Approx(3.6e9));
  CHECK(step_ns_of(m, 16) == doctest::Approx(1.6e9));
  CHECK(step_ns_of(m, 128) == doctest::Approx(8e9));
}

TEST_CASE("computing shares the cores beyond the numbers of workers that were measured") {
  const machine_file m =
      parse_machine("m.toml", rates + "[machine]\ncores = 2\n[contention]\nworkers = [1, 2]\nslowdown = [1, 1.1]\n");
  CHECK(contention_of(m, 1) == 1);
  CHECK(contention_of(m, 2) == doctest::Approx(1.1));
  CHECK(contention_of(m, 4) == doctest::Approx(2.2));
  CHECK(contention_of(parse_machine("m.toml", rates), 8) == 1);
}

TEST_CASE("operations of several ranks at once take longer, where that was measured") {
  const machine_file m =
      parse_machine("m.toml", rates + "[contention]\nworkers = [1, 3]\nslowdown = [1, 1.1]\noperations = [1, 2]\n");
  CHECK(operation_contention_of(m, 1) == 1);
  CHECK(operation_contention_of(m, 2) == doctest::Approx(1.5));
  CHECK(operation_contention_of(m, 8) == 2);
  CHECK(operation_contention_of(parse_machine("m.toml", rates), 8) == 1);
  CHECK(refusal(rates + "[contention]\nworkers = [1, 2]\nslowdown = [1, 2]\noperations = 1\n", "")
            .find("contention.operations: expected as many numbers as contention.workers has, 2, got 1") !=
        std::string::npos);
}

TEST_CASE("computing that takes no core does not share any") {
  const machine_file m = parse_machine("m.toml", "[machine]\ncores = 2\n[compute]\non_cores = false\nbatch = 1\n"
                                                 "samples_per_second = 1\n[network]\ncore_load = 0.5\n");
  CHECK(contention_of(m, 8) == 1);
  CHECK(load_factor(m, 0, 8) == 1);
}

TEST_CASE("steps are drawn from the quantiles, or from a normal distribution, with a mean of 1") {
  const auto drawn = [](const std::string& text, double first, double second = 0.5) {
    return drawn_factor(parse_machine("m.toml", rates + text), first, second);
  };
  CHECK(drawn("", 0.9) == 1);
  CHECK(drawn("quantiles = [1, 2]\n", 0.9) == 1);                        // no variation is asked for
  const std::string skewed = "variation = 0.3\nquantiles = [1, 1, 4]\n"; // the mean is 1.75
  CHECK(drawn(skewed, 0.25) == doctest::Approx(1 / 1.75));
  CHECK(drawn(skewed, 0.75) == doctest::Approx(2.5 / 1.75));
  CHECK(drawn(skewed, 1 - 1e-12) == doctest::Approx(4 / 1.75));
  double sum = 0;
  for (int k = 0; k < 1000; ++k) sum += drawn(skewed, (k + 0.5) / 1000);
  CHECK(sum == doctest::Approx(1000));
  CHECK(drawn("variation = 0.1\n", 0.5, 0.25) == doctest::Approx(1));
  CHECK(drawn("variation = 0.1\n", 0.5, 1e-9) == doctest::Approx(1 + 0.1 * 1.17741));
  CHECK(drawn("variation = 5\n", 0.5) == 0.1);
  const std::string descending = refusal(rates + "quantiles = [2, 1]\n");
  CHECK(descending.find("m.toml:4:13: error: compute.quantiles: expected two or more numbers, ascending") == 0);
}

TEST_CASE("single hosts differ from the others, and others may take a part of a host") {
  const machine_file m = parse_machine("m.toml", rates + "[machine]\ncores = 4\n", "n.toml",
                                       "[network]\nbandwidth = \"8Gbit/s\"\ngoodput = 0.5\njitter = \"5us\"\n"
                                       "[[network.host]]\nhosts = 3\nbandwidth = \"800Mbit/s\"\nlink_load = 0.25\n"
                                       "[[network.host]]\nhosts = [3, 0]\nlatency = \"1ms\"\ncore_load = 0.5\n"
                                       "[[network.host]]\nhosts = 7\nleaves_after = 20\nleaves_at = \"1500ms\"\n"
                                       "[[network.tier]]\nhosts = 8\noversubscription = 4\n"
                                       "[[network.tier]]\nhosts = 64\n");
  const machine_file::network& n = m.between;
  CHECK(rate_of(n, host_of(n, 1)) == doctest::Approx(0.5));
  CHECK(rate_of(n, host_of(n, 0)) == doctest::Approx(0.5));
  CHECK(rate_of(n, host_of(n, 3)) == doctest::Approx(0.05 * 0.75));
  CHECK(host_of(n, 3).latency_ns == 1e6);
  CHECK(host_of(n, 3).jitter_ns == 5000);
  CHECK(host_of(n, 7).leaves_after == 20);
  CHECK(host_of(n, 7).leaves_at_ns == 1.5e9);
  CHECK(n.tiers == std::vector<machine_file::tier>{{8, 4}, {64, 1}});
  CHECK(load_factor(m, 1, 4) == 1);
  CHECK(load_factor(m, 3, 4) == 2);
  CHECK(load_factor(m, 3, 2) == 1); // the other two cores are idle
  CHECK(load_factor(m, 3, 8) == 2);
  CHECK(parse_machine("m.toml", machine_text(m)).between == n);
}

TEST_CASE("a link that loses packets: TCP's rate by latency and loss") {
  machine_file::network n;
  n.bytes_per_ns = 1;
  n.latency_ns = 1e6;
  n.packet_loss = 1.5e-4;
  CHECK(rate_of(n, n) == doctest::Approx(1460.0 / 2e6 * 100));
  n.latency_ns = 1e4;
  CHECK(rate_of(n, n) == doctest::Approx(1 - 1.5e-4));
}

TEST_CASE("wrong hosts and switches are refused with their positions") {
  const auto refused = [](const std::string& text, const std::string& what) {
    INFO(text);
    CHECK(refusal(rates, text).find(what) != std::string::npos);
  };
  refused("[[network.host]]\nhosts = -1\n", "n.toml:2:9: error: network.host.hosts: expected whole numbers from 0");
  refused("[[network.host]]\nloss = 0.1\n", "network.host.hosts: expected the numbers of hosts");
  refused("[network]\nlink_load = 1\n", "n.toml:2:13: error: network.link_load: expected a number from 0, below 1");
  refused("[network.host]\nhosts = 1\n", "network.host: expected [[network.host]]");
  refused("[[network.host]]\nhosts = [1, 2]\nleaves_after = 3\n", "network.host: expected one host that leaves");
  refused("[network]\nleaves_at = \"1s\"\n", "n.toml:2:1: error: network.leaves_at: unknown key");
  refused("[network]\ncores = 2\n", "n.toml:2:9: error: network.cores: expected \"own\" or \"shared\", got 2");
  refused("[[network.tier]]\nhosts = 8\n[[network.tier]]\nhosts = 12\n",
          "network.tier.hosts: expected a multiple of the 8 hosts of the tier below");
}

TEST_CASE("a written file is read back") {
  machine_file m;
  m.name = "a \"machine\"";
  m.model = "mlp";
  m.cores = 2;
  m.on_cores = false;
  m.between.shared_cores = true;
  m.batch = 64;
  m.tensors = {{"w1", 1000, 2000}, {"w0", 3000, 4000}};
  m.variation = 0.0125;
  m.quantiles = {0.9, 1, 1.25};
  m.contention = {{1, 1}, {2, 1.25}};
  m.operation_contention = {{1, 1}, {2, 1.5}};
  m.work_of["apply"] = 0.05;
  m.after_ns = 5000;
  m.tables = {{"words", 64, 812.5, {}, 6}, {"others", 64, 0, 1.25, 0}};
  message_costs& c = m.transports["tcp"];
  static_cast<message_work&>(c) = {7000, 0.25, 4096, 3};
  c.between_hosts = {9000, 0.5, 8192, 2};
  c.latency_ns = 5000;
  c.send_share = 0.75;
  c.bytes_per_ns = 2;
  c.add_ns_per_byte = 0.125;
  c.residual = 0.0625;
  c.overhead_in_training = 0.75;
  c.overhead_per_byte_in_training = 2.5;
  c.in_training_residual = 0.0125;
  c.apply_in_training = 1.5;
  c.computing_loss = 1.25;
  c.computing_loss_residual = 0.03125;
  const machine_file r = parse_machine("m.toml", machine_text(m));
  CHECK(r.name == m.name);
  CHECK(!r.on_cores);
  CHECK(r.between.shared_cores);
  CHECK(r.batch == 64);
  REQUIRE(r.tensors.size() == 2);
  CHECK(r.tensors[1].name == "w0");
  CHECK(r.tensors[1].backward == 4000);
  CHECK(r.variation == m.variation);
  CHECK(r.quantiles == m.quantiles);
  CHECK(r.contention == m.contention);
  CHECK(r.operation_contention == m.operation_contention);
  CHECK(r.work_of == m.work_of);
  CHECK(r.transports == m.transports);
  CHECK(r.between == m.between);
  CHECK(r.after_ns == 5000);
  REQUIRE(r.tables.size() == 2);
  CHECK(r.tables[0].name == "words");
  CHECK(r.tables[0].batch == 64);
  CHECK(r.tables[0].rows == doctest::Approx(812.5));
  CHECK(!r.tables[0].zipf);
  CHECK(r.tables[0].draws == 6);
  CHECK(r.tables[1].zipf == 1.25);
}

TEST_CASE("the rates of a machine file may be those of a stored result's cases of one worker") {
  const test::temporary_folder folder;
  const auto result = [](const std::string& cases) {
    return "{\"schema\": \"regatta.result/1\", \"results\": [" + cases + "]}";
  };
  const auto one = [](int workers, int batch, double rate, const std::string& more = "\"status\": \"ok\"",
                      const std::string& model = "a") {
    return "{" + more + ", \"workers\": " + std::to_string(workers) +
           ", \"batch_per_worker\": " + std::to_string(batch) + ", \"fingerprint\": {\"model\": \"" + model +
           "\"}, \"samples_per_second\": {\"median\": " + std::to_string(rate) + "}}";
  };
  const std::string machine = "[compute]\nresult = \"r\"\nforward_share = 0.4\n";
  const auto read = [&](const std::string& cases, const std::string& text) {
    std::filesystem::create_directories(folder.path / "r");
    std::ofstream(folder.path / "r/result.json") << result(cases);
    std::ofstream(folder.path / "m.toml") << text;
    return read_machine(folder.path / "m.toml");
  };
  const machine_file m = read(one(1, 64, 16) + "," + one(1, 32, 10) + "," + one(1, 32, 12) + "," + one(2, 64, 99) +
                                  "," + one(1, 128, 99, "\"status\": \"failed\"") + "," +
                                  one(1, 16, 99, "\"status\": \"ok\", \"simulated\": true"),
                              machine);
  CHECK(m.rates == std::vector<std::pair<double, double>>{{32, 11}, {64, 16}});
  CHECK(m.fingerprint == "a");
  CHECK(m.forward_share == 0.4);
  CHECK(read(one(1, 64, 17), machine).text_hash != m.text_hash);
  CHECK(read(one(1, 64, 17), machine + "[model]\nfingerprint = \"b\"\n").fingerprint == "b");
  const auto refused = [&](const std::string& cases, const std::string& text) -> std::string {
    try {
      read(cases, text);
    } catch (const failure& f) {
      CHECK(f.code() == exit_code::usage);
      return f.what();
    }
    return "";
  };
  CHECK(refused(one(2, 64, 16), machine).find("m.toml:2:10: error: compute.result: ") != std::string::npos);
  CHECK(refused(one(2, 64, 16), machine).find("expected a measured case of one worker, got none") != std::string::npos);
  CHECK(refused(one(1, 64, 16) + "," + one(1, 32, 9, "\"status\": \"ok\"", "b"), machine)
            .find("expected cases of one model") != std::string::npos);
  CHECK(refused(one(1, 64, 16), machine + "batch = 3\n").find("compute.batch: expected either compute.result") !=
        std::string::npos);
  CHECK(refused(one(1, 64, 16), "[compute]\nresult = \"gone\"\n").find("cannot be read") != std::string::npos);
  CHECK(refused("{}", machine).find("compute.result") != std::string::npos);
}
