// SPDX-License-Identifier: Apache-2.0
//
// Messages of rg::compressor on one rank: their layout, compressing, decompressing and adding them in host memory or on
// a device. regatta/compressor.hpp has the contract of the class, regatta/compressor_exchange.hpp how messages travel.
#pragma once

#include <regatta/clock.hpp>
#include <regatta/compressor_calls.hpp>
#include <regatta/random.hpp>
#include <regatta/strategy.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

namespace rg::detail {

// A tensor, or a part of one, in a message.
struct message_part {
  std::uint64_t first, count;  // elements of the arena; without padding if the tensor's storage has none
  std::uint64_t offset, bytes; // in the message
  std::size_t tensor;          // index into rg_arena.slices
  bool compressed;             // else its bytes are the elements
  double error = 0;            // set by encode(): ||p - D(C(p))||^2 / ||p||^2
  std::uint64_t ns = 0;        // set by encode(): how long compressing it took; 0 with ghosts
};
// The layout of the message of some elements of the arena: its parts, in ascending order, and its length.
struct message_layout {
  span_of_arena elements;
  std::vector<message_part> parts;
  std::uint64_t bytes = 0;
};

inline double squared_norm(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum;
}

// [main] Cuts the arena into buckets of whole tensors, by comm::set_buckets(), and returns them in order. A bucket is
// full once it has `bytes` bytes or more.
inline std::vector<span_of_arena> join_tensors(comm& c, std::uint64_t bytes) {
  std::vector<span_of_arena> buckets;
  for (std::uint32_t i = 0; i < c.arena().slice_count; ++i) {
    const rg_slice s = copy_versioned(at_stride(c.arena().slices, i));
    if (buckets.empty() || buckets.back().count * sizeof(float) >= bytes)
      buckets.push_back({s.first, s.count});
    else
      buckets.back().count += s.count;
  }
  c.set_buckets(buckets);
  return buckets;
}

// Compresses, decompresses and adds messages on one rank; sends and receives none. In host memory functions of C
// compute beside the loop. On a device C enqueues kernels for compressed tensors, and operations of the engine do the
// rest.
template <class C> class message_codec {
public:
  message_codec(rg::comm& c, const parameters_t<C>& p, bool feedback) : comm(c), calls_(p), feedback_(feedback) {
    if (comm.is_worker()) residual_ = comm.alloc(std::max<std::uint64_t>(comm.arena().count, 1));
    const std::string device = device_of(comm);
    on_device_ = !device.empty();
    if (on_device_ && !compressor_calls<C>::runs_on(device))
      throw error(RG_E_CONFIG, "the compressor has no kernels for this device: expected train.device = \"cpu\"" +
                                   (calls_.devices().empty() ? "" : " or one of " + calls_.devices()) + ", got \"" +
                                   device + "\"");
    std::uint64_t most = 1;
    for (std::uint32_t i = 0; i < comm.arena().slice_count; ++i) {
      tensors_.push_back(tensor_in(slice(i)));
      if (tensors_.back().compressed) most = std::max(most, tensors_.back().count);
    }
    if (on_device_) decompressed_ = comm.alloc(most);
  }
  // Returns whether messages are on a device: then the host does not wait for them, and knows neither times nor errors.
  bool on_device() const { return on_device_; }

  // Returns the layout of the message of these elements, the same on all ranks.
  message_layout layout_of(span_of_arena elements) {
    message_layout m{elements, {}, 0};
    for (std::uint32_t i = 0; i < comm.arena().slice_count; ++i) {
      const rg_slice s = slice(i);
      const std::uint64_t first = std::max(s.first, elements.first);
      const std::uint64_t end = std::min(s.first + tensors_[i].count, elements.end());
      if (first >= end) continue;
      const std::uint64_t n = end - first;
      const std::uint64_t size = tensors_[i].compressed ? calls_.bytes(n) : n * sizeof(float);
      m.parts.push_back({first, n, m.bytes, size, i, tensors_[i].compressed});
      m.bytes += (size + 15) / 16 * 16;
    }
    return m;
  }

  // The next three end at once for an empty layout. `layout` is valid until they have ended, and no other one of them
  // uses the same layout meanwhile.
  //
  // Writes this worker's message of a step: of gradient + residual, or without error feedback of the gradient alone.
  // The new residual is what the message lacks of that. record() may follow.
  task<> encode(message_layout& layout, rg_buffer message, std::uint64_t step) {
    if (layout.parts.empty()) co_return;
    if (on_device_) {
      for (const message_part& part : layout.parts) co_await encode_on_device(part, message, step);
      co_return;
    }
    const auto f = [this, l = &layout, step](void* const* at) {
      for (message_part& part : l->parts) {
        const std::uint64_t i = part.first - l->elements.first;
        encode(part, {static_cast<const float*>(at[0]) + i, part.count}, {static_cast<float*>(at[1]) + i, part.count},
               {static_cast<std::byte*>(at[2]) + part.offset, part.bytes}, step);
      }
    };
    co_await comm.run(f, {3 * sizeof(float) * layout.elements.count + layout.bytes, 0}, comm.gradients(layout.elements),
                      sub(residual_, layout.elements.first, layout.elements.count), message);
  }
  // Decompresses `count` messages, which lie one behind the other in `messages`, and adds each to `sum`, first message
  // first. `sum` has the layout's elements.
  task<> decode(const message_layout& layout, rg_buffer messages, std::uint32_t count, rg_buffer sum) {
    if (layout.parts.empty()) co_return;
    if (on_device_) {
      for (std::uint32_t k = 0; k < count; ++k)
        for (const message_part& part : layout.parts)
          co_await decode_on_device(part, sub(messages, k * layout.bytes, layout.bytes),
                                    sub(sum, part.first - layout.elements.first, part.count));
      co_return;
    }
    const auto f = [this, l = &layout, count](void* const* at) {
      for (std::uint32_t k = 0; k < count; ++k)
        for (const message_part& part : l->parts) {
          const message_view m{static_cast<const std::byte*>(at[0]) + k * l->bytes + part.offset, part.bytes};
          const std::span<float> y{static_cast<float*>(at[1]) + (part.first - l->elements.first), part.count};
          if (part.compressed)
            calls_.accumulate(m, y);
          else
            add_floats(m, [&](std::size_t i, float v) { y[i] += v; });
        }
    };
    co_await comm.run(f, {count * (2 * sizeof(float) * layout.elements.count + layout.bytes), 0}, messages, sum);
  }
  // Adds a message to another one of the same layout.
  task<> add(const message_layout& layout, rg_buffer sum, rg_buffer message) {
    if (layout.parts.empty()) co_return;
    if (on_device_) {
      for (const message_part& part : layout.parts) co_await add_on_device(part, sum, message);
      co_return;
    }
    const auto f = [this, l = &layout](void* const* at) {
      for (const message_part& part : l->parts) {
        const message_span s{static_cast<std::byte*>(at[0]) + part.offset, part.bytes};
        const message_view m{static_cast<const std::byte*>(at[1]) + part.offset, part.bytes};
        if (part.compressed)
          calls_.add(s, m, part.count);
        else
          add_floats(m, [&](std::size_t i, float v) {
            float total = 0;
            std::memcpy(&total, s.data() + i * sizeof v, sizeof v);
            total += v;
            std::memcpy(s.data() + i * sizeof v, &total, sizeof v);
          });
      }
    };
    co_await comm.run(f, {3 * layout.bytes, 0}, sum, message);
  }
  // Records the bytes and, in host memory, the errors and times of a message that encode() has written in `seconds`. A
  // tensor of many parts has the mean of its parts' errors, by elements. Tensors have their parts of `seconds` by what
  // they took, or with ghosts by elements.
  void record(const message_layout& layout, double seconds) {
    double ns = 0, elements = 0;
    for (const message_part& part : layout.parts)
      if (part.compressed) ns += static_cast<double>(part.ns), elements += static_cast<double>(part.count);
    for (const message_part& part : layout.parts) {
      comm.record_sum("dense_bytes", static_cast<double>(part.count * sizeof(float)));
      comm.record_sum("message_bytes", static_cast<double>(part.bytes));
      if (!part.compressed) continue;
      const tensor& t = tensors_[part.tensor];
      comm.record_sum(t.bytes_name.c_str(), static_cast<double>(part.bytes));
      if (on_device_) continue;
      const auto count = static_cast<double>(part.count);
      comm.record_sum(t.error_name.c_str(), part.error * count / static_cast<double>(t.count));
      comm.record_sum(t.seconds_name.c_str(),
                      seconds * (ns > 0 ? static_cast<double>(part.ns) / ns : count / elements));
    }
  }

  rg::comm& comm; // public: coroutine frames come from its pool

private:
  struct tensor {
    std::uint64_t count; // elements that are sent
    bool compressed;
    std::string bytes_name, error_name, seconds_name; // for record_sum
  };

  // Returns the kind of the device on which buffers are; "" in host memory, and for ghosts. [main]
  static std::string device_of(rg::comm& c) {
    const rg_buffer there = c.alloc(1);
    // pointer() fails for memory of a device. For ghosts it fails for every memory.
    if (c.pointer<float>(there) || !c.pointer<float>(c.alloc_on_host(1))) return {};
    std::string kind;
    const operation asked = c.run([k = &kind](const rg_run& on) { *k = on.device; }, {1, 0}, there); // within run()
    return kind;
  }

  // On a device operations end at once and run in the order of the calls, so that all lanes share decompressed_.
  task<> encode_on_device(const message_part& part, rg_buffer message, std::uint64_t step) {
    const rg_buffer g = comm.gradients({part.first, part.count}), e = sub(residual_, part.first, part.count),
                    m = sub(message, part.offset, part.bytes);
    if (!part.compressed) {
      co_await comm.copy(as_floats(m), g);
      co_return;
    }
    if (feedback_) co_await comm.axpy(e, 1, g);
    const auto f = [this, p = &part, step](const rg_run& on) {
      calls_.compress(on, {static_cast<const float*>(on.addresses[0]), p->count},
                      {static_cast<std::byte*>(on.addresses[1]), p->bytes}, seed_of(step, p->first));
    };
    co_await comm.run(f, {sizeof(float) * part.count + part.bytes, 0}, feedback_ ? e : g, m);
    if (!feedback_) co_return;
    co_await decompress_on_device(part, m);
    co_await comm.axpy(e, -1, sub(decompressed_, 0, part.count));
  }
  task<> decode_on_device(const message_part& part, rg_buffer message, rg_buffer y) {
    const rg_buffer m = sub(message, part.offset, part.bytes);
    if (part.compressed) co_await decompress_on_device(part, m);
    co_await comm.axpy(y, 1, part.compressed ? sub(decompressed_, 0, part.count) : as_floats(m));
  }
  task<> add_on_device(const message_part& part, rg_buffer sum, rg_buffer message) {
    const rg_buffer s = sub(sum, part.offset, part.bytes), m = sub(message, part.offset, part.bytes);
    if (!part.compressed) {
      co_await comm.axpy(as_floats(s), 1, as_floats(m));
      co_return;
    }
    const auto f = [this, p = &part](const rg_run& on) {
      calls_.add(on, {static_cast<std::byte*>(on.addresses[0]), p->bytes},
                 {static_cast<const std::byte*>(on.addresses[1]), p->bytes}, p->count);
    };
    co_await comm.run(f, {3 * part.bytes, 0}, s, m);
  }
  operation decompress_on_device(const message_part& part, rg_buffer m) {
    const auto f = [this, p = &part](const rg_run& on) {
      calls_.decompress(on, {static_cast<const std::byte*>(on.addresses[0]), p->bytes},
                        {static_cast<float*>(on.addresses[1]), p->count});
    };
    return comm.run(f, {sizeof(float) * part.count + part.bytes, 0}, m, sub(decompressed_, 0, part.count));
  }
  // Returns a part of a message that is not compressed as its elements.
  static rg_buffer as_floats(rg_buffer m) {
    m.type = RG_F32;
    m.count /= sizeof(float);
    return m;
  }

  // Writes the bytes of one part to m, from the gradient g and the residual e of its elements, and replaces e by the
  // new residual.
  void encode(message_part& part, std::span<const float> g, std::span<float> e, message_span m, std::uint64_t step) {
    if (!part.compressed) {
      std::memcpy(m.data(), g.data(), g.size_bytes());
      return;
    }
    const std::uint64_t begin = now_ns();
    for (std::size_t i = 0; i < e.size(); ++i) e[i] = feedback_ ? g[i] + e[i] : g[i];
    const double whole = squared_norm(e);
    calls_.compress(e, m, seed_of(step, part.first));
    calls_.residual(m, e);
    part.error = whole > 0 ? squared_norm(e) / whole : 0;
    part.ns = now_ns() - begin;
  }
  rg_slice slice(std::uint32_t i) const { return copy_versioned(at_stride(comm.arena().slices, i)); }
  tensor tensor_in(const rg_slice& s) const {
    const rg_tensor t = comm.tensor_of(s);
    std::uint64_t elements = 1;
    for (std::uint32_t d = 0; d < t.ndim; ++d) elements *= static_cast<std::uint64_t>(t.shape[d]);
    const bool padded_inside = storage_of(t) != elements;
    const std::string name = t.name ? t.name : "";
    return {padded_inside ? s.count : elements, t.compressible && !padded_inside, "message_bytes." + name,
            "error." + name, "encode_seconds." + name};
  }
  // Messages that are added have the same random numbers on all workers, so that they choose the same elements. Others
  // have numbers of their own on each worker, so that errors average out over workers, too.
  std::uint64_t seed_of(std::uint64_t step, std::uint64_t element) const {
    const auto worker = compressor_calls<C>::adds ? 0 : comm.rank();
    const std::uint64_t of_step = derive_seed(comm.seed(), step, worker, stream_of_compressors);
    return derive_seed(of_step, element);
  }
  template <class F> static void add_floats(message_view m, F&& f) {
    for (std::size_t i = 0; i < m.size() / sizeof(float); ++i) {
      float v = 0;
      std::memcpy(&v, m.data() + i * sizeof v, sizeof v);
      f(i, v);
    }
  }
  static constexpr std::uint32_t stream_of_compressors = 1024;

  compressor_calls<C> calls_;
  bool feedback_, on_device_ = false;
  rg_buffer residual_{};     // of a worker: as long as the arena
  rg_buffer decompressed_{}; // on a device: as long as the largest compressed tensor
  std::vector<tensor> tensors_;
};

} // namespace rg::detail
