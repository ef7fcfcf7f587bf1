// SPDX-License-Identifier: Apache-2.0
//
// An emulated cuDNN: descriptors of its graph API store their attributes, and a plan executes the operations of its
// graph one after the other as plain loops. Intermediate tensors are rounded to their type. So results depend on
// exactly what the graph says.
#include "streams.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cudnn.h>

struct cudnnContext {
  cudaStream_t stream;
};

namespace {

float load(const void* p, cudnnDataType_t t, std::size_t i) {
  if (t == CUDNN_DATA_FLOAT) return static_cast<const float*>(p)[i];
  if (t == CUDNN_DATA_HALF) return __half2float(static_cast<const __half*>(p)[i]);
  return __bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]);
}
void store(void* p, cudnnDataType_t t, std::size_t i, float x) {
  if (t == CUDNN_DATA_FLOAT)
    static_cast<float*>(p)[i] = x;
  else if (t == CUDNN_DATA_HALF)
    static_cast<__half*>(p)[i] = __float2half_rn(x);
  else
    static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16_rn(x);
}

// The content of a descriptor. Other descriptors that refer to it keep it alive.
struct contents;
using held = std::shared_ptr<contents>;
struct contents {
  cudnnBackendDescriptorType_t type;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> values;
  std::map<cudnnBackendAttributeName_t, std::vector<held>> parts;

  bool has(cudnnBackendAttributeName_t name) const { return parts.contains(name); }
  const contents& part(cudnnBackendAttributeName_t name) const { return *parts.at(name).at(0); }
  template <class T> std::vector<T> list(cudnnBackendAttributeName_t name) const {
    const std::vector<std::byte>& raw = values.at(name);
    std::vector<T> all(raw.size() / sizeof(T));
    std::memcpy(all.data(), raw.data(), raw.size());
    return all;
  }
  template <class T> T value(cudnnBackendAttributeName_t name) const {
    T one;
    std::memcpy(&one, values.at(name).data(), sizeof one);
    return one;
  }
  template <class T> void put(cudnnBackendAttributeName_t name, const T& v) {
    const auto* raw = reinterpret_cast<const std::byte*>(&v);
    values[name].assign(raw, raw + sizeof v);
  }
};
struct handle {
  held of;
};

constexpr std::int64_t workspace = 4096;

float rounded(cudnnDataType_t t, float x) {
  if (t == CUDNN_DATA_HALF) return __half2float(__float2half_rn(x));
  return t == CUDNN_DATA_BFLOAT16 ? __bfloat162float(__float2bfloat16_rn(x)) : x;
}

using place = std::array<std::int64_t, 4>;

// A tensor of a running graph: in memory, or in an array of the interpreter.
struct view {
  cudnnDataType_t type{};
  place dims{}, strides{};
  void* memory = nullptr;
  std::shared_ptr<std::vector<float>> own;

  std::size_t at(const place& p) const { // dimensions of size 1 are broadcast
    std::int64_t i = 0;
    for (std::size_t d = 0; d < 4; ++d) i += dims[d] == 1 ? 0 : p[d] * strides[d];
    return static_cast<std::size_t>(i);
  }
  float get(const place& p) const { return own ? rounded(type, (*own)[at(p)]) : load(memory, type, at(p)); }
  void set(const place& p, float x) const {
    if (own)
      (*own)[at(p)] = rounded(type, x);
    else
      store(memory, type, at(p), x);
  }
  // Returns the elements in memory order; the tensor has no gaps.
  std::vector<float> all() const {
    std::vector<float> floats(static_cast<std::size_t>(dims[0] * dims[1] * dims[2] * dims[3]));
    for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = own ? rounded(type, (*own)[i]) : load(memory, type, i);
    return floats;
  }
  template <class F> void each(const F& f) const {
    place p{};
    for (p[0] = 0; p[0] < dims[0]; ++p[0])
      for (p[1] = 0; p[1] < dims[1]; ++p[1])
        for (p[2] = 0; p[2] < dims[2]; ++p[2])
          for (p[3] = 0; p[3] < dims[3]; ++p[3]) f(p);
  }
};

class interpreter {
public:
  // `addresses`: by tensor number. Constants are read at once, because they are passed by value.
  interpreter(held graph, const std::map<std::int64_t, void*>& addresses) : graph_(std::move(graph)) {
    for (const held& o : graph_->parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS))
      for (const auto& [name, parts] : o->parts)
        for (const held& t : parts)
          if (t->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) add(*t, addresses);
  }
  void run() const {
    for (const held& o : graph_->parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) run(*o);
  }

private:
  void add(const contents& t, const std::map<std::int64_t, void*>& addresses) {
    const auto number = t.value<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    view& v = views_[number];
    v.type = t.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    const auto dims = t.list<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto strides = t.list<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    std::copy_n(dims.begin(), 4, v.dims.begin());
    std::copy_n(strides.begin(), 4, v.strides.begin());
    const bool by_value = t.value<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    if (!by_value && !t.value<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
      v.memory = addresses.at(number);
      return;
    }
    std::size_t last = 0;
    for (std::size_t d = 0; d < 4; ++d) last += static_cast<std::size_t>((v.dims[d] - 1) * v.strides[d]);
    v.own = std::make_shared<std::vector<float>>(last + 1, by_value ? *static_cast<float*>(addresses.at(number)) : NAN);
  }
  const view& of(const contents& o, cudnnBackendAttributeName_t name) const {
    return views_.at(o.part(name).value<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID));
  }

  void run(const contents& o) const {
    switch (o.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return map(o);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return reduce(o);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return multiply(o);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: return reshape(o);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return convolve(o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return convolve(o, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return convolve(o, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
    default: std::abort(); // an operation that the executor does not use
    }
  }

  void map(const contents& o) const {
    const contents& how = o.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const auto mode = how.value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    const view &x = of(o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC), &y = of(o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    const view* b =
        o.has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC) ? &of(o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC) : nullptr;
    y.each([&](const place& p) {
      const float a = x.get(p);
      switch (mode) {
      case CUDNN_POINTWISE_ADD: return y.set(p, a + b->get(p));
      case CUDNN_POINTWISE_SUB: return y.set(p, a - b->get(p));
      case CUDNN_POINTWISE_MUL: return y.set(p, a * b->get(p));
      case CUDNN_POINTWISE_DIV: return y.set(p, a / b->get(p));
      case CUDNN_POINTWISE_EXP: return y.set(p, std::exp(a));
      case CUDNN_POINTWISE_LOG: return y.set(p, std::log(a));
      case CUDNN_POINTWISE_RELU_FWD: return y.set(p, a < 0 ? 0 : a);
      case CUDNN_POINTWISE_CMP_GE: return y.set(p, a >= b->get(p) ? 1 : 0);
      case CUDNN_POINTWISE_GEN_INDEX:
        return y.set(p, static_cast<float>(p.at(how.value<std::uint64_t>(CUDNN_ATTR_POINTWISE_AXIS))));
      case CUDNN_POINTWISE_BINARY_SELECT:
        return y.set(p, of(o, CUDNN_ATTR_OPERATION_POINTWISE_TDESC).get(p) != 0 ? a : b->get(p));
      default: std::abort();
      }
    });
  }
  void reduce(const contents& o) const {
    const auto how =
        o.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC).value<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    const view &x = of(o, CUDNN_ATTR_OPERATION_REDUCTION_XDESC), &y = of(o, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    const bool most = how == CUDNN_REDUCE_TENSOR_MAX;
    y.each([&](const place& p) { y.set(p, most ? -INFINITY : 0); });
    x.each([&](const place& p) { y.set(p, most ? std::max(y.get(p), x.get(p)) : y.get(p) + x.get(p)); });
  }
  void multiply(const contents& o) const {
    const view &a = of(o, CUDNN_ATTR_OPERATION_MATMUL_ADESC), &b = of(o, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
               &c = of(o, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    c.each([&](const place& p) {
      float sum = 0;
      for (std::int64_t k = 0; k < a.dims[3]; ++k) sum += a.get({p[0], p[1], p[2], k}) * b.get({p[0], p[1], k, p[3]});
      c.set(p, sum);
    });
  }
  // The same elements in the same memory order, with other dimensions.
  void reshape(const contents& o) const {
    const view &x = of(o, CUDNN_ATTR_OPERATION_RESHAPE_XDESC), &y = of(o, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
    y.each([&](const place& p) {
      const std::size_t i = y.at(p);
      y.set(p, x.own ? rounded(x.type, (*x.own)[i]) : load(x.memory, x.type, i));
    });
  }

  // The operation's type says which of the three tensors is computed from the other two.
  void convolve(const contents& o, cudnnBackendAttributeName_t how_name, cudnnBackendAttributeName_t x_name,
                cudnnBackendAttributeName_t w_name, cudnnBackendAttributeName_t y_name,
                cudnnBackendAttributeName_t beta) const {
    const contents& how = o.part(how_name);
    const auto stride = how.list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).at(0);
    const auto padding = how.list<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS).at(0);
    const view &x = of(o, x_name), &w = of(o, w_name), &y = of(o, y_name);
    const view& made = o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? y
                       : o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? x
                                                                                                : w;
    const std::vector<float> xs = x.all(), ws = w.all(), ys = y.all();
    std::vector<float> sums = made.all();
    if (o.value<float>(beta) == 0) std::fill(sums.begin(), sums.end(), 0.0F);
    y.each([&](const place& p) {
      const std::size_t at_y = y.at(p);
      for (std::int64_t r = 0; r < w.dims[2]; ++r)
        for (std::int64_t s = 0; s < w.dims[3]; ++s) {
          const place from = {p[0], 0, p[2] * stride - padding + r, p[3] * stride - padding + s};
          if (from[2] < 0 || from[2] >= x.dims[2] || from[3] < 0 || from[3] >= x.dims[3]) continue;
          std::size_t at_x = x.at(from), at_w = w.at({p[1], 0, r, s});
          for (std::int64_t c = 0; c < x.dims[1]; ++c) {
            if (&made == &y)
              sums[at_y] += xs[at_x] * ws[at_w];
            else if (&made == &x)
              sums[at_x] += ys[at_y] * ws[at_w];
            else
              sums[at_w] += xs[at_x] * ys[at_y];
            at_x += static_cast<std::size_t>(x.strides[1]);
            at_w += static_cast<std::size_t>(w.strides[1]);
          }
        }
    });
    made.each([&](const place& p) { made.set(p, sums[made.at(p)]); });
  }

  held graph_;
  std::map<std::int64_t, view> views_;
};

// Refuses the same graphs as cuDNN's engines for attention: fp32, and other head sizes.
bool can(const contents& graph) {
  for (const held& o : graph.parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    if (o->type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) continue;
    const contents& a = o->part(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    const auto inner = a.list<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS).at(3);
    if (a.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_FLOAT) return false;
    return inner % 8 == 0 && inner <= 128; // the first GEMM sums over the features of a head
  }
  return true;
}

// Two engines; the first is not deterministic, so the executor must not choose it.
std::vector<held> engines(const held& graph) {
  std::vector<held> all;
  for (const cudnnBackendNumericalNote_t note :
       {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_WINOGRAD}) {
    const auto engine = std::make_shared<contents>(contents{CUDNN_BACKEND_ENGINE_DESCRIPTOR, {}, {}});
    engine->put(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, note);
    const auto configuration = std::make_shared<contents>(contents{CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {}, {}});
    configuration->parts[CUDNN_ATTR_ENGINECFG_ENGINE] = {engine};
    configuration->parts[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {graph};
    all.push_back(configuration);
  }
  return all;
}

} // namespace

extern "C" {

size_t cudnnGetVersion() {
  return 0;
}
const char* cudnnGetErrorString(cudnnStatus_t) {
  return "an error";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* h) {
  *h = new cudnnContext{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t h) {
  delete h;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s) {
  h->stream = s;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* d) {
  *d = new handle{std::make_shared<contents>(contents{type, {}, {}})};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete static_cast<handle*>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  contents& c = *static_cast<handle*>(d)->of;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto* all = static_cast<const cudnnBackendDescriptor_t*>(values);
    for (int64_t i = 0; i < count; ++i) c.parts[name].push_back(static_cast<const handle*>(all[i])->of);
    return CUDNN_STATUS_SUCCESS;
  }
  const std::size_t size = type == CUDNN_TYPE_BOOLEAN ? sizeof(bool)
                           : type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_HANDLE ? 8
                                                                                                                  : 4;
  const auto* raw = static_cast<const std::byte*>(values);
  c.values[name].assign(raw, raw + static_cast<std::size_t>(count) * size);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t* count, void* values) {
  const contents& c = *static_cast<handle*>(d)->of;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const std::vector<held>& parts = c.parts.at(name);
    *count = static_cast<int64_t>(parts.size());
    for (int64_t i = 0; i < std::min(room, *count); ++i)
      static_cast<handle*>(static_cast<cudnnBackendDescriptor_t*>(values)[i])->of = parts[static_cast<std::size_t>(i)];
    return CUDNN_STATUS_SUCCESS;
  }
  const std::vector<std::byte>& raw = c.values.at(name);
  std::memcpy(values, raw.data(), raw.size());
  *count = 1;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  contents& c = *static_cast<handle*>(d)->of;
  if (c.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    const bool first = c.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A;
    c.parts[CUDNN_ATTR_ENGINEHEUR_RESULTS] =
        first ? engines(c.parts.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).at(0)) : std::vector<held>{};
  }
  if (c.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const contents& configuration = c.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!can(configuration.part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH))) return CUDNN_STATUS_NOT_SUPPORTED;
    c.put(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, workspace);
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t h, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const contents &p = *static_cast<handle*>(plan)->of, &given = *static_cast<handle*>(pack)->of;
  const auto numbers = given.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = given.list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::map<std::int64_t, void*> addresses;
  for (std::size_t i = 0; i < numbers.size(); ++i) addresses[numbers[i]] = pointers.at(i);
  auto* work = given.value<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  cudnn::later(
      h->stream,
      [work, i = std::make_shared<interpreter>(
                 p.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).parts.at(CUDNN_ATTR_ENGINE_OPERATION_GRAPH).at(0),
                 addresses)] {
        std::memset(work, 0xff, workspace); // its content is undefined
        i->run();
      });
  return CUDNN_STATUS_SUCCESS;
}
}
