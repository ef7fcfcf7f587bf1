// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's graph API (cudnn_graph.h): tensors and operations make a graph, cuDNN names the engines that can run all of it
// at once, best first, and one of them becomes a plan. That happens while a model gets ready. Running a plan allocates
// and waits for nothing, so that a step can be captured.
#pragma once

#include "numbers.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cudnn.h>

namespace cudnn {

void check(cudnnStatus_t s, const char* what);
cudnnDataType_t dnn_type(number n);

// One of cuDNN's descriptors, destroyed with this.
class part {
public:
  explicit part(cudnnBackendDescriptorType_t type);
  ~part();
  part(part&& other) noexcept : d_(std::exchange(other.d_, nullptr)) {}
  part& operator=(part&& other) noexcept {
    std::swap(d_, other.d_);
    return *this;
  }
  cudnnBackendDescriptor_t get() const { return d_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  template <class T> void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const part& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.d_);
  }
  void finish(const char* what) { check(cudnnBackendFinalize(d_), what); }

private:
  cudnnBackendDescriptor_t d_ = nullptr;
};

struct planner;

class graph {
public:
  using tensor = std::int64_t; // its number
  static constexpr tensor none = 0;
  using sizes = std::vector<std::int64_t>;

  // In memory: its address is given when the graph runs.
  tensor memory(cudnnDataType_t type, const sizes& dims, const sizes& strides);
  // Between operations only; packed, unless said otherwise.
  tensor between(cudnnDataType_t type, const sizes& dims, const sizes& strides = {});
  tensor constant(float value);

  struct operands {
    tensor x, b = none, t = none;
  };
  // y = mode(x, b, t); dimensions of 1 are taken for all. `axis`: of an index that is made.
  void map(cudnnPointwiseMode_t mode, operands in, tensor y, cudnnDataType_t computes = CUDNN_DATA_FLOAT,
           std::int64_t axis = -1);
  // y = x, added up or the largest along the dimensions in which y has 1.
  void reduce(cudnnReduceTensorOp_t how, tensor x, tensor y);
  void multiply(tensor a, tensor b, tensor c); // c = a b, matrices of the last two dimensions
  void reshape(tensor x, tensor y);
  // y = W * x, cross-correlation in two dimensions; `of` says which of the three is made, onto what is there if `add`.
  enum class direction : std::uint8_t { y, x, w };
  struct window {
    std::int64_t stride, padding;
  };
  void convolve(direction of, tensor x, tensor w, tensor y, window v, bool add);

  // What cuDNN can run this with, best first: no more can be added. Empty where it knows nothing.
  std::vector<part> engines(const planner& p);
  std::span<const std::pair<tensor, float>> constants() const { return constants_; }

private:
  tensor add_tensor(cudnnDataType_t type, const sizes& dims, const sizes& strides, bool is_virtual, bool by_value);
  const part& at(tensor t) const { return tensors_[static_cast<std::size_t>(t - 1)]; }
  using operation_tensors = std::initializer_list<std::pair<cudnnBackendAttributeName_t, tensor>>;
  void add_operation(part&& o, operation_tensors tensors);

  std::vector<part> tensors_, rest_, operations_; // rest_: what operations refer to
  std::vector<std::pair<tensor, float>> constants_;
  std::optional<part> whole_;
};

// What an engine must be like.
struct demands {
  bool exact = false; // floats may not be rounded before they are multiplied
  std::size_t workspace = std::size_t{1} << 30;
};

class plan {
public:
  // Of the engine at that place among g's. Null where it cannot, or does not give the same result every time.
  static std::shared_ptr<const plan> of(const planner& p, const graph& g, std::span<const part> engines,
                                        std::size_t place, const demands& d);
  std::size_t workspace() const { return workspace_; }
  std::size_t engine() const { return engine_; } // its place

private:
  friend class execution;
  plan(part&& made, std::size_t workspace, std::size_t engine, const graph& g)
      : plan_(std::move(made)), workspace_(workspace), engine_(engine),
        constants_(g.constants().begin(), g.constants().end()) {}
  part plan_;
  std::size_t workspace_, engine_;
  std::vector<std::pair<graph::tensor, float>> constants_;
};

// Where plans are made: a GPU's handle; or, without one, a description of a GPU (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, from
// cuDNN 9.11 on), so that tests can ask cuDNN what it would say. Such plans cannot run.
struct planner {
  cudnnHandle_t handle = nullptr;
  const part* described = nullptr;
  // Those that there are, by what they compute: cuDNN may take seconds to compile a kernel, and forgets it. Null: none.
  std::map<std::string, std::shared_ptr<const plan>> known{};
};
// By the first engine that can; null where there is none. `what` says all about the graph.
std::shared_ptr<const plan> first_plan(planner& p, const std::string& what, graph& g, const demands& d = {});

// A plan with the addresses that one op has for it.
class execution {
public:
  execution() = default;
  explicit execution(std::shared_ptr<const plan> p) : plan_(std::move(p)) {}
  explicit operator bool() const { return plan_ != nullptr; }
  std::size_t workspace() const { return plan_->workspace(); }
  using addresses = std::span<const std::pair<graph::tensor, void*>>;
  // In the stream of the handle. Of all tensors in memory.
  void run(cudnnHandle_t handle, addresses at, void* workspace, const char* name);

private:
  std::shared_ptr<const plan> plan_;
  std::vector<std::int64_t> numbers_; // what pack_ has
  std::vector<void*> addresses_;
  void* packed_workspace_ = nullptr;
  std::optional<part> pack_;
};

} // namespace cudnn
