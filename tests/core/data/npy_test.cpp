// SPDX-License-Identifier: Apache-2.0
#include "data/npy_header.hpp"
#include "data/source.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "data_fixture.hpp"

using namespace regatta;
using namespace data_fixture;

namespace {

std::string with_head(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string head = dictionary;
  while ((head.size() + 11 + (version > 1 ? 2 : 0)) % 64 != 0) head += ' ';
  head += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version > 1 ? 4 : 2); ++i) file += static_cast<char>(head.size() >> (8 * i) & 0xff);
  return file + head + data;
}

std::string dictionary(const std::string& type, const std::string& shape, const char* fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
}

template <class T> std::string bytes_of(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}

data_config npy(const std::filesystem::path& path) {
  data_config c;
  c.source = "dataset";
  c.format = "npy";
  c.path = c.evaluation_path = path.string();
  c.shuffle = false;
  return c;
}

npy_header parse(const std::string& file) {
  return parse_npy_header({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "x.npy");
}

} // namespace

TEST_CASE("arrays of every type feed inputs of every fitting type") {
  const temporary_folder folder;
  folder.write("f4.npy", with_head(dictionary("<f4", "(3, 2)"), bytes_of<float>({0.5F, -1, 2, 3, 4, 1e30F})));
  folder.write("f8.npy", with_head(dictionary("<f8", "(3, 2)"), bytes_of<double>({0.5, -1, 2, 3, 4, 0.1}), 2));
  folder.write("i4.npy", with_head(dictionary("<i4", "(3,)"), bytes_of<std::int32_t>({5, 0, 7}), 3));
  folder.write("i8.npy", with_head(dictionary("<i8", "(3, 1)"), bytes_of<std::int64_t>({7, 2, 3})));
  folder.write("u1.npy", with_head(dictionary("|u1", "(3L, 2L)"), std::string("\x01\x02\xff\x00\x05\x06", 6)));
  const std::vector<rg_input> inputs{values("f4", RG_F32, {2}), values("f8", RG_F32, {2}), index("i4", RG_U8, {}, 8),
                                     index("i8", RG_I32, {}, 8), values("u1", RG_F32, {2})};
  auto source = make_source(npy(folder.path), inputs, 1);
  CHECK(source->size() == 3);
  const auto batch = fill(*source, inputs, 0, 3, 0, 3);
  CHECK(batch.as<float>(0) == std::vector<float>{0.5F, -1, 2, 3, 4, 1e30F});
  CHECK(batch.as<float>(1) == std::vector<float>{0.5F, -1, 2, 3, 4, 0.1F});
  CHECK(batch.as<std::uint8_t>(2) == std::vector<std::uint8_t>{5, 0, 7});
  CHECK(batch.as<std::int32_t>(3) == std::vector<std::int32_t>{7, 2, 3});
  CHECK(batch.as<float>(4) == std::vector<float>{1, 2, 255, 0, 5, 6});

  const std::vector<rg_input> integers{values("i4", RG_I64, {1}), values("i8", RG_I64, {}), index("i8", RG_I64, {}, 8),
                                       values("u1", RG_I32, {2}), values("i4", RG_I32, {}), values("u1", RG_U8, {2}),
                                       values("i8", RG_F32, {})};
  auto more = make_evaluation_source(npy(folder.path), integers, 1);
  const auto last = fill(*more, integers, 2, 1, 0, 1); // position 2, and only that
  CHECK(last.as<std::int64_t>(0) == std::vector<std::int64_t>{7});
  CHECK(last.as<std::int64_t>(1) == std::vector<std::int64_t>{3});
  CHECK(last.as<std::int64_t>(2) == std::vector<std::int64_t>{3});
  CHECK(last.as<std::int32_t>(3) == std::vector<std::int32_t>{5, 6});
  CHECK(last.as<std::int32_t>(4) == std::vector<std::int32_t>{7});
  CHECK(last.as<std::uint8_t>(5) == std::vector<std::uint8_t>{5, 6});
  CHECK(last.as<float>(6) == std::vector<float>{3});
}

TEST_CASE("all inputs of a sample move together when shuffled") {
  const temporary_folder folder;
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int i = 0; i < 100; ++i) {
    x.push_back(static_cast<float>(i));
    y.push_back(i);
  }
  folder.write("x.npy", with_head(dictionary("<f4", "(100,)"), bytes_of(x)));
  folder.write("y.npy", with_head(dictionary("<i4", "(100,)"), bytes_of(y)));
  const std::vector<rg_input> inputs{values("x", RG_F32, {}), index("y", RG_I32, {}, 100)};
  auto config = npy(folder.path);
  config.shuffle = true;
  auto source = make_source(config, inputs, 1);
  const auto batch = fill(*source, inputs, 0, 100, 0, 100);
  CHECK_FALSE(std::ranges::is_sorted(batch.as<float>(0)));
  for (std::size_t i = 0; i < 100; ++i)
    CHECK(batch.as<float>(0)[i] == static_cast<float>(batch.as<std::int32_t>(1)[i]));
}

TEST_CASE("files that do not fit the model are refused with both sides named") {
  const temporary_folder folder;
  const auto refused = [&](const rg_input& input, exit_code code = exit_code::run) {
    return failure_of([&] { make_source(npy(folder.path), std::vector{input}, 1); }, code);
  };
  CHECK(contains(refused(values("x", RG_F32, {2}), exit_code::usage), "x.npy: cannot be opened"));
  CHECK(contains(refused(values("../x", RG_F32, {2}), exit_code::usage), "name of a file"));
  folder.write("x.npy", with_head(dictionary("<f4", "(3, 2)"), bytes_of<float>({1, 2, 3, 4, 5, 6})));
  CHECK(contains(refused(values("x", RG_F32, {3}), exit_code::usage),
                 "x.npy: has samples of 2, but the model's input \"x\" takes 3"));
  CHECK(contains(refused(values("x", RG_F32, {}), exit_code::usage), "takes one number"));
  CHECK(contains(refused(values("x", RG_I32, {2}), exit_code::usage), "elements of type f4"));
  CHECK(contains(refused(index("x", RG_I32, {2}, 10), exit_code::usage), "elements of type f4"));
  folder.write("x.npy", with_head(dictionary("<i8", "(2,)"), bytes_of<std::int64_t>({1, 2})));
  CHECK(contains(refused(values("x", RG_I32, {}), exit_code::usage), "elements of type i8"));
  folder.write("x.npy", with_head(dictionary("<f4", "()"), bytes_of<float>({1})));
  CHECK(contains(refused(values("x", RG_F32, {})), "one sample per row"));
  folder.write("x.npy", with_head(dictionary("<f4", "(0, 2)"), ""));
  CHECK(contains(refused(values("x", RG_F32, {2})), "holds no samples"));
  folder.write("x.npy", with_head(dictionary("<f4", "(0,)"), ""));
  CHECK(contains(refused(values("x", RG_F32, {})), "holds no samples"));
  for (const std::int64_t bad : {std::int64_t{10}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    folder.write("x.npy", with_head(dictionary("<i8", "(3,)"), bytes_of<std::int64_t>({0, 9, bad})));
    CHECK(contains(refused(index("x", RG_I32, {}, 10)), "x.npy: sample 2 has an index that is not from 0 to 9"));
  }
  folder.write("y.npy", with_head(dictionary("<f4", "(2,)"), bytes_of<float>({1, 2})));
  const std::vector<rg_input> both{values("x", RG_F32, {}), values("y", RG_F32, {})};
  CHECK(contains(failure_of([&] { make_source(npy(folder.path), both, 1); }, exit_code::run), "has 2 samples, but"));
}

TEST_CASE("an index that goes bad under a running job ends it, and no model reads it") {
  const temporary_folder folder;
  const auto with = [](std::int32_t last) {
    return with_head(dictionary("<i4", "(3,)"), bytes_of<std::int32_t>({0, 1, last}));
  };
  folder.write("x.npy", with(2));
  const std::vector<rg_input> inputs{index("x", RG_I32, {}, 10)};
  auto source = make_source(npy(folder.path), inputs, 1);
  {
    std::fstream file(folder.path / "x.npy", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(with(2).size() - 1));
    file.put(1);
  }
  CHECK(contains(failure_of([&] { fill(*source, inputs, 0, 3, 0, 3); }, exit_code::run), "sample 2"));
}

TEST_CASE("damaged and foreign heads are refused") {
  const std::string good = with_head(dictionary("<f4", "(2, 3)"), std::string(24, '\0'));
  const auto header = parse(good);
  CHECK(header.shape == std::vector<std::uint64_t>{2, 3});
  CHECK(header.elements == 6);
  CHECK(header.data == good.size() - 24);
  for (std::size_t length = 0; length < good.size(); ++length)
    failure_of([&] { parse(good.substr(0, length)); }, exit_code::run);

  const auto refused = [](const std::string& dict, std::size_t data = 24) {
    return failure_of([&] { parse(with_head(dict, std::string(data, '\0'))); }, exit_code::run);
  };
  CHECK(contains(refused(dictionary("<f4", "(2, 3)"), 23), "is truncated"));
  CHECK(contains(refused(dictionary("<f4", "(2, 3)"), 28), "is longer than its shape"));
  CHECK(contains(refused(dictionary("<f4", "(2, 3)", "True")), "Fortran order"));
  for (const char* type : {">f4", "<f2", "<c8", "|O", "|S5", "<U7", "", "f4", "\n\x1b[2J"})
    CHECK(contains(refused(dictionary(type, "(2, 3)")), "elements of type"));
  CHECK(contains(refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }"), "structures"));
  CHECK(contains(refused("{'descr': '<f4', 'shape': (2, 3), }"), "lacks one of"));
  CHECK(
      contains(refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,), }"), "unexpected key"));
  CHECK(contains(refused(dictionary("<f4", "(2, 3)") + "x"), "after the dictionary"));
  CHECK(contains(refused(dictionary("<f4", "(2 3)")), "shape"));
  CHECK(contains(refused(dictionary("<f4", "(-2, 3)")), "shape"));
  CHECK(contains(refused(dictionary("<f4", "(2, 3")), "shape"));
  CHECK(contains(refused(dictionary("<f4", "[2, 3]")), "damaged head"));
  CHECK(contains(refused("{'descr': '<f4"), "a string does not end"));
  CHECK(contains(refused("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (6,), }"), "neither True nor False"));
  CHECK(contains(refused(""), "damaged head"));
  std::string unknown = good;
  unknown[6] = 4;
  CHECK(contains(failure_of([&] { parse(unknown); }, exit_code::run), "unknown version"));
  CHECK(contains(failure_of([&] { parse("\x89PNG\r\n"); }, exit_code::run), "not a NumPy file"));
  CHECK(contains(failure_of([&] { parse(""); }, exit_code::run), "not a NumPy file"));
}

TEST_CASE("shapes that overflow any integer are refused") {
  const std::string limit = std::to_string(std::numeric_limits<std::uint64_t>::max());
  const std::vector<std::string> shapes{"(" + limit + ",)",
                                        "(4611686018427387905, 4)",
                                        "(4294967296, 4294967296)",
                                        "(4294967296, 4294967296, 6)",
                                        "(" + limit + ", " + limit + ")",
                                        "(99999999999999999999999999,)",
                                        "(2, 2305843009213693952)"};
  for (const auto& shape : shapes)
    failure_of([&] { parse(with_head(dictionary("<f8", shape), std::string(24, '\0'))); }, exit_code::run);
  CHECK(parse(with_head(dictionary("<f8", "(" + limit + ", 0, " + limit + ")"), "")).elements == 0);
  std::string deep = "(";
  for (int i = 0; i < 1000; ++i) deep += "1,";
  CHECK(contains(failure_of([&] { parse(with_head(dictionary("<f4", deep + ")"), "1234")); }, exit_code::run),
                 "more dimensions"));
}

TEST_CASE("random damage never does worse than a refusal") {
  std::mt19937 random(1);
  const std::string good = with_head(dictionary("<f4", "(2, 3)"), std::string(24, 'x'));
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string file = good;
    for (auto changes = random() % 8 + 1; changes > 0; --changes) {
      const auto at = random() % 80;
      switch (random() % 4) {
      case 0: file[at] = static_cast<char>(random()); break;
      case 1: file[at] = "0123456789(){}[],:'\" LTFe"[random() % 25]; break;
      case 2: file.erase(at, random() % 4); break;
      default: file.insert(at, 1, "0123456789(),'"[random() % 14]); break;
      }
    }
    try {
      const auto header = parse(file);
      ++read;
      REQUIRE(header.data + header.elements * header.element_bytes() == file.size());
    } catch (const failure& e) {
      REQUIRE(std::string(e.what()).find('\n') == std::string::npos);
    }
  }
  CHECK(read < 20000);
}
