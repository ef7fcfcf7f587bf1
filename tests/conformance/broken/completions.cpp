// SPDX-License-Identifier: Apache-2.0
//
// The example transport; after some correct completions, one breaks a rule.
#include "unix.hpp"

#include <optional>
#include <string>

namespace {

struct miscounts : unix_transport {
  struct parameters {
    std::string how = "twice";
  };
  static constexpr auto fields =
      rg::fields(rg::field("how", &parameters::how, "the rule that is broken")
                     .one_of("twice", "twice_later", "cookie", "status_5", "error", "bytes"));

  miscounts(const rg_host* host, const parameters& p) : unix_transport(host, {}), how_(p.how) {}

  rg_status send(const rg_transfer& t) {
    sends_.push_back(t.cookie);
    return unix_transport::send(t);
  }
  std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out) {
    std::uint32_t count = unix_transport::poll(timeout_ns, spin_ns, out.first(out.size() - 1));
    for (std::uint32_t i = 0; i < count && seen_ <= good; ++i) {
      const bool sent = std::find(sends_.begin(), sends_.end(), out[i].cookie) != sends_.end();
      if (seen_ < good || sent != (how_ != "bytes")) {
        seen_ += seen_ < good;
        old_ = out[i];
        continue;
      }
      ++seen_;
      if (how_ == "twice") out[count++] = out[i];
      if (how_ == "twice_later") out[count++] = *old_;
      if (how_ == "cookie") out[i].cookie = 0xdeadbeef;
      if (how_ == "status_5") out[i].status = 5;
      if (how_ == "error") out[i].status = RG_E_OPERATION;
      if (how_ == "bytes") out[i].bytes += 1 << 20;
      break;
    }
    return count;
  }

private:
  static constexpr std::uint32_t good = 8;
  std::string how_;
  std::uint32_t seen_ = 0;
  std::optional<rg_completion> old_;
  std::vector<std::uint64_t> sends_;
};

} // namespace

RG_PLUGIN("broken_completions", "1.0",
          rg::transport<miscounts>("miscounts", "broken: completions come twice, or of nothing"))
