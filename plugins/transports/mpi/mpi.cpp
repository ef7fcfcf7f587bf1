// SPDX-License-Identifier: Apache-2.0
//
// MPI as a transport: messages and collectives of OpenMPI or another implementation, between processes that mpirun has
// started (extension regatta.launcher/1). Their ranks are MPI's ranks.
//
// A lane is a tag; MPI keeps messages with the same sender and tag in order, and tags independent. Groups are
// communicators. MPI can neither add on receive, so the engine does it, nor sleep: poll() asks repeatedly and yields
// the CPU in between. Two guarantees of abi.h are limited to what MPI provides: a native sum is bit-identical on all
// ranks, but MPI chooses the order of its additions; and the sender of a message that is longer than its receive may
// get no error.
//
// The counters count payload; MPI does not report its overhead.
#include "../common/ring.hpp"

#include <regatta/ext/launcher.h>
#include <regatta/transport.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
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
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
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

class mpi_transport {
public:
  mpi_transport(const rg_host* host, const rg::parameters_t<mpi_transport>&) : host_(host) {}
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
    groups_.push_back({communicator_of(members), members.size(), {}});
    return static_cast<std::uint32_t>(groups_.size() - 1);
  }
  rg_status all_reduce(const rg_collective& c) {
    return begin(c, true, [&](MPI_Comm among, int count, MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, c.address, count, MPI_FLOAT, MPI_SUM, among, request);
    });
  }
  rg_status reduce_scatter(const rg_collective& c) {
    const chunks& s = chunks_of(c, check(c, true));
    begin(c, true, [&](MPI_Comm among, int, MPI_Request* request) {
      return MPI_Ireduce_scatter(MPI_IN_PLACE, c.address, s.counts.data(), MPI_FLOAT, MPI_SUM, among, request);
    });
    operation& o = operations_.back();
    o.summed = static_cast<float*>(c.address);
    o.share = o.summed + s.starts[s.self];
    o.elements = static_cast<std::size_t>(s.counts[s.self]);
    return RG_OK;
  }
  rg_status all_gather(const rg_collective& c) {
    return begin(c, false, [&](MPI_Comm among, int count, MPI_Request* request) {
      const chunks& s = chunks_of(c, count);
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, c.address, s.counts.data(), s.starts.data(),
                             word_of(c), among, request);
    });
  }
  rg_status broadcast(const rg_collective& c) {
    return begin(c, false, [&](MPI_Comm among, int count, MPI_Request* request) {
      if (c.root >= groups_[c.group].size)
        throw rg::error(RG_E_OPERATION, "mpi: broadcast: expected a root among the members of the group");
      return MPI_Ibcast(c.address, count, word_of(c), static_cast<int>(c.root), among, request);
    });
  }

private:
  enum class kind { send, receive, collective };
  struct operation {
    std::uint64_t cookie, bytes;
    std::uint32_t peer;
    kind what;
    // A reduce-scatter: MPI leaves the sum at the beginning of the buffer; it belongs at `share`.
    float *summed = nullptr, *share = nullptr;
    std::size_t elements = 0;
  };
  // The chunks of a buffer, in elements, by member. MPI reads them while a collective is in progress.
  struct chunks {
    std::vector<int> counts, starts;
    std::size_t self;
  };
  struct group {
    MPI_Comm communicator;
    std::size_t size;
    std::map<int, chunks> cut; // by the buffer's elements; a run uses few sizes
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

  // Checks a collective and returns the number of its elements.
  int check(const rg_collective& c, bool sums) const {
    const char* why = c.group >= groups_.size()                 ? "a group that does not exist"
                      : sums && c.buffer.type != RG_F32         ? "a sum of elements that are not 32-bit floats"
                      : rg::size_of(c.buffer.type) == 0         ? "a type that does not exist"
                      : c.buffer.count > std::uint64_t{INT_MAX} ? "more than 2^31 - 1 elements"
                      : !c.address && c.buffer.count > 0        ? "a buffer without bytes"
                                                                : nullptr;
    if (why) throw rg::error(RG_E_OPERATION, std::string("mpi: a collective has ") + why);
    return static_cast<int>(c.buffer.count);
  }
  // The type of elements that are copied and not summed: an integer of the same size.
  static MPI_Datatype word_of(const rg_collective& c) {
    switch (rg::size_of(c.buffer.type)) {
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    default: return MPI_UINT64_T;
    }
  }
  // Cuts a buffer into chunks as abi.h specifies at rg_collectives.
  const chunks& chunks_of(const rg_collective& c, int count) {
    group& g = groups_[c.group];
    const auto [at, is_new] = g.cut.try_emplace(count);
    chunks& s = at->second;
    if (!is_new) return s;
    int self = 0;
    MPI_Comm_rank(g.communicator, &self);
    s.self = static_cast<std::size_t>(self);
    const auto size = static_cast<std::int64_t>(g.size);
    const std::int64_t lines = (std::int64_t{count} + 15) / 16;
    const auto start = [&](std::int64_t k) {
      return static_cast<int>(std::min<std::int64_t>(count, lines * k / size * 16));
    };
    for (std::int64_t k = 0; k < size; ++k) {
      s.starts.push_back(start(k));
      s.counts.push_back(start(k + 1) - start(k));
    }
    return s;
  }

  static std::string name_of(const operation& o) {
    if (o.what == kind::collective) return "a collective";
    return std::string(o.what == kind::send ? "a message to" : "a message from") + " rank " + std::to_string(o.peer);
  }

  // Starts a collective. `start` calls MPI with a communicator and the number of elements.
  template <class F> rg_status begin(const rg_collective& c, bool sums, F&& start) {
    const int count = check(c, sums);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = start(groups_[c.group].communicator, count, &request);
    const std::uint64_t bytes = c.buffer.count * rg::size_of(c.buffer.type);
    // poll() waits for it. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
    began(code, request, {c.cookie, bytes, 0, kind::collective});
    counters_.bytes_received += bytes; // as if each byte crossed once in each direction
    return RG_OK;
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
      if (o.elements) std::memmove(o.share, o.summed, o.elements * sizeof(float));
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
