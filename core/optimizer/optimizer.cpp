// SPDX-License-Identifier: Apache-2.0
#include "optimizer/optimizer.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

// A range of elements that were always updated together. Adam's t is the number of their updates.
struct uniform_range {
  std::uint64_t first, count, updates;
};

// Returns the range that contains `element`, in an ascending sequence of ranges without gaps.
template <class Ranges> auto holding(Ranges& ranges, std::uint64_t element) {
  auto after = std::ranges::upper_bound(ranges, element, {}, [](const auto& range) { return range.first; });
  return after == ranges.begin() ? after : after - 1;
}

// Splits the range that contains `element`, so that one begins with it; does nothing at the end of the last range.
void cut(std::vector<uniform_range>& ranges, std::uint64_t element) {
  if (element == ranges.back().first + ranges.back().count) return;
  auto p = holding(ranges, element);
  if (p->first == element) return;
  const uniform_range tail{element, p->first + p->count - element, p->updates};
  p->count = element - p->first;
  ranges.insert(p + 1, tail);
}

} // namespace

struct optimizer::owned {
  std::uint64_t first, count;
  float* weights;
  std::array<float*, 2> state;
  std::vector<uniform_range> uniform; // used by Adam only
};

optimizer::optimizer(const optimizer_config& config, std::int64_t workers, std::vector<optimizer_slice> slices,
                     processor& unit)
    : rule_(config, workers), unit_(unit), slices_(std::move(slices)) {}

optimizer::~optimizer() = default;

void optimizer::own(std::uint64_t first, std::uint64_t count, float* weights) {
  if (count == 0) return;
  const std::uint64_t end = slices_.empty() ? 0 : slices_.back().first + slices_.back().count;
  if (first > end || count > end - first)
    throw failure(exit_code::plugin, fmt::format("cannot own elements {} + {}: the arena has {}", first, count, end));
  const auto next = std::ranges::upper_bound(owned_, first, {}, &owned::first);
  if ((next != owned_.end() && first + count > next->first) ||
      (next != owned_.begin() && (next - 1)->first + (next - 1)->count > first))
    throw failure(exit_code::plugin, fmt::format("elements {} + {} are owned already, at least in part", first, count));
  owned range{first, count, weights, {}, {}};
  for (int s = 0; s < rule_.states(); ++s) range.state[s] = static_cast<float*>(unit_.allocate(count * sizeof(float)));
  if (rule_.counts_updates()) range.uniform.push_back({first, count, 0});
  owned_.insert(next, std::move(range));
}

optimizer::owned& optimizer::owner_of(std::uint64_t element) {
  const auto range = holding(owned_, element);
  if (range == owned_.end() || element < range->first || element - range->first >= range->count)
    throw failure(exit_code::plugin, fmt::format("update of element {}, which this rank does not own", element));
  return *range;
}

void optimizer::require_owned(std::uint64_t first, std::uint64_t count) {
  while (count > 0) {
    const owned& range = owner_of(first);
    const std::uint64_t here = std::min(count, range.first + range.count - first);
    first += here;
    count -= here;
  }
}

void optimizer::apply(std::uint64_t first, std::span<const float> gradient, std::uint64_t step) {
  if (gradient.empty()) return; // a device skips empty work, so its sum of squares would be that of an earlier step
  require_owned(first, gradient.size());
  if (!deferred()) return update(first, gradient, 1, step);
  const auto next = std::ranges::upper_bound(waiting_, first, {}, &waiting::first);
  auto sum = rg::make_versioned<rg_work>();
  sum.kind = RG_OP_NORM;
  sum.target = room_for_part();
  sum.source = gradient.data();
  sum.count = gradient.size();
  unit_.run(sum);
  waiting_.insert(next, {first, gradient, static_cast<double*>(sum.target)});
}

double* optimizer::room_for_part() {
  constexpr std::size_t block = 64;
  const std::size_t taken = waiting_.size() + 1;
  if (parts_.size() <= taken) {
    auto* const memory = static_cast<double*>(unit_.allocate(block * 2 * sizeof(double)));
    for (std::size_t i = 0; i < block; ++i) parts_.push_back(memory + 2 * i);
  }
  return parts_[taken];
}

void optimizer::partial(double* out) {
  if (parts_.empty()) room_for_part();
  unit_.copy(out, parts_[0], 2 * sizeof(double));
  auto add = rg::make_versioned<rg_work>();
  add.kind = RG_OP_AXPY;
  add.type = add.source_type = RG_F64;
  add.factor = 1;
  add.target = out;
  add.count = 2;
  for (const waiting& w : waiting_) {
    add.source = w.part;
    unit_.run(add);
  }
}

bool optimizer::commit(const norm& total, std::uint64_t step) {
  const auto factor = rule_.clip(total);
  if (factor)
    for (const waiting& w : waiting_) update(w.first, w.gradient, *factor, step);
  waiting_.clear();
  return factor.has_value();
}

// Splits the update at the ends of owned ranges, and of uniform ranges, whose t may differ.
void optimizer::update(std::uint64_t first, std::span<const float> gradient, double factor, std::uint64_t step) {
  while (!gradient.empty()) {
    owned& range = owner_of(first);
    const auto here = gradient.first(std::min<std::uint64_t>(gradient.size(), range.first + range.count - first));
    if (rule_.counts_updates()) {
      cut(range.uniform, first);
      cut(range.uniform, first + here.size());
      for (auto p = holding(range.uniform, first); p != range.uniform.end() && p->first < first + here.size(); ++p)
        update_uniform(range, p->first, here.subspan(p->first - first, p->count), factor, step, ++p->updates);
    } else {
      update_uniform(range, first, here, factor, step, 0);
    }
    first += here.size();
    gradient = gradient.subspan(here.size());
  }
}

// Updates elements of one owned range that share t; splits them where the constants of slices change.
void optimizer::update_uniform(const owned& range, std::uint64_t first, std::span<const float> gradient, double factor,
                               std::uint64_t step, std::uint64_t t) const {
  // Neighbouring slices mostly share their constants, and are then updated by one call.
  const auto correction = rule_.correction(t);
  const double lr = rule_.lr(step);
  for (auto slice = holding(slices_, first); !gradient.empty();) {
    auto update = rule_.of(lr, correction, factor, slice->decay, slice->lr_scale);
    const auto same = [&, like = slice](const optimizer_slice& s) {
      return s.decay == like->decay && s.lr_scale == like->lr_scale;
    };
    std::uint64_t n = 0;
    while (n < gradient.size() && same(*slice)) {
      n = std::min<std::uint64_t>(gradient.size(), slice->first + slice->count - first);
      ++slice;
    }
    const std::uint64_t at = first - range.first;
    update.a = range.state[0] ? range.state[0] + at : nullptr;
    update.b = range.state[1] ? range.state[1] + at : nullptr;
    auto apply = rg::make_versioned<rg_work>();
    apply.kind = RG_OP_APPLY;
    apply.type = apply.source_type = RG_F32;
    apply.target = range.weights + at;
    apply.source = gradient.data();
    apply.count = n;
    apply.update = &update;
    unit_.run(apply);
    first += n;
    gradient = gradient.subspan(n);
  }
}

std::uint64_t optimizer::state_bytes() const noexcept {
  std::uint64_t count = 0;
  for (const owned& range : owned_) count += range.count;
  return count * static_cast<std::uint64_t>(rule_.states()) * sizeof(float);
}

} // namespace regatta
