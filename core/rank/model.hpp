// SPDX-License-Identifier: Apache-2.0
//
// A model ready to compute: one with its own step, or a graph that an executor compiled. [main]
#pragma once

#include "config/experiment.hpp"
#include "device/device.hpp"
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

// What case `c` asks of a model with `batch` samples a step.
rg_model_setup model_setup_of(const case_config& c, std::uint64_t batch, std::uint32_t purpose, const char* picks);

// The executor for a graph on this device; throws failure when there is none.
const component& executor_for(const registry& plugins, const std::string& device);

// The device that a rank computes on, where there are several: they are dealt out in turn. 0 on the CPU. Throws failure
// where there is none.
std::int32_t device_of(const registry& plugins, const std::string& device, std::uint32_t rank);

// That device's memory and arithmetic; null on the CPU, and where the executor does not offer them: then models there
// keep their weights in the host's memory.
std::unique_ptr<device> open_device(const registry& plugins, const std::string& name, std::int32_t index,
                                    const plugin_host::log_function& log, std::function<void()> wake);

class model_instance {
public:
  // Throws failure with the plugin's own text.
  model_instance(const registry& plugins, const component_choice& choice, const std::string& device,
                 const rg_model_setup& setup, const plugin_host::log_function& log);
  ~model_instance();
  model_instance(const model_instance&) = delete;
  model_instance& operator=(const model_instance&) = delete;

  const rg_model_info& info() const { return info_; }
  const std::vector<rg_tensor>& tensors() const { return tensors_; }
  const std::vector<rg_input>& inputs() const { return inputs_; }
  const rg_model& functions() const { return functions_; }
  void* self() const { return self_; }
  std::string kernels() const; // "" where there is no choice
  // Throws where `status` is an error.
  void ask(rg_status status, const char* what);

  // Tells it how often its inputs' indices come, where it asks for that: weights(i) of input i, empty where not known.
  void tell_frequencies(const std::function<std::vector<double>(std::size_t input)>& weights);
  // Elements of all nodes' outputs, of one sample; 0: it is no graph.
  std::uint64_t node_elements() const { return node_elements_; }
  // Whether it has sparse tables.
  bool has_tables() const;
  // Writes the start of tensor i, in memory's layout; or of rows of a table.
  void init(std::uint32_t tensor, std::uint64_t seed, float* out);
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, float* out);

private:
  plugin_host host_, executor_host_;
  const component& component_;
  std::string name_;
  std::vector<parameter_values> values_; // of the model, of the executor: instances may keep pointers
  void* source_self_ = nullptr;
  rg_model functions_{};
  void* self_ = nullptr;
  plugin_host* failing_ = nullptr; // whose text explains a failure of self_
  rg_model_info info_{};
  std::uint64_t node_elements_ = 0;
  std::vector<rg_tensor> tensors_;
  std::vector<rg_input> inputs_;
};

} // namespace regatta
