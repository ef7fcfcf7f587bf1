// SPDX-License-Identifier: Apache-2.0
#include "runtime/strategy_host.hpp"

#include "base/failure.hpp"
#include "registry/validate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr std::uint64_t slice_alignment = 16; // in elements: a cache line of fp32

std::uint64_t steady_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// Returns whether the transport can access the arena. Device memory requires that the transport declares it.
bool reaches(const exchange_setup& s) {
  return !s.device || (s.caps.memory & s.device->memory());
}

const char* name_of(std::uint64_t activity) {
  switch (activity) {
  case exchange::begin_step: return "begin_step";
  case exchange::end_step: return "end_step";
  case exchange::serve: return "serve";
  case exchange::finish: return "finish";
  default: return "pull_rows";
  }
}

template <class T> const T* extension_of(const exchange_setup& s, const char* id) {
  return s.transport->extension ? static_cast<const T*>(s.transport->extension(s.transport_self, id)) : nullptr;
}

} // namespace

// ---------------------------------------------------------------------------------------------------- cluster ---

cluster_layout cluster_layout::make(std::uint32_t workers, std::uint32_t servers, bool colocate, std::uint32_t hosts) {
  cluster_layout l;
  l.workers = workers;
  l.servers = servers;
  std::uint32_t size = workers;
  for (std::uint32_t s = 0; s < servers; ++s) l.server_rank.push_back(colocate && s < workers ? s : size++);
  for (std::uint64_t w = 0; w < workers; ++w) l.host_of.push_back(static_cast<std::uint32_t>(w * hosts / workers));
  for (std::uint64_t s = 0, alone = size - workers; s < alone; ++s)
    l.host_of.push_back(static_cast<std::uint32_t>(s * hosts / alone));
  return l;
}

rg_cluster cluster_layout::view(std::uint32_t rank) const {
  auto c = rg::make_versioned<rg_cluster>();
  c.size = size();
  c.workers = workers;
  c.servers = servers;
  c.server_rank = server_rank.data();
  c.host_of = host_of.data();
  c.rank = rank;
  c.worker = rank < workers ? static_cast<std::int32_t>(rank) : -1;
  const auto s = std::find(server_rank.begin(), server_rank.end(), rank);
  c.server = s == server_rank.end() ? -1 : static_cast<std::int32_t>(s - server_rank.begin());
  return c;
}

bool talks(const rg_strategy& strategy, const rg_value* values, const rg_cluster& all) {
  for (std::uint32_t a = 0; a < all.size; ++a)
    for (std::uint32_t b = a + 1; b < all.size; ++b)
      if (!strategy.talks || strategy.talks(values, &all, a, b)) return true;
  return false;
}

rg_plan plan_of(const rg_strategy& strategy, const rg_value* values, const cluster_layout& layout,
                const optimizer_config& config, plugin_host& host, const std::string& id) {
  rg_cluster cluster = layout.view(std::numeric_limits<std::uint32_t>::max());
  cluster.flags = config.clip_norm > 0 ? RG_HOST_DEFERRED : 0;
  cluster.momentum = config.plugin == "momentum" ? config.momentum : 0;
  auto plan = rg::make_versioned<rg_plan>();
  check(strategy.plan(host.c(), values, &cluster, &plan), host, "strategy " + id);
  validate(plan, talks(strategy, values, cluster), "strategy " + id);
  plan.lanes = std::max(plan.lanes, 1u);
  plan.period = std::max<std::uint64_t>(plan.period, 1);
  return plan;
}

double hand_over_momentum(const rg_plan& plan, const std::string& strategy_id, optimizer_config& config) {
  if (!(plan.flags & RG_PLAN_MOMENTUM)) return 0;
  if (config.plugin == "sgd") return 0;
  if (config.plugin != "momentum" || config.nesterov)
    throw failure(
        exit_code::usage,
        fmt::format("optimizer.plugin: strategy {} does the momentum itself and cannot do {}: set optimizer.plugin to "
                    "\"momentum\" or \"sgd\"{}",
                    strategy_id, config.nesterov ? "Nesterov's" : config.plugin,
                    config.nesterov ? " and optimizer.nesterov to false" : ""));
  config.plugin = "sgd";
  return std::exchange(config.momentum, 0);
}

// ----------------------------------------------------------------------------------------------------- set-up ---

exchange::exchange(exchange_setup setup)
    : setup_(std::move(setup)), link_(rg::make_versioned<rg_link>()),
      strategy_host_(setup_.log,
                     [this](std::string_view id) -> const void* {
                       return id == RG_EXT_LINK && link_.description ? &link_ : nullptr;
                     }),
      transport_(*setup_.transport), cluster_(setup_.layout.view(setup_.rank)), device_(setup_.device),
      unit_(device_ ? static_cast<processor&>(*device_) : host_processor_), reaches_(reaches(setup_)),
      regions_(extension_of<rg_regions>(setup_, RG_EXT_REGIONS), setup_.transport_self, setup_.ghosts, device_,
               device_ ? device_->memory() : std::uint32_t{RG_MEMORY_HOST},
               device_ ? setup_.caps.memory : std::uint32_t{RG_MEMORY_HOST}),
      on_host_(stage_on_host(host_processor_)), on_device_(!device_   ? nullptr
                                                           : reaches_ ? stage_on_device(*device_)
                                                                      : stage_through_host(*device_)),
      transfers_(transport_, setup_.transport_self, setup_.caps, *setup_.transport_host,
                 "transport " + setup_.transport_id, regions_, *on_host_, on_device_.get(), setup_.rank,
                 setup_.layout.size(), setup_.lanes),
      rule_(setup_.optimizer, setup_.layout.workers) {
  if (!setup_.link.empty()) link_.description = setup_.link.c_str();
  if (reaches_)
    if (auto* c = extension_of<rg_collectives>(setup_, RG_EXT_COLLECTIVES)) collectives_ = rg::copy_versioned(*c);
  lay_out();
}

void exchange::lay_out() {
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
  if (cluster_.worker >= 0 && arena_.count) {
    arena_.weights = regions_.allocate(RG_F32, arena_.count, "the weights");
    arena_.gradients = regions_.allocate(RG_F32, arena_.count, "the gradients");
  }
  worker_optimizer_ = std::make_unique<optimizer>(setup_.optimizer, setup_.layout.workers, optimizer_slices, unit_);
  server_optimizer_ =
      std::make_unique<optimizer>(setup_.optimizer, setup_.layout.workers, std::move(optimizer_slices), unit_);
  tables_ = std::make_unique<regatta::tables>(setup_.tensors, setup_.micro_batches, cluster_.worker >= 0,
                                              setup_.rows_in_place && !device_, regions_, rule_, setup_.initial_rows);
  arena_.tables = tables_->list().data();
  arena_.table_count = static_cast<std::uint32_t>(tables_->list().size());
  if (device_ && arena_.table_count)
    for (auto& pair : norm_of_rows_) pair = device_->allocate_host(2 * sizeof(double));
  if (!arena_.count && !arena_.table_count) throw failure(exit_code::plugin, "the model has no weights");
}

void exchange::start() {
  host_ = rg::make_versioned<rg_strategy_host>();
  host_.flags = worker_optimizer_->deferred() ? RG_HOST_DEFERRED : 0;
  host_.host = strategy_host_.c();
  host_.context = this;
  host_.cluster = &cluster_;
  host_.arena = &arena_;
  host_.seed = setup_.seed;
  host_.momentum = setup_.momentum;
  for (const std::uint32_t kind : {RG_OP_ALL_REDUCE, RG_OP_REDUCE_SCATTER, RG_OP_ALL_GATHER, RG_OP_BROADCAST})
    if (native(kind).first) host_.native |= std::uint64_t{1} << kind;
  auto fenced = [](void* self, auto&& f) {
    auto& x = *static_cast<exchange*>(self);
    try {
      return f(x);
    } catch (const std::exception& e) {
      return x.refuse(e.what());
    }
  };
  static const auto fence = fenced;
  host_.now = [](void* self) { return static_cast<exchange*>(self)->now(); };
  host_.alloc = [](void* self, std::uint32_t type, std::uint64_t count, rg_buffer* out) {
    return fence(self, [&](exchange& x) {
      *out = x.regions_.allocate(type, count, x.name_of_buffer());
      return rg_status{RG_OK};
    });
  };
  host_.alloc_on_host = [](void* self, std::uint32_t type, std::uint64_t count, rg_buffer* out) {
    return fence(self, [&](exchange& x) {
      *out = x.regions_.allocate_on_host(type, count, x.name_of_buffer());
      return rg_status{RG_OK};
    });
  };
  host_.own = [](void* self, std::uint32_t as_server, std::uint64_t first, std::uint64_t count, rg_buffer* weights) {
    return fence(self, [&](exchange& x) { return x.own(as_server, first, count, weights); });
  };
  host_.buckets = [](void* self, const std::uint64_t* ends, std::uint32_t count) {
    return fence(self, [&](exchange& x) {
      if ((count ? ends[count - 1] : 0) != x.arena_.count || !std::is_sorted(ends, ends + count, std::less_equal<>()))
        return x.refuse("buckets must ascend and end where the arena does");
      x.bucket_ends_.assign(ends, ends + count);
      return rg_status{RG_OK};
    });
  };
  host_.split = [](void* self, const std::uint32_t* members, std::uint32_t count, std::uint32_t* group) -> rg_status {
    auto& x = *static_cast<exchange*>(self);
    if (!x.collectives_.split || !x.collectives_.all_reduce) return RG_E_UNSUPPORTED;
    const rg_status s = x.collectives_.split(x.setup_.transport_self, members, count, group);
    return s < 0 && s != RG_E_UNSUPPORTED ? x.refuse(x.setup_.transport_host->take_error()) : s;
  };
  host_.submit = [](void* self, const rg_op* op) {
    return fence(self, [&](exchange& x) { return x.submit(*rg::versioned_view(op)); });
  };
  host_.weights_from = [](void* self, std::uint64_t first) {
    auto& x = *static_cast<exchange*>(self);
    x.mark_weights();
    x.weights_from_.store(first, std::memory_order_release);
  };
  host_.record_value = [](void* self, const char* name, std::int64_t value) {
    static_cast<exchange*>(self)->records_.count(name, value);
  };
  host_.record_of_step = [](void* self, const char* name, std::int64_t value, std::uint32_t worker,
                            std::uint64_t step) {
    static_cast<exchange*>(self)->records_.count(name, value, worker, step);
  };
  host_.record_sum = [](void* self, const char* name, double amount) {
    static_cast<exchange*>(self)->records_.add(name, amount);
  };
  host_.done = [](void* self, std::uint64_t which, rg_status status) {
    static_cast<exchange*>(self)->end_activity(which, status);
  };
  host_.own_rows = [](void* self, std::uint32_t as_server, std::uint32_t table, std::uint64_t shards,
                      std::uint64_t shard) {
    return fence(self, [&](exchange& x) {
      if ((as_server ? x.cluster_.server : x.cluster_.worker) < 0)
        return x.refuse(as_server ? "own_rows: this rank is no server" : "own_rows: this rank is no worker");
      x.tables_->own(as_server, table, shards, shard);
      return rg_status{RG_OK};
    });
  };
  host_.pointer = [](void* self, const rg_buffer* buffer, void** out) -> rg_status {
    return fence(self, [&](exchange& x) -> rg_status {
      if (x.regions_.ghosts() || x.regions_.on_device(*buffer)) return RG_E_UNSUPPORTED;
      if (!x.regions_.contains(*buffer)) return x.refuse("pointer: the buffer lies outside its region");
      *out = x.regions_.address(*buffer);
      return RG_OK;
    });
  };
  ask(setup_.strategy->create(&host_, setup_.values, &self_), "create");
  if (bucket_ends_.empty() && arena_.count) bucket_ends_ = {arena_.count};
  if (device_) bucket_fences_.resize(bucket_ends_.size());
  mark_weights();
}

exchange::~exchange() {
  if (self_) setup_.strategy->destroy(self_);
}

std::span<float> exchange::weights() const {
  if (!arena_.weights.region || regions_.ghosts()) return {};
  return regions_.elements<float>(arena_.weights);
}
std::span<float> exchange::gradients() const {
  if (!arena_.gradients.region || regions_.ghosts()) return {};
  return regions_.elements<float>(arena_.gradients);
}

std::string exchange::name_of_buffer() {
  return fmt::format("buffer {} of strategy {}", ++buffers_, setup_.strategy_id);
}

std::span<const float> exchange::row_gradients(std::uint32_t t) const {
  rg_buffer b = tables_->list()[t].gradients;
  if (!b.region || regions_.ghosts()) return {};
  b.count = tables_->rows()[t].count * tables_->list()[t].row;
  return regions_.elements<const float>(b);
}

bool exchange::learns_before(std::uint64_t end) const {
  for (std::uint64_t step = 0; step < end; ++step)
    if (rule_.lr(step) > 0) return true;
  return false;
}

std::optional<std::string> exchange::find_damage() const {
  return regions_.find_damage(
      [this](void* to, const void* from, std::uint64_t bytes) { device_->read(to, from, bytes); });
}

void exchange::show(std::span<const float> all, const show_function& to) const {
  if (!device_) return to(all);
  constexpr std::size_t most = std::size_t{1} << 20;
  std::vector<float> some(std::min(most, all.size()));
  for (std::size_t at = 0; at < all.size(); at += most) {
    const std::span part(some.data(), std::min(most, all.size() - at));
    device_->read(part.data(), all.data() + at, part.size_bytes());
    to(part);
  }
}

rg_status exchange::own(bool as_server, std::uint64_t first, std::uint64_t count, rg_buffer* out) {
  if (first > arena_.count || count > arena_.count - first || !count)
    return refuse(fmt::format("own: elements {} + {} of {}", first, count, arena_.count));
  if (!as_server && cluster_.worker < 0) return refuse("own: this rank is no worker");
  if (as_server && cluster_.server < 0) return refuse("own: this rank is no server");
  rg_buffer b = arena_.weights;
  if (as_server) {
    b = regions_.allocate(RG_F32, count, fmt::format("the weights that server {} owns", cluster_.server));
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
  if (!regions_.ghosts())
    (as_server ? *server_optimizer_ : *worker_optimizer_).own(first, count, static_cast<float*>(regions_.address(b)));
  *out = b;
  return RG_OK;
}

// ------------------------------------------------------------------------------------------------- operations ---

rg_status exchange::refuse(const std::string& why) {
  return strategy_host_.c()->fail(strategy_host_.c()->context, RG_E_PLUGIN, why.c_str());
}

std::uint64_t exchange::now() const {
  return transport_.now && (setup_.caps.flags & RG_CAP_VIRTUAL) ? transport_.now(setup_.transport_self) : steady_ns();
}

rg_status exchange::submit(const rg_op& op) {
  if (device_ && !in_one_memory(op)) return refuse("an operation names both the host's memory and a device's");
  switch (op.kind) {
  case RG_OP_SEND:
  case RG_OP_RECV:
  case RG_OP_ALL_REDUCE:
  case RG_OP_REDUCE_SCATTER:
  case RG_OP_ALL_GATHER:
  case RG_OP_BROADCAST: return transfer(op);
  case RG_OP_FILL:
  case RG_OP_COPY:
  case RG_OP_AXPY:
  case RG_OP_SCALE:
  case RG_OP_CLIP:
  case RG_OP_ACCUMULATE: return arithmetic(op);
  case RG_OP_CONVERT: return convert(op);
  case RG_OP_TOP_K:
  case RG_OP_SELECT: return select(op);
  case RG_OP_APPLY:
  case RG_OP_NORM:
  case RG_OP_COMMIT: return update(op);
  case RG_OP_ROWS_READ:
  case RG_OP_ROWS_ADD:
  case RG_OP_ROWS_APPLY:
  case RG_OP_ROWS_WRITE:
  case RG_OP_GATHER:
  case RG_OP_SCATTER: return rows(op);
  case RG_OP_TIMER: end_later(op, static_cast<std::uint64_t>(std::max(0.0, op.a)), 0); return RG_OK;
  default: return refuse(fmt::format("operation {} is unknown to this engine", op.kind));
  }
}

rg_status exchange::transfer(const rg_op& op) {
  const rg_buffer& b = op.kind == RG_OP_SEND ? op.source : op.target;
  if (!regions_.contains(b)) return refuse("a transfer names memory outside its region");
  const bool crosses = (op.kind != RG_OP_SEND && op.kind != RG_OP_RECV) || op.peer != setup_.rank;
  if (device_ && crosses && !regions_.on_device(b) && !(setup_.caps.memory & RG_MEMORY_HOST))
    return refuse("a transfer names the host's memory, which this transport cannot reach: take alloc() for it, or run "
                  "over shm or tcp");
  order(op);
  if (op.kind != RG_OP_SEND && op.kind != RG_OP_RECV) return collective(op);
  if (op.peer >= cluster_.size || op.lane >= setup_.lanes)
    return refuse(fmt::format("a transfer with rank {} on lane {}: there are {} ranks and {} lanes", op.peer, op.lane,
                              cluster_.size, setup_.lanes));
  const bool add = op.flags & RG_OP_ADD;
  if (add && b.type != RG_F32 && b.type != RG_F64) return refuse("a receive that adds is of RG_F32 or RG_F64");
  if (op.wire && op.wire != RG_F32 && (b.type != RG_F32 || (op.wire != RG_F16 && op.wire != RG_BF16)))
    return refuse("a transfer converts RG_F32 to RG_F16 or RG_BF16, nothing else");
  const std::uint32_t wire = op.wire == RG_F32 ? 0 : op.wire;
  if (op.kind == RG_OP_SEND)
    transfers_.send(op.cookie, op.peer, op.lane, b, wire);
  else
    transfers_.recv(op.cookie, op.peer, op.lane, b, add, wire);
  return RG_OK;
}

rg_status exchange::collective(const rg_op& op) {
  const auto [function, name] = native(op.kind);
  if (!function) return refuse(fmt::format("{}: the transport has none", name));
  const bool sums = op.kind == RG_OP_ALL_REDUCE || op.kind == RG_OP_REDUCE_SCATTER;
  if (sums && op.target.type != RG_F32) return refuse(fmt::format("{}: of something else than RG_F32", name));
  transfers_.collective(op.cookie, function, op.group, op.peer, op.target);
  return RG_OK;
}

std::pair<transfers::collective_function, const char*> exchange::native(std::uint32_t kind) const {
  switch (kind) {
  case RG_OP_ALL_REDUCE: return {collectives_.all_reduce, "all-reduce"};
  case RG_OP_REDUCE_SCATTER: return {collectives_.reduce_scatter, "reduce-scatter"};
  case RG_OP_ALL_GATHER: return {collectives_.all_gather, "all-gather"};
  default: return {collectives_.broadcast, "broadcast"};
  }
}

rg_status exchange::update(const rg_op& op) {
  const bool as_server = op.flags & RG_OP_AS_SERVER;
  optimizer& o = as_server ? *server_optimizer_ : *worker_optimizer_;
  order(op);
  const std::uint64_t begin = steady_ns();
  std::uint64_t bytes = 0;
  if (op.kind == RG_OP_APPLY) {
    if (!regions_.contains(op.source) || op.source.type != RG_F32)
      return refuse("apply: the gradient is no buffer of RG_F32");
    if (device_ && !regions_.on_device(op.source)) return refuse("apply: the gradient is not where the weights are");
    if (!regions_.ghosts())
      timed(as_server, [&] { o.apply(op.first, regions_.elements<const float>(op.source), op.step); });
    bytes = op.source.count * sizeof(float) * 5; // reads and writes weights and state, reads the gradient
  } else {
    const rg_buffer& b = op.kind == RG_OP_NORM ? op.target : op.source;
    if (!regions_.contains(b) || b.type != RG_F64 || b.count != 2)
      return refuse("norm, commit: two elements of RG_F64");
    if (device_ && !regions_.on_device(b)) return refuse("norm, commit: not where the weights are");
    auto* const pair = static_cast<double*>(regions_.address(b));
    // The host needs the norm, to know how much to clip or whether to skip the update.
    if (op.kind == RG_OP_COMMIT && device_) {
      auto seen = pinned_pair();
      device_->copy(seen.get(), pair, 2 * sizeof(double));
      await(op, std::move(seen));
      return RG_OK;
    }
    if (pair && op.kind == RG_OP_COMMIT) {
      commit(op, pair);
    } else if (pair) {
      o.partial(pair);
      add_norm_of_rows(as_server, pair);
    }
  }
  update_ns_[as_server] += steady_ns() - begin;
  return worked(op, bytes);
}

void exchange::add_norm_of_rows(bool as_server, double* pair) {
  if (tables_->list().empty()) return;
  const auto rows = tables_->partial(as_server);
  double mine[] = {static_cast<double>(rows.not_finite), rows.sum_of_squares};
  auto w = rg::make_versioned<rg_work>();
  w.kind = RG_OP_AXPY;
  w.type = w.source_type = RG_F64;
  w.target = pair;
  w.source = mine;
  w.count = 2;
  w.a = 1;
  if (device_) w.source = std::memcpy(norm_of_rows_[as_server].get(), mine, sizeof mine);
  unit_.run(w);
}

template <class F> void exchange::timed(bool as_server, F&& f) {
  constexpr std::size_t most = 600; // of three steps; the device keeps only a limited number of timing marks
  const bool marks = device_ && device_->tells_time() && !as_server && updates_.size() < most;
  const rg_fence from = marks ? device_->mark(device::computing) : 0;
  f();
  if (marks) updates_.push_back({from, device_->mark(device::computing)});
}

void exchange::take_updates(std::vector<device::span>& out) {
  out.clear();
  out.swap(updates_);
}

void exchange::commit(const rg_op& op, const double* total) {
  const bool as_server = op.flags & RG_OP_AS_SERVER;
  timed(as_server, [&] {
    (as_server ? *server_optimizer_ : *worker_optimizer_).commit({total[0], total[1]}, op.step);
  });
  tables_->commit(as_server, {total[0], total[1]}, op.step);
}

rg_status exchange::rows(const rg_op& op) {
  for (const rg_buffer* b : {&op.target, &op.source, &op.index})
    if (regions_.on_device(*b)) return refuse("operations on rows are in the host's memory only");
  const std::uint64_t begin = steady_ns();
  const std::uint64_t bytes = tables_->operate(op);
  if (op.kind != RG_OP_GATHER && op.kind != RG_OP_SCATTER)
    update_ns_[(op.flags & RG_OP_AS_SERVER) != 0] += steady_ns() - begin;
  return worked(op, bytes);
}

rg_status exchange::worked(const rg_op& op, std::uint64_t bytes) {
  if (!(setup_.caps.flags & RG_CAP_VIRTUAL)) return RG_DONE;
  end_later(op, virtual_ns(bytes), 0);
  return RG_OK;
}

void exchange::end_later(const rg_op& op, std::uint64_t ns, std::uint64_t bytes) {
  timers_.push({now() + ns, timer_order_++, op.cookie, bytes});
}

// ------------------------------------------------------------------------------------------------------- loop ---

void exchange::ask(rg_status status, const char* what) {
  if (status >= 0) return; // building the text would cost more than a small message
  check(status, strategy_host_, fmt::format("strategy {}: {}", setup_.strategy_id, what));
}

void exchange::begin(activity a, std::uint64_t step) {
  const rg_strategy& s = *setup_.strategy;
  const auto begun = [&](auto slot, auto... arguments) {
    if (slot) {
      running_[a] = true;
      ask(slot(self_, arguments..., a), name_of(a));
    }
  };
  const rg_rows* rows = tables_->rows().data();
  switch (a) {
  case begin_step:
    step_ = step;
    next_bucket_ = 0;
    ready_.store(0, std::memory_order_relaxed);
    fenced_ = ordered_ = 0;
    stepping_ = true;
    begun(s.begin_step, step, rows, arena_.table_count);
    break;
  case end_step:
    give_gradients();
    begun(s.end_step, step);
    if (!s.end_step) stepping_ = false;
    break;
  case serve: begun(s.serve); break;
  case finish: begun(s.finish); break;
  case pull_rows:
    if (!s.pull_rows)
      throw failure(exit_code::plugin,
                    fmt::format("strategy {} exchanges rows but has no pull_rows(): a model with sparse "
                                "tables cannot be evaluated",
                                setup_.strategy_id));
    begun(s.pull_rows, rows, arena_.table_count);
    break;
  }
  // An activity that fails before it waits for anything is already over, and poll() may never be called for it.
  require_success();
}

void exchange::end_activity(std::uint64_t which, rg_status status) {
  mark_weights();
  const bool known = which < running_.size() && running_[which];
  if (known) running_[which] = false;
  if (which == end_step) stepping_ = false;
  if (known && status >= RG_OK && status <= RG_TIMEOUT) return;
  fail([&] {
    if (!known)
      throw failure(exit_code::plugin, fmt::format("strategy {}: done({}): no activity of this number is under way",
                                                   setup_.strategy_id, which));
    const std::string name =
        fmt::format("strategy {}: {}{}", setup_.strategy_id, name_of(which),
                    which == end_step || which == begin_step ? fmt::format(" of step {}", step_) : "");
    check(status, strategy_host_, name);
    throw failure(exit_code::plugin,
                  fmt::format("{} ends with status {}, which the interface does not have", name, status));
  });
}

void exchange::fail(const std::function<void()>& throws) noexcept {
  try {
    throws();
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
}

void exchange::require_success() const {
  if (failure_) std::rethrow_exception(failure_); // the strategy's own message comes first
  transfers_.require_success();
}

void exchange::gradients_ready(std::uint64_t end, rg_fence fence) noexcept {
  if (device_)
    for (; fenced_ < bucket_ends_.size() && bucket_ends_[fenced_] <= end; ++fenced_) bucket_fences_[fenced_] = fence;
  ready_.store(end, std::memory_order_release);
}

bool exchange::give_gradients() {
  const std::uint32_t first = next_bucket_;
  const std::uint64_t ready = ready_.load(std::memory_order_acquire);
  while (stepping_ && next_bucket_ < bucket_ends_.size() && bucket_ends_[next_bucket_] <= ready) {
    const std::uint32_t bucket = next_bucket_++;
    const rg_fence fence = device_ ? bucket_fences_[bucket] : 0;
    if (setup_.strategy->on_gradient) ask(setup_.strategy->on_gradient(self_, step_, bucket, fence), "on_gradient");
  }
  return next_bucket_ != first;
}

std::uint64_t exchange::next_timer() const {
  return timers_.empty() ? std::numeric_limits<std::uint64_t>::max() : timers_.top().at;
}

bool exchange::poll(std::uint64_t timeout_ns, std::uint64_t spin_ns) {
  bool moved = give_gradients();
  if (!timers_.empty()) {
    const std::uint64_t t = now(), at = timers_.top().at;
    timeout_ns = std::min(timeout_ns, at > t ? at - t : 0);
  }
  transfers_.poll(timeout_ns, spin_ns, completions_);
  while (!timers_.empty() && timers_.top().at <= now()) {
    rg_completion c{};
    c.cookie = timers_.top().cookie;
    c.bytes = timers_.top().bytes;
    timers_.pop();
    completions_.push_back(c);
  }
  if (!awaited_.empty()) end_awaited();
  if (!completions_.empty()) {
    moved = true;
    delivering_.swap(completions_); // operations that the strategy submits now end in the next round
    const rg_status status =
        setup_.strategy->completed(self_, delivering_.data(), static_cast<std::uint32_t>(delivering_.size()));
    delivering_.clear(); // also after a failure: a completion is delivered once
    ask(status, "completed");
  }
  moved |= give_gradients();
  require_success();
  return moved;
}

} // namespace regatta
