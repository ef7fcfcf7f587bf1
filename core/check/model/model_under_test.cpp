// SPDX-License-Identifier: Apache-2.0
#include "check/model/model_under_test.hpp"

#include "base/text.hpp"
#include "check/harness/progress.hpp"
#include "registry/validate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <regatta/model.hpp>
#include <regatta/random.hpp>

namespace regatta::conformance {
namespace {

// For executors: a network of the most common ops. It has no batch normalisation, so that the samples of a batch are
// independent.
struct small_network {
  void build(rg::network& net, const rg::parameters_t<small_network>&) const {
    rg::value x = net.values("image", {3, 8, 8});
    const rg::value label = net.index("label", 5);
    x = rg::max_pool(rg::relu(rg::conv2d(x, "a", 16, {.padding = 1})));
    x = rg::dropout(rg::relu(rg::conv2d(x, "b", 24, {.padding = 1})), 0.3);
    x = rg::relu(rg::dense(rg::flatten(x), "c", 20));
    rg::softmax_cross_entropy(rg::dense(x, "d", 5, {.gain = 1}), label);
  }
};

// For executors that lack one of those ops: a network of the fewest ops.
struct dense_network {
  void build(rg::network& net, const rg::parameters_t<dense_network>&) const {
    const rg::value x = net.values("x", {19}), label = net.index("label", 5);
    const rg::value hidden = rg::dense(rg::relu(rg::dense(x, "a", 24)), "b", 20);
    rg::softmax_cross_entropy(rg::dense(rg::relu(hidden), "c", 5, {.gain = 1}), label);
  }
};

// A component that may compile a graph of the subject, and where the graph comes from.
struct candidate {
  const component* executor;
  rg_graph_source source;
};

// Returns, for an executor, itself with each network of the suite; for a model with a graph, the executors for host
// memory in the order of a run: those of Regatta first, whatever lies on the plugin path.
std::vector<candidate> candidates_for(const subject& s) {
  const component& c = *s.tested;
  if (c.kind == kind::executor)
    return {{&c, rg::detail::models::graph_entry<small_network>::source},
            {&c, rg::detail::models::graph_entry<dense_network>::source}};
  std::vector<candidate> all;
  for (const component& other : s.plugins->components())
    if (other.kind == kind::executor && other.executor.memory & RG_MEMORY_HOST) all.push_back({&other, c.graph});
  std::stable_partition(all.begin(), all.end(), [own = built_in_folder()](const candidate& e) {
    return e.executor->file.parent_path() == own;
  });
  return all;
}

template <class T> void put(byte_array& to, std::uint64_t i, T value) {
  std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
}

// Generates element i of an input of the global batch, and writes it to element `at` of `to`.
void fill_element(const rg_input& in, std::uint32_t input, std::uint64_t seed, std::uint64_t i, std::uint64_t at,
                  byte_array& to) {
  const auto random = rg::random_bits(seed, i, input, rg::stream_data);
  const std::uint64_t index = in.range > 0 ? random[0] % static_cast<std::uint64_t>(in.range) : random[0] % 2;
  const bool is_index = in.kind == RG_INPUT_INDEX;
  switch (in.type) {
  case RG_F32:
    put(to, at, is_index ? static_cast<float>(index) : rg::random_normals(seed, i, input, rg::stream_data)[0]);
    break;
  case RG_I32: put(to, at, static_cast<std::int32_t>(index)); break;
  case RG_I64: put(to, at, static_cast<std::int64_t>(index)); break;
  case RG_U8: put(to, at, static_cast<std::uint8_t>(is_index ? index : random[0])); break;
  default: throw failed(fmt::format("input {} has type {}; expected fp32, int32, int64 or uint8", in.name, in.type));
  }
}

// Returns NAME if every message has the words "no op NAME", as executors write them, with the same NAME; else "".
std::string missing_op(const std::vector<std::string>& refusals) {
  std::string op;
  for (const std::string& text : refusals) {
    const auto at = text.rfind("no op ");
    if (at == std::string::npos) return {};
    const std::string name = text.substr(at + 6, text.find_first_of(" ,;:\"'", at + 6) - (at + 6));
    if (!op.empty() && name != op) return {};
    op = name;
  }
  return op;
}

} // namespace

rg_model_setup setup_of(std::uint64_t batch, std::uint32_t purpose, std::uint32_t precision) {
  auto s = rg::make_versioned<rg_model_setup>();
  s.purpose = purpose;
  s.precision = precision;
  s.memory = RG_MEMORY_HOST;
  s.threads = 1;
  s.batch = batch;
  s.kernels = RG_KERNELS_FIXED;
  return s;
}

double dot(const floats& a, const floats& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                            [](float x, float y) { return double{x} * y; });
}

double norm(const floats& a) {
  return std::sqrt(dot(a, a));
}

model_under_test::model_under_test(const subject& s, std::uint64_t batch, std::uint32_t purpose,
                                   std::uint32_t precision)
    : subject_(s), batch_(batch) {
  const auto setup = setup_of(batch, purpose, precision);
  values_.emplace_back(*s.tested, s.parameters);
  if (s.tested->kind == kind::executor || s.tested->graph.create) {
    compile(setup);
  } else {
    functions_ = s.tested->model;
    check(functions_.create(host_.c(), values_[0].data(), &setup, &self_), "create");
  }
  read_description();
}

model_under_test::model_under_test(const subject& s, const rg_graph& graph, std::uint64_t batch)
    : subject_(s), executor_(s.tested), functions_(s.tested->executor_model), batch_(batch) {
  const auto setup = setup_of(batch, RG_PURPOSE_TRAIN, RG_F32);
  values_.emplace_back(*s.tested, s.parameters);
  check(s.tested->executor.compile(host_.c(), values_[0].data(), &graph, &setup, &self_), "compile");
  read_description();
}

void model_under_test::read_description() {
  auto info = rg::make_versioned<rg_model_info>();
  check(functions_.describe(self_, &info), "describe");
  model_description d = validated(info, "model " + subject_.tested->id);
  info_ = d.info;
  tensors_ = std::move(d.tensors);
  inputs_ = std::move(d.inputs);
  weights_.resize(tensors_.size());
  gradients_.resize(tensors_.size());
  rows_.resize(tensors_.size());
}

// Compiles with the first candidate that can. An executor under test is one for each network of the suite.
void model_under_test::compile(const rg_model_setup& setup) {
  const component& c = *subject_.tested;
  const bool own_graph = c.kind == kind::executor;
  const std::vector<candidate> candidates = candidates_for(subject_);
  if (candidates.empty())
    throw skipped("there is no executor for host memory among the plugins; give its folder with --plugin-path");
  std::vector<std::string> refusals;
  for (const candidate& each : candidates) {
    if (!own_graph) {
      if (values_.size() > 1) values_.pop_back();
      values_.emplace_back(*each.executor, std::map<std::string, nlohmann::json>{});
    }
    source_ = each.source;
    check(source_.create(host_.c(), values_[0].data(), &graph_), "create");
    executor_ = each.executor;
    functions_ = executor_->executor_model;
    const rg_status status =
        executor_->executor.compile(host_.c(), values_.back().data(), source_.graph(graph_), &setup, &self_);
    if (status != RG_E_UNSUPPORTED) return check(status, "compile");
    self_ = nullptr;
    source_.destroy(std::exchange(graph_, nullptr)); // a constructor that throws runs no destructor
    refusals.push_back(fmt::format("{}: {}", executor_->id, host_.take_error()));
  }
  if (own_graph) refusals.erase(refusals.begin(), refusals.end() - 1); // the smallest network's is the one that matters
  const std::string op = missing_op(refusals), all = join(refusals, "; ");
  if (op.empty()) throw skipped(fmt::format("no executor here can compile it ({})", all));
  throw skipped(own_graph
                    ? fmt::format("it has no op {}, which the suite's smallest network needs ({})", op, all)
                    : fmt::format("no executor here has op {} ({}); give the file or folder of one that has it with "
                                  "--plugin-path",
                                  op, all));
}

model_under_test::~model_under_test() {
  if (self_) functions_.destroy(self_);
  if (graph_) source_.destroy(graph_);
}

void model_under_test::check(rg_status status, const char* function) {
  report_progress(); // the call returned
  if (status >= 0) return;
  const std::string text = host_.take_error();
  if (status == RG_E_UNSUPPORTED) throw skipped("it cannot run on this machine: " + text);
  throw failed(fmt::format("{}() returns status {}, \"{}\"", function, status, text));
}

bool model_under_test::has_state() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const rg_tensor& t) { return t.kind == RG_TENSOR_STATE; });
}

floats model_under_test::initial(std::uint32_t tensor, std::uint64_t seed) {
  floats out(rg::storage_of(tensors_[tensor]));
  check(functions_.init(self_, tensor, nullptr, 0, seed, out.data()), "init");
  return out;
}

void model_under_test::bind() {
  std::vector<void*> w(tensors_.size()), g(tensors_.size());
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].kind == RG_TENSOR_ROWS) continue;
    weights_[t] = initial(t, subject_.seed);
    w[t] = weights_[t].data();
    if (tensors_[t].kind != RG_TENSOR_DENSE) continue;
    gradients_[t].assign(weights_[t].size(), 0.0F);
    g[t] = gradients_[t].data();
  }
  auto memory = rg::make_versioned<rg_model_memory>();
  memory.tensor_count = static_cast<std::uint32_t>(tensors_.size());
  memory.weights = w.data();
  memory.gradients = g.data();
  check(functions_.bind(self_, &memory), "bind");
}

samples model_under_test::make_samples(std::uint64_t first, std::uint64_t count) const {
  samples s{first, count, {}};
  for (std::uint32_t k = 0; k < inputs_.size(); ++k) {
    const std::uint64_t one = elements_of(inputs_[k]);
    auto& to = s.inputs.emplace_back(count * one * rg::size_of(inputs_[k].type) + 64);
    for (std::uint64_t i = 0; i < count * one; ++i) fill_element(inputs_[k], k, subject_.seed, first * one + i, i, to);
  }
  return s;
}

rg_batch model_under_test::batch_of(const samples& part, std::vector<const void*>& inputs) const {
  inputs.clear();
  for (const byte_array& in : part.inputs) inputs.push_back(in.data());
  auto b = rg::make_versioned<rg_batch>();
  b.input_count = static_cast<std::uint32_t>(inputs.size());
  b.inputs = inputs.data();
  b.samples = b.valid = part.count;
  b.step = step_number;
  b.first_sample = part.first;
  b.global_samples = part.count;
  b.seed = subject_.seed;
  b.tables = tables_.data();
  b.table_count = static_cast<std::uint32_t>(tables_.size());
  b.global_counts = counts_.empty() ? nullptr : counts_.data();
  return b;
}

void model_under_test::prepare(const std::vector<const samples*>& parts) {
  counts_.clear();
  tables_.clear();
  std::vector<std::uint64_t> counts(info_.count_kinds);
  std::vector<std::uint32_t> table_tensors;
  for (std::uint32_t t = 0; t < tensors_.size(); ++t)
    if (tensors_[t].kind == RG_TENSOR_ROWS) table_tensors.push_back(t);
  std::vector<std::set<std::uint64_t>> touched(table_tensors.size());
  for (const samples* part : parts) {
    std::vector<const void*> inputs;
    const rg_batch b = batch_of(*part, inputs);
    if (info_.count_kinds) check(functions_.count(self_, &b, counts.data()), "count");
    if (table_tensors.empty()) continue;
    require(functions_.rows != nullptr, "it has sparse tables, but no rows()");
    std::vector<rg_rows> rows(table_tensors.size(), rg::make_versioned<rg_rows>());
    check(functions_.rows(self_, &b, rows.data()), "rows");
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const rg_tensor& t = tensors_[table_tensors[k]];
      require(rows[k].count <= t.max_rows, fmt::format("rows() returns {} rows of table {}, whose max_rows is {}",
                                                       rows[k].count, t.name, t.max_rows));
      for (std::uint64_t i = 0; i < rows[k].count; ++i) {
        require(
            rows[k].rows[i] < static_cast<std::uint64_t>(t.shape[0]),
            fmt::format("rows() returns row {} of table {}, which has {} rows", rows[k].rows[i], t.name, t.shape[0]));
        require(i == 0 || rows[k].rows[i - 1] < rows[k].rows[i],
                fmt::format("rows() returns rows of table {} that are not ascending and unique", t.name));
        touched[k].insert(rows[k].rows[i]);
      }
    }
  }
  counts_ = counts;
  for (std::size_t k = 0; k < table_tensors.size(); ++k) {
    const std::uint32_t t = table_tensors[k];
    const std::uint64_t row = rg::storage_of(tensors_[t]) / static_cast<std::uint64_t>(tensors_[t].shape[0]);
    rows_[t].assign(touched[k].begin(), touched[k].end());
    // Fresh arrays: in a larger one of earlier samples, writes behind the rows of these would not reach guard bytes.
    weights_[t] = floats(rows_[t].size() * row);
    gradients_[t] = floats(weights_[t].size());
    if (!rows_[t].empty()) // else null, which stands for the whole table
      check(functions_.init(self_, t, rows_[t].data(), rows_[t].size(), subject_.seed, weights_[t].data()),
            "init of rows");
    auto view = rg::make_versioned<rg_table_rows>();
    view.tensor = t;
    view.rows = rows_[t].data();
    view.count = rows_[t].size();
    view.weights = weights_[t].data();
    view.gradients = gradients_[t].data();
    tables_.push_back(view);
  }
}

samples model_under_test::start() {
  bind();
  samples first = make_samples(0, batch_);
  prepare({&first});
  return first;
}

rg_status model_under_test::try_step(const samples& part, std::uint64_t global, std::uint32_t flags,
                                     const step_hooks& hooks, rg_step_result& result) {
  std::vector<const void*> inputs;
  rg_batch b = batch_of(part, inputs);
  b.global_samples = global;
  b.flags = flags;
  struct context {
    const step_hooks& hooks;
    std::size_t tensors;
    std::string wrong;
    bool names(const char* hook, std::uint32_t tensor) {
      if (tensor < tensors) return true;
      wrong = fmt::format("the step calls {}({}), but the model has {} tensors", hook, tensor, tensors);
      return false;
    }
  } calls{hooks, tensors_.size(), {}};
  auto h = rg::make_versioned<rg_hooks>();
  h.context = &calls;
  h.need = [](void* self, std::uint32_t tensor) -> rg_status {
    auto& c = *static_cast<context*>(self);
    if (!c.names("need", tensor)) return RG_E_CANCELLED;
    return c.hooks.need ? c.hooks.need(tensor) : RG_OK;
  };
  h.ready = [](void* self, std::uint32_t tensor) {
    auto& c = *static_cast<context*>(self);
    if (c.names("ready", tensor) && c.hooks.ready) c.hooks.ready(tensor);
  };
  if (hooks.done)
    h.done = [](void* self, std::uint32_t tensor) {
      auto& c = *static_cast<context*>(self);
      if (c.names("done", tensor)) c.hooks.done(tensor);
    };
  h.backward = [](void* self) {
    auto& c = *static_cast<context*>(self);
    if (c.hooks.backward) c.hooks.backward();
  };
  result = rg::make_versioned<rg_step_result>();
  const rg_status status = functions_.step(self_, &b, &h, &result);
  require(calls.wrong.empty(), calls.wrong);
  require_in_bounds("step");
  report_progress();
  return status;
}

void model_under_test::require_in_bounds(const char* function) const {
  for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
    if (const char* where = damage_of(weights_[t]))
      throw failed(fmt::format("the {} writes {} the weights of tensor {}", function, where, tensors_[t].name));
    if (const char* where = damage_of(gradients_[t]))
      throw failed(fmt::format("the {} writes {} the gradient of tensor {}", function, where, tensors_[t].name));
  }
}

rg_step_result model_under_test::step(const samples& part, std::uint64_t global, std::uint32_t flags,
                                      const step_hooks& hooks) {
  rg_step_result result;
  check(try_step(part, global, flags, hooks, result), "step");
  return result;
}

void model_under_test::evaluate(const samples& part, std::uint64_t valid, std::vector<double>& sums) {
  std::vector<const void*> inputs;
  rg_batch b = batch_of(part, inputs);
  b.valid = valid;
  check(functions_.evaluate(self_, &b, sums.data()), "evaluate");
  require_in_bounds("evaluation");
}

double model_under_test::metric(const std::vector<double>& sums) {
  double value = 0;
  check(functions_.metric(self_, sums.data(), &value), "metric");
  return value;
}

std::vector<std::uint32_t> model_under_test::trained() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t t = 0; t < tensors_.size(); ++t)
    if (tensors_[t].kind != RG_TENSOR_STATE && !gradients_[t].empty()) all.push_back(t);
  return all;
}

floats model_under_test::canonical(std::uint32_t tensor, const floats& memory) {
  if (!functions_.canonical || tensors_[tensor].kind == RG_TENSOR_ROWS) return memory;
  floats out(elements_of(tensors_[tensor]));
  check(functions_.canonical(self_, tensor, memory.data(), out.data()), "canonical");
  return out;
}

floats model_under_test::from_canonical(std::uint32_t tensor, const floats& canonical) {
  if (!functions_.from_canonical || tensors_[tensor].kind == RG_TENSOR_ROWS) return canonical;
  floats out(rg::storage_of(tensors_[tensor]));
  check(functions_.from_canonical(self_, tensor, canonical.data(), out.data()), "from_canonical");
  return out;
}

} // namespace regatta::conformance
