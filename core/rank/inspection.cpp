// SPDX-License-Identifier: Apache-2.0
#include "rank/inspection.hpp"

#include "base/failure.hpp"
#include "memory/arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

// Returns a function that divides consecutive elements of the arena at slice boundaries and calls f(slice, part, first)
// for each part; `first` is the index of the part's first element within the slice.
using part_function = std::function<void(const rg_slice& slice, std::span<const float> part, std::uint64_t first)>;
strategy_host::read_function by_slice(const rg_arena& arena, const part_function& f) {
  return [&arena, f, at = std::uint64_t{0}, s = std::uint32_t{0}](std::span<const float> elements) mutable {
    while (!elements.empty() && s < arena.slice_count) {
      const rg_slice& slice = arena.slices[s];
      const std::uint64_t first = at - slice.first, n = std::min<std::uint64_t>(slice.count - first, elements.size());
      f(slice, elements.first(n), first);
      elements = elements.subspan(n);
      at += n;
      if (first + n == slice.count) ++s;
    }
  };
}

// Reports the first element of a tensor's padding that is not 0.
void require_zero_padding(const strategy_host& strategy, const char* of, const std::string& when,
                          void (strategy_host::*read)(const strategy_host::read_function&) const) {
  const rg_arena& arena = strategy.arena();
  (strategy.*read)(by_slice(arena, [&](const rg_slice& slice, std::span<const float> part, std::uint64_t first) {
    const rg_tensor& t = arena.tensors[slice.tensor];
    const std::uint64_t used = rg::storage_of(t), from = std::max(used, first);
    for (std::uint64_t i = from; i < first + part.size(); ++i) {
      if (part[i - first] == 0) continue;
      std::string where = fmt::format("the padding behind the {} of tensor {}", of, t.name);
      if (i != used && &slice + 1 != arena.slices + arena.slice_count)
        where += fmt::format(", before tensor {},", arena.tensors[(&slice + 1)->tensor].name);
      report_damage(when, where);
    }
  }));
}

struct look {
  bool any = false;       // some trained tensor has a gradient that is not 0
  std::string not_finite; // name of the first tensor whose gradient is not finite
};

look look_at_gradients(const strategy_host& strategy) {
  const rg_arena& arena = strategy.arena();
  look l;
  const auto judge = [&](const rg_tensor& t, std::span<const float> part) {
    const arithmetic::norm n = arithmetic::sum_of_squares(part);
    if (n.not_finite > 0 && l.not_finite.empty()) l.not_finite = t.name;
    l.any = l.any || (t.lr_scale > 0 && n.sum_of_squares > 0);
  };
  strategy.read_gradients(by_slice(arena, [&](const rg_slice& slice, std::span<const float> part, std::uint64_t) {
    judge(arena.tensors[slice.tensor], part);
  }));
  for (std::uint32_t t = 0; t < arena.table_count; ++t)
    judge(arena.tensors[arena.tables[t].tensor], strategy.row_gradients(t));
  return l;
}

} // namespace

void report_damage(const std::string& when, const std::string& what) {
  throw failure(
      exit_code::plugin,
      fmt::format("{}: {} was written: the model, the strategy or the transport writes out of bounds (`regatta "
                  "check` of each tells which)",
                  when, what));
}

void require_no_damage(const strategy_host& strategy, const std::string& when) {
  if (const auto where = strategy.find_damage()) report_damage(when, *where);
  // Gradients first: an update carries a write behind a gradient into the weights, too.
  require_zero_padding(strategy, "gradient", when, &strategy_host::read_gradients);
  require_zero_padding(strategy, "weights", when, &strategy_host::read_weights);
}

bool require_finite_gradients(const strategy_host& strategy, const std::string& when) {
  const look l = look_at_gradients(strategy);
  if (!l.not_finite.empty())
    throw failure(exit_code::wrong,
                  fmt::format("{}: the gradient of tensor {} is not finite, though the loss is: the model computes it "
                              "wrongly (`regatta check` tells), or training diverged; try a smaller optimizer.lr",
                              when, l.not_finite));
  return l.any;
}

bool finite_and_not_zero(const strategy_host& strategy) {
  const look l = look_at_gradients(strategy);
  return l.not_finite.empty() && l.any;
}

std::uint64_t checksum_of_weights(const strategy_host& strategy) {
  std::uint64_t sum = 0xcbf29ce484222325;
  strategy.read_weights([&](std::span<const float> weights) {
    for (const float w : weights) sum = (sum ^ std::bit_cast<std::uint32_t>(w)) * 0x100000001b3;
  });
  return sum;
}

bool any_row_changed(const strategy_host& strategy) {
  bool changed = false;
  for (std::uint32_t t = 0; t < strategy.tables().windows().size(); ++t)
    for (const bool as_server : {false, true})
      if (const row_table* const table = strategy.tables().shard(as_server, t))
        table->for_each_changed([&](std::uint64_t, std::span<const float>) { changed = true; });
  return changed;
}

} // namespace regatta
