// SPDX-License-Identifier: Apache-2.0
//
// Two ranks over the transport nccl, on two GPUs or sharing one: messages, native collectives, a group, a peer that
// dies. Two processes, because NCCL keeps state per process. Exit code 77 without a GPU.
#include "transport.hpp"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regatta/collectives.hpp>
#include <regatta/ext/collectives.h>

namespace {

constexpr std::size_t count = 1 << 20;
constexpr std::uint64_t patience = 30'000'000'000;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}
void cuda(cudaError_t e) {
  require(e == cudaSuccess, cudaGetErrorString(e));
}

struct array {
  float* data = nullptr;
  array() { cuda(cudaMalloc(reinterpret_cast<void**>(&data), count * sizeof(float))); }
  ~array() { cudaFree(data); }
  void fill(float base) {
    std::vector<float> host(count);
    for (std::size_t i = 0; i < count; ++i) host[i] = base + static_cast<float>(i % 1000);
    cuda(cudaMemcpy(data, host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  }
  // Throws unless each element i in [from, to) is base + factor * (i % 1000).
  void expect(float base, float factor, const char* what, std::size_t from = 0, std::size_t to = count) {
    std::vector<float> host(count);
    cuda(cudaMemcpy(host.data(), data, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (std::size_t i = from; i < to; ++i) require(host[i] == base + factor * static_cast<float>(i % 1000), what);
  }
};

rg_transfer transfer(array& a, std::uint32_t peer, std::uint64_t cookie) {
  rg_transfer t{};
  t.struct_size = sizeof t;
  t.peer = peer;
  t.buffer = {.region = 1, .type = RG_F32, .offset = 0, .count = count};
  t.bytes = count * sizeof(float);
  t.address = a.data;
  t.cookie = cookie;
  return t;
}

// A collective of `length` elements in place, over both ranks or (`alone`) one.
rg_collective collective(std::uint32_t kind, array& a, std::uint32_t group, std::uint32_t rank,
                         std::uint64_t length = count, bool alone = false) {
  rg_collective c{};
  c.struct_size = sizeof c;
  c.kind = kind;
  c.group = group;
  c.reduction = rg::reduces(kind) ? std::uint32_t{RG_SUM} : 0;
  const rg::chunk own = rg::chunk_of(length, nullptr, alone ? 0 : rank, alone ? 1 : 2), whole{0, length};
  const rg::chunk from = kind == RG_OP_ALL_GATHER ? own : whole, to = kind == RG_OP_REDUCE_SCATTER ? own : whole;
  c.source = {.region = 1, .type = RG_F32, .offset = from.first * sizeof(float), .count = from.count};
  c.target = {.region = 1, .type = RG_F32, .offset = to.first * sizeof(float), .count = to.count};
  c.source_address = a.data + from.first;
  c.target_address = a.data + to.first;
  return c;
}

// Polls until `operations` operations have completed, then waits for their last fence.
void finish(nccl::transport& t, std::size_t operations) {
  std::vector<rg_completion> out(8);
  rg_fence last = 0;
  while (operations) {
    const std::uint32_t n = t.poll(patience, 0, out);
    require(n > 0 && n <= operations, "operations did not end in time");
    for (std::uint32_t i = 0; i < n; ++i) require(out[i].status == RG_OK, "an operation failed");
    last = out[n - 1].fence;
    operations -= n;
  }
  cuda(cudaEventSynchronize(reinterpret_cast<cudaEvent_t>(last)));
}

// A barrier. `control`: socket to the other rank, which also carries the id. `dies`: sends, but does not wait.
void meet(int control, bool dies) {
  const char mine = 'm';
  char theirs = 0;
  require(write(control, &mine, 1) == 1, "meeting failed");
  if (!dies) require(read(control, &theirs, 1) == 1, "meeting failed");
}

void run(std::uint32_t rank, int control, bool dies) {
  int gpus = 0;
  cuda(cudaGetDeviceCount(&gpus));
  const int device = static_cast<int>(rank) % gpus;
  cuda(cudaSetDevice(device));
  // Groups of all ranks, and of one, need no exchange.
  nccl::transport t([&](std::uint32_t r) { return nccl::open_medium(device, gpus < 2 ? r + 1 : 0); }, {});
  rg_world world{};
  world.struct_size = sizeof world;
  world.rank = rank;
  world.size = 2;
  world.lanes = 1;
  const rg_blob mine = t.listen(world);
  std::vector<char> id(128);
  if (rank == 0)
    require(write(control, mine.data, mine.bytes) == 128, "the id could not be sent");
  else
    require(recv(control, id.data(), id.size(), MSG_WAITALL) == 128, "the id did not come");
  const std::vector<rg_blob> blobs = {rank == 0 ? mine : rg_blob{id.data(), id.size()}, rg_blob{}};
  t.connect(blobs, patience);
  const std::uint32_t peer = 1 - rank;

  array a, b;
  if (dies) { // rank 1 exits after the barrier, while rank 0 waits for a message
    meet(control, rank == 1);
    if (rank == 1) _exit(0);
    require(t.recv(transfer(b, peer, 1)) == RG_OK, "recv");
    try {
      const auto begin = time(nullptr);
      std::vector<rg_completion> out(8);
      while (time(nullptr) - begin < 20) t.poll(100'000'000, 0, out);
    } catch (const rg::error&) {
      return; // NCCL reported the error
    }
    t.cancel(peer); // the engine learns of it elsewhere and cancels; must return
    return;
  }
  a.fill(static_cast<float>(rank + 1));
  for (int round = 0; round < 3; ++round) {
    require(t.send(transfer(a, peer, 1)) == RG_OK, "send");
    require(t.recv(transfer(b, peer, 2)) == RG_OK, "recv");
    finish(t, 2);
    b.expect(static_cast<float>(peer + 1), 1, "a message came damaged");
  }
  const std::vector<std::uint32_t> everybody = {0, 1}, alone = {rank};
  require(t.begin(collective(RG_OP_ALL_REDUCE, a, t.split(everybody), rank)) == RG_OK, "all_reduce");
  finish(t, 1);
  a.expect(3, 2, "a sum is wrong");
  a.fill(1);
  require(t.begin(collective(RG_OP_ALL_REDUCE, a, t.split(alone), rank, count, true)) == RG_OK, "all_reduce");
  finish(t, 1);
  a.expect(1, 1, "a sum of one is not itself");
  require(t.counters().bytes_sent == (3 + 1) * count * sizeof(float), "the counters are wrong");

  const std::uint32_t all = t.split(everybody);
  // Shares of equal and of different length. The cut is a multiple of 16.
  for (const std::size_t length : {count, count - 37}) {
    const std::size_t cut = (length + 15) / 16 / 2 * 16;
    a.fill(static_cast<float>(rank + 1));
    require(t.begin(collective(RG_OP_REDUCE_SCATTER, a, all, rank, length)) == RG_OK, "reduce_scatter");
    finish(t, 1);
    a.expect(3, 2, "a share of a sum is wrong", rank ? cut : 0, rank ? length : cut);
    require(t.begin(collective(RG_OP_ALL_GATHER, a, all, rank, length)) == RG_OK, "all_gather");
    finish(t, 1);
    a.expect(3, 2, "a share did not come", 0, length);
    a.expect(static_cast<float>(rank + 1), 1, "an element outside the buffer was changed", length);
  }
  a.fill(static_cast<float>(rank + 1));
  auto copy = collective(RG_OP_BROADCAST, a, all, rank);
  copy.root = 1;
  require(t.begin(copy) == RG_OK, "broadcast");
  finish(t, 1);
  a.expect(2, 1, "a broadcast came damaged");
  t.close(patience);
}

// Runs both ranks in processes of their own; returns whether both succeeded.
bool pair(bool dies) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no sockets");
  pid_t children[2];
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    children[rank] = fork(); // this process must not use CUDA: a fork would inherit its state
    require(children[rank] >= 0, "no process");
    if (children[rank]) continue;
    alarm(120);
    try {
      run(rank, ends[rank], dies);
      _exit(0);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "rank %u: %s\n", rank, e.what());
      _exit(1);
    }
  }
  bool good = true;
  for (const pid_t child : children) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  close(ends[0]);
  close(ends[1]);
  return good;
}

} // namespace

int main() {
  if (!std::filesystem::exists("/dev/nvidiactl")) {
    std::puts("skipped: there is no NVIDIA GPU on this machine");
    return 77;
  }
  const bool works = pair(false), ends = pair(true);
  std::printf("messages, sums and groups: %s\na peer that dies: %s\n", works ? "passed" : "FAILED",
              ends ? "passed" : "FAILED");
  return works && ends ? 0 : 1;
}
