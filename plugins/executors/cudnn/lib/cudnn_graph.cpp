// SPDX-License-Identifier: Apache-2.0
#include "lib/cudnn_graph.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <regatta/plugin.hpp>

namespace cudnn {
namespace {

graph::sizes packed(const graph::sizes& dims) {
  graph::sizes strides(dims.size());
  std::int64_t apart = 1;
  for (std::size_t d = dims.size(); d-- > 0; apart *= dims[d]) strides[d] = apart;
  return strides;
}

// Returns the engines that heuristics found; empty if there are none. For a list of descriptors, cuDNN fills in
// descriptors that the caller has created.
std::vector<descriptor> engines_of(const descriptor& heuristics) {
  constexpr auto name = CUDNN_ATTR_ENGINEHEUR_RESULTS;
  constexpr auto type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(heuristics.get(), name, type, 0, &count, nullptr) != CUDNN_STATUS_SUCCESS) return {};
  std::vector<descriptor> all;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) raw.push_back(all.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  if (count &&
      cudnnBackendGetAttribute(heuristics.get(), name, type, count, &count, raw.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  all.erase(all.begin() + count, all.end()); // cuDNN may return fewer than it announced
  return all;
}

bool allowed(const descriptor& configuration, const demands& d) {
  const descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &count, static_cast<void*>(&raw)),
        "asking for an engine");
  check(cudnnBackendGetAttribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 static_cast<std::int64_t>(notes.size()), &count, notes.data()),
        "asking about an engine");
  return std::none_of(notes.begin(), notes.begin() + count, [&](cudnnBackendNumericalNote_t n) {
    return n == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           (d.exact && (n == CUDNN_NUMERICAL_NOTE_TENSOR_CORE || n == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
  });
}

} // namespace

void check(cudnnStatus_t s, const char* what) {
  if (s == CUDNN_STATUS_SUCCESS) return;
  throw rg::error(RG_E_DEVICE, std::string("cuDNN, ") + what + ": " + cudnnGetErrorString(s));
}

cudnnDataType_t dnn_type(dtype n) {
  return n == dtype::f32 ? CUDNN_DATA_FLOAT : n == dtype::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

descriptor::descriptor(cudnnBackendDescriptorType_t type) {
  check(cudnnBackendCreateDescriptor(type, &d_), "making a descriptor");
}

descriptor::~descriptor() {
  if (d_) cudnnBackendDestroyDescriptor(d_);
}

void descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                     const void* values) {
  check(cudnnBackendSetAttribute(d_, name, type, count, values), "describing a graph");
}

graph::tensor graph::add_tensor(cudnnDataType_t type, const sizes& dims, const sizes& strides, bool is_virtual,
                                bool by_value) {
  descriptor& t = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const auto number = static_cast<tensor>(tensors_.size());
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
        std::int64_t{16}); // cudaMalloc's memory and plan_memory()'s offsets have more
  t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
  t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, by_value);
  t.finish("describing a tensor");
  return number;
}

graph::tensor graph::memory(cudnnDataType_t type, const sizes& dims, const sizes& strides) {
  return add_tensor(type, dims, strides, false, false);
}

graph::tensor graph::between(cudnnDataType_t type, const sizes& dims, const sizes& strides) {
  return add_tensor(type, dims, strides.empty() ? packed(dims) : strides, true, false);
}

graph::tensor graph::constant(float value) {
  const sizes one = {1, 1, 1, 1};
  const tensor t = add_tensor(CUDNN_DATA_FLOAT, one, one, false, true);
  constants_.emplace_back(t, value);
  return t;
}

void graph::add_operation(descriptor&& o, operation_tensors tensors) {
  for (const auto& [name, t] : tensors)
    if (t != none) o.set(name, at(t));
  o.finish("describing an operation");
  operations_.push_back(std::move(o));
}

void graph::map(cudnnPointwiseMode_t mode, operands in, tensor y, cudnnDataType_t computes, std::int64_t axis) {
  descriptor& how = rest_.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, computes);
  if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  how.finish("describing a function");
  descriptor o(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  o.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  add_operation(std::move(o), {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, in.x},
                               {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, in.b},
                               {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, in.t},
                               {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}});
}

void graph::reduce(cudnnReduceTensorOp_t mode, tensor x, tensor y) {
  descriptor& how = rest_.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finish("describing a reduction");
  descriptor o(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  o.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  add_operation(std::move(o), {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y}});
}

void graph::multiply(tensor a, tensor b, tensor c) {
  descriptor& how = rest_.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.finish("describing a GEMM");
  descriptor o(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  o.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  add_operation(std::move(o), {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                               {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                               {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}});
}

void graph::reshape(tensor x, tensor y) {
  add_operation(descriptor(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR),
                {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}});
}

void graph::convolve(direction of, tensor x, tensor w, tensor y, window v, bool add) {
  struct names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t how, x, w, y, alpha, beta;
  };
  static constexpr names all[] = {
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
  };
  const names& n = all[static_cast<std::size_t>(of)];
  const std::array<std::int64_t, 2> stride = {v.stride, v.stride}, padding = {v.padding, v.padding}, dilation = {1, 1};
  descriptor& how = rest_.emplace_back(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  how.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  how.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, stride);
  how.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilation);
  how.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding);
  how.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding);
  how.finish("describing a convolution");
  descriptor o(n.type);
  o.set(n.how, how);
  o.set(n.alpha, CUDNN_TYPE_FLOAT, 1.0F);
  o.set(n.beta, CUDNN_TYPE_FLOAT, add ? 1.0F : 0.0F);
  add_operation(std::move(o), {{n.x, x}, {n.w, w}, {n.y, y}});
}

std::vector<descriptor> graph::engines(const planner& p) {
  if (!whole_) {
    std::vector<cudnnBackendDescriptor_t> all;
    for (const descriptor& o : operations_) all.push_back(o.get());
    descriptor whole(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (p.handle) whole.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, p.handle);
    whole.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(all.size()),
              all.data());
    if (cudnnBackendFinalize(whole.get()) != CUDNN_STATUS_SUCCESS) return {}; // cuDNN does not support the graph
    whole_ = std::move(whole);
  }
  std::vector<descriptor> found;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    descriptor asked(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    asked.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *whole_);
    asked.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
#if CUDNN_VERSION >= 90800
    if (p.described) asked.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *p.described);
#endif
    if (cudnnBackendFinalize(asked.get()) != CUDNN_STATUS_SUCCESS) continue; // no engine for the graph
    for (descriptor& e : engines_of(asked)) found.push_back(std::move(e));
  }
  return found;
}

std::shared_ptr<const plan> plan::of(const planner& p, const graph& g, std::span<const descriptor> engines,
                                     std::size_t index, const demands& d) {
  if (index >= engines.size() || !allowed(engines[index], d)) return nullptr;
  descriptor made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (p.handle) made.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, p.handle);
#if CUDNN_VERSION >= 90800
  if (p.described) made.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *p.described);
#endif
  made.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engines[index]);
  if (cudnnBackendFinalize(made.get()) != CUDNN_STATUS_SUCCESS) return nullptr;
  std::int64_t bytes = 0, count = 0;
  check(cudnnBackendGetAttribute(made.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                 &bytes),
        "asking for a plan's workspace");
  if (static_cast<std::size_t>(bytes) > d.workspace) return nullptr;
  return std::shared_ptr<const plan>(new plan(std::move(made), static_cast<std::size_t>(bytes), index, g));
}

std::shared_ptr<const plan> first_plan(planner& p, const std::string& what, graph& g, const demands& d) {
  if (const auto at = p.known.find(what); at != p.known.end()) return at->second;
  const std::vector<descriptor> engines = g.engines(p);
  for (std::size_t i = 0; i < engines.size(); ++i)
    if (auto made = plan::of(p, g, engines, i, d)) return p.known[what] = made;
  return p.known[what]; // null, too: it took as long to find out
}

// The variant pack is built again only if an address has changed, which happens once: when bind() sets the weights.
void execution::run(cudnnHandle_t handle, addresses at, void* workspace, const char* name) {
  const bool same = pack_ && workspace == packed_workspace_ &&
                    at.size() + plan_->constants_.size() == addresses_.size() &&
                    std::equal(at.begin(), at.end(), addresses_.begin(),
                               [](const auto& a, const void* known) { return a.second == known; });
  if (!same) {
    numbers_.clear();
    addresses_.clear();
    for (const auto& [number, address] : at) {
      numbers_.push_back(number);
      addresses_.push_back(address);
    }
    for (const auto& [number, value] : plan_->constants_) {
      numbers_.push_back(number);
      addresses_.push_back(const_cast<float*>(&value)); // read only
    }
    descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers_);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(addresses_.size()),
             addresses_.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    pack.finish("giving addresses");
    pack_ = std::move(pack);
    packed_workspace_ = workspace;
  }
  check(cudnnBackendExecute(handle, plan_->plan_.get(), pack_->get()), name);
}

} // namespace cudnn
