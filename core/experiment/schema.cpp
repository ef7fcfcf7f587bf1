// SPDX-License-Identifier: Apache-2.0
#include "experiment/schema.hpp"
#include "base/instruction_set.hpp"

#include <limits>
#include <type_traits>

namespace regatta {
namespace {

using nlohmann::json;

constexpr double unlimited = std::numeric_limits<double>::infinity();
constexpr double largest_count = 1'000'000'000;
constexpr double most_steps = most_measured_steps;

template <class T> constexpr std::uint32_t type_of() {
  if constexpr (std::is_same_v<T, bool>)
    return RG_PARAM_BOOL;
  else if constexpr (std::is_integral_v<T>)
    return RG_PARAM_INT;
  else if constexpr (std::is_floating_point_v<T>)
    return RG_PARAM_FLOAT;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return RG_PARAM_FLOATS;
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return RG_PARAM_STRINGS;
  else
    return RG_PARAM_STRING;
}

// Builds one row of the table; chained calls set the allowed values.
struct row : schema_key {
  row& range(double low, double high) {
    rule.min = low;
    rule.max = high;
    return *this;
  }
  row& above(double low) { // without an upper bound
    above_min = true;
    return range(low, unlimited);
  }
  row& below(double high) { // from 0
    below_max = true;
    return range(0, high);
  }
  row& unit(std::uint32_t u) {
    rule.unit = u;
    return *this;
  }
  row& one_of(const char* const* choices) {
    rule.choices = choices;
    return *this;
  }
  row& fixed() {
    sweepable = false;
    return *this;
  }
};

row make_row(const char* path, config_member (*member)(experiment&, case_config&), const char* help) {
  row r{};
  r.rule.struct_size = sizeof(rg_param);
  r.rule.name = path;
  r.rule.help = help;
  r.member = member;
  r.sweepable = true;
  experiment whole;
  case_config point;
  r.rule.type = std::visit([](auto* m) { return type_of<std::remove_pointer_t<decltype(m)>>(); }, member(whole, point));
  return r;
}

const char* const places[] = {"block", "round_robin", nullptr};
const char* const sources[] = {"constant", "random", "queue", "dataset", "stream", nullptr};
const char* const target_sides[] = {"auto", "at_least", "at_most", nullptr};
const char* const queued[] = {"constant", "random", "dataset", nullptr};
const char* const bad_records[] = {"error", "skip", nullptr};
const char* const token_kinds[] = {"words", "subwords", nullptr};
const char* const contents[] = {"zeros", "uniform", "normal", nullptr};
const char* const formats[] = {"cifar10",   "npy",      "imagenet", "criteo", "words",
                               "sentences", "parallel", "queries",  nullptr};
const char* const batch_units[] = {"samples", "tokens", nullptr};
const char* const scalings[] = {"weak", "strong", nullptr};
const char* const precisions[] = {"fp32", "tf32", "bf16", "fp16", nullptr};
const char* const kernels[] = {"timed", "fixed", nullptr};
const char* const debug_modes[] = {"none", "sync", nullptr};
const char* const optimizers[] = {"sgd", "momentum", "adagrad", "adam", nullptr};
const char* const lr_scalings[] = {"none", "linear", nullptr};
const char* const timeouts[] = {"auto", "none", nullptr};
const char* const schedules[] = {"constant", "step", "linear", "exponential", "noam", nullptr};
const char* const schedule_units[] = {"step", "epoch", nullptr};

// A key and the member that it sets, of the experiment `e` or of the case `c`.
#define KEY(path, member, help)                                                                                        \
  make_row(                                                                                                            \
      path, []([[maybe_unused]] experiment& e, [[maybe_unused]] case_config& c) { return config_member(&(member)); },  \
      help)
// A key with the name of the case's member that it sets.
#define POINT(path, help) KEY(#path, c.path, help)

// Defaults are those of the structs in experiment.hpp.
std::vector<schema_key> make_schema() {
  return {
      KEY("experiment.name", c.name, "name of the results' folder; default: the file's name").fixed(),
      KEY("experiment.seed", c.seed, "seed of all random numbers").range(0, unlimited),
      KEY("experiment.plugin_path", e.plugin_path,
          "folders and files of plugins, which take precedence over the built-in ones")
          .fixed(),

      KEY("model.plugin", c.model.id,
          "the model; its parameters are keys of the same section (regatta describe model/ID)"),

      POINT(data.source, "constant: one generated batch for all steps; random: a new generated batch every step; "
                         "dataset: read from files; queue: one of these, prefetched by a thread; stream: from another "
                         "process")
          .one_of(sources),
      POINT(data.queue_source, "source that a queue prefetches").one_of(queued),
      POINT(data.prefetch, "micro-batches that a queue or a stream prefetches").range(1, 1024),
      POINT(data.content, "values of generated inputs").one_of(contents),
      POINT(data.zipf, "Zipf exponent of generated words; 0: uniform").range(0, 10),
      POINT(data.format, "file format of a dataset: docs/data.md").one_of(formats),
      POINT(data.path, "file or folder of a dataset"),
      POINT(data.evaluation_path, "file or folder of the evaluation data; none: no evaluation"),
      POINT(data.generate, "true: if data.path does not exist, first write learnable data in data.format there, as "
                           "`regatta data make` does"),
      POINT(data.shuffle, "read a dataset in a new random order in every epoch"),
      POINT(data.threads, "threads of a rank that read a dataset").range(1, 256),
      POINT(data.on_bad_record, "error: a damaged record ends the run; skip: the next record is read instead")
          .one_of(bad_records),
      POINT(data.tokens, "tokens of a text: words between spaces, or sentencepiece's subwords").one_of(token_kinds),
      POINT(data.vocabulary, "file of a vocabulary; none: built from the training text, and kept beside it"),
      POINT(data.min_count, "minimum count of a word in the vocabulary").range(1, largest_count),
      POINT(data.window, "for words: largest distance of a context word").range(1, 1000),
      POINT(data.subsample, "for words: subsampling threshold, as a fraction of all words; 0: none is dropped")
          .range(0, 1),
      POINT(data.endpoint, "for stream: address at which the producer binds its ZeroMQ PUSH socket; {worker} in it "
                           "stands for the worker's number"),
      POINT(data.producer,
            "for stream: shell command of the producer, which worker 0 (with {worker} in the "
            "endpoint: each worker) starts and ends; in it {endpoint}, {batch} (samples of a "
            "micro-batch), {worker} and {folder} (of this file) are replaced; none: the producer is already running"),
      KEY("data.timeout", c.data.timeout_ns, "for stream: longest time to wait for a batch")
          .range(1e6, 1e15)
          .unit(RG_UNIT_NANOSECONDS),

      POINT(train.batch, "samples or tokens a step: of each worker (weak scaling) or of all together (strong)")
          .range(1, 1 << 20),
      POINT(train.batch_unit,
            "unit of batch; tokens: positions of the model's largest index input, rounded down to whole samples")
          .one_of(batch_units),
      POINT(train.scaling,
            "weak: batch is per worker; strong: batch is global and must be a multiple of cluster.workers")
          .one_of(scalings),
      POINT(train.accumulate, "micro-batches that a worker's batch is split into; their gradients are exchanged once")
          .range(1, 65536),
      POINT(train.precision, "type that the model computes in; weights stay fp32").one_of(precisions),
      POINT(train.emulate, "compute slowly in a precision for which the machine has no instructions"),
      POINT(train.device, "kind of device that runs the model: cpu, or one that an executor computes on, such as cuda"),
      POINT(train.executor, "executors that are asked in this order to compile the model's graph; none: all of the "
                            "device, those of Regatta first"),
      POINT(train.kernels, "timed: autotune, the fastest algorithm runs; fixed: no autotuning").one_of(kernels),
      POINT(train.isa,
            "highest instruction set of ranks: auto: all that the CPU has, which must be equal on all hosts; the "
            "others as in oneDNN, each with those before it; baseline: SSE4.1 in oneDNN, else what the program "
            "was compiled for")
          .one_of(isa_choices),
      POINT(train.graphs, "for cuda: capture a step as CUDA graphs, and replay them"),
      POINT(train.debug, "for cuda: sync: wait for the GPU after every op, check its status, and compare its results "
                         "with the CPU's; an "
                         "error names op, layer and tensor; minutes per step, without CUDA graphs")
          .one_of(debug_modes),

      POINT(optimizer.plugin, "the rule by which weights are updated").one_of(optimizers),
      POINT(optimizer.lr, "learning rate").range(0, unlimited),
      POINT(optimizer.momentum, "for momentum: its coefficient").range(0, 1),
      POINT(optimizer.nesterov, "for momentum: Nesterov's variant"),
      POINT(optimizer.weight_decay, "L2 penalty, added to the gradient").range(0, unlimited),
      POINT(optimizer.beta1, "for adam: decay of the first moment").below(1),
      POINT(optimizer.beta2, "for adam: decay of the second moment").below(1),
      POINT(optimizer.epsilon, "for adagrad and adam: added to the denominator").above(0),
      POINT(optimizer.clip_norm, "largest norm of the whole gradient; 0: no clipping").range(0, unlimited),
      POINT(optimizer.lr_scaling, "linear: lr times the number of workers").one_of(lr_scalings),
      POINT(optimizer.schedule.name, "how lr changes over the run; docs/experiments.md has the formulas")
          .one_of(schedules),
      POINT(optimizer.schedule.unit, "unit of lengths: steps, or epochs of the dataset").one_of(schedule_units),
      POINT(optimizer.schedule.warmup, "length over which lr rises to its full value").range(0, unlimited),
      POINT(optimizer.schedule.start, "fraction of lr at the beginning of the warm-up").range(0, 1),
      POINT(optimizer.schedule.milestones, "for step: lengths after which lr is multiplied by factor")
          .range(0, unlimited),
      POINT(optimizer.schedule.factor, "for step and exponential: factor on lr").range(0, unlimited),
      POINT(optimizer.schedule.every, "for exponential: length after which lr is multiplied by factor")
          .range(0, unlimited),
      POINT(optimizer.schedule.length, "for linear: length after which lr has fallen to its end").range(0, unlimited),
      POINT(optimizer.schedule.end, "for linear: fraction of lr at the end").range(0, unlimited),
      POINT(optimizer.schedule.model_size, "for noam: number of features of a position").range(1, largest_count),

      KEY("strategy.plugin", c.strategy.id,
          "how workers exchange gradients; parameters in the same section, or under [strategy.ID] for one strategy "
          "only"),
      KEY("transport.plugin", c.transport.id, "how bytes move between ranks; parameters as for strategies"),

      POINT(cluster.workers, "ranks that train").range(1, 4096),
      POINT(cluster.servers, "number of parameter servers; strategies without servers start none").range(0, 4096),
      POINT(cluster.colocate, "server k runs in worker k's process"),
      POINT(cluster.threads, "compute threads of a rank").range(1, 1024),
      POINT(cluster.pin, "bind each rank to its own cores"),
      POINT(cluster.interface,
            "network interfaces, subnets or addresses that ranks listen on, separated by commas: \"eth0,eth1\", "
            "\"10.1.0.0/16\"; auto: loopback on one host, else the address by which the other hosts reach it"),
      POINT(cluster.place, "how ranks are placed on a launcher's hosts: fill one after the other, or one each in turn")
          .one_of(places),
      POINT(cluster.server_hosts, "so many of a launcher's hosts, the last ones, run only servers; 0: hosts are shared")
          .range(0, 4096),
      KEY("cluster.spin", c.cluster.spin_ns,
          "how long a waiting rank spins before it sleeps; has no effect where cores are shared")
          .range(0, largest_count)
          .unit(RG_UNIT_NANOSECONDS),
      POINT(cluster.hosts, "hosts to which ranks are assigned, in blocks: to try a hierarchy on one machine")
          .range(1, 4096),
      POINT(cluster.straggler.rank, "worker that is a straggler").range(0, 4095),
      POINT(cluster.straggler.factor, "its computing time, relative to the other workers").range(1, 1000),

      POINT(measure.warmup, "steps before the measurement").range(0, most_steps),
      POINT(measure.steps, "steps that are measured; each is kept in memory").range(1, most_steps),
      POINT(measure.seconds, "not 0: measure for about this many seconds, instead of a number of steps")
          .range(0, 1'000'000),
      POINT(measure.repeats, "runs of every case, each in fresh processes").range(1, 1000),
      KEY("measure.precision", c.measure.precision,
          "not 0: instead of a number of repeats, repeat until every efficiency (or samples/s) is known to this "
          "relative "
          "half width of its 95 % interval: 0.02")
          .range(0, 0.5)
          .fixed(),
      KEY("measure.budget", c.measure.budget, "time after which measure.precision gives up, for all cases together")
          .range(1e9, 1e15)
          .unit(RG_UNIT_NANOSECONDS)
          .fixed(),
      POINT(measure.baseline, "also run one worker without communication, the reference of efficiency"),
      POINT(measure.evaluate_every, "steps between two evaluations, which are not timed; 0: only after the last step")
          .range(0, largest_count),
      POINT(measure.target, "value that the model's metric must reach: training ends at the first evaluation that "
                            "reaches it, or after measure.steps; 0: none"),
      POINT(measure.target_is, "which side of the target is better; auto: at_most for the metrics perplexity and loss, "
                               "else at_least")
          .one_of(target_sides),
      POINT(measure.vary_seed, "every repeat has another seed: experiment.seed + 0, 1, ..."),
      POINT(measure.trace, "timed steps of which every run records a trace of all ranks, in traces/ beside the result; "
                           "0: none; docs/trace.md")
          .range(0, 1000),
      POINT(measure.timeout,
            "longest time without any progress of a rank, then the case fails; auto: during the steps 30 s "
            "or 20 usual steps, minutes at other times; none: for debuggers")
          .one_of(timeouts)
          .range(1e8, 1e15)
          .unit(RG_UNIT_NANOSECONDS),
  };
}
#undef POINT
#undef KEY

} // namespace

std::string schema_key::section() const {
  return path().substr(0, path().find('.'));
}
std::string schema_key::leaf() const {
  return path().substr(path().find('.') + 1);
}

const std::vector<schema_key>& schema() {
  static const std::vector<schema_key> keys = make_schema();
  return keys;
}

component_choice& choice_of(case_config& c, kind section) {
  return section == kind::model ? c.model : section == kind::strategy ? c.strategy : c.transport;
}

const component_choice& choice_of(const case_config& c, kind section) {
  return choice_of(const_cast<case_config&>(c), section); // the other overload only selects a member
}

void assign(const schema_key& key, const json& value, experiment& whole, case_config& point) {
  std::visit([&](auto* m) { *m = value.get<std::remove_pointer_t<decltype(m)>>(); }, key.member(whole, point));
}

json read(const schema_key& key, const experiment& whole, const case_config& point) {
  // One accessor serves reading and writing; this call writes nothing through it.
  return std::visit([](auto* m) { return json(*m); },
                    key.member(const_cast<experiment&>(whole), const_cast<case_config&>(point)));
}

} // namespace regatta
