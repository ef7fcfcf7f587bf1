// SPDX-License-Identifier: Apache-2.0
#include "data/generate_datasets.hpp"

#include "base/failure.hpp"
#include "data/zipf.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace regatta {
namespace {

// A sequence of random numbers.
class dice {
public:
  dice(std::uint64_t seed, std::uint64_t a, std::uint32_t b = 0)
      : seed_(rg::derive_seed(seed, a, b, rg::stream_data)) {}
  std::uint32_t below(std::uint32_t n) { return rg::to_index(bits(), n); }
  double uniform() { return (static_cast<double>(bits()) + 0.5) * 0x1p-32; }

private:
  std::uint32_t bits() { return rg::random_bits(seed_, at_++)[0]; }
  std::uint64_t seed_, at_ = 0;
};

// Writes lines of make(random numbers of the line) to files: `count` lines for train, a fifth of that for test.
void write_lines(const std::filesystem::path& dir, const std::string& file, std::uint64_t count, std::uint64_t seed,
                 const std::function<std::string(dice)>& make) {
  for (const std::uint32_t test : {0, 1}) {
    const std::uint64_t lines = test ? std::max<std::uint64_t>(1, count / 5) : count;
    write_file(dir / fmt::format(fmt::runtime(file), test ? "test" : "train"), [&](std::ostream& out) {
      for (std::uint64_t i = 0; i < lines; ++i) out << make(dice(seed, i, test)) << '\n';
    });
  }
}

} // namespace

void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error)
    throw failure(exit_code::run,
                  fmt::format("{}: cannot be created: {}", file.parent_path().string(), error.message()));
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  if (out) write(out);
  out.close();
  if (!out) throw failure(exit_code::run, fmt::format("{}: cannot be written", file.string()));
}

void generate_criteo_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed) {
  write_lines(dir, "{}.tsv", lines, seed, [&](dice d) {
    double evidence = -0.5;
    std::string cells;
    for (int i = 0; i < 13; ++i) {
      cells += '\t';
      if (d.below(10) == 0) continue; // missing value
      const auto value = static_cast<int>(std::exp(6 * d.uniform())) - 1;
      if (i < 4) evidence += (i % 2 ? -0.15 : 0.15) * (std::log1p(value) - 3);
      cells += std::to_string(value);
    }
    for (std::uint32_t slot = 0; slot < 26; ++slot) {
      cells += '\t';
      if (d.below(20) == 0) continue;
      const auto category = static_cast<std::uint32_t>(100 * d.uniform() * d.uniform());
      // The weight of a category depends neither on the line nor on the seed.
      if (slot < 8) evidence += 2 * (static_cast<double>(rg::random_uniforms(0x63746c, category, slot)[0]) - 0.5);
      cells += fmt::format("{:08x}", rg::random_bits(0x637269, category, slot)[0]);
    }
    return (d.uniform() < 1 / (1 + std::exp(-2 * evidence)) ? "1" : "0") + cells;
  });
}

void generate_words_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint32_t topics,
                         std::uint64_t seed) {
  const zipf fillers(200, 1);
  write_lines(dir, "{}.txt", lines, seed, [&](dice d) {
    const std::uint32_t topic = d.below(topics);
    std::string text;
    for (int word = 0; word < 12; ++word) {
      if (word) text += ' ';
      if (word % 3 == 1)
        text += fmt::format("t{}{}", topic, d.below(2) ? 'a' : 'b');
      else if (d.below(4) == 0)
        text += fmt::format("f{}", fillers.at(seed, static_cast<std::uint64_t>(d.uniform() * 0x1p40)));
      else
        text += fmt::format("t{}w{}", topic, d.below(4));
    }
    return text;
  });
}

void generate_sentences_like(const std::filesystem::path& dir, std::uint64_t documents, std::uint64_t seed) {
  constexpr std::uint32_t topics = 16, words = 12;
  write_lines(dir, "{}.txt", documents, seed, [&](dice d) {
    const std::uint32_t topic = d.below(topics);
    std::string text;
    for (std::uint32_t sentence = 6 + d.below(7); sentence > 0; --sentence) {
      std::uint32_t word = d.below(words);
      for (std::uint32_t n = 5 + d.below(6); n > 0; --n) {
        text += fmt::format("{}{}", static_cast<char>('a' + topic), static_cast<char>('a' + word));
        if (n > 1) text += ' ';
        word = (5 * word + 1 + topic) % words;
      }
      text += '\n';
    }
    return text; // write_lines() adds the empty line that ends a document
  });
}

void generate_parallel_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed) {
  constexpr std::uint32_t words = 40;
  for (const bool target : {false, true})
    // the same random numbers for both
    write_lines(dir, target ? "{}/target.txt" : "{}/source.txt", lines, seed, [&](dice d) {
      std::vector<std::string> text;
      for (std::uint32_t n = 3 + d.below(8); n > 0; --n) {
        const std::uint32_t word = d.below(words);
        text.push_back(target ? fmt::format("t{}", (17 * word + 5) % words) : fmt::format("s{}", word));
      }
      if (target) std::ranges::reverse(text);
      return fmt::format("{}", fmt::join(text, " "));
    });
}

void generate_queries_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed) {
  constexpr std::uint32_t topics = 50, words = 20;
  const auto text = [](dice& d, std::uint32_t topic) {
    std::string out;
    for (std::uint32_t n = 3 + d.below(5); n > 0; --n)
      out += d.below(3) ? fmt::format("t{}w{} ", topic, d.below(words)) : fmt::format("f{} ", d.below(100));
    out.pop_back();
    return out;
  };
  write_lines(dir, "{}.tsv", lines, seed, [&](dice d) {
    const std::uint32_t topic = d.below(topics), other = (topic + 1 + d.below(topics - 1)) % topics;
    std::string line = text(d, topic) + '\t';
    line += text(d, topic) + '\t';
    return line + text(d, other);
  });
}

} // namespace regatta
