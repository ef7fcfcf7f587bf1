// SPDX-License-Identifier: Apache-2.0
//
// One experiment as the rest of the engine sees it: checked and complete, with every default filled in. The schema
// (names, ranges, units, help) is in config/schema.cpp; these structs hold the values.
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

// A plugin that the file chooses, with a value for each of its parameters.
struct component_choice {
  std::string id;
  std::map<std::string, nlohmann::json> parameters;
  // Parameters that the file or the command line sets to a value other than the default, as written there.
  std::map<std::string, nlohmann::json> given = {};
};

struct data_config {
  std::string source = "constant"; // constant | random | dataset | queue | stream
  std::string of = "random";       // queue: constant | random | dataset
  std::int64_t prefetch = 4;       // queue: micro-batches
  std::string content = "normal";  // constant, random: zeros | uniform | normal
  double zipf = 1;                 // constant, random: Zipf exponent of generated words; 0: uniform
  std::string format; // dataset: cifar10 | npy | imagenet | criteo | words | sentences | parallel | queries
  std::string path, evaluation_path;
  bool generate = false; // write learnable data first if nothing exists at `path`
  bool shuffle = true;
  std::int64_t threads = 1;
  std::string on_bad_record = "error"; // error | skip
  std::string tokens = "words";        // words | subwords
  std::string vocabulary;              // a file; empty: built from the training text
  std::int64_t min_count = 1, window = 5;
  double subsample = 1e-3;
  std::string endpoint;                     // stream: "tcp://HOST:PORT"
  std::string producer;                     // stream: a shell command; empty: the user starts the producer
  std::int64_t timeout_ns = 60'000'000'000; // stream
  std::uint64_t first_records = 0;          // not 0: only so many records are read, and nothing is written. Not a key
};

struct train_config {
  std::int64_t batch = 32;
  std::string batch_unit = "samples";
  std::string scaling = "weak"; // weak | strong
  std::int64_t accumulate = 1;
  std::string precision = "fp32";
  bool emulate = false; // compute in a precision that the machine has no instructions for, slowly
  std::string device = "cpu";
  std::string kernels = "timed"; // timed | fixed
  bool graphs = true;            // CUDA graphs
};

// Formulas: optimizer/schedule.hpp. Lengths are in `unit`s.
struct schedule_config {
  std::string name = "constant"; // constant | step | linear | exponential | noam
  std::string unit = "step";     // step | epoch
  double warmup = 0, start = 0;
  std::vector<double> milestones;
  double factor = 0.1, every = 0;
  double length = 0, end = 0;
  std::int64_t model_size = 512;
  double epoch_steps = 0; // steps of one epoch, which the ranks compute; 0: the data has no epochs. Not a key
};

struct optimizer_config {
  std::string plugin = "momentum"; // sgd | momentum | adagrad | adam
  double lr = 0.01, momentum = 0.9, weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool nesterov = false;
  double clip_norm = 0;            // 0: off
  std::string lr_scaling = "none"; // none | linear: lr times the number of workers
  schedule_config schedule;
};

// A worker that computes more slowly on purpose: a straggler.
struct slow_config {
  std::int64_t rank = 0;
  double factor = 1; // computing takes this many times as long; 1: no straggler
};

struct cluster_config {
  std::int64_t workers = 1, servers = 1, threads = 1;
  bool colocate = false;
  bool pin = true;
  std::string interface = "lo"; // ranks listen on its address
  std::int64_t spin_ns = 0;     // how long a waiting rank spins before it sleeps; 0 if cores are shared
  std::int64_t hosts = 1;       // hosts to which ranks are assigned, in blocks
  slow_config slow;
};

// Each step keeps about 100 bytes until the run ends. Memory for `steps_reserved` steps is allocated before the timed
// region; beyond that it grows within the region.
inline constexpr std::int64_t most_measured_steps = 100'000'000, steps_reserved = 1'000'000;

struct measure_config {
  std::int64_t warmup = 5, steps = 30;
  double seconds = 0; // not 0: takes the place of `steps`
  std::int64_t repeats = 3;
  bool baseline = true;
  std::int64_t evaluate_every = 0; // steps; 0: only after the last
  double target = 0;               // not 0: the value that the metric must reach
  std::string timeout = "auto";    // auto | none | a time, in the form of exact_nanoseconds()
};

// One combination of a sweep's values, run `repeats` times.
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
  places written; // positions of keys for messages; not part of the JSON
};

// Ranks receive their case as JSON.
nlohmann::json to_json(const case_config& c);
case_config case_from_json(const nlohmann::json& j);

struct report_config {
  std::string rows, columns, value; // empty: no extra table
};

struct experiment {
  std::string name;
  std::string file; // as given
  std::vector<std::string> plugin_path;
  std::vector<case_config> cases;
  std::vector<std::string> swept;   // names of the swept keys
  std::vector<std::string> notices; // "FILE:LINE:COL: notice: KEY has no effect ..."
  report_config report;
};

} // namespace regatta
