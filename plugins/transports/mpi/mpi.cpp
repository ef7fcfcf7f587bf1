// SPDX-License-Identifier: Apache-2.0
//
// MPI as a transport: messages and collectives of OpenMPI or another implementation, between processes that mpirun has
// started (extension regatta.launcher/1). Their ranks are MPI's ranks.
//
// A lane is a tag; MPI keeps messages with the same sender and tag in order, and tags independent. Groups are
// communicators. MPI can neither add on receive, so the engine does it, nor sleep: poll() asks repeatedly and yields
// the CPU in between. MPI chooses the order in which its collectives add, and the sender of a message that is longer
// than its receive may get no error: the transport lacks RG_CAP_ASCENDING_SUMS and RG_CAP_LONG_FAILS_SENDER.
//
// A collective with a wire type (bf16, fp16) works on 16-bit copies of its buffers. MPI has no such type: it moves them
// as integers, and combines them by operators of this transport, which add in fp32 and round each sum.
//
// The counters count payload; MPI does not report its overhead.
#include "../common/ring.hpp"
#include "beside_pmix.hpp"

#include <regatta/collectives.hpp>
#include <regatta/ext/launcher.h>
#include <regatta/half.hpp>
#include <regatta/simd.hpp>
#include <regatta/transport.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>
#include <sched.h>

namespace {

constexpr std::size_t block = 1 << 20;

// MPI's description of an error.
std::string text_of(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<std::size_t>(length)};
}

void check(int code, const char* what, rg_status status = RG_E_OPERATION) {
  if (code != MPI_SUCCESS) throw rg::error(status, std::string("mpi: ") + what + ": " + text_of(code));
}

// [main] MPI belongs to the process, not to an instance: it is initialised once and finalised when the process exits.
rg_status join(const rg_host* host) noexcept {
  return rg::fence(host, [] {
    int begun = 0, provided = 0;
    MPI_Initialized(&begun);
    if (begun) return;
    begin_mpi_beside_pmix(
        [&] { check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread"); });
    // [loop] may run on different threads, one at a time.
    if (provided < MPI_THREAD_SERIALIZED)
      throw rg::error(RG_E_UNSUPPORTED, "mpi: expected an MPI with MPI_THREAD_SERIALIZED, got one for a single thread");
    std::atexit([] { MPI_Finalize(); });
  });
}

// A datatype and count for `bytes` of memory. MPI counts elements in an int, so more bytes become one element of a
// derived type.
class byte_count {
public:
  explicit byte_count(std::uint64_t bytes) {
    if (bytes <= INT_MAX) {
      count = static_cast<int>(bytes);
      return;
    }
    MPI_Datatype blocks;
    check(MPI_Type_vector(static_cast<int>(bytes / block), block, block, MPI_BYTE, &blocks), "MPI_Type_vector");
    const std::array<int, 2> lengths{1, static_cast<int>(bytes % block)};
    const std::array<MPI_Aint, 2> displacements{0, static_cast<MPI_Aint>(bytes / block * block)};
    const std::array<MPI_Datatype, 2> types{blocks, MPI_BYTE};
    check(MPI_Type_create_struct(2, lengths.data(), displacements.data(), types.data(), &type),
          "MPI_Type_create_struct");
    MPI_Type_free(&blocks);
    check(MPI_Type_commit(&type), "MPI_Type_commit");
    own_ = true;
  }
  byte_count(const byte_count&) = delete;
  byte_count& operator=(const byte_count&) = delete;
  ~byte_count() {
    if (own_) MPI_Type_free(&type); // MPI keeps the type as long as an operation needs it
  }
  int count = 1;
  MPI_Datatype type = MPI_BYTE;

private:
  bool own_ = false;
};

using half = std::uint16_t; // an element of RG_BF16 or RG_F16

void narrow_loop(std::uint32_t type, half* to, const float* from, std::size_t count) noexcept {
  if (type == RG_BF16)
    for (std::size_t i = 0; i < count; ++i) to[i] = rg::to_bf16(from[i]);
  else
    for (std::size_t i = 0; i < count; ++i) to[i] = rg::to_fp16(from[i]);
}
void widen_loop(std::uint32_t type, float* to, const half* from, std::size_t count) noexcept {
  if (type == RG_BF16)
    for (std::size_t i = 0; i < count; ++i) to[i] = rg::from_bf16(from[i]);
  else
    for (std::size_t i = 0; i < count; ++i) to[i] = rg::from_fp16(from[i]);
}

// Functions of MPI_Op_create: each replaces the elements of `to` by their combination with those of `with`.
void add_bf16(void* with, void* to, int* count, MPI_Datatype*) noexcept {
  const auto* x = static_cast<const half*>(with);
  auto* y = static_cast<half*>(to);
  for (int i = 0; i < *count; ++i) y[i] = rg::to_bf16(rg::from_bf16(y[i]) + rg::from_bf16(x[i]));
}
void add_fp16(void* with, void* to, int* count, MPI_Datatype*) noexcept {
  const auto* x = static_cast<const half*>(with);
  auto* y = static_cast<half*>(to);
  for (int i = 0; i < *count; ++i) y[i] = rg::to_fp16(rg::from_fp16(y[i]) + rg::from_fp16(x[i]));
}
void maximum_bf16(void* with, void* to, int* count, MPI_Datatype*) noexcept {
  const auto* x = static_cast<const half*>(with);
  auto* y = static_cast<half*>(to);
  for (int i = 0; i < *count; ++i) y[i] = rg::from_bf16(x[i]) > rg::from_bf16(y[i]) ? x[i] : y[i];
}
void maximum_fp16(void* with, void* to, int* count, MPI_Datatype*) noexcept {
  const auto* x = static_cast<const half*>(with);
  auto* y = static_cast<half*>(to);
  for (int i = 0; i < *count; ++i) y[i] = rg::from_fp16(x[i]) > rg::from_fp16(y[i]) ? x[i] : y[i];
}

template <auto Loop> void widest_of(void* with, void* to, int* count, MPI_Datatype* type) noexcept {
  rg::simd::widest<Loop>(with, to, count, type);
}

// [main] Returns MPI's operator for elements of `type`; MPI_OP_NULL if there is none. Those of the 16-bit types are
// created once a process, like MPI itself, and end with it.
MPI_Op operator_of(std::uint32_t reduction, std::uint32_t type) noexcept {
  const bool adds = reduction == RG_SUM;
  if (!adds && reduction != RG_MAX) return MPI_OP_NULL;
  if (type != RG_BF16 && type != RG_F16) return adds ? MPI_SUM : MPI_MAX;
  static const std::array<MPI_Op, 4> own = [] {
    std::array<MPI_Op, 4> made{};
    MPI_Op_create(&widest_of<add_bf16>, 1, made.data());
    MPI_Op_create(&widest_of<add_fp16>, 1, &made[1]);
    MPI_Op_create(&widest_of<maximum_bf16>, 1, &made[2]);
    MPI_Op_create(&widest_of<maximum_fp16>, 1, &made[3]);
    return made;
  }();
  return own[(adds ? 0U : 2U) + (type == RG_F16 ? 1U : 0U)];
}

class mpi_transport {
public:
  mpi_transport(const rg_host* host, const rg::parameters_t<mpi_transport>&) : host_(host) {
    rg::simd::chosen = rg::simd::choose(); // the launcher's process loaded this plugin before it became a rank
  }
  ~mpi_transport() {
    // MPI may still write to the memory of pending requests, which must not be freed: end the process instead.
    int ended = 1;
    MPI_Finalized(&ended);
    if (!requests_.empty() && !ended) MPI_Abort(MPI_COMM_WORLD, 1);
  }

  rg_transport_caps caps() const { return {.flags = 0, .memory = RG_MEMORY_HOST, .p2p = RG_P2P_INDEPENDENT}; }

  rg_blob listen(const rg_world& world) {
    int begun = 0, size = 0, rank = 0;
    MPI_Initialized(&begun);
    if (!begun)
      throw rg::error(RG_E_CONFIG, "mpi: expected ranks that mpirun started, got others: run mpirun -n " +
                                       std::to_string(world.size) + " regatta run FILE.toml");
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (static_cast<std::uint32_t>(rank) != world.rank || static_cast<std::uint32_t>(size) < world.size)
      throw rg::error(RG_E_CONFIG, "mpi: rank " + std::to_string(world.rank) + " of " + std::to_string(world.size) +
                                       " is rank " + std::to_string(rank) + " of " + std::to_string(size) + " in MPI");
    size_ = world.size;
    lanes_ = world.lanes;
    return {};
  }

  void connect(std::span<const rg_blob>, std::uint64_t) {
    std::vector<std::uint32_t> everyone(size_);
    for (std::uint32_t r = 0; r < size_; ++r) everyone[r] = r;
    messages_ = communicator_of(everyone);
  }

  rg_status send(const rg_transfer& t) {
    const byte_count bytes(check(t));
    MPI_Request request;
    const int code = MPI_Isend(t.address, bytes.count, bytes.type, static_cast<int>(t.peer), static_cast<int>(t.lane),
                               messages_, &request);
    // poll() waits for it. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
    began(code, request, {t.cookie, t.bytes, t.peer, kind::send});
    return RG_OK;
  }
  rg_status recv(const rg_transfer& t) {
    const byte_count bytes(check(t));
    MPI_Request request;
    const int code = MPI_Irecv(t.address, bytes.count, bytes.type, static_cast<int>(t.peer), static_cast<int>(t.lane),
                               messages_, &request);
    // poll() waits for it. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
    began(code, request, {t.cookie, 0, t.peer, kind::receive});
    return RG_OK;
  }

  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    for (;;) {
      take_ended();
      std::uint32_t count = 0;
      while (count < out.size() && !finished_.empty()) out[count++] = finished_.pop();
      if ((woken_.load(std::memory_order_relaxed) && woken_.exchange(false)) || count > 0) return count;
      const auto waited = static_cast<std::uint64_t>((clock::now() - start).count());
      if (waited >= timeout_ns) return 0;
      if (waited >= spin_ns) ::sched_yield();
    }
  }
  void wake() noexcept { woken_.store(true); }

  // MPI can cancel receives, but not sends.
  void cancel(std::uint32_t peer) {
    bool sends = false;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (operations_[i].peer != peer) continue;
      sends |= operations_[i].what == kind::send;
      if (operations_[i].what == kind::receive) MPI_Cancel(&requests_[i]);
    }
    if (sends)
      throw rg::error(RG_E_DEVICE,
                      "mpi: cannot cancel a message to rank " + std::to_string(peer) + ": MPI cancels receives only");
  }
  // A send goes on: MPI can cancel receives only.
  void cancel_operation(std::uint64_t cookie) {
    for (std::size_t i = 0; i < requests_.size(); ++i)
      if (operations_[i].cookie == cookie && operations_[i].what == kind::receive) MPI_Cancel(&requests_[i]);
  }
  // MPI delivers all sends before it finalises. But it makes progress only inside calls, even for the acknowledgement
  // of a message that has arrived and for which its sender waits. So every rank waits here until all ranks have
  // arrived.
  void close(std::uint64_t timeout_ns) {
    if (messages_ != MPI_COMM_NULL) barrier(timeout_ns);
    for (group& g : groups_) MPI_Comm_free(&g.communicator);
    groups_.clear();
    if (messages_ != MPI_COMM_NULL) MPI_Comm_free(&messages_);
  }
  rg_counters counters() const { return counters_; }

  std::uint32_t split(std::span<const std::uint32_t> members) {
    const MPI_Comm made = communicator_of(members);
    int self = 0;
    MPI_Comm_rank(made, &self);
    groups_.push_back({made, members.size(), static_cast<std::uint32_t>(self)});
    return static_cast<std::uint32_t>(groups_.size() - 1);
  }
  bool offers(std::uint32_t what, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept {
    if (wire && (type != RG_F32 || (wire != RG_BF16 && wire != RG_F16) || what == RG_OP_BARRIER)) return false;
    if (rg::reduces(what))
      return (reduction == RG_SUM || reduction == RG_MAX) &&
             (type == RG_F32 || type == RG_F64 || type == RG_I32 || type == RG_I64);
    return what >= RG_OP_ALL_REDUCE && what <= RG_OP_BARRIER && rg::size_of(type) > 0;
  }
  rg_status begin(const rg_collective& c) {
    group& g = check(c);
    operation o{.cookie = c.cookie, .bytes = 0, .peer = 0, .what = kind::collective};
    const rg_collective moved = c.wire ? narrowed(c, o) : c;
    o.bytes = std::max(rg::bytes_of(moved.source), rg::bytes_of(moved.target));
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = start(moved, g, o, &request);
    // poll() waits for it. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
    began(code, request, o);
    counters_.bytes_received += o.bytes; // as if each byte crossed once in each direction
    return RG_OK;
  }

private:
  enum class kind { send, receive, collective };
  struct operation {
    std::uint64_t cookie, bytes;
    std::uint32_t peer;
    kind what;
    // A reduce-scatter in place: MPI leaves the result at the beginning of the buffer; it belongs at `chunk`.
    void *reduced = nullptr, *chunk = nullptr;
    std::size_t chunk_bytes = 0;
    // With a wire type: copies_[copy] has the source and behind it the target, which belongs at `target`.
    std::uint32_t wire = 0;
    std::size_t copy = 0, source_count = 0, target_count = 0;
    float* target = nullptr;
  };
  // The chunks of a buffer, in elements, by member. MPI reads them while a collective is in progress.
  struct chunks {
    std::vector<int> counts, starts;
  };
  struct group {
    MPI_Comm communicator;
    std::size_t size;
    std::uint32_t self;                       // this rank's index among the members
    std::map<std::vector<int>, chunks> cut{}; // by counts; a run uses few
    std::vector<int> wanted{};                // kept between calls of chunks_of()
  };

  void barrier(std::uint64_t timeout_ns) {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    MPI_Request all;
    ::check(MPI_Ibarrier(messages_, &all), "close", RG_E_PEER);
    for (int met = 0;;) {
      ::check(MPI_Test(&all, &met, MPI_STATUS_IGNORE), "close", RG_E_PEER);
      if (met) return;
      if (static_cast<std::uint64_t>((clock::now() - start).count()) >= timeout_ns)
        throw rg::error(RG_TIMEOUT, "mpi: not all ranks have closed within " + std::to_string(timeout_ns / 1'000'000) +
                                        " ms of this one");
      ::sched_yield();
    }
  }

  std::uint64_t check(const rg_transfer& t) const {
    if (t.peer >= size_ || t.lane >= lanes_ || messages_ == MPI_COMM_NULL)
      throw rg::error(RG_E_OPERATION, "mpi: rank " + std::to_string(t.peer) + ", lane " + std::to_string(t.lane) +
                                          ": there is no connection");
    if (!t.address && t.bytes > 0) throw rg::error(RG_E_OPERATION, "mpi: the buffer is a ghost, which has no bytes");
    return t.bytes;
  }

  static MPI_Comm communicator_of(std::span<const std::uint32_t> members) {
    std::vector<int> ranks(members.begin(), members.end());
    MPI_Group world, chosen;
    MPI_Comm made = MPI_COMM_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    ::check(MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &chosen), "split");
    const int code = MPI_Comm_create_group(MPI_COMM_WORLD, chosen, 0, &made);
    MPI_Group_free(&chosen);
    MPI_Group_free(&world);
    ::check(code, "split");
    MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    return made;
  }

  group& check(const rg_collective& c) {
    const std::uint64_t most = std::max(c.source.count, c.target.count);
    const char* why = c.group >= groups_.size()                                 ? "a group that does not exist"
                      : rg::has_root(c.kind) && c.root >= groups_[c.group].size ? "a root that is not in the group"
                      : !offers(c.kind, c.reduction, type_of(c), c.wire)        ? "a kind or type that MPI lacks here"
                      : most > std::uint64_t{INT_MAX}                           ? "more than 2^31 - 1 elements"
                      : (!c.source_address && c.source.count) || (!c.target_address && c.target.count)
                          ? "a buffer without bytes"
                          : nullptr;
    if (why) throw rg::error(RG_E_OPERATION, std::string("mpi: a collective has ") + why);
    return groups_[c.group];
  }
  // The type of the elements, also on a rank that uses one buffer only.
  static std::uint32_t type_of(const rg_collective& c) {
    return c.kind == RG_OP_BARRIER ? std::uint32_t{RG_U8} : c.source.type ? c.source.type : c.target.type;
  }
  static MPI_Datatype number_of(std::uint32_t type) noexcept {
    switch (type) {
    case RG_F32: return MPI_FLOAT;
    case RG_F64: return MPI_DOUBLE;
    case RG_I32: return MPI_INT32_T;
    case RG_I64: return MPI_INT64_T;
    case RG_BF16:
    case RG_F16: return MPI_UINT16_T; // for an operator of this transport
    default: return MPI_DATATYPE_NULL;
    }
  }
  // The type of elements that are copied and not reduced: an integer of the same size.
  static MPI_Datatype word_of(std::uint32_t type) noexcept {
    switch (rg::size_of(type)) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
    }
  }
  // `equal`: chunks are equal if there are no counts.
  static const chunks& chunks_of(group& g, std::uint64_t count, const std::uint64_t* counts, bool equal = false) {
    g.wanted.clear();
    for (std::uint64_t k = 0; k < g.size; ++k)
      g.wanted.push_back(static_cast<int>(equal && !counts ? rg::equal_chunk(count, k, g.size).count
                                                           : rg::chunk_of(count, counts, k, g.size).count));
    const auto [at, is_new] = g.cut.try_emplace(g.wanted);
    if (is_new) {
      at->second.counts = g.wanted;
      int first = 0;
      for (const int n : g.wanted) at->second.starts.push_back(std::exchange(first, first + n));
    }
    return at->second;
  }

  // Returns `c` on 16-bit copies of its buffers, and notes in `o` where the result belongs.
  rg_collective narrowed(const rg_collective& c, operation& o) {
    if (free_copies_.empty()) {
      free_copies_.push_back(copies_.size());
      copies_.emplace_back();
    }
    o.wire = c.wire;
    o.copy = free_copies_.back();
    free_copies_.pop_back();
    o.source_count = static_cast<std::size_t>(c.source.count);
    o.target_count = static_cast<std::size_t>(c.target.count);
    o.target = static_cast<float*>(c.target_address);
    std::vector<half>& copy = copies_[o.copy];
    if (copy.size() < o.source_count + o.target_count) copy.resize(o.source_count + o.target_count);
    rg::simd::widest<narrow_loop>(c.wire, copy.data(), static_cast<const float*>(c.source_address), o.source_count);
    rg_collective moved = c;
    moved.source_address = copy.data();
    moved.target_address = copy.data() + o.source_count;
    if (c.source.type) moved.source.type = c.wire;
    if (c.target.type) moved.target.type = c.wire;
    return moved;
  }
  void widen_result(const operation& o) {
    rg::simd::widest<widen_loop>(o.wire, o.target, copies_[o.copy].data() + o.source_count, o.target_count);
    free_copies_.push_back(o.copy);
  }

  // Starts a collective of MPI; returns MPI's code. Some need a hint in `o` for their end.
  static int start(const rg_collective& c, group& g, operation& o, MPI_Request* request) {
    const MPI_Comm among = g.communicator;
    const MPI_Datatype number = number_of(c.source.type), word = word_of(type_of(c));
    const MPI_Op reduction = operator_of(c.reduction, c.source.type);
    const bool is_root = c.root == g.self;
    const int root = static_cast<int>(c.root), sent = static_cast<int>(c.source.count),
              received = static_cast<int>(c.target.count);
    const auto at = [&](const void* whole, int element) {
      return static_cast<const std::byte*>(whole) + static_cast<std::size_t>(element) * rg::size_of(type_of(c));
    };
    switch (c.kind) {
    case RG_OP_ALL_REDUCE:
      return MPI_Iallreduce(c.source_address == c.target_address ? MPI_IN_PLACE : c.source_address, c.target_address,
                            received, number, reduction, among, request);
    case RG_OP_REDUCE: {
      const bool in_place = is_root && c.source_address == c.target_address;
      return MPI_Ireduce(in_place ? MPI_IN_PLACE : c.source_address, c.target_address, sent, number, reduction, root,
                         among, request);
    }
    case RG_OP_REDUCE_SCATTER: {
      const chunks& s = chunks_of(g, c.source.count, c.counts);
      if (c.target_address != at(c.source_address, s.starts[g.self]))
        return MPI_Ireduce_scatter(c.source_address, c.target_address, s.counts.data(), number, reduction, among,
                                   request);
      o.reduced = const_cast<void*>(c.source_address);
      o.chunk = c.target_address;
      o.chunk_bytes = rg::bytes_of(c.target);
      return MPI_Ireduce_scatter(MPI_IN_PLACE, o.reduced, s.counts.data(), number, reduction, among, request);
    }
    case RG_OP_BROADCAST:
      if (is_root && c.source_address != c.target_address && c.target.count > 0)
        std::memcpy(c.target_address, c.source_address, rg::bytes_of(c.source));
      return MPI_Ibcast(c.target_address, received, word, root, among, request);
    case RG_OP_ALL_GATHER: {
      const chunks& s = chunks_of(g, c.target.count, c.counts);
      const bool in_place = c.source_address == at(c.target_address, s.starts[g.self]);
      return MPI_Iallgatherv(in_place ? MPI_IN_PLACE : c.source_address, sent, word, c.target_address, s.counts.data(),
                             s.starts.data(), word, among, request);
    }
    case RG_OP_GATHER: {
      const chunks& s = chunks_of(g, c.target.count, c.counts);
      const bool in_place = is_root && c.source_address == at(c.target_address, s.starts[g.self]);
      return MPI_Igatherv(in_place ? MPI_IN_PLACE : c.source_address, sent, word, c.target_address, s.counts.data(),
                          s.starts.data(), word, root, among, request);
    }
    case RG_OP_SCATTER: {
      const chunks& s = chunks_of(g, c.source.count, c.counts);
      const bool in_place = is_root && c.target_address == at(c.source_address, s.starts[g.self]);
      return MPI_Iscatterv(c.source_address, s.counts.data(), s.starts.data(), word,
                           in_place ? MPI_IN_PLACE : c.target_address, received, word, root, among, request);
    }
    case RG_OP_ALL_TO_ALL: {
      const chunks &from = chunks_of(g, c.source.count, c.counts, true),
                   &to = chunks_of(g, c.target.count, c.target_counts, true);
      return MPI_Ialltoallv(c.source_address, from.counts.data(), from.starts.data(), word, c.target_address,
                            to.counts.data(), to.starts.data(), word, among, request);
    }
    default: return MPI_Ibarrier(among, request);
    }
  }

  static std::string name_of(const operation& o) {
    if (o.what == kind::collective) return "a collective";
    return std::string(o.what == kind::send ? "a message to" : "a message from") + " rank " + std::to_string(o.peer);
  }

  // Records a request that MPI has started. `code` is MPI's result of starting it.
  void began(int code, MPI_Request request, const operation& o) {
    if (code != MPI_SUCCESS) ::check(code, name_of(o).c_str(), RG_E_PEER);
    requests_.push_back(request);
    operations_.push_back(o);
  }

  void take_ended() {
    if (requests_.empty()) return;
    places_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int count = 0;
    const int code =
        MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, places_.data(), statuses_.data());
    if (code != MPI_ERR_IN_STATUS) ::check(code, "MPI_Testsome");
    if (count == MPI_UNDEFINED || count == 0) return;
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      end(operations_[static_cast<std::size_t>(places_[at])], statuses_[at],
          code == MPI_ERR_IN_STATUS ? statuses_[at].MPI_ERROR : MPI_SUCCESS);
    }
    // Pending requests move up, in order.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      operations_[kept++] = operations_[i];
    }
    requests_.resize(kept);
    operations_.resize(kept);
  }

  void end(const operation& o, const MPI_Status& how, int code) {
    rg_completion c{.cookie = o.cookie, .status = RG_OK, .bytes = o.bytes};
    int cancelled = 0;
    MPI_Test_cancelled(&how, &cancelled);
    if (cancelled) {
      c.status = RG_E_CANCELLED;
    } else if (code != MPI_SUCCESS) {
      int kind_of_error = MPI_ERR_OTHER;
      MPI_Error_class(code, &kind_of_error);
      c.status = kind_of_error == MPI_ERR_TRUNCATE ? RG_E_OPERATION : RG_E_PEER;
      c.vendor_error = code;
      const std::string text =
          "mpi: " + name_of(o) +
          (c.status == RG_E_OPERATION ? " is longer than its receive" : " failed: " + text_of(code));
      host_->fail(host_->context, c.status, text.c_str());
    } else if (o.what == kind::receive) {
      MPI_Count bytes = 0;
      MPI_Get_elements_x(&how, MPI_BYTE, &bytes);
      c.bytes = static_cast<std::uint64_t>(bytes);
      counters_.bytes_received += c.bytes;
      ++counters_.messages_received;
    } else {
      if (o.chunk_bytes) std::memmove(o.chunk, o.reduced, o.chunk_bytes);
      if (o.wire) widen_result(o);
      counters_.bytes_sent += o.bytes;
      ++counters_.messages_sent;
    }
    finished_.push(c);
  }

  const rg_host* host_;
  std::uint32_t size_ = 0, lanes_ = 0;
  MPI_Comm messages_ = MPI_COMM_NULL;
  std::vector<group> groups_;
  std::vector<MPI_Request> requests_; // pending, in the order of posting
  std::vector<operation> operations_; // of requests_, in the same order
  std::deque<std::vector<half>> copies_;
  std::vector<std::size_t> free_copies_;
  std::vector<int> places_;
  std::vector<MPI_Status> statuses_;
  transports::ring<rg_completion> finished_;
  rg_counters counters_{};
  std::atomic<bool> woken_{false};
};

rg_component component() {
  rg_component c = rg::transport<mpi_transport>("mpi", "messages and collectives of MPI, under mpirun");
  c.extension = [](const char* id) -> const void* {
    static const rg_launcher launched = [] {
      auto l = rg::make_versioned<rg_launcher>();
      l.launcher = "mpirun -n";
      l.join = &join;
      return l;
    }();
    return std::strcmp(id, RG_EXT_LAUNCHER) == 0 ? &launched : nullptr;
  };
  return c;
}

} // namespace

RG_PLUGIN("mpi", "0.1", component())
