// SPDX-License-Identifier: Apache-2.0
//
// A strategy in C++: synchronous training with an all-reduce along a binomial tree. Gradients are summed towards worker
// 0, which sends the sum back down the same tree: 2 ceil(log2 n) messages in sequence, each of a whole bucket. So it
// has few steps and many bytes; the ring of regatta/algorithms.hpp has many steps and few bytes.
#include <regatta/data_parallel.hpp>

#include <bit>

namespace {

struct tree : rg::data_parallel<tree> {
  using data_parallel::data_parallel;

  // [any] Only these pairs are connected: a worker and its parent, whose number is the worker's without the lowest bit.
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t a, std::uint32_t b) {
    const std::uint32_t child = std::max(a, b), parent = std::min(a, b);
    return parent == (child & (child - 1));
  }

  // [loop] Every element is summed on the path to the root, in an order that depends on the ranks alone, and copied
  // from the root. So replicas are equal to the bit, in every run.
  rg::task<> exchange(rg::bucket b) {
    const std::uint32_t n = comm.workers(), me = comm.rank();
    // The lowest bit of a rank's number is the distance to its parent; its children are at all smaller powers of two.
    const std::uint32_t to_parent = me ? me & (~me + 1) : std::bit_ceil(n);

    for (std::uint32_t d = 1; d < to_parent; d *= 2)
      if (me + d < n) co_await comm.recv_add(me + d, b.gradients, b.lane);
    if (me) {
      co_await comm.send(me - to_parent, b.gradients, b.lane);
      co_await comm.recv(me - to_parent, b.gradients, b.lane);
    }
    for (std::uint32_t d = to_parent / 2; d > 0; d /= 2)
      if (me + d < n) co_await comm.send(me + d, b.gradients, b.lane);
  }
};

} // namespace

RG_PLUGIN("custom_strategy", "1.0", rg::strategy<tree>("tree", "example: all-reduce along a binomial tree"))
