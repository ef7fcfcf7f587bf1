// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine_device.hpp"

#include "kernels/arithmetic.hpp"
#include "kernels/elementwise.hpp"
#include "lib/nvml.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace cudnn {
namespace {

dtype dtype_of(std::uint32_t type) {
  switch (type) {
  case RG_F32: return dtype::f32;
  case RG_F16: return dtype::f16;
  case RG_BF16: return dtype::bf16;
  default: throw rg::error(RG_E_UNSUPPORTED, "the cudnn executor does not convert type " + std::to_string(type));
  }
}

[[noreturn]] void unsupported(const char* what) {
  throw rg::error(RG_E_UNSUPPORTED, std::string("the cudnn executor has no ") + what + " on GPUs");
}

} // namespace

engine_device::engine_device(const rg_host*, std::int32_t index, std::uint32_t streams) : index_(index) {
  const std::uint32_t count = cuda::device_count();
  if (index < 0 || static_cast<std::uint32_t>(index) >= count)
    throw rg::error(RG_E_UNSUPPORTED, "there is no GPU " + std::to_string(index) + ", only " + std::to_string(count));
  enter();
  // Other ranks and the next step wait for this work, so it has priority over the model's stream.
  int least = 0, greatest = 0;
  cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  try {
    for (std::uint32_t i = 0; i < streams; ++i) {
      streams_.push_back(std::make_unique<stream_state>());
      stream_state& l = *streams_.back();
      cuda::check(cudaStreamCreateWithPriority(&l.stream, cudaStreamNonBlocking, greatest), "making a stream");
      l.sums.reserve(kernels::norm_scratch * sizeof(double));
    }
  } catch (...) {
    close();
    throw;
  }
}

engine_device::~engine_device() {
  close();
}

void engine_device::close() noexcept {
  cudaSetDevice(index_);
  for (const auto& l : streams_)
    if (l->stream) cudaStreamSynchronize(l->stream);
  for (const auto& l : streams_) {
    if (l->blas) blas().destroy(l->blas);
    if (l->stream) cudaStreamDestroy(l->stream);
  }
  streams_.clear();
  for (void* p : allocated_) cudaFree(p);
  for (void* p : pinned_) cudaFreeHost(p);
}

engine_device::stream_state& engine_device::at(std::uint32_t stream) {
  if (stream >= streams_.size())
    throw rg::error(RG_E_PLUGIN, "stream " + std::to_string(stream) + " of " + std::to_string(streams_.size()));
  enter();
  return *streams_[stream];
}

void* engine_device::allocate(std::uint64_t bytes) {
  enter();
  void* p = nullptr;
  cuda::check(cudaMalloc(&p, bytes), ("allocating " + std::to_string(bytes) + " bytes").c_str());
  allocated_.insert(p);
  // Synchronizes the default stream only: a wait for the whole device would break a capture of another thread.
  cuda::check(cudaMemset(p, 0, bytes), "clearing memory");
  cuda::check(cudaStreamSynchronize(nullptr), "clearing memory"); // our streams do not wait for the default stream
  return p;
}

void engine_device::release(void* address) noexcept {
  cudaSetDevice(index_);
  if (allocated_.erase(address)) cudaFree(address);
}

void* engine_device::allocate_host(std::uint64_t bytes) {
  enter();
  void* p = nullptr;
  cuda::check(cudaHostAlloc(&p, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "allocating pinned memory");
  pinned_.insert(p);
  return p;
}

void engine_device::release_host(void* address) noexcept {
  cudaSetDevice(index_);
  if (pinned_.erase(address)) cudaFreeHost(address);
}

void engine_device::copy(std::uint32_t stream, void* to, const void* from, std::uint64_t bytes) {
  cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, at(stream).stream), "copying");
}

void engine_device::convert(const stream_state& l, const rg_work& w) const {
  const dtype to = dtype_of(w.type), from = dtype_of(w.source_type);
  const bool add = (w.flags & RG_OP_ADD) != 0;
  if (to == dtype::f32 && from == dtype::f32) {
    kernels::round(l.stream, dtype_of(w.round_to), static_cast<float*>(w.target), static_cast<const float*>(w.source),
                   w.count, add);
    return;
  }
  if (add && to != dtype::f32) unsupported("conversion that adds to a reduced type");
  // In parts, because kernels count in 32 bits.
  constexpr std::uint64_t most = std::uint64_t{1} << 31;
  for (std::uint64_t first = 0; first < w.count; first += most)
    kernels::relayout(l.stream, from, {}, static_cast<const std::byte*>(w.source) + first * size_of(from), to, {},
                      static_cast<std::byte*>(w.target) + first * size_of(to), std::min(most, w.count - first), add);
}

void engine_device::select(stream_state& l, const rg_work& w) {
  if (w.count > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
    unsupported("selection among more than 2^31 elements");
  const auto* x = static_cast<const float*>(w.source);
  auto* indices = static_cast<std::int32_t*>(w.index);
  auto* values = static_cast<float*>(w.target);
  const std::size_t room = kernels::selection_scratch(w.count);
  if (room > l.selection.bytes()) cuda::check(cudaStreamSynchronize(l.stream), "growing scratch");
  l.selection.reserve(room);
  if (w.kind == RG_OP_TOP_K)
    kernels::top_k(l.stream, x, w.count, indices, values, std::min(w.index_count, w.count), l.selection.get<void>());
  else
    kernels::select_above(l.stream, x, w.count, static_cast<float>(w.threshold), indices, values, w.index_count,
                          w.found, l.selection.get<void>());
}

void engine_device::work(std::uint32_t stream, const rg_work& w) {
  stream_state& l = at(stream);
  auto* y = static_cast<float*>(w.target);
  const auto* x = static_cast<const float*>(w.source);
  const auto value = static_cast<float>(w.value), factor = static_cast<float>(w.factor);
  const bool add = (w.flags & RG_OP_ADD) != 0;
  const auto* indices = static_cast<const std::int32_t*>(w.index);
  const auto* rows = static_cast<const std::int64_t*>(w.index);
  switch (w.kind) {
  case RG_OP_FILL:
    indices ? kernels::fill_at(l.stream, y, w.count, indices, value, w.index_count)
            : kernels::fill(l.stream, y, value, w.count);
    break;
  case RG_OP_AXPY:
    if (w.type == RG_F64)
      kernels::axpy(l.stream, static_cast<double*>(w.target), w.factor, static_cast<const double*>(w.source), w.count);
    else if (indices)
      kernels::axpy_at(l.stream, y, w.count, indices, factor, x, w.index_count);
    else
      kernels::axpy(l.stream, y, factor, x, w.count);
    break;
  case RG_OP_SCALE: kernels::scale(l.stream, y, factor, w.count); break;
  case RG_OP_CLIP: kernels::clip(l.stream, y, w.max_norm, w.count, l.sums.get<double>()); break;
  case RG_OP_ACCUMULATE: kernels::accumulate(l.stream, y, factor, x, w.sum, w.count); break;
  case RG_OP_NORM:
    kernels::norm(l.stream, x, w.count, static_cast<double*>(w.target), add, l.sums.get<double>());
    break;
  case RG_OP_CONVERT: convert(l, w); break;
  case RG_OP_APPLY:
    if (!w.update) throw rg::error(RG_E_PLUGIN, "an update without its coefficients");
    if (w.update->rule < RG_SGD || w.update->rule > RG_ADAM) unsupported("such rule of an optimiser");
    kernels::update(l.stream, rg::copy_versioned(*w.update), y, x, w.count);
    break;
  case RG_OP_TOP_K:
  case RG_OP_SELECT: select(l, w); break;
  case RG_OP_GATHER_ROWS: // w.count: elements of the source
    kernels::gather_rows(l.stream, y, x, rows, w.index_count, w.row, w.row ? w.count / w.row : 0);
    break;
  case RG_OP_SCATTER_ROWS:
    kernels::scatter_rows(l.stream, y, x, rows, w.index_count, w.row, w.row ? w.count / w.row : 0, add);
    break;
  default: unsupported(("operation of kind " + std::to_string(w.kind)).c_str());
  }
  cuda::check(cudaGetLastError(), "launching a kernel");
}

// cuBLAS is column-major: our row-major [m, n] is its [n, m], so b is its first operand.
void engine_device::gemm(std::uint32_t stream, const rg_gemm& g, const void* a, const void* b, void* c) {
  constexpr std::uint64_t most = std::numeric_limits<int>::max();
  if ((g.a_type != RG_F32 && g.a_type != RG_BF16) || g.b_type != g.a_type || g.c_type != RG_F32)
    unsupported("matrix product of these types");
  if (std::max({g.m, g.n, g.k, g.a_row, g.b_row, g.c_row}) > most) unsupported("matrix product of this size");
  stream_state& l = at(stream);
  if (!l.blas) {
    check(blas().create(&l.blas), "creating a handle");
    check(blas().set_stream(l.blas, l.stream), "setting the stream");
  }
  const auto number = [](std::uint64_t n) { return static_cast<int>(n); };
  const auto row = [](std::uint64_t n) { return static_cast<int>(std::max<std::uint64_t>(n, 1)); };
  const auto alpha = static_cast<float>(g.alpha), beta = static_cast<float>(g.beta);
  const auto turned = [&](std::uint32_t flag) { return g.flags & flag ? CUBLAS_OP_T : CUBLAS_OP_N; };
  check(blas().gemm(l.blas, turned(RG_GEMM_B), turned(RG_GEMM_A), number(g.n), number(g.m), number(g.k), &alpha, b,
                    cuda_type(dtype_of(g.b_type)), row(g.b_row), a, cuda_type(dtype_of(g.a_type)), row(g.a_row), &beta,
                    c, CUDA_R_32F, row(g.c_row), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        "matrix product of a strategy");
}

void engine_device::wait_for(std::uint32_t stream, rg_fence fence) {
  cudnn::wait_for(at(stream).stream, fence);
}

rg_fence engine_device::record(std::uint32_t stream) {
  stream_state& l = at(stream);
  return l.points.record(l.stream);
}

rg_fence engine_device::mark(std::uint32_t stream) {
  stream_state& l = at(stream);
  if (!l.marks) l.marks.emplace(fences::kind::timed, 4608);
  return l.marks->record(l.stream);
}

bool engine_device::passed(rg_fence fence) {
  return cudnn::passed(fence);
}

void engine_device::wait(rg_fence fence) {
  if (fence) cuda::check(cudaEventSynchronize(event_of(fence)), "computing");
}

void engine_device::notify(std::uint32_t stream, void (*f)(void*), void* context) {
  cuda::check(cudaLaunchHostFunc(at(stream).stream, f, context), "asking for a call");
}

rg_sensors engine_device::sensors() {
  return read_sensors(index_);
}

} // namespace cudnn
