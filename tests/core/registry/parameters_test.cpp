// SPDX-License-Identifier: Apache-2.0
#include "base/failure.hpp"
#include "registry/parameters.hpp"
#include "registry/registry.hpp"

#include <regatta/plugin.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <string>

using namespace regatta;
using nlohmann::json;

namespace {

rg_param parameter(std::uint32_t type, const char* name, const char* value = nullptr, double min = 0, double max = 0) {
  auto p = rg::make_versioned<rg_param>();
  p.type = type;
  p.name = name;
  p.help = "";
  p.default_value = value;
  p.min = min;
  p.max = max;
  return p;
}

component with(std::vector<rg_param> parameters) {
  component c{};
  c.kind = kind::transport;
  c.id = std::string("t");
  c.parameters = std::move(parameters);
  return c;
}

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 no_number = std::numeric_limits<double>::quiet_NaN();
const char* const modes[] = {"eager", "rendezvous", nullptr};

} // namespace

TEST_CASE("integers") {
  const auto p = parameter(RG_PARAM_INT, "n", "4", 1, 64);
  CHECK(accept(p, 64) == json(64));
  CHECK(accept(p, 64u) == json(64));
  CHECK_FALSE(accept(p, 65));
  CHECK_FALSE(accept(p, 0));
  CHECK_FALSE(accept(p, 2.0));
  CHECK_FALSE(accept(p, "2"));
  CHECK_FALSE(accept(p, true));
  CHECK_FALSE(accept(p, nullptr));
  CHECK_FALSE(accept(parameter(RG_PARAM_INT, "n"), std::numeric_limits<std::uint64_t>::max()));
  CHECK(accept(parameter(RG_PARAM_INT, "n"), std::numeric_limits<std::int64_t>::min()));
  CHECK(default_of(p) == json(4));
  CHECK(expectation(p) == "an integer from 1 to 64");
  CHECK(expectation(parameter(RG_PARAM_INT, "n")) == "an integer");
  CHECK(expectation(parameter(RG_PARAM_INT, "n", "1", 1, infinity)) == "an integer from 1 up");
  CHECK(expectation(parameter(RG_PARAM_INT, "n", "1", -infinity, 5)) == "an integer up to 5");
}

TEST_CASE("floats take integers, and nothing that is not finite") {
  const auto p = parameter(RG_PARAM_FLOAT, "x", "0.5", 0, 1);
  const auto one = accept(p, 1);
  REQUIRE(one);
  CHECK(one->is_number_float());
  CHECK_FALSE(accept(p, 1.01));
  CHECK_FALSE(accept(parameter(RG_PARAM_FLOAT, "x"), infinity));
  CHECK_FALSE(accept(parameter(RG_PARAM_FLOAT, "x"), no_number));
}

TEST_CASE("units") {
  auto size = parameter(RG_PARAM_INT, "size", "\"64KiB\"", 0, 1 << 20);
  size.unit = RG_UNIT_BYTES;
  CHECK(contradiction(size).empty());
  CHECK(default_of(size) == json(65536));
  CHECK(accept(size, 5) == json(5));
  CHECK_FALSE(accept(size, "2MiB"));
  CHECK_FALSE(accept(size, "64 apples"));
  auto time = parameter(RG_PARAM_INT, "time", "0");
  time.unit = RG_UNIT_NANOSECONDS;
  CHECK(accept(time, "50us") == json(50000));
  auto rate = parameter(RG_PARAM_FLOAT, "rate", "1e9");
  rate.unit = RG_UNIT_BITS_PER_SECOND;
  CHECK(accept(rate, "10Gbit/s") == json(1e10));
  CHECK_FALSE(accept(parameter(RG_PARAM_INT, "n"), "64KiB")); // has no unit
}

TEST_CASE("strings and choices") {
  auto p = parameter(RG_PARAM_STRING, "mode", "\"eager\"");
  CHECK(accept(p, "anything") == json("anything"));
  CHECK_FALSE(accept(p, std::string("a\0b", 3)));
  CHECK_FALSE(accept(p, 1));
  p.choices = modes;
  CHECK(accept(p, "rendezvous"));
  CHECK_FALSE(accept(p, "other"));
  CHECK(expectation(p) == "one of \"eager\", \"rendezvous\"");
}

TEST_CASE("lists") {
  const auto p = parameter(RG_PARAM_INTS, "sizes", "[1, 2]", 1, 9);
  CHECK(accept(p, {1, 9}) == json({1, 9}));
  CHECK(accept(p, json::array()) == json::array());
  CHECK_FALSE(accept(p, {1, 10}));
  CHECK_FALSE(accept(p, {1, "2"}));
  CHECK_FALSE(accept(p, 1));
  CHECK(accept(parameter(RG_PARAM_FLOATS, "w"), {1, 0.5}) == json({1.0, 0.5}));
  auto names = parameter(RG_PARAM_STRINGS, "names", "[\"a\", \"b\"]");
  CHECK(accept(names, json::array({"x", "y"})) == json::array({"x", "y"}));
  CHECK(accept(names, "x") == json::array({"x"}));
  CHECK(accept(names, json::array()) == json::array());
  CHECK_FALSE(accept(names, json::array({"x", 1})));
  CHECK_FALSE(accept(names, 1));
  CHECK(contradiction(names).empty());
  names.choices = modes;
  CHECK(accept(names, json::array({"eager", "rendezvous"})));
  CHECK_FALSE(accept(names, json::array({"eager", "other"})));
  CHECK(expectation(names) == "a list of \"eager\", \"rendezvous\"");
  CHECK_FALSE(contradiction(names).empty()); // its default is none of them
}

TEST_CASE("bounds: both NaN or both 0 are none, an infinity is one side") {
  CHECK_FALSE(is_bounded(parameter(RG_PARAM_INT, "n", "1", no_number, no_number)));
  CHECK(contradiction(parameter(RG_PARAM_INT, "n", "1", no_number, no_number)).empty());
  CHECK(contradiction(parameter(RG_PARAM_INT, "n", "1", 0, infinity)).empty());
  CHECK_FALSE(contradiction(parameter(RG_PARAM_INT, "n", "1", no_number, 5)).empty());
  CHECK(contradiction(parameter(RG_PARAM_FLOAT, "n", "inf")) != "");
  CHECK(contradiction(parameter(RG_PARAM_INT, "n")).empty()); // must be given
}

TEST_CASE("values reach the plugin in the order of its table, with storage of their own") {
  auto c = with({parameter(RG_PARAM_STRING, "s", "\"default\""), parameter(RG_PARAM_BOOL, "b", "false"),
                 parameter(RG_PARAM_INTS, "n", "[1, 2, 3]"), parameter(RG_PARAM_FLOATS, "f", "[]"),
                 parameter(RG_PARAM_INT, "i", "7"), parameter(RG_PARAM_FLOAT, "x", "0.25"),
                 parameter(RG_PARAM_STRING, "t", "\"\""), parameter(RG_PARAM_STRINGS, "l", "[\"p\", \"q\"]")});
  std::map<std::string, json> chosen{{"b", true}, {"t", "last"}, {"f", {1, 2.5}}, {"i", -1}};
  parameter_values made(c, chosen);
  chosen.clear();
  const auto moved = std::move(made);
  const rg_value* v = moved.data();
  CHECK(std::string(v[0].s) == "default");
  CHECK(v[1].i == 1);
  REQUIRE(v[2].count == 3);
  CHECK(v[2].ints[2] == 3);
  REQUIRE(v[3].count == 2);
  CHECK(v[3].floats[0] == 1);
  CHECK(v[3].floats[1] == 2.5);
  CHECK(v[4].i == -1);
  CHECK(v[5].f == 0.25);
  CHECK(std::string(v[6].s) == "last");
  REQUIRE(v[7].count == 2);
  CHECK(std::string(v[7].strings[1]) == "q");
}

TEST_CASE("values that do not fit are refused, with what is expected") {
  const auto c = with({parameter(RG_PARAM_INT, "depth", "4", 1, 64), parameter(RG_PARAM_STRING, "path")});
  using map = std::map<std::string, json>;
  CHECK_THROWS_WITH((parameter_values(c, map{{"path", "x"}, {"depth", 65}})),
                    "transport t: depth: expected an integer from 1 to 64, got 65");
  CHECK_THROWS_WITH((parameter_values(c, map{})), "transport t: path must be given: a string");
  CHECK_THROWS_WITH((parameter_values(c, map{{"path", "x"}, {"dept", 5}})),
                    "transport t: unknown parameter dept, did you mean \"depth\"?");
  try {
    parameter_values(c, map{});
    FAIL("accepted");
  } catch (const failure& e) {
    CHECK(e.code() == exit_code::usage);
  }
}
