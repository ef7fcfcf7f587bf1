// SPDX-License-Identifier: Apache-2.0
#include "rank/model.hpp"

#include "base/failure.hpp"
#include "registry/validate.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/ext/device.h>
#include <regatta/ext/frequencies.h>
#include <regatta/ext/graph.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

std::uint32_t precision_of(const std::string& name) {
  if (name == "tf32") return RG_TF32;
  return name == "bf16" ? RG_BF16 : name == "fp16" ? RG_F16 : RG_F32;
}

} // namespace

rg_model_setup model_setup_of(const case_config& c, std::uint64_t batch, std::uint32_t purpose,
                              const char* kernel_choices, bool row_major) {
  auto s = rg::make_versioned<rg_model_setup>();
  s.purpose = purpose;
  s.precision = precision_of(c.train.precision);
  s.memory = c.train.device == "cpu" ? RG_MEMORY_HOST : RG_MEMORY_DEVICE;
  s.threads = static_cast<std::uint32_t>(c.cluster.threads);
  s.batch = batch;
  s.kernels = c.train.kernels == "timed" && purpose == RG_PURPOSE_TRAIN ? RG_KERNELS_TIMED : RG_KERNELS_FIXED;
  s.kernel_choices = kernel_choices;
  s.emulate = c.train.emulate ? 1 : 0;
  s.plain = c.train.graphs ? 0 : 1;
  s.row_major = row_major;
  s.debug = c.train.debug == "sync" ? RG_DEBUG_SYNC : RG_DEBUG_NONE;
  return s;
}

std::vector<const component*> executors_for(const registry& plugins, const train_config& train) {
  const auto computes_there = [&](const component& c) {
    return train.device == "cpu" ? (c.executor.memory & RG_MEMORY_HOST) != 0
                                 : (c.executor.memory & RG_MEMORY_DEVICE) != 0 && c.device == train.device;
  };
  std::vector<const component*> found;
  for (const std::string& id : train.executor) {
    try {
      found.push_back(&plugins.described(kind::executor, id));
    } catch (const failure& e) {
      throw failure(exit_code::usage, fmt::format("train.executor: {}", e.what()));
    }
    if (!computes_there(*found.back()))
      throw failure(exit_code::usage, fmt::format("train.executor: expected one for train.device = \"{}\", got {}, "
                                                  "which computes elsewhere",
                                                  train.device, id));
  }
  if (!found.empty()) return found;
  for (const component& c : plugins.components())
    if (c.kind == kind::executor && computes_there(c)) found.push_back(&c);
  // Executors for "cuda" are left out where CUDA is not installed.
  if (found.empty() && train.device != "cpu" && train.device != "cuda")
    throw failure(exit_code::usage, fmt::format("train.device: expected cpu, cuda or the kind of device of another "
                                                "executor (see `regatta list executors`), got \"{}\"",
                                                train.device));
  if (found.empty())
    throw failure(exit_code::skipped,
                  fmt::format("train.device = \"{}\": no executor for it was found (see `regatta list executors`)",
                              train.device));
  const auto place = [own = built_in_folder()](const component* c) {
    return std::pair(c->file.parent_path() != own, c->id);
  };
  std::sort(found.begin(), found.end(), [&](auto* a, auto* b) { return place(a) < place(b); });
  return found;
}

namespace {

const component& first_executor(const registry& plugins, const train_config& train) {
  return plugins.find(kind::executor, executors_for(plugins, train).front()->id);
}

} // namespace

std::int32_t device_of(const registry& plugins, const train_config& train, std::uint32_t rank) {
  if (train.device == "cpu") return 0;
  const component& executor = first_executor(plugins, train);
  const auto* table = executor.extension ? static_cast<const rg_devices*>(executor.extension(RG_EXT_DEVICES)) : nullptr;
  if (!table) return 0;
  plugin_host host;
  std::uint32_t count = 0;
  call(host, "executor " + executor.id, [&] { return rg::copy_versioned(*table).count(host.c(), &count); });
  return static_cast<std::int32_t>(rank % std::max(count, 1u));
}

std::unique_ptr<device> open_device(const registry& plugins, const train_config& train, std::int32_t index,
                                    const plugin_host::log_function& log, std::function<void()> wake) {
  if (train.device == "cpu") return nullptr;
  const component& executor = first_executor(plugins, train);
  const auto* table = executor.extension ? static_cast<const rg_device*>(executor.extension(RG_EXT_DEVICE)) : nullptr;
  if (!table) return nullptr;
  return std::make_unique<device>(*table, "executor " + executor.id, index, log, std::move(wake));
}

model_instance::model_instance(const registry& plugins, const component_choice& choice, const train_config& train,
                               const rg_model_setup& setup, const plugin_host::log_function& log,
                               const plugin_host::extension_function& extensions)
    : host_(log, extensions), executor_host_(log, extensions), component_(plugins.find(kind::model, choice.id)),
      name_("model " + choice.id) {
  values_.emplace_back(component_, choice.parameters);
  if (component_.graph.create) {
    call(host_, name_, [&] { return component_.graph.create(host_.c(), values_[0].data(), &source_self_); });
    const rg_graph* graph = component_.graph.graph(source_self_);
    if (!graph) throw failure(exit_code::plugin, fmt::format("{}: it gave no graph {}", name_, host_.take_error()));
    validate(rg::copy_versioned(*graph), name_);
    for (std::uint32_t i = 0; i < graph->node_count; ++i) {
      const rg_node n = rg::copy_versioned(rg::at_stride(graph->nodes, i));
      std::uint64_t elements = 1;
      for (std::uint32_t d = 0; d < n.ndim; ++d) elements *= static_cast<std::uint64_t>(n.shape[d]);
      node_elements_ += elements;
    }
    compile(plugins, train, *graph, setup);
  } else {
    if (setup.memory != RG_MEMORY_HOST)
      throw failure(exit_code::skipped, fmt::format("{} computes on the CPU only: it is no graph", name_));
    functions_ = component_.model;
    failing_ = &host_;
    call(host_, name_, [&] { return functions_.create(host_.c(), values_[0].data(), &setup, &self_); });
  }
  auto info = rg::make_versioned<rg_model_info>();
  call(*failing_, name_, [&] { return functions_.describe(self_, &info); });
  model_description d = validated(info, name_);
  info_ = d.info;
  tensors_ = std::move(d.tensors);
  inputs_ = std::move(d.inputs);
  for (const rg_tensor& t : tensors_)
    if (setup.row_major && t.reordered && t.kind == RG_TENSOR_DENSE)
      throw failure(
          exit_code::skipped,
          fmt::format("{}{}: expected row-major tensors, which the strategy requires, got a layout of its own "
                      "of {}: use another executor or strategy",
                      name_, executor_.empty() ? "" : " on executor " + executor_, t.name));
  if (has_tables() && !functions_.rows)
    throw failure(exit_code::plugin, fmt::format("{} has sparse tables, but no function rows()", name_));
}

// Asks the executors in turn: one that lacks an op, the precision or the device leaves the graph to the next one.
void model_instance::compile(const registry& plugins, const train_config& train, const rg_graph& graph,
                             const rg_model_setup& setup) {
  failing_ = &executor_host_;
  std::vector<std::string> refusals;
  for (const component* candidate : executors_for(plugins, train)) {
    const component& executor = plugins.find(kind::executor, candidate->id);
    // executors have no parameters in the experiment file
    values_.emplace_back(executor, std::map<std::string, nlohmann::json>{});
    rg_status status = RG_OK;
    call(executor_host_, fmt::format("{} on executor {}", name_, executor.id), [&]() -> rg_status {
      status = executor.executor.compile(executor_host_.c(), values_.back().data(), &graph, &setup, &self_);
      return status == RG_E_UNSUPPORTED ? rg_status{RG_OK} : status;
    });
    executor_ = executor.id;
    functions_ = executor.executor_model;
    if (status != RG_E_UNSUPPORTED) return;
    self_ = nullptr;
    refusals.push_back(fmt::format("{}: {}", executor.id, executor_host_.take_error()));
  }
  throw failure(exit_code::skipped, refusals.size() == 1 ? fmt::format("{} on executor {}", name_, refusals[0])
                                                         : fmt::format("{}: no executor here can compile it: {}", name_,
                                                                       fmt::join(refusals, "; ")));
}

model_instance::~model_instance() {
  if (self_) functions_.destroy(self_);
  if (source_self_) component_.graph.destroy(source_self_);
}

void model_instance::check_status(rg_status status, const char* what) {
  if (status >= 0) return;
  check(status, *failing_, fmt::format("{}: {}", name_, what));
}

std::string model_instance::kernels() const {
  const char* text = functions_.kernels ? functions_.kernels(self_) : nullptr;
  return text ? text : "";
}

void model_instance::init(std::uint32_t tensor, std::uint64_t seed, float* out) {
  check_status(functions_.init(self_, tensor, nullptr, 0, seed, out), "init");
}

void model_instance::init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, float* out) {
  if (rows.empty()) return; // its data() may be null, which stands for the whole tensor
  check_status(functions_.init(self_, tensor, rows.data(), rows.size(), seed, out), "init");
}

void model_instance::tell_frequencies(const std::function<std::vector<double>(std::size_t)>& weights) {
  const void* const table = component_.extension ? component_.extension(RG_EXT_FREQUENCIES) : nullptr;
  if (!table) return;
  const auto wants = rg::copy_versioned(*static_cast<const rg_frequencies*>(table));
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (const auto w = weights(i); !w.empty() && wants.frequencies)
      check_status(wants.frequencies(self_, static_cast<std::uint32_t>(i), w.data(), w.size()), "frequencies");
}

bool model_instance::has_tables() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const rg_tensor& t) { return t.kind == RG_TENSOR_ROWS; });
}

} // namespace regatta
