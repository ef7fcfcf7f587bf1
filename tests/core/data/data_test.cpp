// SPDX-License-Identifier: Apache-2.0
#include "data/source.hpp"

#include "base/failure.hpp"
#include "data/mapped_file.hpp"
#include "data/producer.hpp"
#include "data/sample_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <chrono>
#include <csignal>
#include <thread>

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <regatta/plugin.hpp>

#include "data_fixture.hpp"

using namespace regatta;
using namespace data_fixture;

namespace {

data_config synthetic(const std::string& source, const std::string& content) {
  data_config c;
  c.source = source;
  c.content = content;
  return c;
}

const std::vector<rg_input> image_and_label{values("image", RG_F32, {3, 5, 7}), index("label", RG_I32, {}, 10)};

// How the command ends.
std::string end_of(const std::string& command) {
  producer p(command);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto how = p.ended()) return *how;
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // ended() does not wait
  }
  return "has not ended";
}

// A pipe whose write end is descriptor 9, in this process and in its child processes.
struct inherited_pipe {
  int read_end;
  inherited_pipe() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    REQUIRE(::dup2(ends[1], 9) == 9);
    if (ends[1] != 9) ::close(ends[1]);
    read_end = ends[0];
  }
  ~inherited_pipe() { ::close(read_end); }
  // The next byte, '.' if no process holds the other end any more, '?' if neither comes in 30 s.
  char next() const {
    pollfd p{read_end, POLLIN, 0};
    if (::poll(&p, 1, 30'000) != 1) return '?';
    char byte = '.';
    return ::read(read_end, &byte, 1) <= 0 ? '.' : byte;
  }
};

// The shell is not the process that holds the pipe longest.
const char* const family = "cd / && { sleep 1000 & printf x >&9; wait; }";

} // namespace

TEST_CASE("a producer is a shell command") {
  CHECK(end_of("false; cd / && exit 3") == "exited with code 3");
  CHECK(end_of("no-such-command") == "exited with code 127");
  CHECK(end_of("kill -9 $$") == "was killed by signal 9");
  CHECK(end_of("echo \"$0\" '$1' | grep -q 'sh $1'") == "exited with code 0");
}

TEST_CASE("of a producer nothing is left when its object, its shell or its process ends") {
  {
    const inherited_pipe alive;
    std::optional<producer> p(family);
    ::close(9);
    CHECK(alive.next() == 'x');
    p.reset();
    CHECK(alive.next() == '.');
  }
  {
    const inherited_pipe alive;
    CHECK(end_of("sleep 1000 & exit 5") == "exited with code 5");
    ::close(9);
    CHECK(alive.next() == '.');
  }
  const inherited_pipe alive;
  const pid_t child = ::fork();
  if (child == 0) {
    const producer p(family);
    ::close(9);
    for (;;) ::pause();
  }
  REQUIRE(child > 0);
  ::close(9);
  CHECK(alive.next() == 'x');
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(alive.next() == '.');
}

TEST_CASE("a file that is truncated while it is mapped is named before the process dies") {
  const temporary_folder f;
  const auto first = f.write("first.bin", std::string(1 << 16, 'x')),
             name = f.write("data.bin", std::string(1 << 16, 'x'));
  int said[2];
  REQUIRE(::pipe(said) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(said[1], STDERR_FILENO);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    { const mapped_file gone(name); } // its entry is used again
    const mapped_file other(first), file(name);
    mapped_file moved(mapped_file{name});
    (void)!::truncate(name.c_str(), 100);
    const volatile std::uint8_t byte = moved.bytes()[60000];
    ::_exit(byte == 'x' ? 0 : 1);
  }
  REQUIRE(child > 0);
  ::close(said[1]);
  std::string text;
  char part[1000];
  for (ssize_t count; (count = ::read(said[0], part, sizeof part)) > 0;) text.append(part, count);
  ::close(said[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(text == "data file " + name.string() + " was truncated while it was read: restore it, and run again\n");
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGBUS);
}

TEST_CASE("a permutation takes every place once, whatever the size, another one for every key") {
  for (std::uint64_t n = 1; n <= 300; ++n) {
    std::vector<bool> seen(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      const auto to = permuted(i, n, n * 77);
      REQUIRE(to < n);
      REQUIRE_FALSE(seen[to]);
      seen[to] = true;
    }
  }
  for (const std::uint64_t n : {std::uint64_t{50000}, std::uint64_t{65537}, std::uint64_t{1} << 40}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 2000; ++i) seen.insert(permuted(i, n, 5));
    CHECK(seen.size() == 2000);
    CHECK(*seen.rbegin() < n);
    CHECK(*seen.rbegin() > n / 100 * 99); // they come from everywhere
    CHECK(*seen.begin() < n / 100);
  }
}

TEST_CASE("permutations are even: every element comes to every place about as often") {
  constexpr std::uint64_t n = 7, keys = 7000;
  std::array<std::array<int, n>, n> counts{};
  for (std::uint64_t key = 0; key < keys; ++key)
    for (std::uint64_t i = 0; i < n; ++i) ++counts[i][permuted(i, n, rg::derive_seed(1, key))];
  for (const auto& row : counts)
    for (const int c : row) CHECK(std::abs(c - 1000) < 150); // five deviations
}

TEST_CASE("an epoch has every sample once, and the next one another order") {
  const sample_order order{50, true, 9};
  std::vector<std::vector<std::uint64_t>> epochs(3);
  for (std::uint64_t p = 0; p < 150; ++p) epochs[p / 50].push_back(order.at(p));
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
  for (auto& epoch : epochs) {
    CHECK_FALSE(std::ranges::is_sorted(epoch));
    std::ranges::sort(epoch);
    for (std::uint64_t i = 0; i < 50; ++i) CHECK(epoch[i] == i);
  }
  const sample_order plain{50, false, 9};
  for (std::uint64_t p = 0; p < 150; ++p) CHECK(plain.at(p) == p % 50);
}

TEST_CASE("N workers see what one worker sees") {
  for (const char* source : {"constant", "random"})
    for (const char* content : {"zeros", "uniform", "normal"}) {
      CAPTURE(source);
      CAPTURE(content);
      auto one = make_source(synthetic(source, content), image_and_label, 3);
      const auto whole = fill(*one, image_and_label, 7, 12, 0, 12);
      for (const std::uint64_t workers : {2, 3, 4}) {
        filled together(image_and_label, 0);
        for (std::uint64_t w = 0; w < workers; ++w) {
          auto own = make_source(synthetic(source, content), image_and_label, 3);
          together.append(fill(*own, image_and_label, 7, 12, w * (12 / workers), 12 / workers));
        }
        CHECK(together.bytes == whole.bytes);
      }
    }
}

TEST_CASE("random is new in every step, constant is not, and both follow the seed") {
  auto random = make_source(synthetic("random", "normal"), image_and_label, 3);
  auto constant = make_source(synthetic("constant", "normal"), image_and_label, 3);
  auto reseeded = make_source(synthetic("constant", "normal"), image_and_label, 4);
  const auto at = [&](data_source& s, std::uint64_t step) { return fill(s, image_and_label, step, 8, 0, 8).bytes; };
  CHECK(at(*random, 0) != at(*random, 1));
  CHECK(at(*random, 1) == at(*random, 1));
  CHECK(at(*constant, 0) == at(*constant, 1));
  CHECK(at(*constant, 0) == at(*random, 0));
  CHECK(at(*constant, 0) != at(*reseeded, 0));
  CHECK(constant->constant());
  CHECK_FALSE(random->constant());
  CHECK(random->size() == 0);
}

TEST_CASE("values are distributed as asked") {
  const std::vector<rg_input> wide{values("x", RG_F32, {20000}), values("b", RG_U8, {20000})};
  const auto moments = [&](const char* content, std::size_t input) {
    auto source = make_source(synthetic("random", content), wide, 1);
    auto batch = fill(*source, wide, 0, 5, 0, 5);
    std::vector<double> v;
    if (input == 0)
      for (const float f : batch.as<float>(0)) v.push_back(static_cast<double>(f));
    else
      for (const auto b : batch.as<std::uint8_t>(1)) v.push_back(b);
    double mean = 0, square = 0;
    for (const double x : v) mean += x / static_cast<double>(v.size());
    for (const double x : v) square += (x - mean) * (x - mean) / static_cast<double>(v.size());
    const auto [low, high] = std::ranges::minmax(v);
    return std::array{mean, std::sqrt(square), low, high};
  };
  const auto normal = moments("normal", 0);
  CHECK(std::abs(normal[0]) < 0.02);
  CHECK(std::abs(normal[1] - 1) < 0.02);
  CHECK(normal[2] < -3.5);
  CHECK(normal[3] > 3.5);
  const auto uniform = moments("uniform", 0);
  CHECK(std::abs(uniform[0] - 0.5) < 0.01);
  CHECK(std::abs(uniform[1] - std::sqrt(1 / 12.0)) < 0.01);
  CHECK(uniform[2] >= 0);
  CHECK(uniform[3] < 1);
  CHECK(moments("zeros", 0) == std::array{0.0, 0.0, 0.0, 0.0});
  CHECK(moments("zeros", 1) == std::array{0.0, 0.0, 0.0, 0.0});
  const auto bytes = moments("uniform", 1);
  CHECK(std::abs(bytes[0] - 127.5) < 2);
  CHECK(bytes[2] == 0);
  CHECK(bytes[3] == 255);
  const auto normal_bytes = moments("normal", 1);
  CHECK(std::abs(normal_bytes[0] - 128) < 2);
  CHECK(std::abs(normal_bytes[1] - 62) < 3); // 64, and the tails cut off
}

TEST_CASE("indices cover their range evenly, in every type, even where values are zeros") {
  for (const char* content : {"zeros", "normal"})
    for (const std::uint32_t type : {RG_I32, RG_I64, RG_U8}) {
      const std::vector<rg_input> labels{index("y", type, {3}, 7)};
      auto source = make_source(synthetic("random", content), labels, 1);
      const auto batch = fill(*source, labels, 0, 7000, 0, 7000);
      std::map<std::int64_t, int> counts;
      for (std::size_t i = 0; i < 21000; ++i) ++counts[batch.integer(0, i)];
      CHECK(counts.size() == 7);
      CHECK(counts.begin()->first == 0);
      CHECK(counts.rbegin()->first == 6);
      for (const auto& [value, count] : counts) CHECK(std::abs(count - 3000) < 300);
    }
  const std::vector<rg_input> huge{index("y", RG_I64, {}, std::numeric_limits<std::int64_t>::max())};
  auto source = make_source(synthetic("random", "normal"), huge, 1);
  const auto batch = fill(*source, huge, 0, 1000, 0, 1000);
  for (std::size_t i = 0; i < 1000; ++i) CHECK(batch.integer(0, i) >= 0);
  CHECK(batch.integer(0, 0) != batch.integer(0, 1));
}

TEST_CASE("inputs that make no sense, and sources that are none, are refused in one line") {
  const auto refused = [](std::vector<rg_input> inputs, exit_code code, const data_config& c) {
    return failure_of([&] { make_source(c, inputs, 1); }, code);
  };
  const auto normal = synthetic("random", "normal");
  constexpr auto plugin = exit_code::plugin, usage = exit_code::usage;
  CHECK(contains(refused({values("x", RG_F32, {3, 0})}, plugin, normal), "dimension 1"));
  CHECK(contains(refused({values("x", RG_F32, {-1})}, plugin, normal), "dimension 0"));
  constexpr std::int64_t big = std::numeric_limits<std::int64_t>::max();
  CHECK(contains(refused({values("x", RG_F32, {big, big, big})}, plugin, normal), "larger than any memory"));
  CHECK(contains(refused({values("x", RG_BF16, {3})}, plugin, normal), "type"));
  CHECK(contains(refused({index("y", RG_F32, {}, 10)}, plugin, normal), "type"));
  CHECK(contains(refused({index("y", RG_U8, {}, 257)}, plugin, normal), "range of 257"));
  CHECK(contains(refused({index("y", RG_I32, {}, 0)}, plugin, normal), "range of 0"));
  CHECK(contains(refused({index("y", RG_I32, {}, -5)}, plugin, normal), "range of -5"));
  auto strange = values("x", RG_F32, {3});
  strange.kind = 99;
  CHECK(contains(refused({strange}, plugin, normal), "kind 99"));
  strange = values("x", RG_F32, {3});
  strange.ndim = 9;
  CHECK(contains(refused({strange}, plugin, normal), "9 dimensions"));
  strange.name = nullptr;
  CHECK(contains(refused({strange}, plugin, normal), "no name"));

  CHECK(contains(refused({values("x", RG_I32, {3})}, usage, normal), "\"zeros\" can"));
  auto zeros = make_source(synthetic("random", "zeros"), std::vector{values("x", RG_I32, {3})}, 1);
  CHECK(zeros->size() == 0);
  CHECK(contains(refused({}, usage, synthetic("random", "ones")), "ones"));
  CHECK(contains(refused({}, usage, synthetic("lorry", "zeros")), "lorry"));
  CHECK(contains(refused({}, usage, synthetic("dataset", "zeros")), "data.path"));
  auto c = synthetic("dataset", "zeros");
  c.path = "/there/is/no/such";
  CHECK(contains(refused({}, usage, c), "/there/is/no/such"));
  c.path = "/tmp";
  c.format = "jpeg";
  CHECK(contains(refused({}, usage, c), "jpeg"));
  CHECK(make_evaluation_source(c, {}, 1) == nullptr);
  CHECK(make_evaluation_source(normal, {}, 1) == nullptr);
}

TEST_CASE("a model without inputs can have any synthetic source") {
  auto source = make_source(synthetic("random", "normal"), {}, 1);
  source->fill(0, 10, 0, 10, {});
}

TEST_CASE("random indices say how often they come: by Zipf where the range is a vocabulary's, evenly where it is not") {
  const std::vector<rg_input> inputs{index("word", RG_I32, {}, 5000), index("label", RG_I32, {}, 10),
                                     values("image", RG_F32, {3})};
  data_config c = synthetic("random", "uniform");
  c.zipf = 0.5;
  const auto source = make_source(c, inputs, 1);
  const auto words = source->frequencies(0);
  REQUIRE(words.size() == 5000);
  CHECK(words[0] / words[3] == doctest::Approx(2));
  CHECK(words[0] / words[4899] == doctest::Approx(70));
  CHECK(source->frequencies(1) == std::vector<double>(10, 1.0));
  CHECK(source->frequencies(2).empty());
}
