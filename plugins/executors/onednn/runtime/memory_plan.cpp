// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory_plan.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace onednn {

namespace {

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

} // namespace

aligned_bytes allocate_zeroed(std::size_t bytes) {
  constexpr std::size_t huge = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= huge ? huge : 64;
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), alignment);
  void* p = std::aligned_alloc(alignment, size);
  if (!p) throw std::bad_alloc();
  if (alignment == huge) madvise(p, size, MADV_HUGEPAGE); // if this fails, only speed suffers
  std::memset(p, 0, size);
  return aligned_bytes(static_cast<std::byte*>(p));
}

slot memory_plan::request(std::size_t bytes, std::size_t first, std::size_t last) {
  slots_.push_back({round_up(bytes, 64), first, last, 0});
  return slots_.size() - 1;
}

void memory_plan::extend(slot s, std::size_t time) {
  slots_[s].first = std::min(slots_[s].first, time);
  slots_[s].last = std::max(slots_[s].last, time);
}

// Places the largest slot first, each at the lowest offset that is free during its lifetime.
void memory_plan::allocate(std::size_t extra) {
  std::vector<std::size_t> order(slots_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return slots_[a].bytes > slots_[b].bytes; });
  std::vector<const slot_range*> assigned; // by offset
  for (std::size_t i : order) {
    slot_range& s = slots_[i];
    s.offset = 0;
    for (const slot_range* other : assigned) {
      if (other->last < s.first || s.last < other->first) continue;
      if (s.offset + s.bytes <= other->offset) break;
      s.offset = std::max(s.offset, other->offset + other->bytes);
    }
    assigned.insert(std::upper_bound(assigned.begin(), assigned.end(), &s,
                                     [](const slot_range* a, const slot_range* b) { return a->offset < b->offset; }),
                    &s);
    planned_ = std::max(planned_, s.offset + s.bytes);
  }
  extra_ = extra;
  block_ = allocate_zeroed(planned_ + extra_);
}

namespace {

// Returns whether an op may overwrite its input: no other op reads it, and it is not read in the backward pass.
bool may_overwrite(const value& in) {
  return in.consumers == 1 && !in.kept && !in.kept_longer && in.input < 0;
}

void plan_values(program& p, memory_plan& plan) {
  for (std::size_t k = 0; k < p.ops.size(); ++k) {
    op& o = *p.ops[k];
    for (const edge& e : o.inputs()) {
      if (e.from->input >= 0) continue;
      plan.extend(e.from->data_slot, plan.forward_time(k));
      if (e.from->kept) plan.extend(e.from->data_slot, plan.backward_time(k));
    }
    const value& first = *o.inputs()[0].from;
    value& out = o.output();
    if (o.forward_in_place() && may_overwrite(first))
      out.data_slot = first.data_slot;
    else
      out.data_slot =
          plan.request(out.stride * p.batch * out.element_bytes(), plan.forward_time(k), plan.forward_time(k));
    // Other ops' backward passes may lie between those of the consumers and that of this op. It reads the data before
    // it writes gradients of inputs, so these may have the memory.
    if (out.kept_longer) plan.extend(out.data_slot, plan.backward_time(k) - 1);
  }
}

// Gradients are computed from the last op to the first. The first op that contributes to a value's gradient writes it.
// Other ops write to buffers of their own, which are then added, unless they add to gradients themselves.
void plan_gradients(program& p, memory_plan& plan) {
  for (std::size_t k = p.ops.size(); k-- > 0;) {
    op& o = *p.ops[k];
    const std::size_t now = plan.backward_time(k);
    const slot mine = o.output().gradient_slot;
    if (mine != no_slot) plan.extend(mine, now);
    bool reuse = mine != no_slot;
    for (std::size_t i = 0; i < o.inputs().size(); ++i) {
      edge& e = o.inputs()[i];
      value& v = *e.from;
      if (!v.needs_gradient) continue;
      e.add = v.gradient_slot != no_slot;
      e.own = e.add && !o.adds_gradients();
      if (e.add) plan.extend(v.gradient_slot, now);
      if (e.add && !e.own)
        e.buffer = v.gradient_slot;
      else if (o.gradient_over_input() && i == 0 && v.consumers == 1 && v.input < 0 && !v.kept_longer)
        e.buffer = v.data_slot; // kept until this op
      else {
        const bool here = reuse && o.backward_in_place(i);
        e.buffer = here ? mine : plan.request(v.stride * p.batch * v.element_bytes(), now, now);
        reuse = reuse && !here;
      }
      if (!e.add) v.gradient_slot = e.buffer;
    }
  }
}

} // namespace

aligned_bytes plan_memory(program& p, std::size_t& bytes) {
  memory_plan plan(p.ops.size(), p.batch);
  std::size_t scratch = 0;
  for (std::size_t k = 0; k < p.ops.size(); ++k) {
    plan.at(k);
    p.ops[k]->plan(plan);
    scratch = std::max(scratch, p.ops[k]->scratch_bytes());
  }
  plan_values(p, plan);
  plan_gradients(p, plan);
  plan.allocate(scratch);
  p.dev.scratch = plan.scratch();
  for (auto& v : p.values) {
    v->data = plan.at_slot(v->data_slot);
    v->gradient = plan.at_slot(v->gradient_slot);
  }
  for (auto& o : p.ops) {
    for (edge& e : o->inputs()) e.gradient = plan.at_slot(e.buffer);
    o->attach(plan);
  }
  bytes = plan.bytes();
  return plan.release();
}

} // namespace onednn
