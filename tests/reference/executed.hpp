// SPDX-License-Identifier: Apache-2.0
//
// A graph compiled by an executor, the plugin ID.so of that id, with memory as the engine would give it: what tests
// hold against the reference.
#pragma once

#include <interpreter.hpp>

#include <regatta/ext/device.h>
#include <regatta/ext/step_collectives.h>
#include <regatta/ext/trace.h>
#include <regatta/model.hpp>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reference {

// A component of a plugin in REGATTA_PLUGINS' folder; loaded once and kept. Throws std::runtime_error.
const rg_component& load_component(const std::string& file, std::uint32_t kind, const std::string& id);

struct execution_options {
  std::uint64_t batch = 4;
  std::uint32_t threads = 1;
  std::uint32_t kernels = RG_KERNELS_FIXED;
  std::uint32_t purpose = RG_PURPOSE_TRAIN;
  std::optional<std::string> kernel_choices; // none: a null pointer
  std::uint32_t precision = RG_F32;
  bool emulate = false;
  bool plain = false, row_major = false; // of rg_model_setup
  // With REGATTA_DEBUG_SYNC in the environment, every test runs with the executor's checks after each op.
  std::uint32_t debug = std::getenv("REGATTA_DEBUG_SYNC") ? RG_DEBUG_SYNC : RG_DEBUG_NONE;
  std::vector<std::uint32_t> awaited;               // of rg_hooks; none: every tensor is
  const rg_trace* trace = nullptr;                  // the host's extension regatta.trace/1; null: none
  const rg_step_collectives* collectives = nullptr; // as trace
  bool host_memory = false; // weights in the host's memory also where the executor has a device's (regatta.device/1)
};

// 64-byte aligned floats, as arenas and batches have them.
class aligned_floats {
public:
  explicit aligned_floats(std::size_t count);
  float* data() const { return data_.get(); }

private:
  std::unique_ptr<float, void (*)(void*)> data_;
};

class executed {
public:
  executed(const std::string& plugin, const rg_graph& graph, const execution_options& options);
  ~executed();
  executed(const executed&) = delete;
  executed& operator=(const executed&) = delete;

  rg_model_info info{};
  std::vector<rg_tensor> tensors;                 // in the executor's order
  std::vector<aligned_floats> weights, gradients; // in memory's layout
  std::vector<std::string> events;                // of the last step: "need fc1.weight", "backward", "ready ..."
  std::string error;                              // what the plugin said last

  std::size_t index_of(const std::string& name) const;
  std::vector<double> canonical(const float* memory, std::size_t tensor) const;
  void set(std::size_t tensor, const std::vector<double>& canonical);
  void start(std::uint64_t seed); // every tensor as init() says
  std::vector<float> start_rows(std::size_t tensor, const std::vector<std::uint64_t>& rows, std::uint64_t seed) const;
  // Throws std::runtime_error with the plugin's text.
  rg_step_result step(const batch& b, std::uint32_t flags = RG_BATCH_LAST);
  // The rows that it touches in every sparse table, as the model says.
  std::vector<std::vector<std::uint64_t>> rows(const batch& b);
  std::vector<double> evaluate(const batch& b, std::uint64_t valid);
  double metric(const std::vector<double>& sums) const;
  std::vector<std::uint64_t> count(const batch& b);
  std::string kernels() const;

private:
  void check(rg_status s) const;
  rg_batch view(const batch& b);
  // The part of a sparse table that a step uses; `weights` and `gradients` hold all rows.
  struct window {
    std::size_t tensor, dim;
    std::vector<std::uint64_t> rows{};
    float *weights = nullptr, *gradients = nullptr; // room for max_rows; pinned where there is a device
  };
  float* window_memory(std::size_t count);
  void open_windows(rg_batch& b, bool training);
  void close_windows();
  // Where the executor has a device, weights and gradients live there, and cross in its stream 0 as an engine would
  // have them: each weight before the fence that the model is given for it, each gradient behind the one that the model
  // gives.
  void open_device(const rg_component& component);
  void bring(std::size_t tensor);
  void bring_states();
  void fetch(std::size_t from, std::size_t to);
  rg_fence recorded();

  rg_host host_{};
  const rg_model* functions_ = nullptr;
  void* self_ = nullptr;
  std::vector<rg_input> inputs_;
  std::vector<std::uint32_t> awaited_;
  std::pair<const double*, rg_fence> late_{}; // where the loss of the current step will be
  const rg_step_collectives* collectives_;
  const rg_trace* trace_;
  std::vector<aligned_floats> buffers_; // inputs as the engine brings them
  std::vector<const void*> pointers_;
  std::vector<window> windows_;
  std::vector<aligned_floats> window_memory_; // without a device
  const rg_device* device_ = nullptr;
  void* device_self_ = nullptr;
  std::vector<float*> device_weights_, device_gradients_; // by tensor
  std::size_t fetched_ = 0;                               // gradients of this step
  std::vector<rg_table_rows> tables_;
};

} // namespace reference
