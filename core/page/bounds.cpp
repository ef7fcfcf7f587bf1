// SPDX-License-Identifier: Apache-2.0
//
// Writes the cost of a step beside its bounds: the least that the machine would allow. A bound is computed from rates
// that were measured before the repeats, or from settings; one that is not known is "unknown", never a guess.
#include <algorithm>

#include <fmt/format.h>

#include "page/sections.hpp"
#include "report/fields.hpp"
#include "report/rounded.hpp"
#include "results/statistics.hpp"

namespace regatta::page {
namespace {

using nlohmann::json;

// A figure of a case beside its bound. Both are in the same unit.
struct bounded {
  std::optional<double> measured, bound;
};

// Returns the median over the repeats of a number of each; std::nullopt if none has it.
template <class Get> std::optional<double> over_repeats(const json& entry, Get get) {
  std::vector<double> values;
  for (const json& repeat : repeats_in(entry))
    if (const std::optional<double> value = get(repeat)) values.push_back(*value);
  return median(values);
}

// The speed of the machine: the highest rates of two CPUs that worked at once before a repeat of any case (disturbances
// only lower them), and the share of its multiply-adds alone that a CPU has beside another one.
struct machine_speed {
  std::optional<double> fma, copy;
  double share_at_once = 1; // about 0.5 for two hyperthreads of one core
};

machine_speed speed_of(const result_view& r) {
  machine_speed speed;
  for (const std::size_t i : r.measured())
    for (const json& repeat : repeats_in(r.entry(i)))
      for (const auto& [rate, path] :
           {std::pair(&machine_speed::fma, "machine.fma"), std::pair(&machine_speed::copy, "machine.copy")})
        if (const auto value = number_at(repeat, path); value && *value > (speed.*rate).value_or(0))
          speed.*rate = value;
  const json hosts = r.document().at("context").value("hosts", json::array());
  const auto share = hosts.empty() ? std::nullopt : number_at(hosts[0], "core_independence.fma");
  if (share && *share > 0) speed.share_at_once = *share;
  return speed;
}

// Whether a kernel of the case multiplies less often than the direct algorithm, whose operations models declare.
bool has_faster_algorithms(const json& entry) {
  const json kernels = entry.value("kernels", json());
  return kernels.is_object() && std::any_of(kernels.begin(), kernels.end(), [](const json& kernel) {
           return kernel.is_string() && kernel.get<std::string>().find("wino") != std::string::npos;
         });
}

// Returns a parameter of the plugin of a case: of "strategy" or "transport"; null if it is unknown. The experiment of
// the context is the first case's, which may have another plugin.
json parameter_of(const result_view& r, std::size_t i, const std::string& kind, const std::string& name) {
  const json id = r.value_of(i, kind + ".plugin"), swept = r.entry(i).at("case");
  if (!id.is_string()) return nullptr;
  for (const std::string& key : {kind + "." + name, kind + "." + id.get<std::string>() + "." + name})
    if (swept.contains(key)) return swept[key];
  for (const json& plugin : r.document().at("context").value("plugins", json::array()))
    if (plugin.value("kind", json()) == kind && plugin.value("id", json()) == id)
      return plugin.value("parameters", json::object()).value(name, json());
  return nullptr;
}

// The processor time of all ranks for one step of a worker, beside the time that a CPU needs for the operations of such
// a step. Only multiply-adds in fp32 are measured; a GPU's are not.
bounded computing(const result_view& r, std::size_t i, const machine_speed& speed) {
  const json& entry = r.entry(i);
  bounded b;
  b.measured = over_repeats(entry, [](const json& repeat) -> std::optional<double> {
    const auto samples = number_at(repeat, "case.samples"), step = number_at(repeat, "case.samples_per_worker_step");
    const json by_rank = value_at(repeat, "case.cpu_seconds");
    if (!samples || !step || *step <= 0 || *samples <= 0 || !by_rank.is_array()) return std::nullopt;
    double used = 0;
    for (const json& seconds : by_rank)
      if (seconds.is_number()) used += seconds.get<double>();
    return used / (*samples / *step);
  });
  const auto operations = number_at(entry, "flops_per_sample"), batch = number_at(entry, "batch_per_worker");
  const bool fp32_on_cpus = r.value_of(i, "train.device") == "cpu" && entry.value("precision", json()) == "fp32";
  if (operations && batch && speed.fma && fp32_on_cpus && !has_faster_algorithms(entry))
    b.bound = *operations * *batch * 2 * speed.share_at_once / *speed.fma;
  return b;
}

// The processor time of a worker's event loop, beside the time of copying what the worker receives. A CPU copies no
// faster than two of them together. The rate holds for data that exceed the caches.
bounded copying(const result_view& r, std::size_t i, const machine_speed& speed) {
  const json& entry = r.entry(i);
  bounded b{number_at(entry, "communication_total"), std::nullopt};
  const auto received = number_at(entry, "bytes.received_per_step.worker");
  constexpr double copied = 16 << 20; // bytes of the buffers with which the rate is measured
  if (received && *received >= copied && speed.copy) b.bound = *received / *speed.copy;
  return b;
}

// The time of a step, beside the time that its bytes take on the link of the transport `shaped`, which alone states a
// bandwidth.
bounded on_the_link(const result_view& r, std::size_t i, const machine_speed&) {
  bounded b{number_at(r.entry(i), "step_seconds.median"), std::nullopt};
  if (r.value_of(i, "transport.plugin") != "shaped") return b;
  const auto rate = swept_number("bandwidth", parameter_of(r, i, "transport", "bandwidth"));
  const auto sent = number_at(r.entry(i), "bytes.sent_per_step.worker"),
             received = number_at(r.entry(i), "bytes.received_per_step.worker");
  constexpr double bits = 8;
  if (rate && rate->first > 0 && sent && received) b.bound = bits * std::max(*sent, *received) / rate->first;
  return b;
}

// The bytes that a worker sends in a step, beside the least with which all workers get the same sums of dense
// gradients: 2 (n - 1) / n of them without a server of its own, else all of them once.
bounded sending(const result_view& r, std::size_t i, const machine_speed&) {
  const json& entry = r.entry(i);
  bounded b{number_at(entry, "bytes.sent_per_step.worker"), std::nullopt};
  const json wire = parameter_of(r, i, "strategy", "wire");
  const double width = wire == "fp32" ? 4 : wire == "bf16" || wire == "fp16" ? 2 : 0;
  const auto parameters = number_at(entry, "parameters"), in_tables = number_at(entry, "table_parameters"),
             workers = number_at(entry, "workers"), servers = number_at(entry, "servers");
  const bool sums = value_at(entry, "fingerprint.synchrony") == "synchronous" && entry.value("lossy", json()) == false;
  if (!sums || width == 0 || !parameters || in_tables.value_or(0) > 0 || !workers || *workers < 2) return b;
  const bool apart = servers.value_or(0) > 0 && r.value_of(i, "cluster.colocate") != true;
  b.bound = width * *parameters * (apart ? 1 : 2 * (*workers - 1) / *workers);
  return b;
}

std::string gap_text(const bounded& b) {
  if (!b.measured || !b.bound || *b.bound <= 0) return "-";
  return fmt::format("{:.2f} x", *b.measured / *b.bound);
}

// The largest of a list by rank, with its path.
page_cell largest_of(const json& entry, const std::string& path) {
  const json list = value_at(entry, path);
  if (!list.is_array()) return {"-", nullptr, ""};
  std::optional<std::size_t> most;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].is_number() && (!most || list[i] > list[*most])) most = i;
  if (!most) return {"-", nullptr, ""};
  return number_cell(list[*most], human_bytes, fmt::format("{}.{}", path, *most));
}

// Cells that are computed here have no path; the texts of their columns have the formula.
page_cell processor_share(const result_view& r, std::size_t i) {
  double cores = 0, used = 0;
  for (const json& host : r.document().at("context").value("hosts", json::array()))
    cores += number_at(host, "cgroup_cpus").value_or(number_at(host, "cores").value_or(0));
  const json by_rank = r.entry(i).value("cpu_seconds", json());
  if (!by_rank.is_array() || cores <= 0) return {"-", nullptr, ""};
  for (const json& seconds : by_rank)
    if (seconds.is_number()) used += seconds.get<double>();
  const auto region =
      over_repeats(r.entry(i), [](const json& repeat) { return number_at(repeat, "case.region_seconds"); });
  if (!region || *region <= 0) return {"-", nullptr, ""};
  return {fmt::format("{} of {}", human_seconds(used), human_seconds(cores * *region)), nullptr, ""};
}

void write_costs(writer& w, const result_view& r) {
  page_table table = r.table_of_cases();
  const auto add = [&](const page_column& column, auto cell) {
    table.columns.push_back(column);
    for (std::size_t i = 0; i < r.size(); ++i) table.rows[i].cells.push_back(cell(i));
  };
  const auto number = [&](const std::string& path, std::string (*text)(double)) {
    return [&r, path, text](std::size_t i) { return number_cell(value_at(r.entry(i), path), text); };
  };
  if (r.shows_marks()) // else only the table of steps has it
    add({"step", "step_seconds.median", "median of all workers' steps", true},
        number("step_seconds.median", human_seconds));
  add({"sent/step", "bytes.sent_per_step.worker", "by a worker", true},
      number("bytes.sent_per_step.worker", human_bytes));
  if (r.shows_marks()) // many cases fill the page
    add({"received/step", "bytes.received_per_step.worker", "by a worker", true},
        number("bytes.received_per_step.worker", human_bytes));
  add({"server sent/step", "bytes.sent_per_step.server", "by a server that is no worker", true},
      number("bytes.sent_per_step.server", human_bytes));
  add({"event loop/step", "communication_total", "processor time of a worker's event loop", true},
      number("communication_total", human_seconds));
  add({"server update/step", "server_update", "", true}, number("server_update", human_seconds));
  if (r.shows_marks()) // many cases fill the page
    add({"processor time", "", "of all ranks in the timed region, of what all cores have in its length", true},
        [&](std::size_t i) { return processor_share(r, i); });
  add({"peak memory", "", "of the largest rank", true},
      [&](std::size_t i) { return largest_of(r.entry(i), "memory_peak_bytes"); });
  remove_empty_columns(table);
  w.subheading("Bytes, processor time and memory");
  w.table(table);
}

// A kind of bound: three columns.
struct bound_columns {
  const char *measured, *path, *measured_tip, *bound, *bound_tip;
  bounded (*of)(const result_view&, std::size_t, const machine_speed&);
  std::string (*text)(double);
};

constexpr bound_columns bound_kinds[] = {
    {"processor/step", "", "processor time of all ranks for one step of a worker", "at FMA peak",
     "operations of a step over the multiply-adds of one of two CPUs that work at once, in fp32; faster algorithms "
     "than "
     "the direct one, such as Winograd's, can be below it",
     computing, human_seconds},
    {"event loop/step", "communication_total", "processor time of a worker's event loop", "at copy rate",
     "received bytes over the rate at which two CPUs copy buffers of 16 MiB; unknown for fewer bytes, which stay in "
     "caches",
     copying, human_seconds},
    {"step", "step_seconds.median", "median of all workers' steps", "on the link",
     "the larger of sent and received over the link's bandwidth: a step cannot be shorter unless it overlaps with the "
     "next one",
     on_the_link, human_seconds},
    {"sent/step", "bytes.sent_per_step.worker", "by a worker", "least",
     "of dense gradients, with which all n workers get the same sums: 2 (n - 1) / n of them, or all of them once with "
     "servers of their own",
     sending, human_bytes}};

// Returns the kinds of bounds that are known for no case, in words.
std::string unknown_kinds(const std::vector<const bound_columns*>& unknown) {
  std::string names;
  for (const bound_columns* kind : unknown) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", kind->bound);
  return names;
}

void write_gaps(writer& w, const result_view& r) {
  const machine_speed speed = speed_of(r);
  page_table table = r.table_of_cases();
  std::vector<const bound_columns*> unknown;
  for (const bound_columns& kind : bound_kinds) {
    std::vector<bounded> all(r.size());
    for (const std::size_t i : r.measured()) all[i] = kind.of(r, i, speed);
    if (std::none_of(all.begin(), all.end(), [](const bounded& b) { return b.bound.has_value(); })) {
      unknown.push_back(&kind);
      continue;
    }
    const std::string path = kind.path;
    if (r.shows_marks()) {
      table.columns.push_back({kind.measured, path, kind.measured_tip, true});
      table.columns.push_back({kind.bound, "", kind.bound_tip, true});
    }
    table.columns.push_back({r.shows_marks() ? "gap" : kind.bound, "",
                             fmt::format("{}, over \"{}\": {}", kind.measured, kind.bound, kind.bound_tip), true});
    for (std::size_t i = 0; i < r.size(); ++i) {
      page_row& row = table.rows[i];
      const auto cell = [&](const std::optional<double>& value) {
        return page_cell{value ? kind.text(*value) : "unknown", nullptr, ""};
      };
      if (r.shows_marks()) {
        row.cells.push_back(path.empty() ? cell(all[i].measured) : number_cell(value_at(r.entry(i), path), kind.text));
        row.cells.push_back(cell(all[i].bound));
      }
      row.cells.push_back({gap_text(all[i]), nullptr, ""});
    }
  }
  w.subheading("Beside what the machine would allow");
  if (unknown.size() < std::size(bound_kinds)) {
    w.table(table);
    w.note(std::string(r.shows_marks() ? "gap: the figure before it over its bound" : "Each figure over its bound") +
           "; 1 would leave nothing to gain. If other programs used the machine before every repeat, its rates are too "
           "low, and so are the gaps.");
  }
  if (!unknown.empty())
    w.note("Unknown for all cases: " + unknown_kinds(unknown) +
           ". The machine's rates come from the repeats, operations from the model, and the link's bandwidth from the "
           "transport shaped.");
}

} // namespace

void write_bounds(writer& w, const result_view& r) {
  write_costs(w, r);
  write_gaps(w, r);
}

} // namespace regatta::page
