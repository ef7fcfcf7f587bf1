// SPDX-License-Identifier: Apache-2.0
#include "rank/session.hpp"

#include "base/failure.hpp"
#include "cluster/peers.hpp"
#include "cluster/plan.hpp"
#include "rank/inspection.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {

session::session(control_client& c, rank_job j, std::uint32_t r)
    : control(c), job(std::move(j)), rank(r), cluster(job.layout.view(r)),
      plugins_(registry::of_files({job.files.begin(), job.files.end()})),
      trace_(job.config.measure.trace
                 ? std::make_unique<trace_recorder>(trace_recorder::capacity_for(job.layout.size()))
                 : nullptr),
      log_([this](int level, const std::string& text) { control.log(level, text); }),
      place_(rg::make_versioned<rg_arena_memory>()), strategy_plugin_host_(log_),
      strategy_component_(plugins_.find(kind::strategy, job.config.strategy.id)),
      strategy_values_(strategy_component_, job.config.strategy.parameters),
      transport_(
          plugins_, job.config.transport, log_,
          [this](const void* data, std::uint64_t size, std::uint8_t* out) { control.mac(data, size, out); },
          [this](const blob& mine, std::span<const std::uint32_t> members) {
            return control.exchange("transport", mine, members);
          },
          [this](std::string_view id) -> const void* {
            return id == RG_EXT_ARENA_MEMORY ? &place_ : trace_extension(id, event_origin::transport);
          }),
      report_(c, transport_) {
  place_.memory = RG_MEMORY_HOST;
  plan_ = plan_of(strategy_component_.strategy, strategy_values_.data(), job.layout, job.optimizer(),
                  strategy_plugin_host_, strategy_component_.id);
}

session::~session() {
  report_.end_watch();
  if (device_) device_->silence(); // the device wakes the transport
  // After a failure operations are outstanding, such as a receive that a network card or a GPU still writes. They end
  // when the transport is destroyed, and their memory must live until then.
  if (strategy_host_) strategy_host_->forget_transport();
  transport_.destroy(); // it may use the device
  strategy_host_.reset();
}

void session::open() {
  const bool worker = cluster.worker >= 0;
  create_model();
  require_one_layout();
  if (worker) {
    control.operation("opening the data", pace::unseen);
    data_ = make_source(job.config.data, model_->inputs(), job.config.seed);
    model_->tell_frequencies([this](std::size_t input) { return data_->frequencies(input); });
  }
  if (model_->has_tables())
    row_model_ = std::make_unique<model_instance>(
        plugins_, job.config.model, job.config.train,
        model_setup_of(job.config, job.micro_batch(), RG_PURPOSE_INIT, nullptr, false), log_);
  connect();
  strategy_host_ = std::make_unique<strategy_host>(host_setup());
  if (worker) model_memory_->bind(*strategy_host_, place_.memory, control);
  control.operation("starting the strategy", pace::rare);
  strategy_host_->start();
  report_.watch(*strategy_host_);
}

// The extension "regatta.trace/1" of a plugin's host; null without a trace.
const void* session::trace_extension(std::string_view id, event_origin origin) const {
  return trace_ && id == RG_EXT_TRACE ? trace_->extension(origin) : nullptr;
}

// An extension of the model's host and of its executor's. Where no ranks exchange messages, as in a contention control,
// there are no sums over workers.
const void* session::extension(std::string_view id) {
  if (const void* table = trace_extension(id, event_origin::executor)) return table;
  if (id != RG_EXT_STEP_COLLECTIVES || cluster.workers == 1 ||
      !talks(strategy_component_.strategy, strategy_values_.data(), job.layout.view(UINT32_MAX)))
    return nullptr;
  collectives_ = rg::make_versioned<rg_step_collectives>();
  collectives_.workers = cluster.workers;
  collectives_.context = this;
  collectives_.reserve = [](void* self, std::uint64_t count) {
    auto& most = static_cast<session*>(self)->step_numbers_;
    most = std::max(most, count);
  };
  collectives_.all_reduce = [](void* self, const char* name, double* numbers, std::uint64_t count) -> rg_status {
    return static_cast<session*>(self)->sum_over_workers(name, {numbers, count});
  };
  return &collectives_;
}

void session::create_model() {
  control.operation("creating the model", pace::rare);
  rg_model_setup setup =
      model_setup_of(job.config, job.micro_batch(), cluster.worker >= 0 ? RG_PURPOSE_TRAIN : RG_PURPOSE_INIT,
                     job.config.train.kernels == "timed" ? job.kernels.c_str() : nullptr, job.row_major);
  setup.device = place_.device = device_of(plugins_, job.config.train, job.local_rank(rank));
  model_ = std::make_unique<model_instance>(plugins_, job.config.model, job.config.train, setup, log_,
                                            [this](std::string_view id) { return extension(id); });
  device_ = open_device(plugins_, job.config.train, place_.device, log_, [this] { wake(); });
  if (device_) place_.memory = RG_MEMORY_DEVICE;
  model_memory_ = std::make_unique<model_memory>(*model_, device_.get(), job.config.seed);
}

// All ranks must lay out the weights in the same way, because they exchange them by position, and reserve the same sums
// within a step, for which their transports have a lane.
void session::require_one_layout() {
  const std::string layout = fmt::format("{} {}", model_->info().layout ? model_->info().layout : "", step_numbers_);
  const auto layouts = control.exchange("layout", blob(layout.begin(), layout.end()));
  for (std::size_t r = 0; r < layouts.size(); ++r)
    if (layouts[r] != layouts[0])
      throw failure(exit_code::run,
                    fmt::format("ranks 0 and {} lay out the weights in different ways: their machines have "
                                "different instruction sets; run on machines of one kind",
                                r));
}

strategy_host_setup session::host_setup() {
  strategy_host_setup setup{};
  setup.strategy = &strategy_component_.strategy;
  setup.values = strategy_values_.data();
  setup.strategy_id = strategy_component_.id;
  setup.transport = transport_.instance();
  setup.cluster = cluster;
  setup.lanes = plan_.lanes;
  setup.step_numbers = step_numbers_;
  setup.tensors = model_->tensors();
  setup.micro_batches = job.micro_batches();
  setup.rows_in_place = model_->info().flags & RG_MODEL_ROWS_IN_PLACE;
  setup.optimizer = job.optimizer();
  if (setup.optimizer.schedule.unit == "epoch") setup.optimizer.schedule.epoch_steps = epoch_steps();
  setup.momentum = hand_over_momentum(plan_, strategy_component_.id, setup.optimizer);
  setup.seed = job.config.seed;
  setup.device = device_.get();
  setup.trace = trace_.get();
  setup.extensions = [this](std::string_view id) { return trace_extension(id, event_origin::strategy); };
  setup.initial_weights = [this](std::uint64_t first, std::uint64_t count, float* out) {
    model_memory_->initialise(strategy_host_->arena(), first, count, out);
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
  return setup;
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
  transport_.create();
  if (model_->has_tables() && !(transport_.caps().memory & RG_MEMORY_HOST))
    throw failure(exit_code::usage,
                  fmt::format("transport {} cannot reach the rows of sparse tables, which are kept in the host's "
                              "memory: use shm or tcp",
                              transport_.id()));
  const rg_transport_caps& caps = transport_.caps();
  if (step_numbers_ && (caps.p2p != RG_P2P_INDEPENDENT || !(caps.memory & RG_MEMORY_HOST)))
    throw failure(
        exit_code::usage,
        fmt::format("transport.plugin: model {} sums over all workers within a step (such as synchronised batch "
                    "norm), which needs independent lanes and the host's memory: use shm or tcp instead of {}",
                    job.config.model.id, transport_.id()));
  rg_cluster all = job.layout.view(UINT32_MAX);
  if (model_->has_tables()) all.flags = RG_HOST_TABLES;
  transport_.connect(cluster, plan_.lanes + (step_numbers_ ? 1 : 0),
                     peers_of(strategy_component_.strategy, strategy_values_.data(), all, rank, step_numbers_ > 0),
                     job.addresses);
}

void session::require_no_damage(const std::string& when) {
  regatta::require_no_damage(*strategy_host_, when);
  model_memory_->require_no_damage(when);
}

void session::close() {
  control.operation("closing the transport", pace::rare);
  transport_.close();
}

} // namespace regatta
