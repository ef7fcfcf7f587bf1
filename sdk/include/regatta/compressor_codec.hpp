// SPDX-License-Identifier: Apache-2.0
//
// Messages of rg::compressor on one rank: the calls of a class that compresses a tensor, and the layout of tensors in a
// message. regatta/compressor.hpp has the contract of the class, regatta/compressor_exchange.hpp how messages travel.
#pragma once

#include <regatta/ext/compressor.h>
#include <regatta/members.hpp>
#include <regatta/random.hpp>
#include <regatta/strategy.hpp>

#include <cstddef>

namespace rg {

// The promise of class C about its messages. ext/compressor.h defines each, and `regatta check` tests it.
enum class compression : std::uint32_t {
  unbiased = RG_COMPRESSION_UNBIASED,
  contraction = RG_COMPRESSION_CONTRACTS,
  needs_feedback = RG_COMPRESSION_NEEDS_FEEDBACK
};

RG_MEMBER_NAME(delta)
RG_MEMBER_NAME(residual)

namespace detail {

using message_view = std::span<const std::byte>;
using message_span = std::span<std::byte>;

// Calls the functions of C, and replaces those that C leaves out.
template <class C> class compressor_calls {
public:
  static constexpr bool seeded = requires(C c, std::span<const float> x, message_span m) {
    { c.compress(x, m, std::uint64_t{}) } -> std::same_as<void>;
  };
  static constexpr bool unseeded = requires(C c, std::span<const float> x, message_span m) {
    { c.compress(x, m) } -> std::same_as<void>;
  };
  static constexpr bool contracts = requires(C c) {
    { c.delta(std::uint64_t{}) } -> std::same_as<double>;
  };
  static constexpr bool has_residual = requires(C c, message_view m, std::span<float> p) {
    { c.residual(m, p) } -> std::same_as<void>;
  };
  static constexpr bool adds = requires(C c, message_span sum, message_view m) {
    { c.add(sum, m, std::uint64_t{}) } -> std::same_as<void>;
  };
  static_assert(
      requires {
        { C::promise } -> std::convertible_to<compression>;
      },
      "a compressor needs: static constexpr auto promise = rg::compression::unbiased, contraction or needs_feedback");
  static_assert(std::is_constructible_v<C, const parameters_t<C>&> || std::is_default_constructible_v<C>,
                "a compressor needs a constructor: (const parameters&), or () without parameters");
  static_assert(
      requires(C c) {
        { c.bytes(std::uint64_t{}) } -> std::same_as<std::uint64_t>;
      },
      "a compressor needs: std::uint64_t bytes(std::uint64_t n)");
  static_assert(seeded || unseeded, "a compressor needs: void compress(std::span<const float> x, std::span<std::byte> "
                                    "message), or with std::uint64_t seed as third argument");
  static_assert(
      requires(C c, message_view m, std::span<float> y) {
        { c.decompress(m, y) } -> std::same_as<void>;
      },
      "a compressor needs: void decompress(std::span<const std::byte> message, std::span<float> y)");
  static_assert(C::promise != compression::contraction || contracts,
                "compression::contraction needs: double delta(std::uint64_t n)");
  RG_OPTIONAL_MEMBER(C, delta, contracts, "double delta(std::uint64_t n)");
  RG_OPTIONAL_MEMBER(C, residual, has_residual,
                     "void residual(std::span<const std::byte> message, std::span<float> p)");
  RG_OPTIONAL_MEMBER(C, add, adds,
                     "void add(std::span<std::byte> sum, std::span<const std::byte> message, std::uint64_t n)");

  explicit compressor_calls(const parameters_t<C>& p) : c_(make(p)) {}

  std::uint64_t bytes(std::uint64_t n) { return c_.bytes(n); }
  double delta(std::uint64_t n) {
    if constexpr (contracts) return c_.delta(n);
    return 0;
  }
  void compress(std::span<const float> x, message_span message, std::uint64_t seed) {
    if constexpr (seeded)
      c_.compress(x, message, seed);
    else
      c_.compress(x, message);
  }
  void decompress(message_view message, std::span<float> y) { c_.decompress(message, y); }
  // Adds D(message) to y.
  void accumulate(message_view message, std::span<float> y) {
    const std::span<float> part = scratch(y.size());
    c_.decompress(message, part);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += part[i];
  }
  // p -= D(message)
  void residual(message_view message, std::span<float> p) {
    if constexpr (has_residual) {
      c_.residual(message, p);
    } else {
      const std::span<float> sent = scratch(p.size());
      c_.decompress(message, sent);
      for (std::size_t i = 0; i < p.size(); ++i) p[i] -= sent[i];
    }
  }
  void add(message_span sum, message_view message, std::uint64_t n) {
    if constexpr (adds) c_.add(sum, message, n);
  }

private:
  static C make(const parameters_t<C>& p) {
    if constexpr (std::is_constructible_v<C, const parameters_t<C>&>)
      return C(p);
    else
      return C();
  }
  std::span<float> scratch(std::size_t n) {
    if (scratch_.size() < n) scratch_.resize(n);
    return {scratch_.data(), n};
  }

  C c_;
  std::vector<float> scratch_;
};

// A tensor, or a part of one, in a message.
struct message_part {
  std::uint64_t first, count;  // elements of the arena, without padding
  std::uint64_t offset, bytes; // in the message
  std::size_t tensor;          // index into rg_arena.slices
  bool compressed;             // else its bytes are the elements
  double error = 0;            // set by encode(): ||p - D(C(p))||^2 / ||p||^2
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

// Compresses, decompresses and adds messages on one rank; sends and receives none.
template <class C> class message_codec {
public:
  message_codec(comm& c, const parameters_t<C>& p, bool feedback) : comm_(&c), calls_(p), feedback_(feedback) {
    if (c.is_worker()) residual_ = c.alloc(std::max<std::uint64_t>(c.arena().count, 1));
    // pointer() fails for memory of a device, and for ghosts whatever the memory.
    if (c.is_worker() && !c.pointer<float>(residual_) && c.pointer<float>(c.alloc_on_host(1)))
      throw error(RG_E_CONFIG, "compressors compute in host memory: expected train.device = \"cpu\", got a device");
    for (std::uint32_t i = 0; i < c.arena().slice_count; ++i) tensors_.push_back(tensor_in(slice(i)));
  }

  // Returns the layout of the message of these elements, the same on all ranks.
  message_layout layout_of(span_of_arena elements) {
    message_layout m{elements, {}, 0};
    for (std::uint32_t i = 0; i < comm_->arena().slice_count; ++i) {
      const rg_slice s = slice(i);
      const std::uint64_t first = std::max(s.first, elements.first);
      const std::uint64_t end = std::min(s.first + tensors_[i].count, elements.end());
      if (first >= end) continue;
      const std::uint64_t n = end - first;
      const std::uint64_t size = tensors_[i].compressed ? calls_.bytes(n) : n * sizeof(float);
      m.parts.push_back({first, n, m.bytes, size, i, tensors_[i].compressed, 0});
      m.bytes += (size + 15) / 16 * 16;
    }
    return m;
  }

  // The next three run functions of C beside the loop (comm.run); `layout` is valid until the operation has ended, and
  // no other operation on the same layout is under way. They return an operation that has ended if the layout is empty.
  //
  // Writes this worker's message of a step: of gradient + residual, or without error feedback of the gradient alone.
  // The new residual is what the message lacks of that. record() may follow.
  operation encode(message_layout& layout, rg_buffer message, std::uint64_t step) {
    if (layout.parts.empty()) return {};
    const auto f = [this, l = &layout, step](void* const* at) {
      for (message_part& part : l->parts) {
        const std::uint64_t i = part.first - l->elements.first;
        encode(part, {static_cast<const float*>(at[0]) + i, part.count}, {static_cast<float*>(at[1]) + i, part.count},
               {static_cast<std::byte*>(at[2]) + part.offset, part.bytes}, step);
      }
    };
    return comm_->run(f, {3 * sizeof(float) * layout.elements.count + layout.bytes, 0},
                      comm_->gradients(layout.elements), sub(residual_, layout.elements.first, layout.elements.count),
                      message);
  }
  // Decompresses `count` messages, which lie one behind the other in `messages`, and adds each to `sum`, first message
  // first. `sum` has the layout's elements.
  operation decode(const message_layout& layout, rg_buffer messages, std::uint32_t count, rg_buffer sum) {
    if (layout.parts.empty()) return {};
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
    return comm_->run(f, {count * (2 * sizeof(float) * layout.elements.count + layout.bytes), 0}, messages, sum);
  }
  // Adds a message to another one of the same layout.
  operation add(const message_layout& layout, rg_buffer sum, rg_buffer message) {
    if (layout.parts.empty()) return {};
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
    return comm_->run(f, {3 * layout.bytes, 0}, sum, message);
  }
  // Records the bytes and errors of a message that encode() has written. A tensor of many parts has the mean of its
  // parts' errors, by elements.
  void record(const message_layout& layout) {
    for (const message_part& part : layout.parts) {
      comm_->record_sum("dense_bytes", static_cast<double>(part.count * sizeof(float)));
      comm_->record_sum("message_bytes", static_cast<double>(part.bytes));
      if (!part.compressed) continue;
      const tensor& t = tensors_[part.tensor];
      comm_->record_sum(t.bytes_name.c_str(), static_cast<double>(part.bytes));
      comm_->record_sum(t.error_name.c_str(),
                        part.error * static_cast<double>(part.count) / static_cast<double>(t.count));
    }
  }

private:
  struct tensor {
    std::uint64_t count; // elements that are sent
    bool compressed;
    std::string bytes_name, error_name; // for record_sum
  };

  // Writes the bytes of one part to m, from the gradient g and the residual e of its elements, and replaces e by the
  // new residual.
  void encode(message_part& part, std::span<const float> g, std::span<float> e, message_span m, std::uint64_t step) {
    if (!part.compressed) {
      std::memcpy(m.data(), g.data(), g.size_bytes());
      return;
    }
    for (std::size_t i = 0; i < e.size(); ++i) e[i] = feedback_ ? g[i] + e[i] : g[i];
    const double whole = squared_norm(e);
    calls_.compress(e, m, seed_of(step, part.first));
    calls_.residual(m, e);
    part.error = whole > 0 ? squared_norm(e) / whole : 0;
  }
  rg_slice slice(std::uint32_t i) const { return copy_versioned(at_stride(comm_->arena().slices, i)); }
  tensor tensor_in(const rg_slice& s) const {
    const rg_tensor t = comm_->tensor_of(s);
    std::uint64_t elements = 1;
    for (std::uint32_t d = 0; d < t.ndim; ++d) elements *= static_cast<std::uint64_t>(t.shape[d]);
    const bool padded_inside = storage_of(t) != elements;
    const std::string name = t.name ? t.name : "";
    return {padded_inside ? s.count : elements, t.compressible && !padded_inside, "message_bytes." + name,
            "error." + name};
  }
  // Messages that are added have the same random numbers on all workers, so that they choose the same elements. Others
  // have numbers of their own on each worker, so that errors average out over workers, too.
  std::uint64_t seed_of(std::uint64_t step, std::uint64_t element) const {
    const auto worker = compressor_calls<C>::adds ? 0 : comm_->rank();
    const std::uint64_t of_step = derive_seed(comm_->seed(), step, worker, stream_of_compressors);
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

  comm* comm_;
  compressor_calls<C> calls_;
  bool feedback_;
  rg_buffer residual_{}; // of a worker: as long as the arena
  std::vector<tensor> tensors_;
};

} // namespace detail
} // namespace rg
