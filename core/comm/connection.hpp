// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <regatta/ext/collectives.h>
#include <regatta/plugin.hpp>

#include "cluster/layout.hpp"
#include "comm/patterns.hpp"
#include "comm/plan.hpp"
#include "control/client.hpp"
#include "rank/state_report.hpp"
#include "runtime/connected_transport.hpp"
#include "runtime/strategy_host.hpp"

namespace regatta::comm {

// Returns the layout of a plan: workers only, on its hosts.
inline cluster_layout layout_of(const plan& p) {
  cluster_layout l = cluster_layout::make(p.ranks, 0, false);
  l.host_of = p.host_of;
  return l;
}

// [main] The transport, connected to all other ranks, and what describes this rank to the coordinator.
class connection {
public:
  // Loads the transport. `control` must outlive this object. Throws failure.
  connection(control_client& control, const plan& p)
      : control_(control), plugins_(registry::of_files({p.files.begin(), p.files.end()})), layout_(layout_of(p)),
        transport_(
            plugins_, {p.transport, p.parameters},
            [this](int level, const std::string& text) { control_.log(level, text); },
            [this](const void* data, std::uint64_t size, std::uint8_t* out) { control_.mac(data, size, out); },
            [this](const blob& mine, std::span<const std::uint32_t> members) {
              return control_.exchange("transport", mine, members);
            }),
        report_(control, transport_) {
    layout_.host_of = p.host_of;
    control.on_death([this](std::uint32_t) { transport_.wake(); });
    control.on_describe([this] { return report_.describe(); });
  }
  ~connection() {
    control_.on_describe({});
    control_.on_death({});
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // Creates the transport's instance and connects it; collective. Throws failure. Not part of the constructor: after a
  // failure the transport must outlive its report.
  void connect(const plan& p) {
    std::vector<std::uint32_t> peers;
    for (std::uint32_t r = 0; r < p.ranks; ++r)
      if (r != control_.rank()) peers.push_back(r);
    transport_.create();
    transport_.connect(layout_.view(control_.rank()), 1, std::move(peers), p.addresses);
  }
  void close() { transport_.close(); }

  // Returns whether the transport can do the operation among all ranks: of native ones, not every transport can.
  // Requires connect().
  bool can(const operation& o) {
    if (o.algorithm != "native") return true;
    const void* c = transport_.extension(RG_EXT_COLLECTIVES);
    if (!c) return false;
    const auto collectives = rg::copy_versioned(*static_cast<const rg_collectives*>(c));
    return has_native(collectives, transport_.instance().self, o.op) && has_group_of_all(collectives);
  }

  // Returns the setup of a strategy_host for pattern_strategy() with these values (pattern_values) and an arena of so
  // many fp32 elements. It points into this object and to `values`; a later call changes it. Requires connect().
  strategy_host_setup setup(const rg_value* values, std::uint64_t elements) {
    auto t = rg::make_versioned<rg_tensor>();
    t.kind = RG_TENSOR_DENSE;
    t.type = RG_F32;
    t.name = "message";
    t.ndim = 1;
    elements_ = static_cast<std::int64_t>(elements);
    t.shape = &elements_;
    strategy_host_setup x{};
    x.strategy = &pattern_strategy();
    x.values = values;
    x.strategy_id = "comm";
    x.transport = transport_.instance();
    x.cluster = layout_.view(control_.rank());
    x.lanes = 1;
    x.tensors = {t};
    x.optimizer.plugin = "sgd";
    return x;
  }

  state_report& report() { return report_; }

private:
  // A transport may have collectives for some ranks only, such as those of one host.
  bool has_group_of_all(const rg_collectives& collectives) {
    if (!has_group_of_all_) {
      std::vector<std::uint32_t> all(layout_.size());
      std::iota(all.begin(), all.end(), 0U);
      std::uint32_t group = 0;
      has_group_of_all_ = collectives.split(transport_.instance().self, all.data(), layout_.size(), &group) !=
                          static_cast<rg_status>(RG_E_UNSUPPORTED);
    }
    return *has_group_of_all_;
  }

  control_client& control_;
  registry plugins_;
  cluster_layout layout_; // the transport points into it
  connected_transport transport_;
  std::int64_t elements_ = 0;            // the shape of the one tensor
  std::optional<bool> has_group_of_all_; // null: not asked yet
  state_report report_;
};

// The values of pattern_strategy()'s parameters, and the memory to which they point: do not copy it.
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

} // namespace regatta::comm
