// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's graph API (cudnn_graph.h): tensors and operations form a graph; cuDNN's heuristics list the engines that can
// run the whole graph, best first; a plan is made from one of them. This happens when a model is set up. Running a plan
// allocates no device memory and waits for nothing, so a step can be captured. Functions throw rg::error, RG_E_DEVICE,
// if cuDNN reports an error, such as an invalid size. A graph that no engine supports is no error.
#pragma once

#include "kernels/dtype.hpp"

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

// Throws rg::error, RG_E_DEVICE, unless s is CUDNN_STATUS_SUCCESS: "cuDNN, WHAT: ...".
void check(cudnnStatus_t s, const char* what);
cudnnDataType_t dnn_type(dtype n);

// Owns a cuDNN backend descriptor. Set its attributes, then call finish(), after which it is constant.
class descriptor {
public:
  explicit descriptor(cudnnBackendDescriptorType_t type);
  ~descriptor();
  descriptor(descriptor&& other) noexcept : d_(std::exchange(other.d_, nullptr)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(d_, other.d_);
    return *this;
  }
  cudnnBackendDescriptor_t get() const { return d_; }

  // Set an attribute. The first function takes `count` values of `type`; cuDNN copies them.
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  template <class T> void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    set(name, type, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) { set(name, CUDNN_TYPE_INT64, 1, &value); }
  void set(cudnnBackendAttributeName_t name, const descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.d_);
  }
  // Finalizes the descriptor; `what` names the operation in the error.
  void finish(const char* what) { check(cudnnBackendFinalize(d_), what); }

private:
  cudnnBackendDescriptor_t d_ = nullptr;
};

struct planner;

// The functions that add a tensor return its number; operations refer to tensors that were added before.
class graph {
public:
  using tensor = std::int64_t; // number of the tensor, from 1 on in the order in which they are added
  static constexpr tensor none = 0;
  using sizes = std::vector<std::int64_t>;

  // Adds a tensor in device memory; its address, a multiple of 16, is passed to execution::run(). Strides are in
  // elements.
  tensor memory(cudnnDataType_t type, const sizes& dims, const sizes& strides);
  // Adds a tensor that exists between operations only. Without strides it is packed, in row-major order.
  tensor between(cudnnDataType_t type, const sizes& dims, const sizes& strides = {});
  // Adds a scalar in fp32, of sizes 1, 1, 1, 1; plans keep its value.
  tensor constant(float value);

  struct operands {
    tensor x, b = none, t = none;
  };
  // Adds y = mode(x, b, t), computed in type `computes`. Dimensions of size 1 are broadcast. `axis`: the dimension
  // whose index CUDNN_POINTWISE_GEN_INDEX yields; -1 for other modes.
  void map(cudnnPointwiseMode_t mode, operands in, tensor y, cudnnDataType_t computes = CUDNN_DATA_FLOAT,
           std::int64_t axis = -1);
  // Adds a reduction of x, in fp32, along the dimensions in which y has size 1.
  void reduce(cudnnReduceTensorOp_t how, tensor x, tensor y);
  // Adds c = a b, accumulated in fp32; the last two dimensions are those of the matrices.
  void multiply(tensor a, tensor b, tensor c);
  // Adds y = x, seen with the sizes and strides of y.
  void reshape(tensor x, tensor y);
  // convolve() adds y = w * x, a cross-correlation in two dimensions, accumulated in fp32, or one of its gradients.
  // `of` says which tensor is computed from the other two. If it is x or w, that tensor is the gradient of x or w, and
  // y is the gradient of y. With `add` the result is added to the content of the tensor, else it overwrites it.
  enum class direction : std::uint8_t { y, x, w };
  struct window {
    std::int64_t stride, padding; // the same for height and width
  };
  void convolve(direction of, tensor x, tensor w, tensor y, window v, bool add);

  // Returns configurations of the engines that can run this graph, best first; empty if cuDNN supports none. Every
  // call must have the same planner. No operation may be added afterwards.
  std::vector<descriptor> engines(const planner& p);
  // Returns the constants with their values, valid until the next call of constant().
  std::span<const std::pair<tensor, float>> constants() const { return constants_; }

private:
  // is_virtual: exists between operations only. by_value: its value is passed in place of an address.
  tensor add_tensor(cudnnDataType_t type, const sizes& dims, const sizes& strides, bool is_virtual, bool by_value);
  const descriptor& at(tensor t) const { return tensors_[static_cast<std::size_t>(t - 1)]; }
  using operation_tensors = std::initializer_list<std::pair<cudnnBackendAttributeName_t, tensor>>;
  // Sets the tensors of an operation, without those that are `none`, finalizes it and adds it.
  void add_operation(descriptor&& o, operation_tensors tensors);

  std::vector<descriptor> tensors_, rest_, operations_; // rest_: descriptors that operations refer to
  std::vector<std::pair<tensor, float>> constants_;
  std::optional<descriptor> whole_;
};

// Requirements on an engine, beside that it is deterministic.
struct demands {
  bool exact = false;                           // fp32 operands must not be rounded before they are multiplied
  std::size_t workspace = std::size_t{1} << 30; // bytes at most
};

// A compiled graph, without addresses; several executions may share it.
class plan {
public:
  // Makes a plan from engines[index], where `engines` is the result of g.engines(p). The plan does not refer to g.
  // Returns null if there is no such engine, or it cannot run the graph, is not deterministic, or does not meet `d`.
  // May take seconds.
  static std::shared_ptr<const plan> of(const planner& p, const graph& g, std::span<const descriptor> engines,
                                        std::size_t index, const demands& d);
  std::size_t workspace() const { return workspace_; } // bytes
  std::size_t engine() const { return engine_; }       // the `index` of of()

private:
  friend class execution;
  plan(descriptor&& made, std::size_t workspace, std::size_t engine, const graph& g)
      : plan_(std::move(made)), workspace_(workspace), engine_(engine),
        constants_(g.constants().begin(), g.constants().end()) {}
  descriptor plan_;
  std::size_t workspace_, engine_;
  std::vector<std::pair<graph::tensor, float>> constants_;
};

// Where plans are made: on the GPU of `handle`, or without a GPU for a described one
// (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, from cuDNN 9.8 on), so that tests can ask for cuDNN's answer. Plans of the
// latter kind cannot run.
struct planner {
  cudnnHandle_t handle = nullptr;
  const descriptor* described = nullptr;
  // Plans by a description of their graph and demands; null: no engine meets them. cuDNN may take seconds to compile a
  // kernel and does not cache it.
  std::map<std::string, std::shared_ptr<const plan>> known{};
};
// Returns the plan of the first engine that meets `d`; null if there is none. `what` must describe g and d completely:
// the result is kept in p.known, and a later call with the same description returns it without a look at g and d.
std::shared_ptr<const plan> first_plan(planner& p, const std::string& what, graph& g, const demands& d = {});

// A plan with the addresses of one op; one thread at a time. Without a plan it is false, and workspace() and run() must
// not be called.
class execution {
public:
  execution() = default;
  explicit execution(std::shared_ptr<const plan> p) : plan_(std::move(p)) {}
  explicit operator bool() const { return plan_ != nullptr; }
  std::size_t workspace() const { return plan_->workspace(); } // bytes
  using addresses = std::span<const std::pair<graph::tensor, void*>>;
  // Enqueues the plan in the stream of `handle`, that of the planner. `at`: the addresses of all tensors in memory, in
  // the same order in every call. `workspace`: workspace() bytes, which only work of this stream may use. Throws
  // rg::error, RG_E_DEVICE, whose text has `name`.
  void run(cudnnHandle_t handle, addresses at, void* workspace, const char* name);

private:
  std::shared_ptr<const plan> plan_;
  std::vector<std::int64_t> numbers_; // the tensors' numbers in pack_
  std::vector<void*> addresses_;
  void* packed_workspace_ = nullptr;
  std::optional<descriptor> pack_;
};

} // namespace cudnn
