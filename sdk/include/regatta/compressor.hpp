// SPDX-License-Identifier: Apache-2.0
//
// rg::compressor<C>: a synchronous strategy from a class that compresses one tensor's gradient.
//
//   struct mine {
//     struct parameters { double ratio = 0.01; };                       // optional, with `fields`
//     static constexpr auto fields = rg::fields(rg::field("ratio", &parameters::ratio, "elements sent").range(0, 1));
//     static constexpr auto promise = rg::compression::contraction;
//     explicit mine(const parameters&);                                 // without parameters: a default constructor
//     std::uint64_t bytes(std::uint64_t n);                             // of every message of n elements, exactly
//     double delta(std::uint64_t n);                                    // with compression::contraction
//     // Writes all bytes of `message`. Random numbers depend on `seed` alone; the last argument may be left out.
//     void compress(std::span<const float> x, std::span<std::byte> message, std::uint64_t seed);
//     void decompress(std::span<const std::byte> message, std::span<float> y);   // overwrites all of y
//     void residual(std::span<const std::byte> message, std::span<float> p);     // optional: p -= D(message)
//     // Optional: D(sum) += D(message), of n elements each; both were compressed with the same seed.
//     void add(std::span<std::byte> sum, std::span<const std::byte> message, std::uint64_t n);
//
//     // Optional: the kinds of device (train.device) for which the functions below enqueue kernels in on.stream. Spans
//     // are of the device's addresses, which the host must not touch; on.device is one of these names.
//     static constexpr std::array<std::string_view, 1> devices = {"cuda"};
//     void compress(const rg_run& on, std::span<const float> x, std::span<std::byte> message, std::uint64_t seed);
//     void decompress(const rg_run& on, std::span<const std::byte> message, std::span<float> y);
//     void add(const rg_run& on, std::span<std::byte> sum, std::span<const std::byte> message, std::uint64_t n);
//   };
//   RG_PLUGIN("mine", "1.0", rg::compressor<mine>("mine", "one line"))
//
// C(x) is the message that compress() writes for x, and D(m) what decompress() writes for message m. The results of all
// functions depend on their arguments alone: residuals are kept by the strategy, not by C. `promise` is one of
//   unbiased        over the seeds, the mean of D(C(x)) is x
//   contraction     over the seeds, the mean of ||x - D(C(x))||^2 is at most (1 - delta) ||x||^2, with 0 < delta <= 1
//   needs_feedback  neither: error_feedback = false is refused
//
// The strategy's parameter `over` chooses how messages travel:
//   all_gather  every worker sends its messages to all others and adds up what it gets, in the order of workers
//   ring        reduce-scatter and all-gather of messages that are added in compressed form: needs add()
//   sync_ps     workers push messages to servers, which add them up, update, and answer with weights in fp32; refused
//               with optimizer.clip_norm, and with train.precision = "fp16"
// A ring that decompresses, adds and compresses again at each hop is another algorithm, with an error at each hop.
//
// A bucket consists of whole tensors that lie next to each other, and ends with the first one with which it has
// `bucket` bytes or more. Each tensor is compressed by itself, the messages of a bucket are sent as one, and each
// begins at a multiple of 16 bytes. (A ring cuts each bucket into a chunk for each worker: the same then holds for a
// chunk and the parts of tensors in it.) Tensors with rg_tensor.compressible = 0 are sent uncompressed, as are tensors
// whose rg_tensor.storage includes padding, which a compressor could fill.
//
// Error feedback (Karimireddy, Rebjock, Stich and Jaggi, Error Feedback Fixes SignSGD and other Gradient Compression
// Schemes, ICML 2019, algorithm 2), on by default unless the promise is compression::unbiased:
//   p = g + e;  send C(p);  e = p - D(C(p))
//
// A result has, per step and as a mean over the ranks that record it: dense_bytes, of all gradients; message_bytes,
// what they are compressed to; encode_seconds of workers and decode_seconds (with sync_ps of servers, else of workers),
// which include waits for the thread that computes them; and for each compressed tensor message_bytes.NAME, its part
// encode_seconds.NAME of encode_seconds, and error.NAME, which is ||p - D(C(p))||^2 / ||p||^2.
//
// In host memory the functions of C run beside the loop, one at a time for each rank (rg_op_run); they may allocate in
// their first calls only. In simulations with ghosts only bytes() runs, and a message takes the time of reading and
// writing it and its elements, 0.1 ns a byte unless the machine file of `regatta simulate` says otherwise.
//
// On a device the functions with rg_run are called on the loop and wait for nothing: kernels run behind all work
// before, and the message is the same as the host's. add(on, ...) is needed beside add(). residual() is not used: the
// residual is p - decompress(message). The host does not wait for the messages, so that neither times nor errors are
// recorded. A run whose train.device is not among `devices` is refused.
#pragma once

#include <regatta/compressor_exchange.hpp>

namespace rg {
namespace detail {

// The functions of regatta.compressor/1. fence() turns exceptions into a status (regatta/plugin.hpp).
template <class C> struct compressor_functions {
  using calls = compressor_calls<C>;
  static calls& of(void* self) { return *static_cast<calls*>(self); }

  static rg_status create(const rg_host* host, const rg_value* values, void** self) {
    return fence(host, [&] { *self = new calls(read_parameters<compressing_strategy<C>>(values)); });
  }
  static void destroy(void* self) { delete &of(self); }
  static std::uint64_t bytes(void* self, std::uint64_t n) { return of(self).bytes(n); }
  static double delta(void* self, std::uint64_t n) { return of(self).delta(n); }
  static rg_status compress(void* self, const float* x, std::uint64_t n, std::uint64_t seed, void* message) {
    return fence(nullptr, [&] { of(self).compress({x, n}, writable(self, message, n), seed); });
  }
  static rg_status decompress(void* self, const void* message, std::uint64_t n, float* y) {
    return fence(nullptr, [&] { of(self).decompress(readable(self, message, n), {y, n}); });
  }
  static rg_status residual(void* self, const void* message, std::uint64_t n, float* p) {
    return fence(nullptr, [&] { of(self).residual(readable(self, message, n), {p, n}); });
  }
  static rg_status add(void* self, void* sum, const void* message, std::uint64_t n) {
    return fence(nullptr, [&] { of(self).add(writable(self, sum, n), readable(self, message, n), n); });
  }
  static message_span writable(void* self, void* m, std::uint64_t n) {
    return {static_cast<std::byte*>(m), of(self).bytes(n)};
  }
  static message_view readable(void* self, const void* m, std::uint64_t n) {
    return {static_cast<const std::byte*>(m), of(self).bytes(n)};
  }

  static const void* extension(const char* id) {
    static const rg_compressor table = [] {
      auto t = make_versioned<rg_compressor>();
      t.promise = static_cast<std::uint32_t>(C::promise);
      t.create = create;
      t.destroy = destroy;
      t.bytes = bytes;
      if (C::promise == compression::contraction) t.delta = delta;
      t.compress = compress;
      t.decompress = decompress;
      t.residual = residual;
      if (calls::adds) t.add = add;
      return t;
    }();
    return std::string_view(id) == RG_EXT_COMPRESSOR ? &table : nullptr;
  }
};

} // namespace detail

// Returns the component of the strategy that exchanges gradients compressed by C, for RG_PLUGIN.
template <class C> rg_component compressor(const char* id, const char* summary) {
  using S = detail::compressing_strategy<C>;
  return detail::component<S>(RG_KIND_STRATEGY, id, summary, detail::strategy_functions<S>::table(),
                              detail::compressor_functions<C>::extension);
}

} // namespace rg
