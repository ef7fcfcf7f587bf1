// SPDX-License-Identifier: Apache-2.0
//
// The example transport, each time with one defect: what the conformance suite is there to find.
#include <regatta/transport.hpp>

#pragma push_macro("RG_PLUGIN")
#undef RG_PLUGIN
#define RG_PLUGIN(...)
#include "../../../examples/custom_transport/unix_sockets.cpp"
#pragma pop_macro("RG_PLUGIN")

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace {

// Of two messages sent one after the other, the second goes first.
struct reorders : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    auto& held = held_[{t.peer, t.lane}];
    if (!held) {
      held = t;
      return RG_OK;
    }
    unix_transport::send(t);
    unix_transport::send(*held);
    held.reset();
    return RG_OK;
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    for (auto& [where, held] : held_) {
      if (held) unix_transport::send(*held);
      held.reset();
    }
    return unix_transport::poll(timeout_ns, spin_ns, out);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::optional<rg_transfer>> held_;
};

// A send is complete as soon as it is begun, though its bytes have not left yet.
struct completes_early : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    early_.push_back({.cookie = t.cookie, .status = RG_OK, .bytes = t.buffer.count});
    said_.insert(t.cookie);
    return unix_transport::send(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::uint32_t count = 0;
    for (; count < out.size() && !early_.empty(); early_.pop_front()) out[count++] = early_.front();
    if (count) return count;
    const std::uint32_t ended = unix_transport::poll(timeout_ns, spin_ns, out);
    for (std::uint32_t i = 0; i < ended; ++i)
      if (!said_.erase(out[i].cookie)) out[count++] = out[i];
    return count;
  }
  std::deque<rg_completion> early_;
  std::set<std::uint64_t> said_;
};

struct loses_last_byte : unix_transport {
  using unix_transport::unix_transport;
  rg_status send(const rg_transfer& t) {
    rg_transfer less = t;
    if (less.buffer.count > 4096 && less.buffer.type == RG_U8) --less.buffer.count;
    return unix_transport::send(less);
  }
};

struct spins : unix_transport {
  using unix_transport::unix_transport;
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t, std::span<rg_completion> out) {
    return unix_transport::poll(timeout_ns, timeout_ns, out);
  }
};

struct counts_nothing : unix_transport {
  using unix_transport::unix_transport;
  rg_counters counters() const { return {}; }
};

struct crashes_on_cancel : unix_transport {
  using unix_transport::unix_transport;
  void cancel(std::uint32_t) { std::abort(); }
};

struct leaves_a_file : unix_transport {
  leaves_a_file(const rg_host* host, const rg::parameters_t<unix_transport>& p) : unix_transport(host, p) {
    std::ofstream(std::filesystem::temp_directory_path() / ("left-by-" + std::to_string(::getpid()))) << "mine\n";
  }
};

// Refuses one of the modes that its own table allows, without a word.
struct refuses_a_choice : unix_transport {
  struct parameters {
    std::string mode = "eager";
  };
  static constexpr auto fields =
      rg::fields(rg::field("mode", &parameters::mode, "how it behaves").one_of("eager", "rendezvous"));
  refuses_a_choice(const rg_host* host, const parameters& p) : unix_transport(host, {}) {
    if (p.mode == "rendezvous") throw rg::error(RG_E_CONFIG, "");
  }
};

} // namespace

RG_PLUGIN("broken_transports", "1.0", rg::transport<reorders>("reorders", "broken: swaps messages"),
          rg::transport<completes_early>("completes_early", "broken: a send is over before its bytes are safe"),
          rg::transport<loses_last_byte>("loses_last_byte", "broken: long messages arrive a byte shorter"),
          rg::transport<spins>("spins", "broken: uses a core while it waits"),
          rg::transport<counts_nothing>("counts_nothing", "broken: has no counters"),
          rg::transport<crashes_on_cancel>("crashes_on_cancel", "broken: aborts"),
          rg::transport<leaves_a_file>("leaves_a_file", "broken: a file for every instance"),
          rg::transport<refuses_a_choice>("refuses_a_choice", "broken: not every value of its table will do"))
