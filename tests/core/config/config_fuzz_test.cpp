// SPDX-License-Identifier: Apache-2.0
//
// Whatever the bytes are, reading them ends with an experiment or with a failure that says why.
#include "config_catalogue.hpp"

#include <random>
#include <string>

#include <doctest/doctest.h>

namespace {

const std::string valid = R"(# a comment
[experiment]
name = "fuzz"
seed = 7
[model]
plugin = "vgg16"
input = 'flowers'
[data]
source = "random"
content = "uniform"
[train]
batch = 64
scaling = "strong"
[optimizer]
plugin = "adam"
lr = 1e-3
[strategy]
plugin = "sync_ps"
bucket = "64KiB"
[strategy.geo_ps]
k = 4_00
[transport]
plugin = "shaped"
rate = "10Gbit/s" # ünïcode: 日本語
[cluster]
workers = 2
spin = "20us"
[sweep]
"train.batch" = [32, 64, 128]
[[sweep.zip]]
"cluster.workers" = [1, 2]
"cluster.servers" = [2, 1]
[[report]]
title = "scaling"
rows = "train.batch"
columns = "cluster.workers"
list = "train.precision"
value = "{efficiency:.1%} {speedup:x}"
ratio_to = { cluster.workers = 1 }
where = { "train.batch" = 32 }
labels = { efficiency = "E" }
[[report.context]]
row = "theirs"
source = "a paper"
ratio = true
values = { 1 = 228, 2 = ["427", 1.9] }
[[report]]
rows = "train.batch"
columns = "cluster.workers"
value = ["efficiency", "loss.last"]
)";

// Throws nothing but failure, with a message.
void survives(const std::string& text) {
  try {
    load(text);
  } catch (const regatta::failure& f) {
    REQUIRE(f.what()[0] != '\0');
  }
}

} // namespace

TEST_CASE("the text that is mangled below is valid") {
  CHECK(complaint(valid).empty());
}

TEST_CASE("every truncation of a valid file") {
  for (std::size_t n = 0; n < valid.size(); ++n) survives(valid.substr(0, n));
}

TEST_CASE("random bytes") {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random());
    survives(text);
  }
}

TEST_CASE("random pieces of TOML") {
  const std::string pieces[] = {
      "[",          "]",      "[[", "]]", "\"",    "'",      "\"\"\"", "=",     ",",
      ".",          "{",      "}",  "\n", " ",     "a",      "train",  "sweep", "zip",
      "1",          "-",      "1e", "0x", "nan",   "inf",    "true",   "\\u",   "\\",
      "1979-05-27", "T07:32", "#",  "\t", "model", "plugin", "\xc3",   "\xa9",  "\xf0\x9f\x98\x80",
      "_",          "+"};
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (unsigned n = random() % 40; n > 0; --n) text += pieces[random() % std::size(pieces)];
    survives(text);
  }
}

TEST_CASE("a valid file with bytes changed, taken out or doubled") {
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string text = valid;
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text.erase(at, 1 + random() % 10); break;
      default: text.insert(at, text.substr(at, random() % 30));
      }
    }
    survives(text);
  }
}

TEST_CASE("texts that could exhaust the stack, the memory or the time are survived") {
  const auto repeated = [](const std::string& piece, int n) {
    std::string text;
    for (int i = 0; i < n; ++i) text += piece;
    return text;
  };
  survives(std::string("a = ").append(repeated("[", 100000)));
  survives(repeated("a.", 100000) + "a = 1");
  survives(std::string("[").append(repeated("a . ", 100000)).append("a]"));
  survives(std::string("a = ").append(repeated("{a = ", 100000)));
  survives(repeated("a.b.c.d.e.f.g.h.i.j = [{", 10000));
  survives(repeated("[[sweep.zip]]\n\"train.batch\" = [1, 2]\n", 2000));
  survives(std::string(2 << 20, '#'));
  survives("[model]\nplugin = \"" + std::string(500000, 'x') + "\"");
  const std::string many = std::string("[").append(repeated("1,", 3000)).append("1]");
  CHECK(complaint("[model]\nplugin = \"mlp\"\n[sweep]\n\"train.batch\" = " + many + "\n\"measure.steps\" = " + many +
                  "\n\"measure.warmup\" = " + many)
            .find("more than 10000 cases") != std::string::npos);
}

TEST_CASE("random options") {
  std::mt19937 random(4);
  const std::string start = "train.batch=";
  for (int i = 0; i < 2000; ++i) {
    std::string text = random() % 2 ? start : "";
    for (unsigned n = random() % 20; n > 0; --n) text += static_cast<char>(1 + random() % 255);
    complaint(valid, {{text}, {}});
    complaint(valid, {{}, {text}});
  }
}
