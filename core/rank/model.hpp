// SPDX-License-Identifier: Apache-2.0
//
// An instance of a model: one with its own step(), or a graph that an executor compiled. [main]
#pragma once

#include "device/device.hpp"
#include "experiment/experiment.hpp"
#include "registry/plugin_host.hpp"
#include "registry/registry.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

// Returns the setup of the model for case `c`, `batch` samples per call of step() (a micro-batch) and an RG_PURPOSE_*;
// the caller sets `device`. `kernel_choices` are autotuned kernels or null; the setup points to them. `row_major`: the
// strategy requires row-major tensors.
rg_model_setup model_setup_of(const case_config& c, std::uint64_t batch, std::uint32_t purpose,
                              const char* kernel_choices, bool row_major);

// Returns the executors that are asked in turn to compile a graph on train.device: those of train.executor in its
// order, or else all for the device, Regatta's own first, then by id. Loads no file, so their functions may be null:
// plugins.find() of the id returns them. The pointers are valid as long as `plugins`. Throws failure:
// (skipped) if there is none for cpu or cuda, (usage) if there is none for another kind of device, or if train.executor
// names one that does not exist or is for another device.
std::vector<const component*> executors_for(const registry& plugins, const train_config& train);

// Returns the index of the device that a rank computes on: `rank`, its number among the ranks of its real host
// (rank_job::local_rank()), modulo the number of devices that the first of executors_for() counts. 0 on the CPU, and if
// the executor does not list devices. Throws failure as executors_for() does, or with the executor's text if it fails
// to count.
std::int32_t device_of(const registry& plugins, const train_config& train, std::uint32_t rank);

// Opens memory and arithmetic of device `index` by the first of executors_for(). Returns null on the CPU, and if the
// executor does not offer them: its models then keep their weights in host memory. `wake` is called from any thread
// when work that device::notify() waits for has completed. `plugins` must outlive the device. Throws failure as
// executors_for() and the constructor of device do: (skipped) if there is no such device.
std::unique_ptr<device> open_device(const registry& plugins, const train_config& train, std::int32_t index,
                                    const plugin_host::log_function& log, std::function<void()> wake);

class model_instance {
public:
  // `plugins` must outlive this object; `setup` and its `kernel_choices` only this call. Throws failure with the
  // plugin's own text; (plugin) if there is no such model or its description is invalid; (usage) if a parameter is
  // wrong; as executors_for() does for a graph; (skipped) if none of executors_for() can compile the graph, with the
  // reason of each, or if a dense tensor is not row-major and setup.row_major requires it, or if a model without graph
  // should compute elsewhere than on the CPU. `extensions` are those of the model's host and of the executor's.
  model_instance(const registry& plugins, const component_choice& choice, const train_config& train,
                 const rg_model_setup& setup, const plugin_host::log_function& log,
                 const plugin_host::extension_function& extensions = {});
  ~model_instance();
  model_instance(const model_instance&) = delete;
  model_instance& operator=(const model_instance&) = delete;

  // Returns the id of the executor that compiled the graph; empty for a model that is no graph.
  const std::string& executor() const { return executor_; }
  const rg_model_info& info() const { return info_; }
  const std::vector<rg_tensor>& tensors() const { return tensors_; }
  const std::vector<rg_input>& inputs() const { return inputs_; }
  // For calls of the model: check_status(functions().step(self(), ...), "step").
  const rg_model& functions() const { return functions_; }
  void* self() const { return self_; }
  std::string kernels() const; // the chosen kernels; "" if there is no choice
  // Throws failure with the plugin's text if `status`, returned by the model's function `what`, is an error. [any]
  void check_status(rg_status status, const char* what);

  // Passes to a model with "regatta.frequencies/1" how often each index occurs. weights(i) returns the relative
  // frequency of each index of input i. It is called for every input, and returns an empty vector if none are known.
  void tell_frequencies(const std::function<std::vector<double>(std::size_t input)>& weights);
  // Elements in the outputs of all nodes, per sample; 0 for a model that is no graph.
  std::uint64_t node_elements() const { return node_elements_; }
  bool has_tables() const; // sparse ones
  // Writes the initial weights of a tensor in the model's layout (rg::storage_of elements) to `out` in host memory, or
  // those of some rows of a sparse table, one after the other. They depend only on `seed`. Throws failure. [any], one
  // thread at a time for each instance.
  void init(std::uint32_t tensor, std::uint64_t seed, float* out);
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, float* out);

private:
  void compile(const registry& plugins, const train_config& train, const rg_graph& graph, const rg_model_setup& setup);

  plugin_host host_, executor_host_;
  const component& component_;
  std::string name_, executor_;
  // of the model and of the executor; kept because instances may keep pointers into them
  std::vector<parameter_values> values_;
  void* source_self_ = nullptr;
  rg_model functions_{};
  void* self_ = nullptr;
  plugin_host* failing_ = nullptr; // the host whose text explains a failure of self_
  rg_model_info info_{};
  std::uint64_t node_elements_ = 0;
  std::vector<rg_tensor> tensors_;
  std::vector<rg_input> inputs_;
};

} // namespace regatta
