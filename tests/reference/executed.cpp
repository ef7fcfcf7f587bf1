// SPDX-License-Identifier: Apache-2.0
#include "executed.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <regatta/ext/graph.h>

namespace reference {

const rg_component& load_component(const std::string& file, std::uint32_t kind, const std::string& id) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const auto entry = reinterpret_cast<rg_entry>(dlsym(library, RG_ENTRY_SYMBOL));
  if (!entry) throw std::runtime_error(file + " has no " RG_ENTRY_SYMBOL);
  const rg_plugin* plugin = entry(nullptr);
  for (std::uint32_t i = 0; plugin && i < plugin->component_count; ++i)
    if (plugin->components[i]->kind == kind && plugin->components[i]->id == id) return *plugin->components[i];
  throw std::runtime_error(file + " has no component " + id);
}

aligned_floats::aligned_floats(std::size_t count)
    : data_(static_cast<float*>(std::aligned_alloc(64, (count * sizeof(float) + 64) / 64 * 64)), &std::free) {
  if (!data_) throw std::bad_alloc();
  std::fill_n(data_.get(), count, 0.0F);
}

executed::executed(const std::string& plugin, const rg_graph& graph, const execution_options& options)
    : awaited_(options.awaited), collectives_(options.collectives), trace_(options.trace) {
  host_.struct_size = sizeof host_;
  host_.abi_major = RG_ABI_MAJOR;
  host_.abi_minor = RG_ABI_MINOR;
  host_.context = this;
  host_.log = [](void*, std::int32_t, const char*) {};
  host_.fail = [](void* context, rg_status status, const char* text) {
    static_cast<executed*>(context)->error = text;
    return status;
  };
  host_.extension = [](void* self, const char* id) -> const void* {
    const auto& x = *static_cast<executed*>(self);
    if (std::string_view(id) == RG_EXT_STEP_COLLECTIVES) return x.collectives_;
    return std::string_view(id) == RG_EXT_TRACE ? x.trace_ : nullptr;
  };

  const auto& component = load_component(plugin, RG_KIND_EXECUTOR, std::filesystem::path(plugin).stem());
  const auto* executor = static_cast<const rg_executor*>(component.functions);
  functions_ = executor->model;
  auto setup = rg::make_versioned<rg_model_setup>();
  setup.purpose = options.purpose;
  setup.precision = options.precision;
  setup.emulate = options.emulate;
  setup.plain = options.plain;
  setup.row_major = options.row_major;
  setup.debug = options.debug;
  setup.memory = executor->memory;
  setup.threads = options.threads;
  setup.batch = options.batch;
  setup.kernels = options.kernels;
  setup.kernel_choices = options.kernel_choices ? options.kernel_choices->c_str() : nullptr;
  check(executor->compile(&host_, nullptr, &graph, &setup, &self_));

  info.struct_size = sizeof info;
  check(functions_->describe(self_, &info));
  std::vector<float*> w, g;
  for (std::uint32_t t = 0; t < info.tensor_count; ++t) {
    tensors.push_back(rg::at_stride(info.tensors, t));
    weights.emplace_back(rg::storage_of(tensors.back()));
    gradients.emplace_back(rg::storage_of(tensors.back()));
    const std::uint32_t kind = tensors.back().kind;
    w.push_back(kind == RG_TENSOR_ROWS ? nullptr : weights.back().data());
    g.push_back(kind == RG_TENSOR_DENSE ? gradients.back().data() : nullptr);
    if (kind == RG_TENSOR_ROWS)
      windows_.push_back({.tensor = t, .dim = static_cast<std::size_t>(tensors.back().shape[1])});
  }
  for (std::uint32_t i = 0; i < info.input_count; ++i) {
    inputs_.push_back(rg::at_stride(info.inputs, i));
    std::size_t count = options.batch;
    for (std::uint32_t d = 0; d < inputs_.back().ndim; ++d) count *= static_cast<std::size_t>(inputs_.back().shape[d]);
    buffers_.emplace_back(count);
    pointers_.push_back(buffers_.back().data());
  }
  if (options.purpose == RG_PURPOSE_INIT) return;
  if (!options.host_memory) open_device(component);
  for (window& of : windows_)
    for (float** at : {&of.weights, &of.gradients}) *at = window_memory(tensors[of.tensor].max_rows * of.dim);
  auto memory = rg::make_versioned<rg_model_memory>();
  memory.tensor_count = info.tensor_count;
  const auto untyped = [](const std::vector<float*>& all) { return std::vector<void*>(all.begin(), all.end()); };
  const std::vector<void*> all_weights = untyped(device_ ? device_weights_ : w),
                           all_gradients = untyped(device_ ? device_gradients_ : g);
  memory.weights = all_weights.data();
  memory.gradients = all_gradients.data();
  memory.memory = device_ ? RG_MEMORY_DEVICE : RG_MEMORY_HOST;
  check(functions_->bind(self_, &memory));
}

void executed::open_device(const rg_component& component) {
  if (!component.extension) return;
  device_ = static_cast<const rg_device*>(component.extension(RG_EXT_DEVICE));
  if (!device_) return;
  check(device_->open(&host_, 0, 1, &device_self_));
  for (const rg_tensor& t : tensors) {
    void *weight = nullptr, *gradient = nullptr;
    if (t.kind != RG_TENSOR_ROWS) check(device_->allocate(device_self_, rg::storage_of(t) * sizeof(float), &weight));
    if (t.kind == RG_TENSOR_DENSE) check(device_->allocate(device_self_, rg::storage_of(t) * sizeof(float), &gradient));
    device_weights_.push_back(static_cast<float*>(weight));
    device_gradients_.push_back(static_cast<float*>(gradient));
  }
}

float* executed::window_memory(std::size_t count) {
  if (!device_) return window_memory_.emplace_back(count).data();
  void* p = nullptr;
  check(device_->allocate_host(device_self_, count * sizeof(float), &p));
  return static_cast<float*>(p);
}

rg_fence executed::recorded() {
  rg_fence f = 0;
  check(device_->record(device_self_, 0, &f));
  return f;
}

void executed::bring(std::size_t t) {
  check(device_->copy(device_self_, 0, device_weights_[t], weights[t].data(),
                      rg::storage_of(tensors[t]) * sizeof(float)));
}

// Before a step or an evaluation, which need not wait for these.
void executed::bring_states() {
  if (!device_) return;
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (tensors[t].kind == RG_TENSOR_STATE) bring(t);
  check(device_->wait(device_self_, recorded()));
}

void executed::fetch(std::size_t from, std::size_t to) {
  for (std::size_t t = from; t < to; ++t)
    check(device_->copy(device_self_, 0, gradients[t].data(), device_gradients_[t],
                        rg::storage_of(tensors[t]) * sizeof(float)));
}

executed::~executed() {
  if (self_) functions_->destroy(self_);
  if (device_self_) device_->close(device_self_);
}

void executed::check(rg_status s) const {
  if (s != RG_OK) throw std::runtime_error(error.empty() ? "status " + std::to_string(s) : error);
}

std::size_t executed::index_of(const std::string& name) const {
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (tensors[t].name == name) return t;
  throw std::runtime_error("no tensor " + name);
}

std::vector<double> executed::canonical(const float* memory, std::size_t tensor) const {
  rg_tensor plain = tensors[tensor];
  plain.storage = 0;
  const aligned_floats out(rg::storage_of(plain));
  check(functions_->canonical(self_, static_cast<std::uint32_t>(tensor), memory, out.data()));
  return {out.data(), out.data() + rg::storage_of(plain)};
}

void executed::set(std::size_t tensor, const std::vector<double>& values) {
  const std::vector<float> floats(values.begin(), values.end());
  check(functions_->from_canonical(self_, static_cast<std::uint32_t>(tensor), floats.data(), weights[tensor].data()));
}

void executed::start(std::uint64_t seed) {
  for (std::uint32_t t = 0; t < info.tensor_count; ++t)
    check(functions_->init(self_, t, nullptr, 0, seed, weights[t].data()));
}

std::vector<float> executed::start_rows(std::size_t tensor, const std::vector<std::uint64_t>& rows,
                                        std::uint64_t seed) const {
  std::vector<float> out(rows.size() * static_cast<std::size_t>(tensors[tensor].shape[1]));
  check(functions_->init(self_, static_cast<std::uint32_t>(tensor), rows.data(), rows.size(), seed, out.data()));
  return out;
}

rg_batch executed::view(const batch& b) {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    for (std::size_t k = 0; k < b.inputs[i].size(); ++k) {
      if (inputs_[i].type == RG_F32)
        buffers_[i].data()[k] = static_cast<float>(b.inputs[i][k]);
      else {
        const auto label = static_cast<std::int32_t>(b.inputs[i][k]);
        std::memcpy(buffers_[i].data() + k, &label, sizeof label);
      }
    }
  auto raw = rg::make_versioned<rg_batch>();
  raw.input_count = static_cast<std::uint32_t>(pointers_.size());
  raw.inputs = pointers_.data();
  raw.samples = raw.valid = b.samples;
  raw.step = b.step;
  raw.first_sample = b.first_sample;
  raw.global_samples = b.global_samples;
  raw.seed = b.seed;
  raw.global_counts = b.global_counts.empty() ? nullptr : b.global_counts.data();
  return raw;
}

// Rows are asked for anew unless gradients are added to those of micro-batches before.
void executed::open_windows(rg_batch& b, bool training) {
  if (windows_.empty()) return;
  if (!(b.flags & RG_BATCH_ACCUMULATE)) {
    std::vector<rg_rows> touched(windows_.size(), rg::make_versioned<rg_rows>());
    check(functions_->rows(self_, &b, touched.data()));
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      window& w = windows_[i];
      w.rows.assign(touched[i].rows, touched[i].rows + touched[i].count);
      std::fill_n(w.gradients, w.rows.size() * w.dim, 7.0F); // to be overwritten
      for (std::size_t r = 0; r < w.rows.size(); ++r)
        std::copy_n(weights[w.tensor].data() + w.rows[r] * w.dim, w.dim, w.weights + r * w.dim);
    }
  }
  tables_.clear();
  for (window& w : windows_) {
    auto& t = tables_.emplace_back(rg::make_versioned<rg_table_rows>());
    t.tensor = static_cast<std::uint32_t>(w.tensor);
    t.rows = w.rows.data();
    t.count = w.rows.size();
    t.weights = w.weights;
    t.gradients = training ? w.gradients : nullptr;
  }
  b.tables = tables_.data();
  b.table_count = static_cast<std::uint32_t>(tables_.size());
}

// Gradients of all rows from those of the touched ones.
void executed::close_windows() {
  for (const window& w : windows_) {
    std::fill_n(gradients[w.tensor].data(), rg::storage_of(tensors[w.tensor]), 0.0F);
    for (std::size_t r = 0; r < w.rows.size(); ++r)
      std::copy_n(w.gradients + r * w.dim, w.dim, gradients[w.tensor].data() + w.rows[r] * w.dim);
  }
}

std::vector<std::vector<std::uint64_t>> executed::rows(const batch& b) {
  rg_batch raw = view(b);
  open_windows(raw, false);
  std::vector<std::vector<std::uint64_t>> all;
  for (const window& w : windows_) all.push_back(w.rows);
  return all;
}

rg_step_result executed::step(const batch& b, std::uint32_t flags) {
  rg_batch raw = view(b);
  raw.flags = flags;
  open_windows(raw, true);
  events.clear();
  rg_hooks hooks = {};
  hooks.struct_size = sizeof hooks;
  hooks.context = this;
  hooks.need = [](void* context, std::uint32_t t) -> rg_status {
    auto& self = *static_cast<executed*>(context);
    self.events.push_back(std::string("need ") + self.tensors[t].name);
    return RG_OK;
  };
  hooks.ready = [](void* context, std::uint32_t t) {
    auto& self = *static_cast<executed*>(context);
    self.events.push_back(std::string("ready ") + self.tensors[t].name);
  };
  hooks.backward = [](void* context) { static_cast<executed*>(context)->events.emplace_back("backward"); };
  auto on_device = rg::make_versioned<rg_device_hooks>();
  if (device_) hooks.device = &on_device;
  on_device.context = this;
  on_device.awaited = awaited_.empty() ? nullptr : awaited_.data();
  on_device.awaited_count = static_cast<std::uint32_t>(awaited_.size());
  on_device.need = [](void* context, std::uint32_t t, rg_fence* after) -> rg_status {
    auto& self = *static_cast<executed*>(context);
    self.events.push_back(std::string("need ") + self.tensors[t].name);
    self.bring(t);
    *after = self.recorded();
    return RG_OK;
  };
  on_device.ready = [](void* context, std::uint32_t t, rg_fence fence) {
    auto& self = *static_cast<executed*>(context);
    self.events.push_back(std::string("ready ") + self.tensors[t].name);
    self.check(self.device_->wait_for(self.device_self_, 0, fence));
    self.fetch(std::exchange(self.fetched_, t + 1), t + 1);
  };
  on_device.phase = [](void* context, std::uint32_t phase, rg_fence) {
    if (phase == RG_PHASE_BACKWARD) static_cast<executed*>(context)->events.emplace_back("backward");
  };
  on_device.late_loss = [](void* context, const double* sum, rg_fence fence) {
    static_cast<executed*>(context)->late_ = {sum, fence};
  };
  auto result = rg::make_versioned<rg_step_result>();
  fetched_ = 0;
  bring_states();
  check(functions_->step(self_, &raw, &hooks, &result));
  if (const auto [sum, fence] = std::exchange(late_, {}); sum) {
    check(device_->wait(device_self_, fence));
    result.loss_sum = *sum;
    check(device_->wait_for(device_self_, 0, fence)); // states are final there, too
  }
  if (device_) {
    for (std::size_t t = 0; t < tensors.size(); ++t)
      if (tensors[t].kind == RG_TENSOR_STATE)
        check(device_->copy(device_self_, 0, weights[t].data(), device_weights_[t],
                            rg::storage_of(tensors[t]) * sizeof(float)));
    check(device_->wait(device_self_, recorded()));
  }
  close_windows();
  return result;
}

std::vector<double> executed::evaluate(const batch& b, std::uint64_t valid) {
  rg_batch raw = view(b);
  raw.valid = valid;
  open_windows(raw, false);
  std::vector<double> sums(info.metric_sums);
  if (device_) {
    for (std::size_t t = 0; t < tensors.size(); ++t)
      if (tensors[t].kind == RG_TENSOR_DENSE) bring(t);
    bring_states();
  }
  check(functions_->evaluate(self_, &raw, sums.data()));
  return sums;
}

std::vector<std::uint64_t> executed::count(const batch& b) {
  const rg_batch raw = view(b);
  std::vector<std::uint64_t> counts(info.count_kinds);
  check(functions_->count(self_, &raw, counts.data()));
  return counts;
}

double executed::metric(const std::vector<double>& sums) const {
  double value = 0;
  check(functions_->metric(self_, sums.data(), &value));
  return value;
}

std::string executed::kernels() const {
  const char* text = functions_->kernels(self_);
  return text ? text : "";
}

} // namespace reference
