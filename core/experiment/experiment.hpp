// SPDX-License-Identifier: Apache-2.0
//
// One experiment as the rest of the engine sees it: checked and complete, with every default filled in. The schema
// (names, ranges, units, help) is in experiment/schema.cpp; these structs hold the values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiment/source_positions.hpp"

namespace regatta {

// A plugin that the file chooses, with a value for each of its parameters.
struct component_choice {
  std::string id;
  std::map<std::string, nlohmann::json> parameters;
  // Of the parameters that the file or --set gives (not a sweep), those that differ from their defaults, with the
  // values as written: "64KiB", not 65536. Empty in a case from case_from_json().
  std::map<std::string, nlohmann::json> given = {};
};

struct data_config {
  std::string source = "constant";     // constant | random | dataset | queue | stream
  std::string queue_source = "random"; // queue: constant | random | dataset
  std::int64_t prefetch = 4;           // queue, stream: micro-batches that may be ready ahead
  std::string content = "normal";      // constant, random: zeros | uniform | normal
  double zipf = 1;                     // constant, random: Zipf exponent of generated words; 0: uniform
  std::string format; // dataset: cifar10 | npy | imagenet | criteo | words | sentences | parallel | queries
  std::string path, evaluation_path; // file or folder of the training and the held-out data, absolute; empty: none
  bool generate = false;             // write learnable data first if nothing exists at `path`
  bool shuffle = true;
  std::int64_t threads = 1;            // of each rank, to read samples
  std::string on_bad_record = "error"; // error: a damaged record ends the run | skip: the next record replaces it
  std::string tokens = "words";        // words | subwords
  std::string vocabulary;              // a file; empty: built from the training text
  // min_count: a word must occur so often in the training text to be in the vocabulary. window (format words): the
  // largest distance, in words, between a word and its context words.
  std::int64_t min_count = 1, window = 5;
  double subsample = 1e-3; // format words: frequency above which occurrences are dropped at random; 0: never
  std::string endpoint;    // stream: "tcp://HOST:PORT"
  std::string producer;    // stream: a shell command; empty: the user starts the producer
  std::int64_t timeout_ns = 60'000'000'000; // stream: longest wait for a batch, then the run fails
  std::uint64_t first_records = 0;          // not 0: read at most so many records, write no vocabulary. Not a key

  // Returns the source of the samples, which a queue only prefetches: `queue_source` for a queue, else `source`.
  const std::string& sample_source() const { return source == "queue" ? queue_source : source; }
};

struct train_config {
  std::int64_t batch = 32;            // in `batch_unit`s for each step
  std::string batch_unit = "samples"; // samples | tokens
  std::string scaling = "weak";       // weak: `batch` is each worker's | strong: it is the global batch
  std::int64_t accumulate = 1;        // micro-batches of a worker's batch
  std::string precision = "fp32";     // fp32 | tf32 | bf16 | fp16
  bool emulate = false;               // compute in a precision that the machine has no instructions for, slowly
  std::string device = "cpu";         // cpu | cuda
  std::vector<std::string> executor;  // ids, asked in this order to compile a graph; empty: all for the device
  std::string kernels = "timed";      // timed: autotune | fixed: no choice depends on a timing
  std::string isa = "auto";           // highest instruction set: auto | a name of rg::simd::isa_names
  bool graphs = true;                 // capture and replay CUDA graphs
  std::string debug = "none";         // none | sync: after every op wait for a GPU, compare its results with the CPU's
};

// The learning rate over a run; formulas: optimizer/schedule.hpp. `warmup`, `milestones`, `every` and `length` are in
// `unit`s, `start` and `end` are fractions of the learning rate.
struct schedule_config {
  std::string name = "constant";  // constant | step | linear | exponential | noam
  std::string unit = "step";      // step | epoch
  double warmup = 0, start = 0;   // length of the warm-up, and the fraction with which it begins
  std::vector<double> milestones; // step: when the rate is multiplied by `factor`
  double factor = 0.1, every = 0; // exponential: multiplied by `factor` after each `every`
  double length = 0, end = 0;     // linear: when it reaches the fraction `end`
  std::int64_t model_size = 512;  // noam: number of features of the model
  double epoch_steps = 0;         // steps of one epoch, which the ranks compute; 0: not yet, or no epochs. Not a key
};

struct optimizer_config {
  std::string plugin = "momentum"; // sgd | momentum | adagrad | adam
  double lr = 0.01, momentum = 0.9, weight_decay = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool nesterov = false;
  double clip_norm = 0;            // largest L2 norm of all gradients together; 0: no clipping
  std::string lr_scaling = "none"; // none | linear: lr times the number of workers
  schedule_config schedule;
};

// A straggler: one worker that is slowed down on purpose.
struct straggler_config {
  std::int64_t rank = 0; // number of the worker
  double factor = 1;     // computing takes this many times as long; 1: no straggler
};

struct cluster_config {
  // servers: ignored if the strategy has none; threads: compute threads of each rank
  std::int64_t workers = 1, servers = 1, threads = 1;
  bool colocate = false; // server k runs in worker k's process
  bool pin = true;       // bind each rank to its own cores
  // Network interfaces, subnets or addresses on which ranks listen, separated by commas; auto: loopback if all ranks
  // are on one host, else the address by which other hosts reach this one.
  std::string interface = "auto";
  std::string place = "block";   // how ranks of several hosts are placed: block or round_robin
  std::int64_t server_hosts = 0; // so many of a launcher's hosts run only servers; 0: hosts are shared
  std::int64_t spin_ns = 0;      // how long a waiting rank spins before it sleeps; has no effect if ranks share cores
  std::int64_t hosts = 1;        // hosts that strategy and transport are told of; ranks are assigned to them in blocks
  straggler_config straggler;
};

// most_measured_steps: the upper bound of measure.warmup and of timed steps. Each step keeps about 100 bytes until the
// run ends. steps_reserved: memory for so many steps is allocated before the timed region; more grows within it.
inline constexpr std::int64_t most_measured_steps = 100'000'000, steps_reserved = 1'000'000;

struct measure_config {
  // Steps before and in the timed region, at least: the strategy may need more warm-up, or whole periods.
  std::int64_t warmup = 5, steps = 30;
  double seconds = 0; // not 0: in place of `steps`, as many steps as take about so long at the warm-up's pace
  std::int64_t repeats = 3;
  // Not 0: in place of `repeats`, as many as it takes until each compared figure is known to this relative half width
  // of its interval, within `budget` nanoseconds for the whole campaign.
  double precision = 0;
  std::int64_t budget = 600'000'000'000;
  bool baseline = true;            // run the baseline and the contention control beside each repeat
  std::int64_t evaluate_every = 0; // steps between evaluations, warm-up included; 0: only after the last
  double target = 0;               // not 0: training ends at the first evaluation whose metric reaches it
  std::string target_is = "auto";  // auto: at_most for a metric named "perplexity" or "loss", else at_least
  bool vary_seed = false;          // repeat n, counted from 0, trains with the case's seed + n
  std::int64_t trace = 0;          // timed steps of a trace (docs/trace.md); 0: none
  std::string timeout = "auto";    // longest time without progress: auto | none | exact_nanoseconds() text ("30s")
};

// One combination of a sweep's values, run `repeats` times.
struct case_config {
  std::vector<std::pair<std::string, nlohmann::json>> swept; // in the order of the sweep: "train.batch" -> 64, as
                                                             // written; without parameters of plugins not chosen
  std::string name;                                          // of the experiment, the same in all cases
  std::uint64_t seed = 1;
  component_choice model, strategy{"allreduce", {}}, transport{"shm", {}};
  data_config data;
  train_config train;
  optimizer_config optimizer;
  cluster_config cluster;
  measure_config measure;
  source_positions written; // positions of keys for messages; not part of the JSON
};

// [any] Convert a case to and from the JSON that ranks receive: all keys but experiment.plugin_path, the parameters of
// the chosen plugins, and `swept`. It leaves out `written`, each choice's `given`, and members marked "Not a key".
// case_from_json() throws failure (run) if the JSON is no complete case.
nlohmann::json to_json(const case_config& c);
case_config case_from_json(const nlohmann::json& j);

struct experiment {
  std::string name;
  std::string file;                     // path as the user gave it
  std::vector<std::string> plugin_path; // absolute paths of folders and files of plugins
  std::vector<case_config> cases;       // at least one; the first swept key varies slowest
  std::vector<std::string> swept;       // swept keys: "train.batch"
  std::vector<std::string> notices;     // "FILE:LINE:COL: notice: KEY has no effect ..."
  // An object for each table of [report], with the members that the file gives it; keys of nested tables are joined
  // ("cluster.workers").
  nlohmann::json reports = nlohmann::json::array();
  nlohmann::json claims = nlohmann::json::array(); // an object for each [[claim]]; members: claims_read
};

} // namespace regatta
