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
// exchange = "allgather": every worker sends its k indices and values to every other worker. "servers": it sends them
// to the tensor's server, which sums them and sends indices and values of all nonzero sums to every worker.
//
// The result shows the time for encoding, exchange and decoding ("encode_seconds", "wire_seconds", "decode_seconds"),
// and the bytes exchanged, beside those of a dense exchange ("exchanged_bytes", "dense_bytes").
#include <regatta/algorithms.hpp>
#include <regatta/servers.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

namespace {

struct dgc {
  struct parameters {
    std::vector<double> sparsity = {0.75, 0.9375, 0.984375, 0.996, 0.999};
    std::int64_t rampup_begin_step = 0;
    std::int64_t rampup_step = 0;
    std::int64_t dense_below = 16384;
    double clip_norm = 0;
    double momentum = 0;
    std::string exchange = "allgather";
    std::int64_t lanes = 2;
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
      rg::field("exchange", &parameters::exchange, "allgather: among the workers; servers: through parameter servers")
          .one_of("allgather", "servers"),
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
    plan.flags =
        RG_PLAN_SYNCHRONOUS | RG_PLAN_LOSSY | RG_PLAN_MOMENTUM | (by_servers(p) ? RG_PLAN_SERVERS | RG_PLAN_SHORT : 0);
    plan.lanes = static_cast<std::uint32_t>(p.lanes) * (by_servers(p) ? 2 : 1);
    plan.steady_from = steps_of(p.rampup_begin_step) + steps_of(p.rampup_step) * (p.sparsity.size() - 1);
    return plan;
  }
  static bool talks(const parameters& p, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    return by_servers(p) ? rg::worker_and_server(c, a, b) : a < c.workers && b < c.workers;
  }

  dgc(rg::comm& c, const parameters& given)
      : comm(c), p(given), m(c.momentum() > 0 ? c.momentum() : given.momentum),
        lanes(static_cast<std::uint32_t>(given.lanes)), members(c.workers()) {
    std::iota(members.begin(), members.end(), 0u);
    make_slices();
    if (c.is_worker()) {
      c.own(c.whole(), rg::role::worker);
      u = c.alloc(c.arena().count);
      v = c.alloc(c.arena().count);
      ready = std::vector<rg::event>(slices.size());
      warn_of_waste();
    }
    for (std::uint32_t lane = 0; lane < lanes; ++lane) desks.push_back(std::make_unique<desk>(*this, lane));
  }

  // ------------------------------------------------------------------------------------------------- worker ---

  void begin_step(std::uint64_t step) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) running.spawn(train(step, lane));
  }
  void on_gradient(std::uint64_t, std::uint32_t bucket) { ready[bucket].set(); }
  rg::task<> end_step(std::uint64_t) { co_await running.join(); }
  // With servers: an empty message in place of a lane's first push tells the server that this worker has finished.
  rg::task<> finish() {
    for (std::uint32_t s = 0; by_servers(p) && s < comm.servers(); ++s)
      for (std::uint32_t lane = 0; lane < lanes; ++lane)
        if (!slices_of(s, lane).empty()) co_await comm.send(comm.server_rank(s), comm.gradients({0, 0}), lane);
  }

  // ------------------------------------------------------------------------------------------------- server ---

  rg::task<> serve() {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) serving.spawn(serve_lane(lane));
    co_await serving.join();
  }

  rg::comm& comm;

private:
  struct slice { // a tensor that is compressed, or adjacent tensors that are not
    rg::span_of_arena range;
    std::uint64_t elements; // without padding
    bool compressed;
    std::uint32_t server;
  };
  struct desk; // working memory of a lane

  static bool by_servers(const parameters& p) { return p.exchange == "servers"; }
  static std::uint64_t steps_of(std::int64_t n) { return static_cast<std::uint64_t>(n); }

  // Makes buckets in the order of the arena and joins adjacent dense tensors. Each bucket goes to the server that has
  // the fewest elements so far.
  void make_slices() {
    const rg_arena& arena = comm.arena();
    std::vector<std::uint64_t> ends, load(std::max(comm.servers(), 1u));
    for (std::uint32_t i = 0; i < arena.slice_count; ++i) {
      const rg_slice& s = arena.slices[i];
      const rg_tensor t = comm.tensor_of(s);
      std::uint64_t elements = 1;
      for (std::uint32_t d = 0; d < t.ndim; ++d) elements *= static_cast<std::uint64_t>(t.shape[d]);
      const bool compressed = t.compressible && elements >= static_cast<std::uint64_t>(p.dense_below);
      if (!compressed && !slices.empty() && !slices.back().compressed) {
        slices.back().range.count += s.count;
        slices.back().elements += elements;
      } else {
        slices.push_back({{s.first, s.count}, elements, compressed, 0});
      }
    }
    for (slice& q : slices) {
      const auto least = std::min_element(load.begin(), load.end());
      q.server = static_cast<std::uint32_t>(least - load.begin());
      *least += q.range.count;
      ends.push_back(q.range.end());
    }
    comm.set_buckets(ends);
  }
  std::vector<std::size_t> slices_of(std::uint32_t server, std::uint32_t lane) const {
    std::vector<std::size_t> mine;
    for (std::size_t i = lane; i < slices.size(); i += lanes)
      if (!by_servers(p) || slices[i].server == server) mine.push_back(i);
    return mine;
  }

  bool sparse(const slice& q, std::uint64_t step) const {
    return q.compressed && step >= steps_of(p.rampup_begin_step);
  }
  double sparsity_at(std::uint64_t step) const {
    const std::uint64_t last = p.sparsity.size() - 1;
    if (!p.rampup_step) return p.sparsity[last];
    return p.sparsity[std::min(last, (step - steps_of(p.rampup_begin_step)) / steps_of(p.rampup_step))];
  }
  // The number of values that a worker sends of a bucket.
  static std::uint64_t kept(const slice& q, double sparsity) {
    const double k = std::round(static_cast<double>(q.elements) * (1 - sparsity));
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(k), 1, q.elements);
  }
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
  struct desk {
    desk(dgc& d, std::uint32_t lane) {
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
      mine = d.slices_of(static_cast<std::uint32_t>(d.comm.cluster().server), lane);
      sum = d.comm.alloc(elements);
      // Buffers of their own: a worker in this process uses the lane's other buffers at the same time.
      served = d.comm.alloc(std::max<std::uint64_t>(2 * k * d.comm.workers(), 1), RG_I32);
      sum_indices = d.comm.alloc(std::max<std::uint64_t>(sums, 1), RG_I32);
      sum_values = d.comm.alloc(std::max<std::uint64_t>(sums, 1));
    }
    rg_buffer messages{}, indices{}, values{};
    std::vector<rg::operation> receives, sends;
    std::vector<std::size_t> mine; // on a server: its buckets on this lane
    rg_buffer served{}, sum{}, sum_indices{}, sum_values{};
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
  std::uint32_t me() const { return static_cast<std::uint32_t>(comm.cluster().worker); }
  void add_time(const char* name, std::uint64_t since) {
    comm.record_sum(name, 1e-9 * static_cast<double>(comm.now() - since));
  }

  rg::task<> train(std::uint64_t step, std::uint32_t lane) {
    for (std::size_t i = lane; i < slices.size(); i += lanes) {
      rg::event& gradient_ready = ready[i];
      co_await gradient_ready;
      const slice& q = slices[i];
      comm.record_sum("dense_bytes", dense_bytes(q));
      if (sparse(q, step))
        co_await exchange_sparse(q, step, lane);
      else
        co_await exchange_dense(q, step, lane);
    }
  }

  // Exchanges the dense gradient, with ordinary momentum on the sum over all workers.
  rg::task<> exchange_dense(const slice& q, std::uint64_t step, std::uint32_t lane) {
    const rg_buffer g = comm.gradients(q.range), momentum = part(u, q);
    rg_buffer sum = g;
    const std::uint64_t begin = comm.now();
    if (by_servers(p)) {
      sum = part(v, q); // v is unused while a bucket is sent dense
      auto answer = comm.recv(comm.server_rank(q.server), sum, lanes + lane);
      co_await comm.send(comm.server_rank(q.server), g, lane);
      co_await answer;
    } else if (members.size() > 1) {
      co_await rg::halving_doubling_all_reduce(comm, members, me(), g, lane);
    }
    add_time("wire_seconds", begin);
    comm.record_sum("exchanged_bytes", dense_bytes(q));
    if (m > 0) {
      co_await comm.scale(momentum, m);
      co_await comm.axpy(momentum, 1, sum);
      sum = momentum;
    }
    co_await comm.apply(q.range.first, sum, step, rg::role::worker);
  }

  rg::task<> exchange_sparse(const slice& q, std::uint64_t step, std::uint32_t lane) {
    desk& d = *desks[lane];
    const std::uint64_t k = kept(q, sparsity_at(step));
    const rg_buffer g = comm.gradients(q.range), momentum = part(u, q), residual = part(v, q);
    const rg_buffer mine = message(d.messages, me(), k);
    std::uint64_t begin = comm.now();
    if (step && step == steps_of(p.rampup_begin_step)) { // until now u was the momentum of the sum
      co_await comm.scale(momentum, 1.0 / comm.workers());
      co_await comm.fill(residual, 0);
    }
    if (p.clip_norm > 0) co_await comm.clip(g, p.clip_norm / std::sqrt(static_cast<double>(comm.workers())));
    co_await comm.accumulate(momentum, m, g, residual);
    co_await comm.top_k(residual, indices_in(mine), values_in(mine));
    co_await comm.fill_at(residual, indices_in(mine), 0);
    co_await comm.fill_at(momentum, indices_in(mine), 0);
    add_time("encode_seconds", begin);

    begin = comm.now();
    std::uint64_t sums = 0; // elements in the server's answer
    if (by_servers(p)) {
      const std::uint32_t server = comm.server_rank(q.server);
      auto indices = comm.recv(server, d.indices, lanes + lane);
      auto values = comm.recv(server, d.values, lanes + lane);
      co_await comm.send(server, mine, lane);
      co_await indices;
      sums = co_await values / sizeof(float);
      comm.record_sum("exchanged_bytes", 2.0 * sizeof(float) * static_cast<double>(k + sums));
    } else {
      for (const std::uint32_t w : members)
        if (w != me()) d.receives[w] = comm.recv(w, message(d.messages, w, k), lane);
      for (const std::uint32_t w : members)
        if (w != me()) d.sends[w] = comm.send(w, mine, lane);
      for (auto& r : d.receives) co_await r;
      for (auto& s : d.sends) co_await s;
      comm.record_sum("exchanged_bytes", compressed_bytes(q, k));
    }
    add_time("wire_seconds", begin);

    begin = comm.now();
    co_await comm.fill(g, 0);
    if (by_servers(p)) {
      co_await comm.axpy_at(g, rg::sub(d.indices, 0, sums), 1, rg::sub(d.values, 0, sums));
    } else { // in the order of workers, so that all have the same sum
      for (const std::uint32_t w : members) {
        const rg_buffer theirs = message(d.messages, w, k);
        co_await comm.axpy_at(g, indices_in(theirs), 1, values_in(theirs));
      }
    }
    add_time("decode_seconds", begin);
    co_await comm.apply(q.range.first, g, step, rg::role::worker);
  }

  rg::task<> serve_lane(std::uint32_t lane) {
    desk& d = *desks[lane];
    for (std::uint64_t step = 0; !d.mine.empty(); ++step)
      for (const std::size_t i : d.mine) {
        const slice& q = slices[i];
        const bool compressed = sparse(q, step);
        const std::uint64_t k = compressed ? kept(q, sparsity_at(step)) : 0;
        const rg_buffer sum = rg::sub(d.sum, 0, q.range.count);
        bool goodbye = false;
        for (std::uint32_t w = 0; w < comm.workers(); ++w)
          d.receives[w] = compressed ? comm.recv(w, message(d.served, w, k), lane)
                          : w        ? comm.recv_add(w, sum, lane)
                                     : comm.recv(w, sum, lane);
        for (auto& push : d.receives) goodbye = co_await push == 0 || goodbye;
        if (goodbye) co_return; // all workers train the same number of steps: all finish together
        rg_buffer indices{}, values = sum;
        if (compressed) {
          co_await comm.fill(sum, 0);
          for (std::uint32_t w = 0; w < comm.workers(); ++w) {
            const rg_buffer theirs = message(d.served, w, k);
            co_await comm.axpy_at(sum, indices_in(theirs), 1, values_in(theirs));
          }
          const std::uint64_t room = std::min(q.range.count, k * comm.workers());
          const std::uint64_t found =
              co_await comm.select(sum, 0, rg::sub(d.sum_indices, 0, room), rg::sub(d.sum_values, 0, room)) /
              sizeof(float);
          indices = rg::sub(d.sum_indices, 0, found);
          values = rg::sub(d.sum_values, 0, found);
        }
        for (std::uint32_t w = 0; w < comm.workers(); ++w) {
          if (compressed) d.sends[2 * w] = comm.send(w, indices, lanes + lane);
          d.sends[2 * w + 1] = comm.send(w, values, lanes + lane);
        }
        for (auto& s : d.sends) co_await s;
      }
  }

  parameters p;
  double m;
  std::uint32_t lanes;
  std::vector<std::uint32_t> members;
  std::vector<slice> slices;
  rg_buffer u{}, v{}; // of a worker: momentum; accumulated values that were not sent yet
  std::vector<rg::event> ready;
  std::vector<std::unique_ptr<desk>> desks;
  rg::task_group running, serving; // a rank may be both
};

} // namespace

RG_PLUGIN("dgc", "0.1.0",
          rg::strategy<dgc>("dgc", "deep gradient compression: only the largest values are sent, the others later"))
