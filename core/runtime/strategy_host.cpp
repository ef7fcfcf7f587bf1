// SPDX-License-Identifier: Apache-2.0
#include "runtime/strategy_host.hpp"

#include "base/failure.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <regatta/ext/collectives.h>
#include <regatta/ext/regions.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr std::uint64_t slice_alignment = 16; // in elements: a cache line of fp32

// Returns whether the transport can access the arena. Device memory requires that the transport declares it.
bool reaches(const strategy_host_setup& s) {
  const rg_transport_caps& caps = s.transport.caps;
  return !s.device ||
         ((caps.memory & RG_MEMORY_DEVICE) != 0 && (!caps.device || std::string_view(caps.device) == s.device->kind()));
}

template <class T> const T* extension_of(const strategy_host_setup& s, const char* id) {
  return s.transport.functions->extension
             ? static_cast<const T*>(s.transport.functions->extension(s.transport.self, id))
             : nullptr;
}

} // namespace

strategy_host::strategy_host(strategy_host_setup setup)
    : setup_(std::move(setup)), plugin_host_(setup_.log, setup_.extensions), device_(setup_.device),
      operations_(setup_.transport, setup_.work, regions_, arena_, buckets_, plugin_host_, setup_.trace, device_),
      reaches_(reaches(setup_)),
      regions_(extension_of<rg_regions>(setup_, RG_EXT_REGIONS), setup_.transport.self, setup_.ghosts,
               reaches_ && device_ ? setup_.transport.caps.memory : std::uint32_t{RG_MEMORY_HOST}, device_,
               device_ ? device_->index() : -1),
      on_host_(stage_on_host(operations_.host())), on_device_(!device_   ? nullptr
                                                              : reaches_ ? stage_on_device(*device_)
                                                                         : stage_through_host(*device_)),
      first_lane_(setup_.step_numbers ? step_sums::lane + 1 : 0),
      transfers_(*setup_.transport.functions, setup_.transport.self, setup_.transport.caps, *setup_.transport.host,
                 "transport " + setup_.transport.id, regions_, *on_host_, on_device_.get(), setup_.cluster.rank,
                 setup_.cluster.size, setup_.lanes + first_lane_, setup_.trace),
      rule_(setup_.optimizer, setup_.cluster.workers) {
  if (std::ranges::any_of(setup_.tensors, [](const rg_tensor& t) { return t.kind == RG_TENSOR_ROWS; }))
    regions_.keep_numbers();
  if (reaches_)
    if (auto* c = extension_of<rg_collectives>(setup_, RG_EXT_COLLECTIVES)) collectives_ = rg::copy_versioned(*c);
  lay_out();
  if (setup_.step_numbers && setup_.cluster.worker >= 0)
    sums_.emplace(transfers_, regions_, setup_.cluster, setup_.step_numbers);
}

void strategy_host::lay_out() {
  std::vector<optimizer_slice> optimizer_slices;
  arena_ = rg::make_versioned<rg_arena>();
  for (std::size_t i = 0; i < setup_.tensors.size(); ++i) {
    const rg_tensor& t = setup_.tensors[i];
    if (t.kind != RG_TENSOR_DENSE) continue;
    auto s = rg::make_versioned<rg_slice>();
    s.tensor = static_cast<std::uint32_t>(i);
    s.first = arena_.count;
    s.count = (rg::storage_of(t) + slice_alignment - 1) / slice_alignment * slice_alignment;
    arena_.count += s.count;
    slices_.push_back(s);
    optimizer_slices.push_back({s.first, s.count, t.decay, t.lr_scale});
  }
  arena_.slices = slices_.data();
  arena_.slice_count = static_cast<std::uint32_t>(slices_.size());
  arena_.tensors = setup_.tensors.data();
  arena_.tensor_count = static_cast<std::uint32_t>(setup_.tensors.size());
  if (setup_.cluster.worker >= 0 && arena_.count) {
    arena_.weights = regions_.allocate(RG_F32, arena_.count, "the weights");
    arena_.gradients = regions_.allocate(RG_F32, arena_.count, "the gradients");
  }
  updates_ = std::make_unique<weight_updates>(setup_.optimizer, setup_.cluster.workers, optimizer_slices,
                                              operations_.of_arena(), device_);
  tables_ = std::make_unique<sparse_tables>(setup_.tensors, setup_.micro_batches, setup_.cluster.worker >= 0,
                                            setup_.rows_in_place && !device_, regions_, rule_, setup_.initial_rows);
  arena_.tables = tables_->windows().data();
  arena_.table_count = static_cast<std::uint32_t>(tables_->windows().size());
  if (device_ && arena_.table_count)
    for (auto& pair : norm_of_rows_) pair = device_->allocate_host(2 * sizeof(double));
  if (!arena_.count && !arena_.table_count) throw failure(exit_code::plugin, "the model has no weights");
}

void strategy_host::start() {
  host_ = rg::make_versioned<rg_strategy_host>();
  host_.flags = (updates_->deferred() ? RG_HOST_DEFERRED : 0) | (setup_.ghosts_on_host ? RG_HOST_GHOSTS : 0);
  host_.host = plugin_host_.c();
  host_.context = this;
  host_.cluster = &setup_.cluster;
  host_.arena = &arena_;
  host_.seed = setup_.seed;
  host_.momentum = setup_.momentum;
  set_memory_functions();
  set_operation_functions();
  set_record_functions();
  check_status(setup_.strategy->create(&host_, setup_.values, &self_), "create");
  created_ = true;
  if (buckets_.ends().empty() && arena_.count) buckets_.set({arena_.count}, device_ != nullptr);
  record_weights_fence();
}

// Calls f(host), which returns nothing or a status, and turns an exception into a refusal: none may pass through the
// strategy.
template <class F> rg_status strategy_host::guarded(void* self, F&& f) {
  auto& x = *static_cast<strategy_host*>(self);
  try {
    if constexpr (!std::is_void_v<decltype(f(x))>)
      return f(x);
    else
      f(x);
    return RG_OK;
  } catch (const std::exception& e) {
    return x.plugin_host_.c()->fail(x.plugin_host_.c()->context, RG_E_PLUGIN, e.what());
  }
}

void strategy_host::set_memory_functions() {
  host_.alloc = [](void* self, std::uint32_t type, std::uint64_t count, rg_buffer* out) {
    return guarded(self, [&](strategy_host& x) {
      x.require_creating("alloc");
      *out = x.regions_.allocate(type, count, x.name_of_buffer());
    });
  };
  host_.alloc_on_host = [](void* self, std::uint32_t type, std::uint64_t count, rg_buffer* out) {
    return guarded(self, [&](strategy_host& x) {
      x.require_creating("alloc_on_host");
      *out = x.regions_.allocate_on_host(type, count, x.name_of_buffer());
    });
  };
  host_.own = [](void* self, std::uint32_t role, std::uint64_t first, std::uint64_t count, rg_buffer* weights) {
    return guarded(self, [&](strategy_host& x) { *weights = x.own(role, first, count); });
  };
  host_.own_rows = [](void* self, std::uint32_t role, std::uint32_t table, std::uint64_t shards, std::uint64_t shard) {
    return guarded(self, [&](strategy_host& x) {
      x.require_creating("own_rows");
      x.tables_->own(x.require_role("own_rows", role), table, shards, shard);
    });
  };
  host_.pointer = [](void* self, const rg_buffer* buffer, void** out) {
    return guarded(self, [&](strategy_host& x) -> rg_status {
      if (x.setup_.no_pointers || x.regions_.on_device(*buffer)) return RG_E_UNSUPPORTED;
      if (!x.regions_.contains(*buffer)) refuse_call("pointer: the buffer lies outside its region");
      *out = x.regions_.address(*buffer);
      return *out ? RG_OK : RG_E_UNSUPPORTED;
    });
  };
}

void strategy_host::set_operation_functions() {
  host_.now = [](void* self) { return static_cast<strategy_host*>(self)->operations_.now(); };
  host_.buckets = [](void* self, const std::uint64_t* ends, std::uint32_t count) {
    return guarded(self, [&](strategy_host& x) {
      x.require_creating("buckets");
      if ((count ? ends[count - 1] : 0) != x.arena_.count || !std::is_sorted(ends, ends + count, std::less_equal<>()))
        refuse_call("buckets must ascend and end where the arena does");
      x.buckets_.set({ends, ends + count}, x.device_ != nullptr);
    });
  };
  host_.split = [](void* self, const std::uint32_t* members, std::uint32_t count, std::uint32_t* group) {
    return guarded(self, [&](strategy_host& x) -> rg_status {
      x.require_creating("split");
      if (!x.collectives_.begin) return RG_E_UNSUPPORTED;
      const auto self_at = std::find(members, members + count, x.setup_.cluster.rank);
      collective_group g{0, count, static_cast<std::uint32_t>(self_at - members)};
      if (g.index == count) refuse_call("split: expected this rank among the members");
      const rg_status s = x.collectives_.split(x.setup_.transport.self, members, count, &g.id);
      if (s < 0 && s != RG_E_UNSUPPORTED) refuse_call(x.setup_.transport.host->take_error());
      if (s >= 0) x.groups_.push_back(g);
      *group = g.id;
      return s;
    });
  };
  host_.submit = [](void* self, const rg_op* op) {
    return guarded(self, [&](strategy_host& x) { return x.submit(*op); });
  };
  host_.offers = [](void* self, std::uint32_t kind, std::uint32_t reduction, std::uint32_t type,
                    std::uint32_t wire) -> std::uint32_t {
    return static_cast<strategy_host*>(self)->offers(kind, reduction, type, wire);
  };
  host_.weights_from = [](void* self, std::uint64_t first) {
    auto& x = *static_cast<strategy_host*>(self);
    x.record_weights_fence();
    x.weights_from_.store(first, std::memory_order_release);
  };
  host_.done = [](void* self, std::uint64_t which, rg_status status) {
    static_cast<strategy_host*>(self)->end_activity(which, status);
  };
}

void strategy_host::set_record_functions() {
  host_.record_value = [](void* self, const char* name, std::int64_t value) {
    static_cast<strategy_host*>(self)->records_.count(name, value);
  };
  host_.record_of_step = [](void* self, const char* name, std::int64_t value, std::uint32_t worker,
                            std::uint64_t step) {
    static_cast<strategy_host*>(self)->records_.count(name, value, worker, step);
  };
  host_.record_sum = [](void* self, const char* name, double amount) {
    static_cast<strategy_host*>(self)->records_.add(name, amount);
  };
}

strategy_host::~strategy_host() {
  operations_.stop_functions(); // they may use the strategy
  if (self_) setup_.strategy->destroy(self_);
}

void strategy_host::forget_transport() {
  operations_.stop_functions();
  if (self_) setup_.strategy->destroy(self_);
  self_ = nullptr;
  regions_.forget_transport();
}

std::span<float> strategy_host::weights() const {
  if (!arena_.weights.region || regions_.ghosts()) return {};
  return regions_.elements<float>(arena_.weights);
}
std::span<float> strategy_host::gradients() const {
  if (!arena_.gradients.region || regions_.ghosts()) return {};
  return regions_.elements<float>(arena_.gradients);
}

std::string strategy_host::name_of_buffer() {
  return fmt::format("buffer {} of strategy {}", ++buffers_, setup_.strategy_id);
}

std::span<const float> strategy_host::row_gradients(std::uint32_t t) const {
  rg_buffer b = tables_->windows()[t].gradients;
  if (!b.region || regions_.ghosts()) return {};
  b.count = tables_->rows()[t].count * tables_->windows()[t].row;
  return regions_.elements<const float>(b);
}

bool strategy_host::learns_before(std::uint64_t end) const {
  for (std::uint64_t step = 0; step < end; ++step)
    if (rule_.lr(step) > 0) return true;
  return false;
}

std::optional<std::string> strategy_host::find_damage() const {
  return regions_.find_damage(
      [this](void* to, const void* from, std::uint64_t bytes) { device_->read(to, from, bytes); });
}

void strategy_host::read_arena(std::span<const float> all, const read_function& to) const {
  if (!device_) return to(all);
  constexpr std::size_t most = std::size_t{1} << 20;
  std::vector<float> some(std::min(most, all.size()));
  for (std::size_t at = 0; at < all.size(); at += most) {
    const std::span part(some.data(), std::min(most, all.size() - at));
    device_->read(part.data(), all.data() + at, part.size_bytes());
    to(part);
  }
}

// The model may read weights and write gradients after all work enqueued up to here.
void strategy_host::record_weights_fence() {
  if (device_) weights_after_.store(device_->record(device::computing), std::memory_order_release);
}

void strategy_host::synchronize() {
  if (!device_) return;
  for (const rg_fence f : buckets_.fences()) device_->wait_for(device::computing, f);
  device_->synchronize();
}

void strategy_host::require_creating(const char* what) const {
  if (created_)
    refuse_call(fmt::format("{} was called in a step: call it within create(), in C++ in the constructor", what));
}

bool strategy_host::require_role(const char* what, std::uint32_t role) const {
  const bool server = is_server(role);
  if ((server ? setup_.cluster.server : setup_.cluster.worker) < 0)
    refuse_call(fmt::format("{}: this rank is no {}", what, server ? "server" : "worker"));
  return server;
}

rg_buffer strategy_host::own(std::uint32_t role, std::uint64_t first, std::uint64_t count) {
  require_creating("own");
  if (first > arena_.count || count > arena_.count - first || !count)
    refuse_call(fmt::format("own: elements {} + {} of {}", first, count, arena_.count));
  const bool server = require_role("own", role);
  rg_buffer b = arena_.weights;
  if (server) {
    b = regions_.allocate(RG_F32, count, fmt::format("the weights that server {} owns", setup_.cluster.server));
    if (device_) {
      std::vector<float> start(count);
      setup_.initial_weights(first, count, start.data());
      device_->write(regions_.address(b), start.data(), count * sizeof(float));
    } else if (!regions_.ghosts()) {
      setup_.initial_weights(first, count, static_cast<float*>(regions_.address(b)));
    }
  } else {
    b.offset += first * sizeof(float);
    b.count = count;
  }
  if (!regions_.ghosts()) updates_->role(server).own(first, count, static_cast<float*>(regions_.address(b)));
  return b;
}

} // namespace regatta
