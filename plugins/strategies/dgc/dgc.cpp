// SPDX-License-Identifier: Apache-2.0
//
// Deep Gradient Compression (Lin et al., ICLR 2018): a worker sends only the largest values of its gradients and
// accumulates the rest until they have grown. A step, for every compressed tensor:
//
//   g  = clip(g)                        to N^-1/2 of the threshold (section 3.2), so that the sum of N has its norm
//   u  = m * u + g;  v += u             momentum correction (3.1): values that are not sent have momentum, too
//   send the k largest of |v|           as indices and values
//   u, v = 0 at these indices           momentum factor masking (3.3)
//   w -= lr * the sum of all workers' values
//
// Clipping is per tensor: the norm of the whole gradient is known only after the backward pass, and nothing could be
// sent before. Tensors with few elements, and tensors that the model marks as not compressible (batch norm, biases),
// are sent dense and with ordinary momentum. The strategy applies the momentum, with the optimizer's coefficient.
//
// exchange = "all_gather": every worker sends its k indices and values to every other worker. "servers": it sends them
// to the tensor's server, which sums them and sends indices and values of all nonzero sums to every worker.
//
// The result shows the time for encoding, exchange and decoding ("encode_seconds", "wire_seconds", "decode_seconds"),
// and the bytes exchanged, beside those of a dense exchange ("exchanged_bytes", "dense_bytes").
#include <regatta/algorithms.hpp>
#include <regatta/bucket_servers.hpp>

#include <array>
#include <charconv>
#include <cmath>

namespace {

struct dgc : rg::bucket_servers<dgc> {
  struct parameters {
    std::vector<double> sparsity = {0.75, 0.9375, 0.984375, 0.996, 0.999};
    std::uint64_t rampup_begin_step = 0;
    std::uint64_t rampup_step = 0;
    std::uint64_t dense_below = 16384;
    double clip_norm = 0;
    double momentum = 0;
    std::string exchange = "all_gather";
    std::uint32_t lanes = 2;
  };
  static constexpr auto fields = rg::fields(
      rg::field("sparsity", &parameters::sparsity,
                "fraction of a tensor that is not sent; the values but the last are for the ramp-up, in order")
          .range(0, 0.999999),
      rg::field("rampup_begin_step", &parameters::rampup_begin_step, "steps without compression at the beginning")
          .range(0, 1e12),
      rg::field("rampup_step", &parameters::rampup_step,
                "steps at each sparsity but the last; 0: only the last is used")
          .range(0, 1e12),
      rg::field("dense_below", &parameters::dense_below, "tensors with fewer elements are sent without compression")
          .range(1, 1e12),
      rg::field("clip_norm", &parameters::clip_norm,
                "largest norm of a tensor's gradient; each worker clips to this / sqrt(workers); 0: no clipping")
          .range(0, 1e12),
      rg::field("momentum", &parameters::momentum, "momentum coefficient, if optimizer.plugin is \"sgd\"").range(0, 1),
      rg::field("exchange", &parameters::exchange, "all_gather: among the workers; servers: through parameter servers")
          .one_of("all_gather", "servers"),
      rg::field("lanes", &parameters::lanes, "tensors that are exchanged at once").range(1, 8));

  static rg_plan plan(const parameters& p, const rg_cluster& c) {
    if (p.sparsity.empty())
      throw rg::error(RG_E_CONFIG,
                      "sparsity: expected one value or more, got []: [0.999] sends a thousandth from the start");
    if (c.flags & RG_HOST_DEFERRED)
      throw rg::error(RG_E_CONFIG, "it clips every worker's gradients separately, and cannot skip a step of fp16: "
                                   "set optimizer.clip_norm to 0 and strategy.clip_norm instead, and train.precision "
                                   "to another");
    if (c.momentum > 0 && p.momentum > 0)
      throw rg::error(RG_E_CONFIG,
                      "expected momentum in optimizer.momentum or in strategy.momentum, got both: keep one of them");
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_LOSSY | RG_PLAN_MOMENTUM | RG_PLAN_RESUMES |
                 (by_servers(p) ? RG_PLAN_SERVERS | RG_PLAN_SHORT : 0);
    if (!by_servers(p)) plan.symmetry = RG_SYMMETRY_ROTATION; // servers hold tensors of different sizes
    plan.lanes = p.lanes * (by_servers(p) ? 2 : 1);
    plan.steady_from = p.rampup_begin_step + p.rampup_step * (p.sparsity.size() - 1);
    return plan;
  }
  static bool talks(const parameters& p, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    return by_servers(p) ? rg::worker_and_server(c, a, b) : a < c.workers && b < c.workers;
  }

  dgc(rg::comm& c, const parameters& given) : dgc(c, given, make_slices(c, given)) {}

  void checkpoint(rg::saved_state& s) {
    serve_from(s.step());
    if (!comm.is_worker()) return;
    s.buffer("momentum", u);
    s.buffer("residual", v);
  }

  // ------------------------------------------------------------------------------------------------- worker ---

  rg::task<> update(rg::bucket b) {
    comm.record_sum("dense_bytes", dense_bytes(slices[b.index]));
    return sparse(slices[b.index], b.step) ? exchange_sparse(b) : exchange_dense(b);
  }

  // ------------------------------------------------------------------------------------------------- server ---

  static std::uint32_t to_servers(std::uint32_t lane) { return lane; }
  rg::operation receive(rg::bucket b, std::uint32_t w) {
    lane_memory& d = *memory_of[b.lane];
    const rg_buffer sum = rg::sub(d.sum, 0, b.range.count);
    if (sparse(slices[b.index], b.step)) return comm.recv(w, message(d.served, w, kept(b)), b.lane);
    return w ? comm.recv_add(w, sum, b.lane) : comm.recv(w, sum, b.lane);
  }
  rg::task<> answer(rg::bucket b) {
    lane_memory& d = *memory_of[b.lane];
    const bool compressed = sparse(slices[b.index], b.step);
    const rg_buffer sum = rg::sub(d.sum, 0, b.range.count);
    rg_buffer indices{}, values = sum;
    if (compressed) {
      const std::uint64_t k = kept(b), room = std::min(b.range.count, k * comm.workers());
      co_await comm.fill(sum, 0);
      for (std::uint32_t w = 0; w < comm.workers(); ++w) {
        const rg_buffer theirs = message(d.served, w, k);
        co_await comm.axpy_at(sum, indices_in(theirs), 1, values_in(theirs));
      }
      const std::uint64_t found =
          co_await comm.select(sum, 0, rg::sub(d.sum_indices, 0, room), rg::sub(d.sum_values, 0, room)) / sizeof(float);
      indices = rg::sub(d.sum_indices, 0, found);
      values = rg::sub(d.sum_values, 0, found);
    }
    for (std::uint32_t i = 0; i < comm.workers(); ++i) {
      const std::uint32_t w = comm.worker_in_turn(i);
      if (compressed) d.sends[2 * w] = comm.send(w, indices, to_workers(b.lane));
      d.sends[2 * w + 1] = comm.send(w, values, to_workers(b.lane));
    }
    for (auto& s : d.sends) co_await s;
  }

private:
  struct slice { // a tensor that is compressed, or adjacent tensors that are not
    rg::span_of_arena range;
    std::uint64_t elements; // without padding
    bool compressed;
  };

  dgc(rg::comm& c, const parameters& given, std::vector<slice> made)
      : bucket_servers(c, cut(c, made), given.lanes), p(given), m(c.momentum() > 0 ? c.momentum() : given.momentum),
        slices(std::move(made)) {
    if (c.is_worker()) {
      c.own(c.whole(), rg::role::worker);
      u = c.alloc(c.arena().count);
      v = c.alloc(c.arena().count);
      warn_of_waste();
    }
    for (std::uint32_t lane = 0; lane < lanes(); ++lane) memory_of.push_back(std::make_unique<lane_memory>(*this));
  }

  static bool by_servers(const parameters& p) { return p.exchange == "servers"; }

  // Joins adjacent dense tensors.
  static std::vector<slice> make_slices(const rg::comm& c, const parameters& p) {
    std::vector<slice> slices;
    for (std::uint32_t i = 0; i < c.arena().slice_count; ++i) {
      const rg_slice& s = rg::at_stride(c.arena().slices, i); // the engine's may be larger
      const rg_tensor t = c.tensor_of(s);
      std::uint64_t elements = 1;
      for (std::uint32_t d = 0; d < t.ndim; ++d) elements *= static_cast<std::uint64_t>(t.shape[d]);
      const bool compressed = t.compressible && elements >= p.dense_below;
      if (!compressed && !slices.empty() && !slices.back().compressed) {
        slices.back().range.count += s.count;
        slices.back().elements += elements;
      } else {
        slices.push_back({{s.first, s.count}, elements, compressed});
      }
    }
    return slices;
  }
  static std::vector<rg::span_of_arena> cut(rg::comm& c, const std::vector<slice>& slices) {
    std::vector<rg::span_of_arena> buckets;
    for (const slice& q : slices) buckets.push_back(q.range);
    c.set_buckets(buckets);
    return buckets;
  }

  bool sparse(const slice& q, std::uint64_t step) const { return q.compressed && step >= p.rampup_begin_step; }
  double sparsity_at(std::uint64_t step) const {
    const std::uint64_t last = p.sparsity.size() - 1;
    if (!p.rampup_step) return p.sparsity[last];
    return p.sparsity[std::min(last, (step - p.rampup_begin_step) / p.rampup_step)];
  }
  // The number of values that a worker sends of a bucket.
  static std::uint64_t kept(const slice& q, double sparsity) {
    const double k = std::round(static_cast<double>(q.elements) * (1 - sparsity));
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(k), 1, q.elements);
  }
  std::uint64_t kept(const rg::bucket& b) const { return kept(slices[b.index], sparsity_at(b.step)); }
  // The most values that a worker ever sends of a bucket.
  std::uint64_t most_kept(const slice& q) const {
    if (!q.compressed) return 0;
    const double lowest = p.rampup_step ? *std::min_element(p.sparsity.begin(), p.sparsity.end()) : p.sparsity.back();
    return kept(q, lowest);
  }
  // The most nonzero elements in a sum over all workers.
  std::uint64_t most_sums(const slice& q) const { return std::min(q.range.count, most_kept(q) * comm.workers()); }

  // Bytes that a worker sends and receives for one bucket: compressed (an upper bound), and dense.
  double compressed_bytes(const slice& q, std::uint64_t k) const {
    const double n = comm.workers(), pairs = 2.0 * sizeof(float) * static_cast<double>(k);
    if (by_servers(p))
      return pairs + 2.0 * sizeof(float) * static_cast<double>(std::min(q.range.count, k * comm.workers()));
    return 2 * (n - 1) * pairs;
  }
  double dense_bytes(const slice& q) const {
    const double n = comm.workers(), bytes = sizeof(float) * static_cast<double>(q.range.count);
    return by_servers(p) ? 2 * bytes : 2 * 2 * (n - 1) / n * bytes;
  }
  static std::string short_text(double x) { // 0.75, not 0.750000
    std::array<char, 32> digits;
    return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr};
  }
  void warn_of_waste() {
    if (comm.cluster().worker != 0) return;
    for (std::size_t i = p.rampup_step ? 0 : p.sparsity.size() - 1; i < p.sparsity.size(); ++i) {
      double with = 0, without = 0;
      for (const slice& q : slices) {
        without += dense_bytes(q);
        with += q.compressed ? compressed_bytes(q, kept(q, p.sparsity[i])) : dense_bytes(q);
      }
      if (with > without)
        comm.warn("dgc: at sparsity " + short_text(p.sparsity[i]) + " and " + std::to_string(comm.workers()) +
                  " workers more bytes are sent than without compression: " +
                  std::to_string(static_cast<std::uint64_t>(with / 1000)) + " kB a step instead of " +
                  std::to_string(static_cast<std::uint64_t>(without / 1000)) + " kB");
    }
  }

  // Working memory of one lane: for each worker a message of k indices and k values; on a server also the sums.
  struct lane_memory {
    explicit lane_memory(dgc& d) {
      std::uint64_t k = 0, sums = 0, elements = 0;
      for (const slice& q : d.slices) {
        k = std::max(k, d.most_kept(q));
        sums = std::max(sums, d.most_sums(q));
        elements = std::max(elements, q.range.count);
      }
      messages = d.comm.alloc(std::max<std::uint64_t>(2 * k * d.comm.workers(), 1), RG_I32);
      receives.resize(d.comm.workers());
      sends.resize(2 * d.comm.workers());
      if (!by_servers(d.p)) return;
      indices = d.comm.alloc(std::max<std::uint64_t>(sums, 1), RG_I32);
      values = d.comm.alloc(std::max<std::uint64_t>(sums, 1));
      if (!d.comm.is_server()) return;
      sum = d.comm.alloc(elements);
      // Buffers of their own: a worker in this process uses the lane's other buffers at the same time.
      served = d.comm.alloc(std::max<std::uint64_t>(2 * k * d.comm.workers(), 1), RG_I32);
      sum_indices = d.comm.alloc(std::max<std::uint64_t>(sums, 1), RG_I32);
      sum_values = d.comm.alloc(std::max<std::uint64_t>(sums, 1));
    }
    rg_buffer messages{}, indices{}, values{};
    std::vector<rg::operation> receives, sends;
    rg_buffer served{}, sum{}, sum_indices{}, sum_values{}; // on a server
  };
  static rg_buffer message(rg_buffer messages, std::uint32_t worker, std::uint64_t k) {
    return rg::sub(messages, 2 * k * worker, 2 * k);
  }
  static rg_buffer indices_in(rg_buffer message) { return rg::sub(message, 0, message.count / 2); }
  static rg_buffer values_in(rg_buffer message) {
    rg_buffer values = rg::sub(message, message.count / 2, message.count / 2);
    values.type = RG_F32;
    return values;
  }
  rg_buffer part(rg_buffer whole, const slice& q) const { return rg::sub(whole, q.range.first, q.range.count); }
  std::uint32_t to_workers(std::uint32_t lane) const { return p.lanes + lane; }
  // Adds the time since `since` to the result's figure `name`, and records it as span `span` on the lane's track.
  void add_time(const char* name, const char* span, std::uint32_t lane, std::uint64_t since) {
    const std::uint64_t now = comm.now();
    comm.record_sum(name, 1e-9 * static_cast<double>(now - since));
    if (comm.trace().on()) comm.trace().span({.name = span, .category = "strategy", .track = 16 + lane}, since, now);
  }

  // Exchanges the dense gradient, with ordinary momentum on the sum over all workers.
  rg::task<> exchange_dense(rg::bucket b) {
    const slice& q = slices[b.index];
    const rg_buffer momentum = part(u, q);
    rg_buffer sum = b.gradients;
    const std::uint64_t begin = comm.now();
    if (by_servers(p)) {
      sum = part(v, q); // v is unused while a bucket is sent dense
      const std::uint32_t server = comm.server_rank(server_of(b.index));
      auto answer = comm.recv(server, sum, to_workers(b.lane));
      co_await comm.send(server, b.gradients, b.lane);
      co_await answer;
    } else if (comm.workers() > 1) {
      // As scratch memory: v is unused while a bucket is sent dense.
      co_await rg::circulant_all_reduce(comm, members(), comm.rank(), b.gradients, part(v, q), b.lane);
    }
    add_time("wire_seconds", "exchange", b.lane, begin);
    comm.record_sum("exchanged_bytes", dense_bytes(q));
    if (m > 0) {
      co_await comm.scale(momentum, m);
      co_await comm.axpy(momentum, 1, sum);
      sum = momentum;
    }
    co_await comm.apply(b.range.first, sum, b.step, rg::role::worker);
  }

  rg::task<> exchange_sparse(rg::bucket b) {
    const slice& q = slices[b.index];
    lane_memory& d = *memory_of[b.lane];
    const std::uint64_t k = kept(b);
    const rg_buffer g = b.gradients, momentum = part(u, q), residual = part(v, q);
    const rg_buffer mine = message(d.messages, comm.rank(), k);
    std::uint64_t begin = comm.now();
    if (b.step && b.step == p.rampup_begin_step) { // until now u was the momentum of the sum
      co_await comm.scale(momentum, 1.0 / comm.workers());
      co_await comm.fill(residual, 0);
    }
    if (p.clip_norm > 0) co_await comm.clip(g, p.clip_norm / std::sqrt(static_cast<double>(comm.workers())));
    co_await comm.accumulate(momentum, m, g, residual);
    co_await comm.top_k(residual, indices_in(mine), values_in(mine));
    co_await comm.fill_at(residual, indices_in(mine), 0);
    co_await comm.fill_at(momentum, indices_in(mine), 0);
    add_time("encode_seconds", "encode", b.lane, begin);

    begin = comm.now();
    std::uint64_t sums = 0; // elements in the server's answer
    if (by_servers(p)) {
      const std::uint32_t server = comm.server_rank(server_of(b.index));
      auto indices = comm.recv(server, d.indices, to_workers(b.lane));
      auto values = comm.recv(server, d.values, to_workers(b.lane));
      co_await comm.send(server, mine, b.lane);
      co_await indices;
      sums = co_await values / sizeof(float);
      comm.record_sum("exchanged_bytes", 2.0 * sizeof(float) * static_cast<double>(k + sums));
    } else {
      // Each worker begins with the next one, so that all links are busy at once; the first message that it gets is
      // that of the worker before it.
      const std::uint32_t n = comm.workers(), me = comm.rank();
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t w = (me + n - i) % n;
        d.receives[w] = comm.recv(w, message(d.messages, w, k), b.lane);
      }
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t w = (me + i) % n;
        d.sends[w] = comm.send(w, mine, b.lane);
      }
      for (auto& r : d.receives) co_await r;
      for (auto& s : d.sends) co_await s;
      comm.record_sum("exchanged_bytes", compressed_bytes(q, k));
    }
    add_time("wire_seconds", "exchange", b.lane, begin);

    begin = comm.now();
    co_await comm.fill(g, 0);
    if (by_servers(p)) {
      co_await comm.axpy_at(g, rg::sub(d.indices, 0, sums), 1, rg::sub(d.values, 0, sums));
    } else { // in the order of workers, so that all have the same sum
      for (const std::uint32_t w : members()) {
        const rg_buffer theirs = message(d.messages, w, k);
        co_await comm.axpy_at(g, indices_in(theirs), 1, values_in(theirs));
      }
    }
    add_time("decode_seconds", "decode", b.lane, begin);
    co_await comm.apply(b.range.first, g, b.step, rg::role::worker);
  }

  parameters p;
  double m;
  std::vector<slice> slices; // by bucket
  rg_buffer u{}, v{};        // of a worker: momentum; accumulated values that were not sent yet
  std::vector<std::unique_ptr<lane_memory>> memory_of; // by lane
};

} // namespace

RG_PLUGIN("dgc", "0.1.0",
          rg::strategy<dgc>("dgc", "deep gradient compression: only the largest values are sent, the others later"))
