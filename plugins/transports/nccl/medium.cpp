// SPDX-License-Identifier: Apache-2.0
#include "medium.hpp"

#include "../../common/cuda_devices.hpp"
#include "../../common/lazy_library.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <nccl.h>
#include <regatta/plugin.hpp>

namespace nccl {
namespace {

constexpr std::size_t fences = 256;

// The functions of NCCL that are used, loaded on first use; see lazy_library.hpp.
struct functions {
  decltype(&::ncclAllGather) all_gather;
  decltype(&::ncclAllReduce) all_reduce;
  decltype(&::ncclBroadcast) broadcast;
  decltype(&::ncclCommAbort) comm_abort;
  decltype(&::ncclCommDestroy) comm_destroy;
  decltype(&::ncclCommFinalize) comm_finalize;
  decltype(&::ncclCommGetAsyncError) comm_get_async_error;
  decltype(&::ncclCommInitRankConfig) comm_init_rank_config;
  decltype(&::ncclGetErrorString) get_error_string;
  decltype(&::ncclGetLastError) get_last_error;
  decltype(&::ncclGetUniqueId) get_unique_id;
  decltype(&::ncclGroupEnd) group_end;
  decltype(&::ncclGroupStart) group_start;
  decltype(&::ncclRecv) recv;
  decltype(&::ncclReduce) reduce;
  decltype(&::ncclReduceScatter) reduce_scatter;
  decltype(&::ncclSend) send;
};

const functions& api() {
  static const functions all = [] {
    const cuda::lazy_library library("libnccl.so.2");
    functions f{};
    library.find(f.all_gather, "ncclAllGather");
    library.find(f.all_reduce, "ncclAllReduce");
    library.find(f.broadcast, "ncclBroadcast");
    library.find(f.comm_abort, "ncclCommAbort");
    library.find(f.comm_destroy, "ncclCommDestroy");
    library.find(f.comm_finalize, "ncclCommFinalize");
    library.find(f.comm_get_async_error, "ncclCommGetAsyncError");
    library.find(f.comm_init_rank_config, "ncclCommInitRankConfig");
    library.find(f.get_error_string, "ncclGetErrorString");
    library.find(f.get_last_error, "ncclGetLastError");
    library.find(f.get_unique_id, "ncclGetUniqueId");
    library.find(f.group_end, "ncclGroupEnd");
    library.find(f.group_start, "ncclGroupStart");
    library.find(f.recv, "ncclRecv");
    library.find(f.reduce, "ncclReduce");
    library.find(f.reduce_scatter, "ncclReduceScatter");
    library.find(f.send, "ncclSend");
    return f;
  }();
  return all;
}

rg_status status_of(ncclResult_t r) {
  switch (r) {
  case ncclRemoteError:
  case ncclSystemError: return RG_E_PEER;
  case ncclInvalidArgument:
  case ncclInvalidUsage: return RG_E_CONFIG; // for example two ranks on one GPU
  case ncclUnhandledCudaError: return RG_E_DEVICE;
  default: return RG_E_OPERATION;
  }
}

// Throws for an error. A non-blocking call that is still in progress is not an error.
void check(ncclResult_t r, const char* what, ncclComm_t c = nullptr) {
  if (r == ncclSuccess || r == ncclInProgress) return;
  std::string text = std::string("NCCL, ") + what + ": " + api().get_error_string(r);
  if (const char* more = api().get_last_error(c); more && *more) text += std::string(" (") + more + ")";
  throw rg::error(status_of(r), text);
}

ncclDataType_t type_of(medium::elements e) {
  switch (e.type) {
  case RG_F16: return ncclFloat16;
  case RG_BF16: return ncclBfloat16;
  case RG_F64: return ncclFloat64;
  case RG_I32: return ncclInt32;
  case RG_I64: return ncclInt64;
  case RG_I8: return ncclInt8;
  case RG_U8: return ncclUint8;
  default: return ncclFloat32;
  }
}
ncclRedOp_t operator_of(medium::elements e) {
  return e.reduction == RG_MAX ? ncclMax : e.reduction == RG_AVERAGE ? ncclAvg : ncclSum;
}

ncclComm_t of(communicator c) {
  return static_cast<ncclComm_t>(c);
}

class cuda_medium : public medium {
public:
  cuda_medium(std::int32_t device, std::uint32_t shared_by) : cuda_medium(device) {
    // NCCL takes ranks with different host ids to be on different hosts. It reads this variable once per process.
    if (shared_by) setenv("NCCL_HOSTID", ("regatta-rank-" + std::to_string(shared_by)).c_str(), 1);
    use_device();
    int least = 0, most = 0;
    cuda::check(cudaDeviceGetStreamPriorityRange(&least, &most), "reading the range of priorities");
    cuda::check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, most), "making a stream");
    for (cudaEvent_t& e : events_) cuda::check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "making an event");
  }
  ~cuda_medium() override {
    cudaSetDevice(device_);
    for (cudaEvent_t e : events_)
      if (e) cudaEventDestroy(e);
    if (stream_) cudaStreamDestroy(stream_);
  }
  cuda_medium(const cuda_medium&) = delete;
  cuda_medium& operator=(const cuda_medium&) = delete;

  std::vector<std::byte> make_id() override {
    ncclUniqueId id{};
    nccl::check(api().get_unique_id(&id), "making an id");
    std::vector<std::byte> bytes(sizeof id);
    std::memcpy(bytes.data(), &id, sizeof id);
    return bytes;
  }
  communicator join(std::span<const std::byte> bytes, std::uint32_t size, std::uint32_t rank) override {
    ncclUniqueId id{};
    if (bytes.size() != sizeof id)
      throw rg::error(RG_E_PEER, "nccl: expected an id of " + std::to_string(sizeof id) + " bytes, got " +
                                     std::to_string(bytes.size()) + ": use one version of NCCL on all ranks");
    std::memcpy(&id, bytes.data(), sizeof id);
    use_device();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t c = nullptr;
    nccl::check(api().comm_init_rank_config(&c, static_cast<int>(size), id, static_cast<int>(rank), &config),
                "joining a communicator");
    return c;
  }
  bool ready(communicator c) override {
    ncclResult_t state = ncclSuccess;
    nccl::check(api().comm_get_async_error(of(c), &state), "reading the state of a communicator", of(c));
    nccl::check(state, "in a communicator", of(c));
    return state == ncclSuccess;
  }
  void finalize(communicator c) override { nccl::check(api().comm_finalize(of(c)), "leaving a communicator", of(c)); }
  void destroy(communicator c) noexcept override { api().comm_destroy(of(c)); }
  void abort(communicator c) noexcept override {
    cudaSetDevice(device_);
    api().comm_abort(of(c));
    cudaStreamSynchronize(stream_); // waits until its kernels have ended
    cudaGetLastError();
  }

  void begin_group() override {
    use_device(); // [loop] may be on another thread than before
    nccl::check(api().group_start(), "beginning a group");
    group_open_ = true;
  }
  void send(communicator c, const void* data, std::uint64_t bytes, std::uint32_t peer) override {
    in_group(api().send(data, bytes, ncclInt8, static_cast<int>(peer), of(c), stream_), "sending", c);
  }
  void recv(communicator c, void* data, std::uint64_t bytes, std::uint32_t peer) override {
    in_group(api().recv(data, bytes, ncclInt8, static_cast<int>(peer), of(c), stream_), "receiving", c);
  }
  void all_reduce(communicator c, const void* from, void* to, elements e) override {
    in_group(api().all_reduce(from, to, e.count, type_of(e), operator_of(e), of(c), stream_), "all-reduce", c);
  }
  void reduce(communicator c, const void* from, void* to, elements e, std::uint32_t root) override {
    in_group(api().reduce(from, to, e.count, type_of(e), operator_of(e), static_cast<int>(root), of(c), stream_),
             "reduce", c);
  }
  void reduce_scatter(communicator c, const void* from, void* to, elements e) override {
    in_group(api().reduce_scatter(from, to, e.count, type_of(e), operator_of(e), of(c), stream_), "reduce-scatter", c);
  }
  void all_gather(communicator c, const void* from, void* to, std::uint64_t bytes) override {
    in_group(api().all_gather(from, to, bytes, ncclInt8, of(c), stream_), "all-gather", c);
  }
  void broadcast(communicator c, const void* from, void* to, std::uint64_t bytes, std::uint32_t root) override {
    in_group(api().broadcast(from, to, bytes, ncclInt8, static_cast<int>(root), of(c), stream_), "broadcast", c);
  }
  void copy(const void* from, void* to, std::uint64_t bytes) override {
    cudaError_t e = cudaSetDevice(device_);
    if (e == cudaSuccess) e = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_);
    if (e != cudaSuccess) close_group();
    cuda::check(e, "copying");
  }
  void end_group() override {
    group_open_ = false;
    nccl::check(api().group_end(), "ending a group");
  }

  void wait_for(rg_fence fence) override {
    cuda::check(cudaStreamWaitEvent(stream_, reinterpret_cast<cudaEvent_t>(fence), 0), "waiting for an event");
  }
  rg_fence record() override {
    cudaEvent_t e = events_[next_++ % fences];
    cuda::check(cudaEventRecord(e, stream_), "recording an event");
    return reinterpret_cast<rg_fence>(e);
  }
  bool passed(rg_fence fence) override {
    const cudaError_t e = cudaEventQuery(reinterpret_cast<cudaEvent_t>(fence));
    if (e == cudaErrorNotReady) {
      cudaGetLastError(); // clear the error, else the executor's next check of a launch reports it
      return false;
    }
    cuda::check(e, "querying an event");
    return true;
  }

private:
  // The public constructor delegates to this one, so that the destructor runs if it throws.
  explicit cuda_medium(std::int32_t device) : device_(device) {}
  void use_device() const { cuda::check(cudaSetDevice(device_), "choosing the device"); }
  // Ends the group, if there is one, after a call in it has failed: it would otherwise stay open on this thread.
  void close_group() {
    if (std::exchange(group_open_, false)) api().group_end();
  }
  void in_group(ncclResult_t r, const char* what, communicator c) {
    if (r != ncclSuccess && r != ncclInProgress) close_group();
    nccl::check(r, what, of(c));
  }

  std::int32_t device_;
  cudaStream_t stream_ = nullptr;
  std::array<cudaEvent_t, fences> events_{};
  std::size_t next_ = 0;
  bool group_open_ = false;
};

} // namespace

void require_device() {
  cuda::device_count();
}

std::unique_ptr<medium> open_medium(std::int32_t device, std::uint32_t shared_by) {
  const std::uint32_t count = cuda::device_count();
  if (device < 0 || static_cast<std::uint32_t>(device) >= count)
    throw rg::error(RG_E_CONFIG,
                    "nccl: expected a GPU number below " + std::to_string(count) + ", got " + std::to_string(device));
  return std::make_unique<cuda_medium>(device, shared_by);
}

} // namespace nccl
