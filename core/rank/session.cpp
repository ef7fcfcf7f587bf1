// SPDX-License-Identifier: Apache-2.0
#include "rank/session.hpp"

#include "base/failure.hpp"
#include "rank/inspection.hpp"
#include "registry/validate.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr std::uint64_t connect_timeout_ns = 20'000'000'000;
constexpr std::uint64_t close_timeout_ns = 10'000'000'000;
constexpr std::size_t state_margin = 16; // in floats: a cache line

std::vector<std::filesystem::path> paths_of(const std::vector<std::string>& files) {
  return {files.begin(), files.end()};
}

} // namespace

session::session(control_client& c, rank_job j, std::uint32_t r)
    : control(c), job(std::move(j)), rank(r), cluster(job.layout.view(r)),
      plugins_(registry::of_files(paths_of(job.files))),
      log_([this](int level, const std::string& text) { control.log(level, text); }),
      transport_host_(plugins_, log_,
                      [this](std::string_view id) -> const void* {
                        if (id == RG_EXT_PLACE) return &place_;
                        return id == RG_EXT_AUTHENTICATE ? &authenticate_ : nullptr;
                      }),
      strategy_host_(log_), strategy_(plugins_.find(kind::strategy, job.config.strategy.id)),
      transport_(plugins_.find(kind::transport, job.config.transport.id)),
      strategy_values_(strategy_, job.config.strategy.parameters),
      transport_values_(transport_, job.config.transport.parameters), report_(
                                                                          c, [this] { wake(); },
                                                                          [this] {
                                                                            const rg_counters n = counters();
                                                                            return n.bytes_sent + n.bytes_received;
                                                                          }) {
  place_ = rg::make_versioned<rg_place>();
  place_.memory = RG_MEMORY_HOST;
  authenticate_ = rg::make_versioned<rg_authenticate>();
  authenticate_.context = &control;
  authenticate_.mac = [](void* context, const void* data, std::uint64_t bytes, std::uint8_t* out) -> rg_status {
    return rg::fence(nullptr, [&] { static_cast<control_client*>(context)->mac(data, bytes, out); });
  };
  plan_ =
      plan_of(strategy_.strategy, strategy_values_.data(), job.layout, job.optimizer(), strategy_host_, strategy_.id);
}

session::~session() {
  report_.end_watch();
  if (device_) device_->silence(); // the device wakes the transport
  exchange_.reset();               // its regions belong to the transport
  if (void* self = transport_self_.exchange(nullptr)) transport_.transport.destroy(self);
}

void session::wake() {
  if (void* self = transport_self_.load()) transport_.transport.wake(self);
}

void session::open() {
  const bool worker = cluster.worker >= 0;
  control.operation("making the model", pace::rare);
  rg_model_setup model_setup =
      model_setup_of(job.config, job.batch / static_cast<std::uint64_t>(job.config.train.accumulate),
                     worker ? RG_PURPOSE_TRAIN : RG_PURPOSE_INIT, job.kernels.empty() ? nullptr : job.kernels.c_str());
  model_setup.device = place_.device = device_of(plugins_, job.config.train.device, rank);
  model_ = std::make_unique<model_instance>(plugins_, job.config.model, job.config.train.device, model_setup, log_);
  device_ = open_device(plugins_, job.config.train.device, place_.device, log_, [this] { wake(); });
  if (device_) place_.memory = device_->memory();
  const std::string layout = model_->info().layout ? model_->info().layout : "";
  const auto layouts = control.exchange("layout", blob(layout.begin(), layout.end()));
  for (std::size_t r = 0; r < layouts.size(); ++r)
    if (layouts[r] != layouts[0])
      throw failure(exit_code::run,
                    fmt::format("ranks 0 and {} lay out the weights in different ways: their machines have "
                                "different instruction sets; run on machines of one kind",
                                r));
  if (worker) {
    control.operation("opening the data", pace::unseen);
    data_ = make_source(job.config.data, model_->inputs(), job.config.seed);
    model_->tell_frequencies([this](std::size_t input) { return data_->frequencies(input); });
  }
  if (model_->has_tables())
    row_model_ = std::make_unique<model_instance>(
        plugins_, job.config.model, job.config.train.device,
        model_setup_of(job.config, job.batch / static_cast<std::uint64_t>(job.config.train.accumulate), RG_PURPOSE_INIT,
                       nullptr),
        log_);
  connect();
  exchange_setup setup{};
  setup.strategy = &strategy_.strategy;
  setup.values = strategy_values_.data();
  setup.strategy_id = strategy_.id;
  setup.transport = &transport_.transport;
  setup.transport_id = transport_.id;
  setup.transport_self = transport_self_;
  setup.caps = caps_;
  setup.transport_host = &transport_host_;
  setup.layout = job.layout;
  setup.rank = rank;
  setup.lanes = plan_.lanes;
  setup.tensors = model_->tensors();
  setup.micro_batches = static_cast<std::uint64_t>(job.config.train.accumulate);
  setup.rows_in_place = model_->info().flags & RG_MODEL_ROWS_IN_PLACE;
  setup.optimizer = job.optimizer();
  if (setup.optimizer.schedule.unit == "epoch") setup.optimizer.schedule.epoch_steps = epoch_steps();
  setup.momentum = hand_over_momentum(plan_, strategy_.id, setup.optimizer);
  setup.seed = job.config.seed;
  setup.device = device_.get();
  setup.initial_weights = [this](std::uint64_t first, std::uint64_t count, float* out) {
    fill_shard(first, count, out);
  };
  setup.initial_rows = [this](std::uint32_t tensor, std::span<const std::uint64_t> rows, float* out) {
    row_model_->init(tensor, rows, job.config.seed, out);
  };
  setup.log = [this](int level, const std::string& text) {
    if (level == RG_LOG_WARNING)
      strategy_warnings_.push_back(text);
    else
      log_(level, text);
  };
  exchange_ = std::make_unique<regatta::exchange>(std::move(setup));
  if (worker) load_weights();
  control.operation("starting the strategy", pace::rare);
  exchange_->start();
  report_.watch(*exchange_);
}

// Returns the steps of one epoch of worker 0's dataset; 0 if it has no end. Servers take part, because their schedules
// need it.
double session::epoch_steps() {
  const double mine =
      cluster.worker == 0 ? static_cast<double>(data_->size()) / static_cast<double>(job.global_batch()) : 0;
  return control.sum("epoch", {mine})[0];
}

void session::connect() {
  control.operation("connecting to its peers", pace::rare);
  const rg_transport& t = transport_.transport;
  void* self = nullptr;
  check(t.create(transport_host_.c(), transport_values_.data(), &self), transport_host_, "transport " + transport_.id);
  transport_self_ = self;
  caps_ = rg::make_versioned<rg_transport_caps>();
  check(t.caps(self, &caps_), transport_host_, "transport " + transport_.id);
  validate(caps_, "transport " + transport_.id);
  if (model_->has_tables() && !(caps_.memory & RG_MEMORY_HOST))
    throw failure(exit_code::usage,
                  fmt::format("transport {} cannot reach the rows of sparse tables, which are kept in the host's "
                              "memory: use shm or tcp",
                              transport_.id));

  const rg_cluster all = job.layout.view(UINT32_MAX);
  for (std::uint32_t peer = 0; peer < all.size; ++peer) {
    if (peer == rank) continue;
    if (!strategy_.strategy.talks ||
        strategy_.strategy.talks(strategy_values_.data(), &all, std::min(rank, peer), std::max(rank, peer)))
      peers_.push_back(peer);
  }
  world_ = rg::make_versioned<rg_world>();
  world_.rank = rank;
  world_.size = all.size;
  world_.lanes = plan_.lanes;
  world_.peers = peers_.data();
  world_.peer_count = static_cast<std::uint32_t>(peers_.size());
  world_.host_of = all.host_of;
  world_.address = job.address.c_str();
  rg_blob mine{};
  check(t.listen(self, &world_, &mine), transport_host_, "transport " + transport_.id);
  const auto* data = static_cast<const std::uint8_t*>(mine.data);
  const auto blobs = control.exchange("transport", mine.bytes ? blob(data, data + mine.bytes) : blob{});
  std::vector<rg_blob> views;
  for (const blob& b : blobs) views.push_back({b.data(), b.size()});
  check_in_time(t.connect(self, views.data(), connect_timeout_ns), transport_host_, "transport " + transport_.id);
}

void session::load_weights() {
  control.operation("initialising the weights", pace::rare);
  const rg_arena& arena = exchange_->arena();
  const auto weights = exchange_->weights(), gradients = exchange_->gradients();
  const std::size_t n = model_->tensors().size();
  std::vector<float*> w(n, nullptr), g(n, nullptr);
  std::vector<float> start; // initial values of a tensor on a device
  states_.resize(n);
  for (std::uint32_t i = 0; i < arena.slice_count; ++i) {
    const rg_slice& s = arena.slices[i];
    w[s.tensor] = weights.data() + s.first;
    g[s.tensor] = gradients.data() + s.first;
  }
  processor& unit = device_ ? static_cast<processor&>(*device_) : host_memory_;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t count = rg::storage_of(model_->tensors()[i]);
    if (model_->tensors()[i].kind == RG_TENSOR_STATE) {
      // Zeros before and behind the state show whether the model writes out of bounds.
      auto* const first = static_cast<float*>(unit.allocate((count + 2 * state_margin) * sizeof(float)));
      states_[i] = {first + state_margin, count};
      w[i] = states_[i].data();
    }
    if (!w[i]) continue;
    if (device_) start.assign(count, 0.0f);
    model_->init(static_cast<std::uint32_t>(i), job.config.seed, device_ ? start.data() : w[i]);
    if (device_) device_->write(w[i], start.data(), count * sizeof(float));
  }
  auto memory = rg::make_versioned<rg_model_memory>();
  memory.tensor_count = static_cast<std::uint32_t>(n);
  memory.weights = w.data();
  memory.gradients = g.data();
  memory.memory = place_.memory;
  control.operation("binding the model to its weights", pace::rare);
  model_->ask(model_->functions().bind(model_->self(), &memory), "bind");
}

void session::require_no_damage(const std::string& when) {
  regatta::require_no_damage(*exchange_, when);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].empty()) continue;
    for (const bool behind : {false, true}) {
      const float* const at = behind ? states_[i].data() + states_[i].size() : states_[i].data() - state_margin;
      float margin[state_margin];
      if (device_)
        device_->read(margin, at, sizeof margin);
      else
        std::memcpy(margin, at, sizeof margin);
      if (std::any_of(std::begin(margin), std::end(margin), [](float x) { return x != 0; }))
        report_damage(when, fmt::format("memory {} the state of tensor {}", behind ? "behind" : "before",
                                        model_->tensors()[i].name));
    }
  }
}

void session::average_states() {
  for (const std::span<float> state : states_) {
    if (state.empty()) continue;
    std::vector<float> values(state.size());
    if (device_)
      device_->read(values.data(), state.data(), state.size_bytes());
    else
      values.assign(state.begin(), state.end());
    const auto sums = control.sum("state", std::vector<double>(values.begin(), values.end()));
    std::transform(sums.begin(), sums.end(), values.begin(),
                   [&](double v) { return static_cast<float>(v / cluster.workers); });
    if (device_)
      device_->write(state.data(), values.data(), state.size_bytes());
    else
      std::copy(values.begin(), values.end(), state.begin());
  }
}

// A server's shard may begin and end within a tensor, but a model initialises only whole tensors.
void session::fill_shard(std::uint64_t first, std::uint64_t count, float* out) {
  const rg_arena& arena = exchange_->arena();
  for (std::uint32_t i = 0; i < arena.slice_count; ++i) {
    const rg_slice& s = arena.slices[i];
    const std::uint64_t from = std::max(first, s.first), to = std::min(first + count, s.first + s.count);
    if (from >= to) continue;
    if (filled_tensor_ != s.tensor) {
      filled_.assign(s.count, 0.0f);
      model_->init(s.tensor, job.config.seed, filled_.data());
      filled_tensor_ = s.tensor;
    }
    std::memcpy(out + (from - first), filled_.data() + (from - s.first), (to - from) * sizeof(float));
  }
}

rg_counters session::counters() {
  auto c = rg::make_versioned<rg_counters>();
  if (transport_.transport.counters)
    check(transport_.transport.counters(transport_self_, &c), transport_host_, "transport " + transport_.id);
  return c;
}

void session::close() {
  control.operation("closing the transport", pace::rare);
  check_in_time(transport_.transport.close(transport_self_, close_timeout_ns), transport_host_,
                "transport " + transport_.id);
}

} // namespace regatta
