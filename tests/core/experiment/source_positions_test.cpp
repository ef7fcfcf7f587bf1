// SPDX-License-Identifier: Apache-2.0
//
// Where a key was written, in errors that are found after the file was read.
#include "experiment/source_positions.hpp"

#include <memory>

#include <doctest/doctest.h>

using namespace regatta;

namespace {

source_positions of_file() {
  const source_positions::map written{{"data", "f.toml:3:1"},
                                      {"data.path", "f.toml:4:8"},
                                      {"train.batch", "f.toml:7:9"},
                                      {"optimizer.lr", "--set"},
                                      {"model.plugin", "f.toml:2:10"}};
  return {"f.toml", std::make_shared<const source_positions::map>(written), {{"train.batch", "f.toml:20:5"}}};
}

} // namespace

TEST_CASE("a key has the position of its value: of a sweep before the file's, or the option's name") {
  const source_positions p = of_file();
  CHECK(p.before("data.path: no such file") == "f.toml:4:8: error: data.path: no such file");
  CHECK(p.before("train.batch: too large") == "f.toml:20:5: error: train.batch: too large");
  CHECK(p.before("optimizer.lr: too large") == "--set optimizer.lr: too large");
}

TEST_CASE("a key that is not given has the position of its section, else that of the file's begin") {
  const source_positions p = of_file();
  CHECK(p.before("data.source: x") == "f.toml:3:1: error: data.source: x");
  CHECK(p.before("cluster.workers: x") == "f.toml:1:1: error: cluster.workers: x");
}

TEST_CASE("each line has its own position; a plugin's is that of its choice; text alone has the file's name") {
  const source_positions p = of_file();
  CHECK(p.before("data.path: a\ntrain.batch: b") ==
        "f.toml:4:8: error: data.path: a\nf.toml:20:5: error: train.batch: b");
  CHECK(p.before("model mlp: a") == "f.toml:2:10: error: model mlp: a");
  CHECK(p.before("no key here") == "f.toml: error: no key here");
}

TEST_CASE("only a failure of the configuration gets a position") {
  const source_positions p = of_file();
  CHECK(p.reason_of(failure(exit_code::usage, "data.path: x")) == "f.toml:4:8: error: data.path: x");
  CHECK(p.reason_of(failure(exit_code::run, "data.path: x")) == "data.path: x");
}

TEST_CASE("a notice names the key, and where it is written") {
  const source_positions p = of_file();
  CHECK(p.notice("data.path", "has no effect") == "f.toml:4:8: notice: data.path has no effect");
  CHECK(p.notice("optimizer.lr", "has no effect") == "notice: --set optimizer.lr has no effect");
  CHECK(p.notice("cluster.pin", "has no effect") == "f.toml: notice: cluster.pin has no effect");
}

TEST_CASE("keys and sections that are given are known; without a file nothing is changed") {
  const source_positions p = of_file();
  for (const char* key : {"data", "data.path", "train.batch", "optimizer.lr"}) CHECK(p.has(key));
  for (const char* key : {"data.source", "cluster", "batch"}) CHECK_FALSE(p.has(key));
  CHECK(source_positions().before("data.path: x") == "data.path: x");
  CHECK_FALSE(source_positions().has("data.path"));
}
