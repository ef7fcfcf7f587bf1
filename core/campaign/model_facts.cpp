// SPDX-License-Identifier: Apache-2.0
#include "campaign/model_facts.hpp"

#include "base/findings.hpp"
#include "campaign/batch_per_worker.hpp"
#include "data/source.hpp"
#include "rank/model.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>
#include <regatta/ext/step_collectives.h>
#include <regatta/plugin.hpp>

namespace regatta {

namespace {

// Creates the model of a case to read its shapes, and reports a stage before each call of the plugin.
class described_model {
public:
  described_model(const registry& plugins, const case_config& c, const stage_function& stage)
      : plugins_(plugins), config_(c), stage_(stage) {
    const component& model = plugins.described(kind::model, c.model.id);
    who_ = fmt::format("model {} ({})", c.model.id, model.file.string());
    stage(who_, "was being loaded");
    plugins.find(kind::model, c.model.id);
    if (!model.is_graph) return;
    std::vector<std::string> executors;
    for (const component* e : executors_for(plugins, c.train))
      executors.push_back(fmt::format("{} ({})", e->id, e->file.string()));
    who_ += fmt::format(" on executor {}", fmt::join(executors, " or "));
  }

  // Calls f(model) with a model for `batch` samples, then destroys the model.
  template <class F> void with(std::uint64_t batch, F&& f) {
    stage_(who_, "was described");
    auto collectives = rg::make_versioned<rg_step_collectives>();
    collectives.workers = 2;
    collectives.context = this;
    collectives.reserve = [](void* self, std::uint64_t) {
      static_cast<described_model*>(self)->sums_over_workers = true;
    };
    collectives.all_reduce = [](void*, const char*, double*, std::uint64_t) { return rg_status{RG_E_PLUGIN}; };
    auto model = std::make_unique<model_instance>(
        plugins_, config_.model, config_.train, model_setup_of(config_, batch, RG_PURPOSE_INIT, nullptr, false),
        plugin_host::log_function(),
        [&](std::string_view id) -> const void* { return id == RG_EXT_STEP_COLLECTIVES ? &collectives : nullptr; });
    f(*model);
    stage_(who_, "was ended");
    model.reset();
  }

  bool sums_over_workers = false; // the model has reserved sums

private:
  const registry& plugins_;
  const case_config& config_;
  const stage_function& stage_;
  std::string who_;
};

// `x`: an rg_input or an rg_tensor.
template <class T> std::uint64_t elements_of(const T& x) {
  std::uint64_t n = 1;
  for (std::uint32_t d = 0; d < x.ndim; ++d) n *= static_cast<std::uint64_t>(x.shape[d]);
  return n;
}

// Returns the number of token positions of a sample: the size of the model's largest input of indices.
std::uint64_t tokens_of_sample(described_model& model, const std::string& id) {
  std::uint64_t most = 0;
  model.with(1, [&](const model_instance& m) {
    for (const rg_input& in : m.inputs())
      if (in.kind == RG_INPUT_INDEX) most = std::max(most, elements_of(in));
  });
  if (!most)
    throw failure(
        exit_code::usage,
        fmt::format("train.batch_unit: expected \"samples\", as model {} takes no tokens, got \"tokens\"", id));
  return most;
}

// Returns the number of distinct words in a text: counted in its first 4 MiB and extrapolated by Heaps' law. A run
// touches at most as many rows of a table of words. Returns nullopt if the data is not such a text, or cannot be read.
std::optional<std::uint64_t> count_words(const data_config& d) {
  const bool text = d.format == "words" || d.format == "queries" || d.format == "sentences" || d.format == "parallel";
  std::error_code ec;
  const auto size = static_cast<double>(std::filesystem::file_size(d.path, ec));
  std::ifstream in(d.path);
  if (d.sample_source() != "dataset" || !text || d.tokens != "words" || ec || !in) return {};
  std::unordered_set<std::string> seen;
  double read = 0, half = 0; // bytes read; distinct words in the first half of them
  constexpr double most = 4 << 20;
  for (std::string word; read < most && in >> word; read += static_cast<double>(word.size() + 1)) {
    seen.insert(word);
    if (read < std::min(size, most) / 2) half = static_cast<double>(seen.size());
  }
  const auto all = static_cast<double>(seen.size());
  if (!in || half == 0) return seen.size();
  return static_cast<std::uint64_t>(all * std::pow(size / read, std::log2(all / half)));
}

// Calls count_words() once for all cases that one child answers.
std::optional<std::uint64_t> distinct_words(const data_config& d) {
  static std::map<std::vector<std::string>, std::optional<std::uint64_t>> known;
  const auto [at, is_new] = known.try_emplace({d.sample_source(), d.format, d.path, d.tokens});
  if (is_new) at->second = count_words(d);
  return at->second;
}

void add_tensors(const model_instance& model, const case_config& c, model_facts& f) {
  const std::uint64_t words = model.has_tables() ? distinct_words(c.data).value_or(UINT64_MAX) : UINT64_MAX;
  for (const rg_tensor& t : model.tensors()) {
    if (t.kind == RG_TENSOR_STATE) f.batch_statistics = true;
    if (t.kind == RG_TENSOR_STATE) continue;
    const std::uint64_t n = elements_of(t);
    f.parameters += n;
    if (t.kind == RG_TENSOR_DENSE) {
      f.weight_bytes += rg::storage_of(t) * sizeof(float);
      continue;
    }
    f.table_parameters += n;
    if (!f.table.empty()) f.table += ", ";
    f.table += t.name;
    const auto rows = static_cast<std::uint64_t>(t.shape[0]);
    const std::uint64_t row_bytes = rg::storage_of(t) / std::max<std::uint64_t>(rows, 1) * sizeof(float);
    const std::uint64_t step = std::min({rows, words, t.max_rows * static_cast<std::uint64_t>(c.train.accumulate)});
    f.window_bytes += step * (2 * row_bytes + sizeof(std::uint64_t));
    f.step_row_bytes += step * (row_bytes + sizeof(std::uint64_t));
    // With measure.seconds the number of steps is unknown.
    const std::uint64_t steps =
        c.measure.seconds > 0 ? rows
                              : static_cast<std::uint64_t>((c.measure.warmup + c.measure.steps) * c.cluster.workers);
    f.table_bytes += std::min({rows, words, step * std::max<std::uint64_t>(steps, 1)}) * row_bytes;
  }
}

} // namespace

model_facts model_facts_of(const registry& plugins, const case_config& c, const stage_function& stage) {
  described_model model(plugins, c, stage);
  model_facts f;
  findings wrong;
  std::uint64_t micro = 1; // if the batch is invalid: model and data are checked with one sample
  wrong.attempt([&] {
    f.batch_per_worker = batch_per_worker(c, [&] { return tokens_of_sample(model, c.model.id); });
    micro = f.batch_per_worker / static_cast<std::uint64_t>(c.train.accumulate);
  });
  const auto look = [&](const model_instance& m) {
    check_data(c.data, m.inputs());
    f.unit = m.info().unit;
    f.executor = m.executor();
    f.sums_over_workers = model.sums_over_workers;
    add_tensors(m, c, f);
    f.activation_bytes = m.info().activation_bytes;
    if (!f.activation_bytes) // executors fuse some nodes, whose results are not stored
      f.activation_bytes = m.node_elements() * micro * sizeof(float) * 3 / 5;
    f.flops_per_sample = m.info().flops_per_sample;
  };
  wrong.attempt([&] { model.with(micro, look); });
  wrong.raise();
  return f;
}

std::uint64_t estimated_bytes(const case_config& c, const model_facts& m, std::uint64_t servers) {
  const std::uint64_t states = c.optimizer.plugin == "adam" ? 2 : c.optimizer.plugin == "sgd" ? 0 : 1;
  constexpr std::uint64_t process = 48ull << 20; // code, libraries, the transport's buffers
  const auto workers = static_cast<std::uint64_t>(c.cluster.workers);
  const std::uint64_t own = servers - (c.cluster.colocate ? std::min(servers, workers) : 0); // not colocated
  // A worker has weights, gradients and optimizer state; the servers together have weights, sums and optimizer state.
  // Sparse tables take a window in each worker, and rows with their optimizer state in the rank that holds them.
  const std::uint64_t tables = m.table_bytes * (1 + states);
  // Over shm, ranks map the weights or sums of their peers; the kernel counts that memory in each of them.
  const std::uint64_t mapped = c.transport.id == "shm" && c.strategy.id != "none" && workers > 1 ? 1 : 0;
  const std::uint64_t worker = m.weight_bytes * (2 + mapped + (servers ? 0 : states)) + m.activation_bytes + process +
                               m.window_bytes + (servers ? 0 : tables);
  const std::int64_t recorded = std::min(c.measure.warmup + c.measure.steps, steps_reserved);
  const std::uint64_t steps = static_cast<std::uint64_t>(recorded) * 96; // bytes
  return workers * (worker + steps) + (servers ? m.weight_bytes * (2 + states) + tables + own * process : 0);
}

void check_tables(const case_config& c, const model_facts& m, bool exchanges_rows) {
  if (m.table.empty() || exchanges_rows) return;
  throw failure(
      exit_code::usage,
      fmt::format("model {} has sparse tables ({}), and strategy {} over transport {} does not exchange their "
                  "rows; see \"rows of sparse tables\" in `regatta describe strategy/{}` and \"exact sizes\" in "
                  "`regatta describe transport/{}`",
                  c.model.id, m.table, c.strategy.id, c.transport.id, c.strategy.id, c.transport.id));
}

} // namespace regatta
