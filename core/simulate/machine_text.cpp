// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "config/toml_document.hpp"
#include "simulate/machine_file.hpp"
#include "text/values.hpp"

#include <cmath>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;
using curve = std::vector<std::pair<double, double>>;

std::string rounded(double x) {
  return fmt::format("{:.4g}", x);
}
std::string ns_text(double ns) {
  return "\"" + exact_nanoseconds(std::llround(ns)) + "\"";
}
std::string list_of(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double x : numbers) texts.push_back(rounded(x));
  return "[" + join(texts) + "]";
}
std::string list_of(const curve& points, double std::pair<double, double>::*member) {
  std::vector<double> numbers;
  for (const auto& p : points) numbers.push_back(p.*member);
  return list_of(numbers);
}
std::string text_of(const std::string& text) {
  return toml_literal(json(text));
}

} // namespace

std::string machine_text(const machine_file& m) {
  std::string out = "schema = \"regatta.machine/1\"\n\n[machine]\n";
  const auto line = [&](const char* key, const std::string& value) { out += fmt::format("{} = {}\n", key, value); };
  line("name", text_of(m.name));
  line("date", text_of(m.date));
  line("cpu", text_of(m.cpu));
  line("cores", rounded(m.cores));
  if (!m.model.empty()) {
    out += "\n[model]\n";
    line("plugin", text_of(m.model));
    if (!m.fingerprint.empty()) line("fingerprint", text_of(m.fingerprint));
  }
  out += "\n[compute]\n";
  if (m.tensors.empty() && !(m.after_ns > 0)) {
    line("batch", list_of(m.rates, &std::pair<double, double>::first));
    line("samples_per_second", list_of(m.rates, &std::pair<double, double>::second));
    line("forward_share", rounded(m.forward_share));
    line("share", m.by_bytes ? "\"bytes\"" : "\"even\"");
  } else {
    line("batch", rounded(m.batch));
  }
  if (!m.on_cores) line("on_cores", "false");
  line("input", ns_text(m.input_ns));
  line("other", ns_text(m.other_ns));
  line("variation", rounded(m.variation));
  if (!m.quantiles.empty()) line("quantiles", list_of(m.quantiles));
  if (m.after_ns > 0) line("after", ns_text(m.after_ns));
  for (const tensor_times& t : m.tensors) {
    out += fmt::format("[[compute.tensor]]\nname = {}\nforward = {}\nbackward = {}\n", text_of(t.name),
                       ns_text(t.forward), ns_text(t.backward));
    if (t.variation) line("variation", rounded(*t.variation));
  }
  for (const touched_table& t : m.tables) {
    out += fmt::format("[[compute.table]]\nname = {}\nbatch = {}\n", text_of(t.name), rounded(t.batch));
    line(t.zipf ? "zipf" : "rows", rounded(t.zipf ? *t.zipf : t.rows));
    if (t.draws > 0) line("draws", rounded(t.draws));
  }
  if (!m.contention.empty()) {
    out += "\n[contention]\n";
    line("workers", list_of(m.contention, &std::pair<double, double>::first));
    line("slowdown", list_of(m.contention, &std::pair<double, double>::second));
    if (!m.operation_contention.empty())
      line("operations", list_of(m.operation_contention, &std::pair<double, double>::second));
  }
  out += "\n[work] # ns for each byte that an operation reads or writes\n";
  line("default", rounded(m.work_ns_per_byte));
  for (const auto& [name, each] : m.work_of) line(name.c_str(), rounded(each));
  const auto work = [&](const message_work& w) {
    line("overhead", ns_text(w.overhead_ns));
    line("overhead_per_byte", rounded(w.overhead_ns_per_byte));
    if (!std::isfinite(w.large_from)) return;
    line("large_from", "\"" + exact_bytes(std::llround(w.large_from)) + "\"");
    line("large_factor", rounded(w.large_factor));
  };
  for (const auto& [id, c] : m.transports) {
    out += fmt::format("\n[transport.{}]\n", id);
    line("latency", ns_text(c.latency_ns));
    work(c);
    if (c.send_share != 0.5) line("send_share", rounded(c.send_share));
    line("gap", ns_text(c.gap_ns));
    line("bandwidth", "\"" + fmt::format("{:.4g}Gbit/s", c.bytes_per_ns * 8) + "\"");
    line("add_per_byte", rounded(c.add_ns_per_byte));
    if (c.residual) line("residual", rounded(*c.residual));
    if (c.overhead_in_training && c.overhead_per_byte_in_training) {
      out += "# overheads are so many times those of ping-pong: in a training step, caches are cold\n";
      line("overhead_in_training", rounded(*c.overhead_in_training));
      line("overhead_per_byte_in_training", rounded(*c.overhead_per_byte_in_training));
    }
    if (c.in_training_residual) line("in_training_residual", rounded(*c.in_training_residual));
    if (c.apply_in_training != 1) {
      out += "# `apply` of [work] takes so many times as long on gradients that were received\n";
      line("apply_in_training", rounded(c.apply_in_training));
    }
    if (c.computing_loss) {
      out += "# ns that computing loses for each ns that its core works on messages\n";
      line("computing_loss", rounded(*c.computing_loss));
    }
    if (c.computing_loss_residual) line("computing_loss_residual", rounded(*c.computing_loss_residual));
    if (c.between_hosts) {
      out += fmt::format("[transport.{}.between_hosts]\n", id);
      work(*c.between_hosts);
    }
  }
  out += m.between.residual ? "\n[network] # between hosts, from a result of `regatta comm`\n"
                            : "\n[network] # between hosts: not measured, an assumption to change\n";
  line("bandwidth", "\"" + fmt::format("{:.4g}Gbit/s", m.between.bytes_per_ns * 8) + "\"");
  if (m.between.goodput != 1) line("goodput", rounded(m.between.goodput));
  line("latency", ns_text(m.between.latency_ns));
  if (m.between.residual) line("residual", rounded(*m.between.residual));
  line("servers", m.between.own_servers ? "\"own\"" : "\"shared\"");
  if (m.between.shared_cores) line("cores", "\"shared\"");
  const machine_file::network all;
  const auto others = [&](const machine_file::host& h, const machine_file::host& common) {
    if (h.jitter_ns != common.jitter_ns) line("jitter", ns_text(h.jitter_ns));
    if (h.packet_loss != common.packet_loss) line("loss", rounded(h.packet_loss));
    if (h.link_load != common.link_load) line("link_load", rounded(h.link_load));
    if (h.core_load != common.core_load) line("core_load", rounded(h.core_load));
  };
  others(m.between, all);
  for (const machine_file::tier& t : m.between.tiers)
    out += fmt::format("[[network.tier]]\nhosts = {}\noversubscription = {}\n", rounded(t.hosts),
                       rounded(t.oversubscription));
  for (const auto& [number, h] : m.between.single) {
    out += fmt::format("[[network.host]]\nhosts = {}\n", number);
    if (h.bytes_per_ns != m.between.bytes_per_ns)
      line("bandwidth", "\"" + fmt::format("{:.4g}Gbit/s", h.bytes_per_ns * 8) + "\"");
    if (h.latency_ns != m.between.latency_ns) line("latency", ns_text(h.latency_ns));
    others(h, m.between);
    if (h.leaves_after > 0) line("leaves_after", rounded(h.leaves_after));
    if (h.leaves_at_ns > 0) line("leaves_at", ns_text(h.leaves_at_ns));
  }
  return out;
}

} // namespace regatta
