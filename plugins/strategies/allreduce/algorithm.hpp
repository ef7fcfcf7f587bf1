// SPDX-License-Identifier: Apache-2.0
//
// The algorithms of allreduce, and the rule by which algorithm = "auto" chooses among those over messages.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

// native: the transport's own all-reduce. sharded: sharded_update.hpp. The others: all-reduces over messages
// (regatta/algorithms.hpp).
enum class algorithm { native, ring, halving_doubling, recursive_doubling, circulant, hierarchical, sharded };

// The name of each algorithm's record in the result, "algorithm_" and its name, indexed by `algorithm`. The record
// shows how many buckets of which size the algorithm exchanged.
constexpr const char* record_names[] = {
    "algorithm_native",    "algorithm_ring",         "algorithm_halving_doubling", "algorithm_recursive_doubling",
    "algorithm_circulant", "algorithm_hierarchical", "algorithm_sharded"};
inline const char* record_name(algorithm a) {
  return record_names[static_cast<std::size_t>(a)];
}

// Returns the algorithm of a name such as "ring"; native for an unknown one.
inline algorithm algorithm_named(std::string_view name) {
  std::size_t i = std::size(record_names);
  while (--i > 0 && std::string_view(record_names[i]).substr(10) != name) {
  }
  return static_cast<algorithm>(i);
}

// The time of an all-reduce by the model of Thakur, Rabenseifner and Gropp (Optimization of collective communication
// operations in MPICH, 2005, section 3) is s alpha + b beta + a gamma, with s messages one after the other, b bytes
// sent and a bytes added on the longest path. The public functions return it in units of beta: as a number of bytes.
//
// Only the ratios count. A message costs as much as 32 KiB: one way over loopback TCP it takes 5 to 30 us, at 2 to 4
// GB/s. A sum costs half of sending (it reads two floats and writes one, at memory bandwidth), a copy a third (it reads
// one and writes one).
class cost_model {
public:
  explicit cost_model(std::uint64_t ranks)
      : n_(static_cast<double>(ranks)), p_(static_cast<double>(std::bit_floor(ranks))),
        log2_p_(std::bit_width(ranks) - 1), log2_up_(std::bit_width(ranks - 1)),
        folds_(std::has_single_bit(ranks) ? 0 : 1) {}

  double ring(double bytes) const { return time(2 * (n_ - 1), 2 * (n_ - 1) / n_ * bytes, (n_ - 1) / n_ * bytes); }
  double halving_doubling(double bytes) const {
    const double share = (p_ - 1) / p_;
    return time(2 * log2_p_ + 2 * folds_, (2 * share + 2 * folds_) * bytes, (share + folds_) * bytes);
  }
  double recursive_doubling(double bytes) const {
    return time(log2_p_ + 2 * folds_, (log2_p_ + 2 * folds_) * bytes, (log2_p_ + folds_) * bytes);
  }
  double circulant(double bytes) const { // it copies the buffer twice
    return time(2 * log2_up_, 2 * (n_ - 1) / n_ * bytes, (n_ - 1) / n_ * bytes) + 2 * bytes / 3;
  }

private:
  static double time(double messages, double sent, double added) { return messages * (32 << 10) + sent + added / 2; }

  double n_, p_, log2_p_; // ranks; the largest power of two that is not above; its logarithm
  double log2_up_;        // the logarithm of ranks, rounded up
  double folds_; // 1: some ranks give their data to another one first and get the sum last (n is not p), else 0
};

// Where the ranks are. groups: on several hosts, with the same number of at least two on each. apart: on several hosts
// otherwise.
enum class placement { one_host, groups, apart };

// Returns the algorithm over messages that is expected to be the fastest for a bucket of `bytes`. Between groups it is
// recursive doubling for small buckets, else the hierarchical algorithm, which sends the fewest bytes between hosts.
// Circulant is chosen for ranks that are apart only: on one host, ranks share cores, and what counts is the number of
// all ranks' messages, of which other algorithms send fewer (docs/results/comm.md). Depends on its arguments alone, so
// that all ranks and all runs choose the same. Requires at least 2 ranks.
inline algorithm fastest(std::uint64_t bytes, std::uint64_t ranks, placement where) {
  const cost_model cost(ranks);
  const auto size = static_cast<double>(bytes);
  const double ring = cost.ring(size), halving = cost.halving_doubling(size), doubling = cost.recursive_doubling(size);
  const double circulant = where == placement::apart ? cost.circulant(size) : std::numeric_limits<double>::infinity();
  if (doubling <= std::min({ring, halving, circulant})) return algorithm::recursive_doubling;
  if (where == placement::groups) return algorithm::hierarchical;
  if (circulant < std::min(ring, halving)) return algorithm::circulant;
  return halving < ring ? algorithm::halving_doubling : algorithm::ring;
}
