// SPDX-License-Identifier: Apache-2.0
//
// Requests of the coordinator to a host, and connections between processes of a launch, all on this host.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include <nlohmann/json.hpp>

#include "control/crypto.hpp"
#include "join/own_path.hpp"
#include "join/requests.hpp"
#include "join/sockets.hpp"
#include "registry/registry.hpp"
#include "temporary_folder.hpp"

using namespace regatta;
using nlohmann::json;

TEST_CASE("an address of this host can be connected to while it listens, and not after") {
  host_requests host;
  const json listening = host.answer({{"t", "listen"}, {"addresses", {"127.0.0.1", "::1"}}});
  REQUIRE(listening.contains("ports"));
  const json targets = json::array({json::array({"127.0.0.1", listening.at("ports").at(0)}),
                                    json::array({"::1", listening.at("ports").at(1)})}); // braces would make an object
  const json probe{{"t", "probe"}, {"targets", targets}};
  CHECK(host.answer(probe).at("failed") == json{"", ""});
  host.answer({{"t", "listen"}, {"addresses", json::array()}});
  const json refused = host.answer(probe);
  for (const json& why : refused.at("failed")) CHECK(why == "Connection refused");
}

TEST_CASE("files: sums of those to read, an empty text for others, null for missing ones") {
  const regatta::test::temporary_folder folder;
  const std::string there = folder.path / "there", absent = folder.path / "absent", inside = folder.path;
  std::ofstream(there) << "abc";
  host_requests host;
  const json sums =
      host.answer({{"t", "files"}, {"paths", {there, absent, inside}}, {"read", {there, inside}}, {"built_in", ""}})
          .at("sums");
  CHECK(sums.at(there) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"); // FIPS 180-2, B.1
  CHECK(sums.at(absent).is_null());
  CHECK(sums.at(inside) == "");
  CHECK(host.answer({{"t", "files"}, {"paths", {there}}, {"read", json::array()}, {"built_in", ""}})
            .at("sums")
            .at(there) == "");
}

TEST_CASE("plugins of process 0's installation are those of this host's, wherever it is") {
  host_requests host;
  const std::string own = built_in_folder() / "x.so", there = "/opt/other/lib/regatta";
  CHECK(own_path(there + "/x.so", there) == own);
  CHECK(own_path(there + "/plugins.d/x.so", there) == built_in_folder() / "plugins.d/x.so");
  CHECK(own_path("/home/me/x.so", there) == "/home/me/x.so");
  CHECK(own_path(there + "-old/x.so", there) == there + "-old/x.so");
  CHECK(own_path("/home/me/x.so", "") == "/home/me/x.so");
  const std::string asked = there + "/shm.so"; // the folder of the tests' plugins is built_in_folder()
  const json sums =
      host.answer({{"t", "files"}, {"paths", {asked}}, {"read", {asked}}, {"built_in", there}}).at("sums");
  CHECK(sums.at(asked) == sha256_of(REGATTA_PLUGINS "/shm.so"));
}

TEST_CASE("libraries: those that a plugin loads, without the plugin, and no error for a file that is none") {
  host_requests host;
  const auto libraries = [&](const json& files) {
    return host.answer({{"t", "libraries"}, {"files", files}, {"built_in", ""}})
        .at("libraries")
        .get<std::set<std::string>>();
  };
  const auto bare = libraries({"/no/such/plugin.so"});
  CHECK(bare.count("libc.so.6") == 1);
  const auto with_shm = libraries({REGATTA_PLUGINS "/shm.so", REGATTA_PLUGINS "/tcp.so"});
  CHECK(std::ranges::includes(with_shm, bare));
  CHECK(with_shm.count("tcp.so") == 0);
}

TEST_CASE("a wrong interface and an unknown request are errors, not exceptions") {
  host_requests host;
  CHECK(host.answer({{"t", "address"}, {"interface", "eth77"}}).at("error").get<std::string>().find("eth77") !=
        std::string::npos);
  const json links = host.answer({{"t", "address"}, {"interface", "127.0.0.0/8"}}).at("links");
  REQUIRE(links.size() == 1);
  CHECK(links[0].at("address") == "127.0.0.1");
  CHECK(host.answer({{"t", "dance"}}).contains("error"));
  CHECK(host.answer({{"t", "listen"}, {"addresses", {"no address"}}}).contains("error"));
}

TEST_CASE("of several ports the first free one is used") {
  std::uint16_t first = 0, second = 0;
  const unique_fd taken = listen_on_all(0, 1, first);
  const unique_fd next = listen_on_all(first, 5, second);
  CHECK(second > first);
  CHECK(second < first + 5);
}

TEST_CASE("a connection to nobody says why") {
  std::string why;
  std::uint16_t port = 0;
  { const unique_fd closed = listen_on_all(0, 1, port); }
  CHECK(connect_to("127.0.0.1", port, random_bytes(32), 0, std::chrono::seconds(5), why).get() == -1);
  CHECK(why == "Connection refused");
}
