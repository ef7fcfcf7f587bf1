// SPDX-License-Identifier: Apache-2.0
#include "config/effect.hpp"

#include <algorithm>
#include <initializer_list>

namespace regatta {
namespace {

bool among(const std::string& value, std::initializer_list<const char*> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool generated(const case_config& c) {
  return among(c.data.sample_source(), {"constant", "random"});
}
bool trained_on_files(const case_config& c) {
  return c.data.sample_source() == "dataset";
}
bool reads_files(const case_config& c) {
  return trained_on_files(c) || !c.data.evaluation_path.empty();
}
bool reads_text(const case_config& c) {
  return reads_files(c) && among(c.data.format, {"words", "sentences", "parallel", "queries"});
}
bool counts_words(const case_config& c) {
  return reads_text(c) && c.data.vocabulary.empty() && (c.data.tokens == "words" || c.data.format == "words");
}
bool streamed(const case_config& c) {
  return c.data.source == "stream";
}
bool reads_words(const case_config& c) {
  return reads_text(c) && c.data.format == "words";
}
bool reads_records(const case_config& c) {
  return reads_files(c) && !among(c.data.format, {"cifar10", "npy"});
}
const std::string& schedule(const case_config& c) {
  return c.optimizer.schedule.name;
}

// A key has an effect if all of its rules hold.
struct rule {
  std::string_view key, decided_by;
  bool (*counts)(const case_config&);
};

constexpr rule rules[] = {
    {"data.queue_source", "data.source", [](const case_config& c) { return c.data.source == "queue"; }},
    {"data.prefetch", "data.source", [](const case_config& c) { return c.data.source == "queue" || streamed(c); }},
    {"data.content", "data.source", generated},
    {"data.zipf", "data.source", generated},
    {"data.format", "data.source", reads_files},
    // Evaluation reads the vocabulary or the classes of the training data there.
    {"data.path", "data.source",
     [](const case_config& c) {
       return trained_on_files(c) || reads_text(c) || (reads_files(c) && c.data.format == "imagenet");
     }},
    {"data.shuffle", "data.source", trained_on_files},
    {"data.threads", "data.format", reads_records},
    {"data.on_bad_record", "data.format", reads_records},
    {"data.tokens", "data.format", [](const case_config& c) { return reads_text(c) && c.data.format != "words"; }},
    {"data.vocabulary", "data.format", reads_text},
    {"data.min_count", "data.format", counts_words},
    {"data.window", "data.format", reads_words},
    {"data.subsample", "data.format", reads_words},
    {"data.endpoint", "data.source", streamed},
    {"data.timeout", "data.source", streamed},
    {"train.emulate", "train.precision", [](const case_config& c) { return c.train.precision != "fp32"; }},
    {"train.graphs", "train.device", [](const case_config& c) { return c.train.device != "cpu"; }},
    {"train.graphs", "train.debug", [](const case_config& c) { return c.train.debug == "none"; }},
    {"train.debug", "train.device", [](const case_config& c) { return c.train.device != "cpu"; }},
    {"optimizer.momentum", "optimizer.plugin", [](const case_config& c) { return c.optimizer.plugin == "momentum"; }},
    {"optimizer.nesterov", "optimizer.plugin", [](const case_config& c) { return c.optimizer.plugin == "momentum"; }},
    {"optimizer.beta1", "optimizer.plugin", [](const case_config& c) { return c.optimizer.plugin == "adam"; }},
    {"optimizer.beta2", "optimizer.plugin", [](const case_config& c) { return c.optimizer.plugin == "adam"; }},
    {"optimizer.epsilon", "optimizer.plugin",
     [](const case_config& c) { return c.optimizer.plugin == "adagrad" || c.optimizer.plugin == "adam"; }},
    {"optimizer.schedule.unit", "optimizer.schedule.name",
     [](const case_config& c) { return schedule(c) != "constant" || c.optimizer.schedule.warmup > 0; }},
    {"optimizer.schedule.start", "optimizer.schedule.warmup",
     [](const case_config& c) { return schedule(c) != "noam" && c.optimizer.schedule.warmup > 0; }},
    {"optimizer.schedule.milestones", "optimizer.schedule.name",
     [](const case_config& c) { return schedule(c) == "step"; }},
    {"optimizer.schedule.factor", "optimizer.schedule.name",
     [](const case_config& c) { return schedule(c) == "step" || schedule(c) == "exponential"; }},
    {"optimizer.schedule.every", "optimizer.schedule.name",
     [](const case_config& c) { return schedule(c) == "exponential"; }},
    {"optimizer.schedule.length", "optimizer.schedule.name",
     [](const case_config& c) { return schedule(c) == "linear"; }},
    {"optimizer.schedule.end", "optimizer.schedule.name", [](const case_config& c) { return schedule(c) == "linear"; }},
    {"optimizer.schedule.model_size", "optimizer.schedule.name",
     [](const case_config& c) { return schedule(c) == "noam"; }},
    {"cluster.straggler.rank", "cluster.straggler.factor",
     [](const case_config& c) { return c.cluster.straggler.factor > 1; }},
    {"measure.steps", "measure.seconds", [](const case_config& c) { return !(c.measure.seconds > 0); }},
    {"measure.repeats", "measure.precision", [](const case_config& c) { return !(c.measure.precision > 0); }},
    {"measure.budget", "measure.precision", [](const case_config& c) { return c.measure.precision > 0; }},
    {"measure.evaluate_every", "data.evaluation_path",
     [](const case_config& c) { return !c.data.evaluation_path.empty(); }},
    {"measure.target_is", "measure.target", [](const case_config& c) { return c.measure.target != 0; }},
};

} // namespace

bool has_effect(std::string_view key, const case_config& c) {
  return ignored_because_of(key, c).empty();
}

std::string ignored_because_of(std::string_view key, const case_config& c) {
  for (const rule& r : rules)
    if (r.key == key && !r.counts(c)) return std::string(r.decided_by);
  return {};
}

} // namespace regatta
