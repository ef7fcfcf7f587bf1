// SPDX-License-Identifier: Apache-2.0
//
// algorithm = "auto" with messages: chooses the algorithm for each bucket by its size. In the first steps each
// candidate runs twice on each bucket. The workers then add up their shortest times, and each size class (a power of
// two) uses the fastest candidate. The result is kept in a file under a key that names everything it depends on; the
// next run with that key starts with it. Only worker 0 reads and writes the file; it sends the result to the other
// workers before the first step.
#pragma once

#include "../../common/pick_cache.hpp"

#include <regatta/algorithms.hpp>
#include <regatta/link.h>

#include <bit>
#include <limits>
#include <map>
#include <string>
#include <vector>

// An all-reduce algorithm of regatta/algorithms.hpp.
enum class way { ring, halving_doubling, recursive_doubling, hierarchical };

inline const char* name_of(way how) {
  constexpr const char* names[] = {"ring", "halving_doubling", "recursive_doubling", "hierarchical"};
  return names[static_cast<std::size_t>(how)];
}

class choice {
public:
  // Call it in the strategy's constructor. `members` are the ranks of all workers, this one at index `me`. `candidates`
  // must be equal on all workers and not empty. `setting` describes everything that times depend on besides the
  // transport and a bucket's size; it is part of the key in the file. `c`, `buckets` and `members` must outlive the
  // object.
  choice(rg::comm& c, const std::vector<rg::span_of_arena>& buckets, std::vector<way> candidates,
         const std::vector<std::uint32_t>& members, std::size_t me, const std::string& setting)
      : comm_(c), buckets_(buckets), candidates_(std::move(candidates)), members_(members), me_(me),
        shortest_(buckets.size() * candidates_.size(), std::numeric_limits<float>::max()) {
    for (const rg::span_of_arena& b : buckets) {
      const std::uint64_t bytes = b.count * sizeof(float);
      // Without measurable times (ghosts, device memory) the size decides.
      classes_.try_emplace(std::bit_floor(bytes),
                           entry{classes_.size(), bytes <= 64 << 10 ? way::halving_doubling : way::ring});
    }
    times_ = c.alloc(shortest_.size());
    known_ = c.alloc(classes_.size());
    const rg_host* host = c.host()->host;
    const auto* link =
        host->extension ? static_cast<const rg_link*>(host->extension(host->context, RG_EXT_LINK)) : nullptr;
    has_times_ = c.pointer<float>(times_);
    if (!link || !has_times_) return;
    remembers_ = true;
    if (me_ != 0) return;
    cache_.emplace("allreduce", plugins::pick_cache::usual_file("allreduce"));
    setting_ = std::string(link->description) + "; " + setting;
  }

  // Call it on all workers before the first step: sends the results of earlier runs from worker 0 to all workers.
  static rg::task<> recall(choice& self) {
    if (!self.remembers_) co_return;
    for (const auto& [bytes, e] : self.classes_)
      co_await self.comm_.fill(rg::sub(self.known_, e.place, 1), self.number_in_cache(bytes));
    co_await rg::halving_doubling_all_reduce(self.comm_, self.members_, self.me_, self.known_, 0);
    const auto* known = self.comm_.pointer<float>(self.known_);
    for (auto& [bytes, e] : self.classes_) {
      const auto number = static_cast<std::size_t>(known[e.place]);
      e.is_remembered = number >= 1 && number <= self.candidates_.size();
      if (e.is_remembered) e.chosen = self.candidates_[number - 1];
    }
  }

  // Returns the algorithm for a bucket in this step: the next candidate during trials, then the chosen one. Equal on
  // all workers.
  way of(std::size_t bucket, std::uint64_t step) const {
    return is_trial(bucket, step) ? candidates_[step % candidates_.size()] : entry_of(bucket).chosen;
  }
  // Reports that the exchange of `bucket` took `ns` nanoseconds in this step. Counts only during trials; later it
  // records the bucket's bytes as "picks_from_cache" or "picks_measured".
  void took(std::size_t bucket, std::uint64_t step, std::uint64_t ns) {
    const entry& e = entry_of(bucket);
    if (!is_trial(bucket, step)) {
      if (!has_times_) return;
      return comm_.record_value(e.is_remembered ? "picks_from_cache" : "picks_measured",
                                static_cast<std::int64_t>(buckets_[bucket].count * sizeof(float)));
    }
    double& shortest = shortest_[bucket * candidates_.size() + step % candidates_.size()];
    shortest = std::min(shortest, static_cast<double>(ns));
  }

  // Call it on all workers at the end of every step: after the last trial it exchanges the times and chooses, and
  // worker 0 writes the file. All workers have the same sums of times, and so make the same choice.
  static rg::task<> conclude(choice& self, std::uint64_t step) {
    if (step + 1 != self.trials() || self.knows_all()) co_return;
    for (std::size_t i = 0; i < self.shortest_.size(); ++i)
      co_await self.comm_.fill(rg::sub(self.times_, i, 1), self.shortest_[i]);
    co_await rg::halving_doubling_all_reduce(self.comm_, self.members_, self.me_, self.times_, 0);
    if (const auto* sums = self.comm_.pointer<float>(self.times_)) self.decide(sums);
  }
  rg::frame_pool& frames() { return comm_.frames(); }

private:
  struct entry {
    std::size_t place; // index in known_
    way chosen;
    bool is_remembered = false;
  };
  using classes = std::map<std::uint64_t, entry>; // by the smallest size in it, bytes

  static constexpr std::uint64_t rounds = 2; // how often each algorithm is tried
  std::uint64_t trials() const { return rounds * candidates_.size(); }
  const entry& entry_of(std::size_t bucket) const {
    return classes_.at(std::bit_floor(buckets_[bucket].count * sizeof(float)));
  }
  bool is_trial(std::size_t bucket, std::uint64_t step) const {
    return step < trials() && !entry_of(bucket).is_remembered;
  }
  bool knows_all() const {
    return std::all_of(classes_.begin(), classes_.end(), [](const auto& c) { return c.second.is_remembered; });
  }

  std::string key_of(std::uint64_t bytes) const { return setting_ + "; from " + std::to_string(bytes) + " bytes"; }
  // Returns 1 + the index of the candidate that the cache names; 0 if there is none.
  double number_in_cache(std::uint64_t bytes) const {
    const std::string* known = cache_ ? cache_->find(key_of(bytes)) : nullptr;
    for (std::size_t k = 0; known && k < candidates_.size(); ++k)
      if (*known == name_of(candidates_[k])) return static_cast<double>(k + 1);
    return 0;
  }

  // `sums` are [bucket][candidate], nanoseconds, summed over all workers.
  void decide(const float* sums) {
    const std::size_t tried = candidates_.size();
    for (auto& [bytes, e] : classes_) {
      if (e.is_remembered) continue;
      std::vector<double> total(tried, 0);
      std::size_t buckets = 0;
      for (std::size_t b = 0; b < buckets_.size(); ++b) {
        if (&entry_of(b) != &e) continue;
        ++buckets;
        for (std::size_t k = 0; k < tried; ++k) total[k] += static_cast<double>(sums[b * tried + k]);
      }
      e.chosen = candidates_[static_cast<std::size_t>(std::min_element(total.begin(), total.end()) - total.begin())];
      if (cache_) remember(bytes, e.chosen, total, static_cast<double>(buckets * members_.size()));
    }
    try {
      if (cache_) cache_->save(); // if it fails, the next run measures again
    } catch (const std::exception&) {
    }
  }
  void remember(std::uint64_t bytes, way chosen, const std::vector<double>& total, double summands) {
    std::string why;
    for (std::size_t k = 0; k < total.size(); ++k)
      why += (k ? ", " : "") + std::string(name_of(candidates_[k])) + " " +
             std::to_string(static_cast<std::int64_t>(total[k] / summands / 1000)) + " us";
    cache_->add(key_of(bytes), name_of(chosen), why);
  }

  rg::comm& comm_;
  const std::vector<rg::span_of_arena>& buckets_;
  const std::vector<way> candidates_;
  const std::vector<std::uint32_t>& members_;
  const std::size_t me_;
  std::vector<double> shortest_; // [bucket][candidate], nanoseconds
  classes classes_;
  rg_buffer times_{};      // shortest_, to be summed over the workers
  rg_buffer known_{};      // by class: 1 + the index of a candidate, or 0
  bool has_times_ = false; // if false, the size decides
  bool remembers_ = false;
  std::optional<plugins::pick_cache> cache_; // worker 0 only
  std::string setting_;
};
