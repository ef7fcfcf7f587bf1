// SPDX-License-Identifier: Apache-2.0
//
// One experiment as the rest of the engine sees it: checked, complete, every default filled in. The schema (names,
// ranges, units, help) is config/schema.cpp; this is only what comes out of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/places.hpp"

namespace regatta {

// A plugin as the file chooses it, with a value for every one of its parameters.
struct component_choice {
  std::string id;
  std::map<std::string, nlohmann::json> parameters;
  // Those that the file or the command line sets to something else than the default, as it is written there.
  std::map<std::string, nlohmann::json> given = {};
};

struct data_config {
  std::string source = "constant"; // constant | random | dataset | queue | stream
  std::string of = "random";       // queue: constant | random | dataset
  std::int64_t prefetch = 4;       // queue: micro-batches
  std::string content = "normal";  // constant, random: zeros | uniform | normal
  double zipf = 1;                 // constant, random: exponent of words' frequencies; 0: even
  std::string format; // dataset: cifar10 | npy | imagenet | criteo | words | sentences | parallel | queries
  std::string path, evaluation_path;
  bool generate = false; // learnable data where there is nothing at `path`
  bool shuffle = true;
  std::int64_t threads = 1;
  std::string on_bad_record = "error"; // error | skip
  std::string tokens = "words";        // words | subwords
  std::string vocabulary;              // a file; empty: made of the training text
  std::int64_t min_count = 1, window = 5;
  double subsample = 1e-3;
  std::string endpoint;                     // stream: "tcp://HOST:PORT"
  std::string producer;                     // stream: a command; empty: somebody else starts it
  std::int64_t timeout_ns = 60'000'000'000; // stream
  std::uint64_t first_records = 0;          // not 0: only so many are looked at, and nothing is written. No key.
};

struct train_config {
  std::int64_t batch = 32;
  std::string batch_unit = "samples";
  std::string scaling = "weak"; // weak | strong
  std::int64_t accumulate = 1;
  std::string precision = "fp32";
  bool emulate = false; // a precision that the machine has no instructions for
  std::string device = "cpu";
  std::string kernels = "timed"; // timed | fixed
  bool graphs = true;            // of CUDA
};

// See optimizer/schedule.hpp for the formulas. Lengths are in `unit`s.
struct schedule_config {
  std::string name = "constant"; // constant | step | linear | exponential | noam
  std::string unit = "step";     // step | epoch
  double warmup = 0, start = 0;
  std::vector<double> milestones;
  double factor = 0.1, every = 0;
  double length = 0, end = 0;
  std::int64_t model_size = 512;
  double epoch_steps = 0; // steps of one round of the dataset, found out by the ranks; 0: it has none. No key.
};

struct optimizer_config {
  std::string plugin = "momentum"; // sgd | momentum | adagrad | adam
  double lr = 0.01, momentum = 0.9, weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool nesterov = false;
  double clip_norm = 0;            // 0: off
  std::string lr_scaling = "none"; // none | linear: times the number of workers
  schedule_config schedule;
};

// A worker that is made to compute more slowly.
struct slow_config {
  std::int64_t rank = 0;
  double factor = 1; // times as long; 1: none is slow
};

struct cluster_config {
  std::int64_t workers = 1, servers = 1, threads = 1;
  bool colocate = false;
  bool pin = true;
  std::string interface = "lo"; // whose address ranks listen on
  std::int64_t spin_ns = 0;     // how long a waiting rank spins before it sleeps; off when cores are shared
  std::int64_t hosts = 1;       // that ranks are taken to lie on, in blocks
  slow_config slow;
};

// Of every step some 100 bytes are kept until the run ends: room for `steps_reserved` is taken before the region, what
// is more grows as it comes.
inline constexpr std::int64_t most_measured_steps = 100'000'000, steps_reserved = 1'000'000;

struct measure_config {
  std::int64_t warmup = 5, steps = 30;
  double seconds = 0; // not 0: instead of steps
  std::int64_t repeats = 3;
  bool baseline = true;
  std::int64_t evaluate_every = 0; // steps; 0: only after the last
  double target = 0;               // not 0: what the metric must reach
  std::string timeout = "auto";    // auto | none | a time, as exact_nanoseconds writes it
};

// One point of a sweep, run `repeats` times.
struct case_config {
  std::vector<std::pair<std::string, nlohmann::json>> swept; // in the order of the sweep: "train.batch" -> 64
  std::string name;
  std::uint64_t seed = 1;
  component_choice model, strategy{"allreduce", {}}, transport{"shm", {}};
  data_config data;
  train_config train;
  optimizer_config optimizer;
  cluster_config cluster;
  measure_config measure;
  places written; // for messages; no part of the JSON
};

// A case travels to its ranks as JSON.
nlohmann::json to_json(const case_config& c);
case_config case_from_json(const nlohmann::json& j);

struct report_config {
  std::string rows, columns, value; // empty: none
};

struct experiment {
  std::string name;
  std::string file; // as given
  std::vector<std::string> plugin_path;
  std::vector<case_config> cases;
  std::vector<std::string> swept;   // names of the keys that vary
  std::vector<std::string> notices; // "FILE:LINE:COL: notice: KEY has no effect ...": of keys that change nothing
  report_config report;
};

} // namespace regatta
