// SPDX-License-Identifier: Apache-2.0
//
// The strategy that exchanges messages of a compressor among all workers, around a ring, or through parameter servers.
// regatta/compressor.hpp has its parameters.
#pragma once

#include <regatta/algorithms.hpp>
#include <regatta/bucket_servers.hpp>
#include <regatta/compressor_codec.hpp>

namespace rg::detail {

template <class C> struct compressor_parameters : parameters_t<C>, data_parallel_parameters {
  std::string over = "all_gather";
  bool error_feedback = C::promise != compression::unbiased;
  compressor_parameters() { lanes = 2; }
};

template <class C> constexpr auto compressor_fields() {
  using P = compressor_parameters<C>;
  const auto own = std::tuple_cat(
      fields(field("over", &P::over, "how messages travel; ring needs a compressor whose messages can be added")
                 .one_of("all_gather", "ring", "sync_ps"),
             field("error_feedback", &P::error_feedback,
                   "add what a message lacks to the next gradient; keeps overflows of fp16: use bf16 with it")),
      data_parallel_fields);
  if constexpr (requires { C::fields; })
    return std::tuple_cat(C::fields, own);
  else
    return own;
}

template <class C> struct compressing_strategy : bucket_servers<compressing_strategy<C>> {
  using base = bucket_servers<compressing_strategy>;
  using parameters = compressor_parameters<C>;
  static constexpr auto fields = compressor_fields<C>();

  static rg_plan plan(const parameters& p, const rg_cluster& c) {
    if (p.over == "ring" && !compressor_calls<C>::adds)
      throw error(RG_E_CONFIG, "over = \"ring\": expected a compressor whose messages can be added (a member add), got "
                               "one without: use \"all_gather\" or \"sync_ps\"");
    if (p.over == "sync_ps" && (c.flags & RG_HOST_DEFERRED))
      throw error(RG_E_CONFIG, "over = \"sync_ps\": expected updates that wait for no other gradient, got "
                               "optimizer.clip_norm or train.precision = \"fp16\": use over = \"all_gather\"");
    if (C::promise == compression::needs_feedback && !p.error_feedback)
      throw error(RG_E_CONFIG, "error_feedback: expected true, because the compressor declares that it needs error "
                               "feedback, got false: leave it out");
    rg_plan plan{};
    plan.flags = RG_PLAN_SYNCHRONOUS | RG_PLAN_LOSSY;
    if (p.over == "sync_ps") plan.flags |= RG_PLAN_SERVERS | RG_PLAN_SHORT;
    plan.lanes = 2 * p.lanes; // with servers, answers have lanes of their own
    return plan;
  }
  static bool talks(const parameters& p, const rg_cluster& c, std::uint32_t a, std::uint32_t b) {
    if (p.over == "sync_ps") return worker_and_server(c, a, b);
    return p.over == "all_gather" || ring_neighbours(a, b, c.workers);
  }

  compressing_strategy(rg::comm& c, const parameters& p)
      : base(c, join_tensors(c, p.bucket), p.lanes), codec_(c, p, p.error_feedback), over_(p.over) {
    for (std::size_t b = 0; b < buckets().size(); ++b) layouts_.push_back(make_layout(b));
    for (std::uint32_t lane = 0; lane < lanes(); ++lane) {
      if (c.is_worker()) worker_memory_.push_back(make_memory(lane, role::worker));
      if (c.is_server()) server_memory_.push_back(make_memory(lane, role::server));
    }
    if (!by_servers()) c.own(c.whole(), role::worker);
  }

  using base::comm;
  // The messages' lanes for a bucket's lane.
  static std::uint32_t to_servers(std::uint32_t lane) { return 2 * lane + 1; }
  static std::uint32_t to_workers(std::uint32_t lane) { return 2 * lane; }

  task<> update(bucket b) { return by_servers() ? push(b) : base::update(b); }
  task<> exchange(bucket b) { return over_ == "ring" ? sum_around_ring(b) : gather(b); }

  operation receive(bucket b, std::uint32_t w) {
    const std::uint64_t bytes = layouts_[b.index].chunks[0].bytes;
    return comm.recv(w, message_of(server_memory_[b.lane], w, bytes), to_servers(b.lane));
  }
  task<> answer(bucket b) {
    lane_memory& d = server_memory_[b.lane];
    const message_layout& layout = layouts_[b.index].chunks[0];
    const rg_buffer sum = sub(d.sum, 0, b.range.count);
    co_await comm.fill(sum, 0);
    co_await decode(layout, d, sum);
    co_await comm.apply(b.range.first, sum, b.step, role::server);
    for (std::uint32_t i = 0; i < comm.workers(); ++i) {
      const std::uint32_t w = comm.worker_in_turn(i);
      d.sends[w] = comm.send(w, layouts_[b.index].weights, to_workers(b.lane));
    }
    for (operation& s : d.sends) co_await s;
  }

private:
  using base::buckets;
  using base::lanes;

  struct bucket_layout {
    std::vector<message_layout> chunks; // in a ring: one for each worker's part of the bucket; else one for all of it
    rg_buffer weights{};                // on the bucket's server: the bucket's weights; elsewhere empty
    std::uint64_t bytes() const {
      std::uint64_t sum = 0;
      for (const message_layout& c : chunks) sum += c.bytes;
      return sum;
    }
  };
  // Buffers and operations of a lane, in one role of this rank: messages; on a server the sum of their gradients; the
  // outstanding receives and sends, by worker.
  struct lane_memory {
    rg_buffer messages{}, sum{};
    std::vector<operation> receives, sends;
  };

  bool by_servers() const { return over_ == "sync_ps"; }

  bucket_layout make_layout(std::size_t b) {
    bucket_layout made;
    const std::uint32_t chunks = over_ == "ring" ? comm.workers() : 1;
    for (std::uint32_t i = 0; i < chunks; ++i)
      made.chunks.push_back(codec_.layout_of(part_of(buckets()[b], i, chunks)));
    if (comm.is_server() && base::server_of(b) == comm.server()) made.weights = comm.own(buckets()[b], role::server);
    return made;
  }
  lane_memory make_memory(std::uint32_t lane, role as) {
    std::uint64_t message = 16, whole = 16, elements = 16;
    for (std::size_t b = lane; b < buckets().size(); b += lanes()) {
      for (const message_layout& c : layouts_[b].chunks) message = std::max(message, c.bytes);
      whole = std::max(whole, layouts_[b].bytes());
      elements = std::max(elements, buckets()[b].count);
    }
    lane_memory d;
    const bool each = as == role::server || over_ == "all_gather"; // a message of each worker at once
    d.messages = comm.alloc(each ? message * comm.workers() : whole + message, RG_U8);
    if (as == role::server) d.sum = comm.alloc(elements);
    d.receives.resize(comm.workers());
    d.sends.resize(comm.workers());
    return d;
  }
  static rg_buffer message_of(const lane_memory& d, std::uint32_t worker, std::uint64_t bytes) {
    return sub(d.messages, worker * bytes, bytes);
  }

  // Compresses this worker's gradients of the layout's elements.
  task<> encode(message_layout& layout, rg_buffer message, std::uint64_t step) {
    const std::uint64_t begin = comm.now();
    co_await codec_.encode(layout, message, step);
    codec_.record(layout, record_time("encode_seconds", begin));
  }
  // Adds `count` messages, one behind the other, to `sum`, which has the layout's elements.
  task<> decode(const message_layout& layout, rg_buffer messages, std::uint32_t count, rg_buffer sum) {
    const std::uint64_t begin = comm.now();
    co_await codec_.decode(layout, messages, count, sum);
    record_time("decode_seconds", begin);
  }
  // Records the time since `begin`, in host memory, and returns it.
  double record_time(const char* name, std::uint64_t begin) {
    const double seconds = 1e-9 * static_cast<double>(comm.now() - begin);
    if (!codec_.on_device()) comm.record_sum(name, seconds);
    return seconds;
  }
  // As decode() above, for the messages of all workers, in ascending order of worker.
  task<> decode(const message_layout& layout, const lane_memory& d, rg_buffer sum) {
    return decode(layout, sub(d.messages, 0, comm.workers() * layout.bytes), comm.workers(), sum);
  }

  // All workers add the messages in the order of workers, so that replicas are equal to the bit.
  task<> gather(bucket b) {
    lane_memory& d = worker_memory_[b.lane];
    message_layout& layout = layouts_[b.index].chunks[0];
    const rg_buffer mine = message_of(d, comm.rank(), layout.bytes);
    co_await encode(layout, mine, b.step);
    for (std::uint32_t w = 0; w < comm.workers(); ++w)
      if (w != comm.rank()) d.receives[w] = comm.recv(w, message_of(d, w, layout.bytes), to_workers(b.lane));
    for (std::uint32_t i = 1; i < comm.workers(); ++i) {
      const std::uint32_t w = staggered(i, comm.rank(), comm.workers(), comm.workers());
      d.sends[w] = comm.send(w, mine, to_workers(b.lane));
    }
    for (operation& r : d.receives) co_await r;
    for (operation& s : d.sends) co_await s;
    co_await comm.fill(b.gradients, 0);
    co_await decode(layout, d, b.gradients);
  }

  // All-reduce of compressed chunks, one for each worker: n - 1 steps in which a message goes to the right neighbour,
  // which adds its own in compressed form, then n - 1 steps that pass the sums on, and at the end decompresses them.
  task<> sum_around_ring(bucket b) {
    bucket_layout& layout = layouts_[b.index];
    const rg_buffer all = worker_memory_[b.lane].messages;
    const std::uint32_t n = comm.workers(), me = comm.rank(), right = (me + 1) % n, left = (me + n - 1) % n;
    const std::uint32_t on = to_workers(b.lane);
    for (std::uint32_t i = 0; i < n; ++i) co_await encode(layout.chunks[i], chunk_at(all, layout, i), b.step);
    for (std::uint32_t s = 0; s + 1 < n; ++s) {
      const std::uint32_t to_add = (me + 2 * n - s - 1) % n;
      const rg_buffer theirs = sub(all, layout.bytes(), layout.chunks[to_add].bytes);
      auto in = comm.recv(left, theirs, on);
      auto out = comm.send(right, chunk_at(all, layout, me + n - s), on);
      co_await in;
      co_await codec_.add(layout.chunks[to_add], chunk_at(all, layout, to_add), theirs);
      co_await out;
    }
    for (std::uint32_t s = 0; s + 1 < n; ++s) {
      auto in = comm.recv(left, chunk_at(all, layout, me + n - s), on);
      auto out = comm.send(right, chunk_at(all, layout, me + n - s + 1), on);
      co_await in;
      co_await out;
    }
    co_await comm.fill(b.gradients, 0);
    for (std::uint32_t i = 0; i < n; ++i) {
      const span_of_arena part = layout.chunks[i].elements;
      co_await decode(layout.chunks[i], chunk_at(all, layout, i), 1, comm.gradients(part));
    }
  }
  // Returns the buffer of the message of chunk i mod n, within a lane's messages `all`, which lie in ascending order.
  static rg_buffer chunk_at(rg_buffer all, const bucket_layout& b, std::uint32_t i) {
    const std::size_t chunk = i % b.chunks.size();
    std::uint64_t at = 0;
    for (std::size_t k = 0; k < chunk; ++k) at += b.chunks[k].bytes;
    return sub(all, at, b.chunks[chunk].bytes);
  }

  task<> push(bucket b) {
    message_layout& layout = layouts_[b.index].chunks[0];
    const rg_buffer mine = message_of(worker_memory_[b.lane], 0, layout.bytes);
    co_await encode(layout, mine, b.step);
    const std::uint32_t server = comm.server_rank(base::server_of(b.index));
    auto answer = comm.recv(server, comm.weights(b.range), to_workers(b.lane));
    co_await comm.send(server, mine, to_servers(b.lane));
    co_await answer;
  }

  message_codec<C> codec_;
  std::string over_;
  std::vector<bucket_layout> layouts_;                     // by bucket
  std::vector<lane_memory> worker_memory_, server_memory_; // by lane, in each role of this rank
};

} // namespace rg::detail
