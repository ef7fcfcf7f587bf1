// SPDX-License-Identifier: Apache-2.0
#include "comm/rank.hpp"

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "base/units.hpp"
#include "comm/patterns.hpp"
#include "comm/plan.hpp"
#include "rank/rank.hpp"
#include "rank/state_report.hpp"
#include "registry/transport_host.hpp"
#include "registry/validate.hpp"
#include "runtime/strategy_host.hpp"

#include <algorithm>
#include <atomic>
#include <optional>

#include <fmt/format.h>
#include <regatta/plugin.hpp>
#include <sys/resource.h>

namespace regatta::comm {
namespace {

constexpr std::uint64_t connect_timeout_ns = 20'000'000'000, close_timeout_ns = 10'000'000'000;
constexpr std::uint64_t least_iterations = 5, most_iterations = 5000;

double cpu_seconds() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(r.ru_utime) + seconds(r.ru_stime);
}

// The transport, connected to all other ranks.
class connection {
public:
  connection(control_client& control, const plan& p)
      : control_(control), component_(component_of(p)), values_(component_, p.transport.parameters),
        host_(
            *plugins_, [this](int level, const std::string& text) { control_.log(level, text); },
            [this](std::string_view id) -> const void* {
              return id == RG_EXT_AUTHENTICATE ? &authenticate_ : nullptr;
            }),
        layout_(cluster_layout::make(p.ranks, 0, false)), name_("transport " + component_.id),
        report_(
            control, [this] { wake(); }, [this] { return bytes(); }) {
    authenticate_ = rg::make_versioned<rg_authenticate>();
    authenticate_.context = &control;
    authenticate_.mac = [](void* context, const void* data, std::uint64_t bytes, std::uint8_t* out) -> rg_status {
      return rg::fence(nullptr, [&] { static_cast<control_client*>(context)->mac(data, bytes, out); });
    };
    const rg_transport& t = functions();
    void* self = nullptr;
    check(t.create(host_.c(), values_.data(), &self), host_, name_);
    self_ = self;
    caps_ = rg::make_versioned<rg_transport_caps>();
    check(t.caps(self, &caps_), host_, name_);
    validate(caps_, name_);
    for (std::uint32_t r = 0; r < p.ranks; ++r)
      if (r != control.rank()) peers_.push_back(r);
    address_ = p.address;
    world_ = rg::make_versioned<rg_world>();
    world_.rank = control.rank();
    world_.size = p.ranks;
    world_.lanes = 1;
    world_.peers = peers_.data();
    world_.peer_count = static_cast<std::uint32_t>(peers_.size());
    world_.host_of = layout_.host_of.data();
    world_.address = address_.c_str();
    rg_blob mine{};
    check(t.listen(self, &world_, &mine), host_, name_);
    const auto* data = static_cast<const std::uint8_t*>(mine.data);
    const auto blobs = control.exchange("transport", mine.bytes ? blob(data, data + mine.bytes) : blob{});
    std::vector<rg_blob> views;
    for (const blob& b : blobs) views.push_back({b.data(), b.size()});
    check_in_time(t.connect(self, views.data(), connect_timeout_ns), host_, name_);
    control.on_death([this](std::uint32_t) { wake(); });
    control.on_describe([this] { return report_.describe(); });
  }
  ~connection() {
    control_.on_describe({});
    control_.on_death({});
    if (void* self = self_.exchange(nullptr)) functions().destroy(self);
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  void close() { check_in_time(functions().close(self_, close_timeout_ns), host_, name_); }

  bool can(const operation& o) const {
    if (o.algorithm != "native") return true;
    const void* c = functions().extension ? functions().extension(self_, RG_EXT_COLLECTIVES) : nullptr;
    return c && has_native(rg::copy_versioned(*static_cast<const rg_collectives*>(c)), o.op);
  }

  exchange_setup setup(const rg_value* values, std::uint64_t elements) {
    auto t = rg::make_versioned<rg_tensor>();
    t.kind = RG_TENSOR_DENSE;
    t.name = "message";
    t.ndim = 1;
    t.shape[0] = static_cast<std::int64_t>(elements);
    exchange_setup x{};
    x.strategy = &pattern_strategy();
    x.values = values;
    x.strategy_id = "comm";
    x.transport = &functions();
    x.transport_id = component_.id;
    x.transport_self = self_;
    x.caps = caps_;
    x.transport_host = &host_;
    x.layout = layout_;
    x.rank = control_.rank();
    x.lanes = 1;
    x.tensors = {t};
    x.optimizer.plugin = "sgd";
    return x;
  }

  state_report& report() { return report_; }

private:
  const component& component_of(const plan& p) {
    plugins_.emplace(registry::of_files({p.files.begin(), p.files.end()}));
    return plugins_->find(kind::transport, p.transport.id);
  }
  const rg_transport& functions() const { return component_.transport; }
  void wake() { functions().wake(self_); }

  // Returns the bytes that this rank has sent and received so far.
  std::uint64_t bytes() {
    auto c = rg::make_versioned<rg_counters>();
    if (functions().counters) check(functions().counters(self_, &c), host_, name_);
    return c.bytes_sent + c.bytes_received;
  }

  control_client& control_;
  std::optional<registry> plugins_;
  const component& component_;
  parameter_values values_;
  rg_authenticate authenticate_{};
  transport_host host_;
  cluster_layout layout_;
  std::string name_, address_;
  std::vector<std::uint32_t> peers_;
  rg_world world_{};
  rg_transport_caps caps_{};
  std::atomic<void*> self_{nullptr}; // atomic: the control thread calls wake()
  state_report report_;
};

// The values of the pattern's parameters, and the memory to which they point.
struct pattern_values {
  pattern_values(const operation& o, const std::vector<std::uint64_t>& c) : what(o), counts(c.begin(), c.end()) {
    values[0].s = what.op.c_str();
    values[1].s = what.algorithm.c_str();
    values[2].ints = counts.data();
    values[2].count = counts.size();
  }
  operation what;
  std::vector<std::int64_t> counts;
  rg_value values[3] = {};
};

// Returns for example "allreduce (ring)".
std::string in_words(const operation& o) {
  return o.algorithm.empty() ? o.op : fmt::format("{} ({})", o.op, o.algorithm);
}

// Measures one operation for all sizes.
class measuring {
public:
  measuring(control_client& control, const plan& p, const operation& o, connection& c)
      : control_(control), report_(c.report()), plan_(p), what_(o), values_(o, p.counts),
        exchange_(c.setup(values_.values, *std::max_element(p.counts.begin(), p.counts.end()))) {
    exchange_.start();
    report_.watch(exchange_);
  }
  ~measuring() { report_.end_watch(); }
  measuring(const measuring&) = delete;
  measuring& operator=(const measuring&) = delete;

  measurement run(std::size_t size) {
    size_ = size;
    measurement m;
    m.what = what_;
    m.bytes = plan_.counts[size] * sizeof(float);
    const std::string name = fmt::format("measuring {} of {}", in_words(what_), exact_bytes(m.bytes));
    control_.operation(name.c_str(), pace::rare); // sizes grow, so the time of one does not predict the next
    m.wrong = checked();
    zero(); // repeated sums of other values would overflow
    const std::uint64_t iterations = warm_up();
    m.seconds.reserve(iterations);
    control_.barrier("measure");
    const double cpu = cpu_seconds();
    std::int64_t begin = steady_ns();
    for (std::uint64_t i = 0; i < iterations; ++i) {
      once();
      const std::int64_t end = steady_ns();
      m.seconds.push_back(1e-9 * static_cast<double>(end - begin));
      begin = end;
    }
    m.cpu_seconds = cpu_seconds() - cpu;
    control_.barrier("measured");
    m.wrong += checked();
    // An iteration of `send` is two messages, there and back; report the time of one.
    if (what_.op == "send")
      for (double& s : m.seconds) s /= 2;
    if (!takes_part(what_.op, control_.rank(), plan_.ranks)) m.seconds.clear();
    return m;
  }

private:
  std::span<float> part(std::span<float> all) const { return all.first(plan_.counts[size_]); }

  void once() {
    exchange_.begin(exchange::end_step, step_of(size_, ++iteration_));
    const waiting_scope waits(control_.status(), waiting::peers);
    while (!exchange_.done(exchange::end_step)) {
      report_.poll(exchange_, plan_.spin_ns);
      if (control_.aborted()) throw peer_failure("ended because another rank failed");
    }
  }

  std::uint64_t checked() {
    fill(control_.rank(), part(exchange_.weights()), part(exchange_.gradients()));
    control_.barrier("check"); // no peer may still read this rank's memory while it fills
    once();
    const std::uint64_t wrong =
        count_wrong(what_.op, control_.rank(), plan_.ranks, part(exchange_.weights()), part(exchange_.gradients()));
    control_.barrier("checked");
    return wrong;
  }

  void zero() {
    for (const auto& all : {exchange_.weights(), exchange_.gradients()}) {
      const auto p = part(all);
      std::fill(p.begin(), p.end(), 0.0F);
    }
  }

  // Warms up for about a tenth of plan::seconds. Returns the number of iterations that take about plan::seconds, from 5
  // to 5000, the same on every rank.
  std::uint64_t warm_up() {
    for (std::uint64_t rounds = 2;; rounds *= 4) {
      const std::int64_t begin = steady_ns();
      for (std::uint64_t i = 0; i < rounds; ++i) once();
      const double seconds = 1e-9 * static_cast<double>(steady_ns() - begin);
      const double mean = control_.sum("warm-up", {seconds}).at(0) / (plan_.ranks * static_cast<double>(rounds));
      if (mean * static_cast<double>(rounds) < 0.1 * plan_.seconds && rounds < most_iterations) continue;
      return static_cast<std::uint64_t>(std::clamp(plan_.seconds / mean, static_cast<double>(least_iterations),
                                                   static_cast<double>(most_iterations)));
    }
  }

  control_client& control_;
  state_report& report_;
  const plan& plan_;
  operation what_;
  pattern_values values_;
  exchange exchange_;
  std::size_t size_ = 0;
  std::uint64_t iteration_ = 0;
};

std::vector<measurement> measure(control_client& control, const plan& p, std::optional<connection>& open) {
  control.operation("connecting to its peers", pace::rare);
  connection& c = open.emplace(control, p);
  std::vector<measurement> all;
  for (const operation& o : p.operations) {
    if (!c.can(o)) continue;
    control.operation(("setting up " + in_words(o)).c_str(), pace::rare);
    measuring m(control, p, o, c);
    control.barrier("ready");
    for (std::size_t size = 0; size < p.counts.size(); ++size) all.push_back(m.run(size));
    control.barrier("operation done"); // a rank must not free memory that peers still read
  }
  control.operation("closing the transport", pace::rare);
  c.close();
  open.reset();
  return all;
}

} // namespace

bool is_job(const control_client& control) {
  return control.job().contains("comm");
}

int run_rank(control_client& control) {
  std::optional<connection> open; // outlives the report: destroying a transport may end the process
  return report_to_coordinator(
      control, [&] { return to_json(measure(control, plan_from_json(control.job().at("comm")), open)); });
}

} // namespace regatta::comm
