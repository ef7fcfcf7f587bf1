// SPDX-License-Identifier: Apache-2.0
#include "simulate/machine_file.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "config/diagnostics.hpp"
#include "config/toml_document.hpp"
#include "runtime/virtual_work.hpp"
#include "simulate/measured_rates.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <regatta/abi.h>

namespace regatta {
namespace {

using nlohmann::json;
using curve = std::vector<std::pair<double, double>>;

double between(const curve& points, double x) {
  const auto right = std::ranges::find_if(points, [&](const auto& p) { return p.first >= x; });
  if (right == points.begin()) return right->second;
  if (right == points.end()) return points.back().second;
  const auto left = std::prev(right);
  return left->second + (right->second - left->second) * (x - left->first) / (right->first - left->first);
}

// Reads the tables of one file. Each key that is read is taken out of the list of those that nobody knows.
class reader {
public:
  reader(const std::string& file, const std::string& text) : wrong_(file), file_(file) {
    try {
      root_ = parse_toml(text);
    } catch (const toml_error& e) {
      throw failure(exit_code::usage, fmt::format("{}:{}:{}: error: {}", file, e.at().line, e.at().column, e.what()));
    }
  }

  const std::string& file() const { return file_; }
  const toml_node& root() const { return root_; }
  bool good() const { return wrong_.none(); }
  void end() const {
    if (!wrong_.none()) wrong_.raise({});
  }
  void refuse(const toml_node& at, const std::string& path, const std::string& text) {
    wrong_.add({"", at.at}, path, text);
  }

  // Reports the keys of a table that are not in `known`.
  void only(const toml_node& table, const std::string& path, const std::vector<std::string>& known) {
    for (const toml_member& m : table.members)
      if (std::ranges::find(known, m.name) == known.end())
        wrong_.add({"", m.node.key}, path.empty() ? m.name : path + "." + m.name,
                   fmt::format("unknown key; expected {}{}", join(known), did_you_mean(m.name, known)));
  }
  const toml_node* table(const toml_node& of, const std::string& path, const char* name) {
    const toml_node* const found = of.find(name);
    if (!found) return nullptr;
    if (found->is == toml_node::kind::table) return found;
    refuse(*found, path + name, "expected a table, got " + quoted(*found));
    return nullptr;
  }
  void take(const toml_node& of, const std::string& path, const char* name, std::string& to) {
    const toml_node* const found = of.find(name);
    if (!found) return;
    if (found->scalar.is_string())
      to = found->scalar.get<std::string>();
    else
      refuse(*found, path + name, "expected a text, got " + quoted(*found));
  }
  // Whether the value is `yes`, and not `no`, which is the default. A pair of names, or of true and false.
  template <class T>
  bool take_either(const toml_node& of, const std::string& path, const char* name, const T& no, const T& yes) {
    const toml_node* const found = of.find(name);
    if (!found || found->scalar == json(no)) return false;
    if (found->scalar != json(yes))
      refuse(*found, path + name,
             fmt::format("expected {} or {}, got {}", json(no).dump(), json(yes).dump(), quoted(*found)));
    return true;
  }
  // A number of at least `least`; `unit` reads texts with a unit, null: there are none.
  void take(const toml_node& of, const std::string& path, const char* name, double& to, double least,
            const char* expected, const std::function<std::optional<double>(const std::string&)>& unit = {}) {
    const toml_node* const found = of.find(name);
    if (!found) return;
    if (const auto number = number_of(*found, unit); number && std::isfinite(*number) && *number >= least)
      to = *number;
    else
      refuse(*found, path + name, fmt::format("expected {}, got {}", expected, quoted(*found)));
  }
  void take(const toml_node& of, const std::string& path, const char* name, std::optional<double>& to) {
    double number = -1;
    take(of, path, name, number, 0, "a number from 0");
    if (number >= 0) to = number;
  }
  void take_ns(const toml_node& of, const std::string& path, const char* name, double& to) {
    take(of, path, name, to, 0, "a time such as \"20us\", or a number of ns", [](const std::string& text) {
      const auto ns = parse_nanoseconds(text);
      return ns ? std::optional(static_cast<double>(*ns)) : std::nullopt;
    });
  }
  void take_bytes(const toml_node& of, const std::string& path, const char* name, double& to) {
    take(of, path, name, to, 0, "bytes such as \"512KiB\"", [](const std::string& text) {
      const auto bytes = parse_bytes(text);
      return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
    });
  }
  // A rate as bytes per ns.
  void take_rate(const toml_node& of, const std::string& path, const char* name, double& to) {
    take(of, path, name, to, 1e-9, "a rate such as \"10Gbit/s\"", [](const std::string& text) {
      const auto bits = parse_bits_per_second(text);
      return bits ? std::optional(*bits / 8e9) : std::nullopt;
    });
  }
  // Two lists of equal length, of positive numbers, the first ascending; a single number counts as a list.
  curve take_curve(const toml_node& of, const std::string& path, const char* first, const char* second) {
    const std::vector<double> x = numbers(of, path, first), y = numbers(of, path, second);
    curve all;
    if (x.size() != y.size()) {
      const toml_node* const at = of.find(second) ? of.find(second) : of.find(first);
      refuse(*at, path + second,
             fmt::format("expected as many numbers as {}{} has, {}, got {}", path, first, x.size(), y.size()));
      return all;
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i > 0 && x[i] <= x[i - 1]) refuse(*of.find(first), path + first, "expected ascending numbers");
      all.emplace_back(x[i], y[i]);
    }
    return all;
  }

  // A share of at least 0 and below 1.
  void take_part(const toml_node& of, const std::string& path, const char* name, double& to) {
    constexpr const char* expected = "a number from 0 to 1";
    take(of, path, name, to, 0, expected);
    if (to > 1)
      refuse(*of.find(name), path + name, fmt::format("expected {}, got {}", expected, quoted(*of.find(name))));
  }
  void take_share(const toml_node& of, const std::string& path, const char* name, double& to) {
    take(of, path, name, to, 0, "a number from 0, below 1");
    if (to < 1) return;
    refuse(*of.find(name), path + name, "expected a number from 0, below 1");
    to = 0;
  }
  // Numbers above 0, or whole numbers from `least` on; a single one counts as a list.
  std::vector<double> numbers(const toml_node& of, const std::string& path, const char* name,
                              std::optional<std::int64_t> least = {}) {
    std::vector<double> all;
    const toml_node* const found = of.find(name);
    if (!found) return all;
    const std::vector<toml_node> one = {*found};
    for (const toml_node& n : found->is == toml_node::kind::array ? found->items : one)
      if (least ? n.scalar.is_number_integer() && n.scalar.get<std::int64_t>() >= *least
                : n.scalar.is_number() && n.scalar.get<double>() > 0)
        all.push_back(n.scalar.get<double>());
      else
        refuse(n, path + name,
               fmt::format("expected {}, got {}",
                           least ? fmt::format("whole numbers from {}", *least) : "numbers above 0", quoted(n)));
    return all;
  }

private:
  static std::optional<double> number_of(const toml_node& n,
                                         const std::function<std::optional<double>(const std::string&)>& unit) {
    if (n.scalar.is_number()) return n.scalar.get<double>();
    if (unit && n.scalar.is_string()) return unit(n.scalar.get<std::string>());
    return {};
  }

  diagnostics wrong_;
  std::string file_;
  toml_node root_;
};

// The rows of one sparse table; without a batch of their own they are of a step of `batch` samples.
void read_table(reader& r, const toml_node& t, double batch, touched_table& to) {
  const std::string path = "compute.table.";
  r.only(t, "compute.table", {"name", "batch", "rows", "zipf", "draws"});
  r.take(t, path, "name", to.name);
  if (to.name.empty()) r.refuse(t, "compute.table.name", "expected the name of a sparse table");
  to.batch = batch;
  r.take(t, path, "batch", to.batch, 1, "a number of samples from 1");
  r.take(t, path, "rows", to.rows, 0, "a number of rows from 0");
  r.take(t, path, "draws", to.draws, 1, "a number of rows from 1");
  double zipf = -1;
  r.take(t, path, "zipf", zipf, 0, "an exponent from 0");
  if (zipf >= 0) to.zipf = zipf;
  if ((t.find("rows") != nullptr) == (t.find("zipf") != nullptr))
    r.refuse(t, "compute.table", "expected either rows of a step, or the exponent zipf");
  else if (t.find("rows") && !(to.batch > 0))
    r.refuse(t, "compute.table.batch", "expected the samples of the step that these rows are of");
}

// The rates of a stored result, whose path is relative to the folder of the machine file.
void read_result(reader& r, const toml_node& compute, const toml_node& result, machine_file& m) {
  for (const char* other : {"batch", "samples_per_second", "operations_per_second"})
    if (const toml_node* const found = compute.find(other))
      r.refuse(*found, std::string("compute.") + other, "expected either compute.result or this key, got both");
  std::string given;
  r.take(compute, "compute.", "result", given);
  if (given.empty()) return;
  try {
    measured_rates measured = read_measured_rates((std::filesystem::path(r.file()).parent_path() / given).string());
    m.rates = std::move(measured.rates);
    if (m.fingerprint.empty()) m.fingerprint = measured.fingerprint;
  } catch (const failure& e) {
    r.refuse(result, "compute.result", e.what());
  }
}

void read_compute(reader& r, const toml_node& t, machine_file& m) {
  const std::string path = "compute.";
  r.only(t, "compute",
         {"batch", "samples_per_second", "operations_per_second", "result", "forward_share", "share", "input", "other",
          "variation", "quantiles", "tensor", "table", "after", "on_cores"});
  const toml_node* const batch = t.find("batch");
  const double of = batch && batch->scalar.is_number() ? batch->scalar.get<double>() : 0;
  if (const toml_node* const list = t.find("table")) {
    for (const toml_node& one : list->items)
      if (one.is == toml_node::kind::table)
        read_table(r, one, of, m.tables.emplace_back());
      else
        r.refuse(one, "compute.table", "expected a table, got " + quoted(one));
  }
  r.take_ns(t, path, "after", m.after_ns);
  m.on_cores = !r.take_either(t, path, "on_cores", true, false);
  const toml_node* const list = t.find("tensor");
  if (m.after_ns > 0 || list) {
    r.take(t, path, "batch", m.batch, 1, "a number of samples from 1");
    if (!(m.batch > 0))
      r.refuse(list ? *list : t, "compute.batch", "expected the samples of the step that these times are of");
  }
  if (list) {
    for (const toml_node& one : list->items) {
      if (one.is != toml_node::kind::table) {
        r.refuse(one, "compute.tensor", "expected a table, got " + quoted(one));
        continue;
      }
      tensor_times& times = m.tensors.emplace_back();
      r.only(one, "compute.tensor", {"name", "forward", "backward", "variation"});
      r.take(one, "compute.tensor.", "name", times.name);
      r.take_ns(one, "compute.tensor.", "forward", times.forward);
      r.take_ns(one, "compute.tensor.", "backward", times.backward);
      r.take(one, "compute.tensor.", "variation", times.variation);
    }
  } else if (const toml_node* const result = t.find("result")) {
    read_result(r, t, *result, m);
  } else if (!(m.after_ns > 0)) {
    r.take(t, path, "operations_per_second", m.operations, 1, "FLOP/s, from 1");
    if (!t.find("operations_per_second")) m.rates = r.take_curve(t, path, "batch", "samples_per_second");
  }
  r.take_part(t, path, "forward_share", m.forward_share);
  m.by_bytes = r.take_either<std::string>(t, path, "share", "even", "bytes");
  r.take_ns(t, path, "input", m.input_ns);
  r.take_ns(t, path, "other", m.other_ns);
  r.take(t, path, "variation", m.variation, 0, "a number from 0");
  m.quantiles = r.numbers(t, path, "quantiles");
  if (m.quantiles.size() == 1 || !std::ranges::is_sorted(m.quantiles))
    r.refuse(*t.find("quantiles"), "compute.quantiles", "expected two or more numbers, ascending");
}

void read_work(reader& r, const toml_node& t, const std::string& path, message_work& w) {
  r.take_ns(t, path, "overhead", w.overhead_ns);
  r.take(t, path, "overhead_per_byte", w.overhead_ns_per_byte, 0, "ns for each byte, from 0");
  r.take_bytes(t, path, "large_from", w.large_from);
  r.take(t, path, "large_factor", w.large_factor, 0, "a number from 0");
  if (const toml_node* const factor = t.find("large_factor"); factor && !t.find("large_from"))
    r.refuse(*factor, path + "large_factor", "expected large_from beside it, got none");
}

void read_transport(reader& r, const toml_node& t, const std::string& id, message_costs& c) {
  const std::string path = "transport." + id;
  r.only(t, path,
         {"latency", "overhead", "overhead_per_byte", "large_from", "large_factor", "between_hosts", "send_share",
          "gap", "bandwidth", "add_per_byte", "residual", "overhead_in_training", "overhead_per_byte_in_training",
          "in_training_residual", "apply_in_training", "computing_loss", "computing_loss_residual"});
  const std::string dotted = path + ".";
  r.take_ns(t, dotted, "latency", c.latency_ns);
  read_work(r, t, dotted, c);
  if (const toml_node* const hosts = r.table(t, dotted, "between_hosts")) {
    r.only(*hosts, dotted + "between_hosts", {"overhead", "overhead_per_byte", "large_from", "large_factor"});
    read_work(r, *hosts, dotted + "between_hosts.", c.between_hosts.emplace());
  }
  r.take_part(t, dotted, "send_share", c.send_share);
  r.take_ns(t, dotted, "gap", c.gap_ns);
  r.take_rate(t, dotted, "bandwidth", c.bytes_per_ns);
  r.take(t, dotted, "add_per_byte", c.add_ns_per_byte, 0, "ns for each byte, from 0");
  r.take(t, dotted, "residual", c.residual);
  r.take(t, dotted, "overhead_in_training", c.overhead_in_training);
  r.take(t, dotted, "overhead_per_byte_in_training", c.overhead_per_byte_in_training);
  r.take(t, dotted, "in_training_residual", c.in_training_residual);
  r.take(t, dotted, "apply_in_training", c.apply_in_training, 0, "a number from 0");
  r.take(t, dotted, "computing_loss", c.computing_loss);
  r.take(t, dotted, "computing_loss_residual", c.computing_loss_residual);
}

// The keys of one host, or of all.
const std::vector<std::string> host_keys = {"bandwidth", "latency", "jitter", "loss", "link_load", "core_load"};

void read_host(reader& r, const toml_node& t, const std::string& path, machine_file::host& h) {
  r.take_rate(t, path, "bandwidth", h.bytes_per_ns);
  r.take_ns(t, path, "latency", h.latency_ns);
  r.take_ns(t, path, "jitter", h.jitter_ns);
  r.take_share(t, path, "loss", h.packet_loss);
  r.take_share(t, path, "link_load", h.link_load);
  r.take_share(t, path, "core_load", h.core_load);
}

// Calls `read` for each table of an array.
template <class Read>
void read_all(reader& r, const toml_node& t, const std::string& path, const char* name, const Read& read) {
  const toml_node* const list = t.find(name);
  if (!list) return;
  if (list->is != toml_node::kind::array) r.refuse(*list, path, "expected [[" + path + "]], got " + quoted(*list));
  for (const toml_node& one : list->items)
    if (one.is == toml_node::kind::table)
      read(one);
    else
      r.refuse(one, path, "expected a table, got " + quoted(one));
}

void read_network(reader& r, const toml_node& t, machine_file::network& n) {
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.end(), host_keys.begin(), host_keys.end());
    return more;
  };
  r.only(t, "network", with({"goodput", "servers", "cores", "tier", "host", "residual"}));
  read_host(r, t, "network.", n);
  read_all(r, t, "network.host", "host", [&](const toml_node& one) {
    const std::string path = "network.host";
    r.only(one, path, with({"hosts", "leaves_after", "leaves_at"}));
    const std::vector<double> numbers = r.numbers(one, path + ".", "hosts", 0);
    if (numbers.empty()) r.refuse(one, path + ".hosts", "expected the numbers of hosts, from 0");
    for (const double number : numbers) {
      machine_file::host& h = n.single.try_emplace(static_cast<std::uint32_t>(number), n).first->second;
      read_host(r, one, path + ".", h);
      r.take(one, path + ".", "leaves_after", h.leaves_after, 1, "a number of steps from 1");
      r.take_ns(one, path + ".", "leaves_at", h.leaves_at_ns);
    }
    const auto leaves = [](const auto& h) { return h.second.leaves_after > 0 || h.second.leaves_at_ns > 0; };
    if (std::ranges::count_if(n.single, leaves) > 1) r.refuse(one, path, "expected one host that leaves, got several");
  });
  read_all(r, t, "network.tier", "tier", [&](const toml_node& one) {
    const std::string path = "network.tier.";
    r.only(one, "network.tier", {"hosts", "oversubscription"});
    machine_file::tier& tier = n.tiers.emplace_back();
    r.take(one, path, "hosts", tier.hosts, 1, "a number of hosts from 1");
    r.take(one, path, "oversubscription", tier.oversubscription, 1e-3, "a number above 0");
    const double below = n.tiers.size() > 1 ? n.tiers[n.tiers.size() - 2].hosts : 1;
    if (tier.hosts != std::floor(tier.hosts) || std::fmod(tier.hosts, below) != 0)
      r.refuse(one, path + "hosts", fmt::format("expected a multiple of the {:g} hosts of the tier below", below));
  });
  r.take(t, "network.", "goodput", n.goodput, 1e-6, "a number above 0, up to 1");
  if (n.goodput > 1) r.refuse(*t.find("goodput"), "network.goodput", "expected a number above 0, up to 1");
  n.own_servers = r.take_either<std::string>(t, "network.", "servers", "shared", "own");
  n.shared_cores = r.take_either<std::string>(t, "network.", "cores", "own", "shared");
  r.take(t, "network.", "residual", n.residual);
}

// FNV-1a, as in fingerprints.
std::string hash_of(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

} // namespace

const std::vector<std::pair<std::string, std::uint32_t>>& timed_operations() {
  static const std::vector<std::pair<std::string, std::uint32_t>> all = {
      {"apply", RG_OP_APPLY},
      {"fill", RG_OP_FILL},
      {"copy", RG_OP_COPY},
      {"axpy", RG_OP_AXPY},
      {"scale", RG_OP_SCALE},
      {"clip", RG_OP_CLIP},
      {"accumulate", RG_OP_ACCUMULATE},
      {"convert", RG_OP_CONVERT},
      {"convert_fp16", virtual_work::fp16_conversion},
      {"top_k", RG_OP_TOP_K},
      {"select", RG_OP_SELECT},
      {"gemm", RG_OP_GEMM},
      {"gather_rows", RG_OP_GATHER_ROWS},
      {"scatter_rows", RG_OP_SCATTER_ROWS},
      {"rows_apply", RG_OP_ROWS_APPLY},
      {"rows_read", RG_OP_ROWS_READ},
      {"rows_add", RG_OP_ROWS_ADD},
      {"rows_write", RG_OP_ROWS_WRITE}};
  return all;
}

double conversion_ns_per_byte(const machine_file& m, bool fp16) {
  auto each = m.work_of.find(fp16 ? "convert_fp16" : "convert");
  if (each == m.work_of.end()) each = m.work_of.find("convert");
  return each == m.work_of.end() ? m.work_ns_per_byte : each->second;
}

machine_file parse_machine(const std::string& name, const std::string& text, const std::string& network_name,
                           const std::string& network_text) {
  machine_file m;
  reader r(name, text);
  const toml_node& root = r.root();
  r.only(root, "", {"schema", "machine", "model", "compute", "contention", "work", "transport", "network"});
  if (const toml_node* const schema = root.find("schema"); schema && schema->scalar != "regatta.machine/1")
    r.refuse(*schema, "schema", "expected \"regatta.machine/1\", got " + quoted(*schema));
  if (const toml_node* const t = r.table(root, "", "machine")) {
    r.only(*t, "machine", {"name", "date", "cpu", "cores"});
    r.take(*t, "machine.", "name", m.name);
    r.take(*t, "machine.", "date", m.date);
    r.take(*t, "machine.", "cpu", m.cpu);
    r.take(*t, "machine.", "cores", m.cores, 0, "a number of cores from 0");
  }
  if (const toml_node* const t = r.table(root, "", "model")) {
    r.only(*t, "model", {"plugin", "fingerprint"});
    r.take(*t, "model.", "plugin", m.model);
    r.take(*t, "model.", "fingerprint", m.fingerprint);
  }
  if (const toml_node* const t = r.table(root, "", "compute")) read_compute(r, *t, m);
  if (r.good() && m.tensors.empty() && !(m.after_ns > 0) && m.rates.empty() && !(m.operations > 0))
    r.refuse(root, "compute",
             "expected samples_per_second with batch, operations_per_second, result, or times of tensors, got none of "
             "them");
  if (const toml_node* const t = r.table(root, "", "contention")) {
    r.only(*t, "contention", {"workers", "slowdown", "operations"});
    m.contention = r.take_curve(*t, "contention.", "workers", "slowdown");
    if (t->find("operations")) m.operation_contention = r.take_curve(*t, "contention.", "workers", "operations");
  }
  if (const toml_node* const t = r.table(root, "", "work")) {
    std::vector<std::string> known = {"default"};
    r.take(*t, "work.", "default", m.work_ns_per_byte, 0, "ns for each byte, from 0");
    for (const auto& [operation, kind] : timed_operations()) {
      known.push_back(operation);
      double each = -1;
      r.take(*t, "work.", operation.c_str(), each, 0, "ns for each byte, from 0");
      if (each >= 0) m.work_of[operation] = each;
    }
    r.only(*t, "work", known);
  }
  if (const toml_node* const t = r.table(root, "", "transport"))
    for (const toml_member& one : t->members)
      if (r.table(*t, "transport.", one.name.c_str())) read_transport(r, one.node, one.name, m.transports[one.name]);
  if (const toml_node* const t = r.table(root, "", "network")) read_network(r, *t, m.between);
  r.end();
  if (!network_name.empty()) {
    reader n(network_name, network_text);
    n.only(n.root(), "", {"network"});
    m.between = {};
    if (const toml_node* const t = n.table(n.root(), "", "network")) read_network(n, *t, m.between);
    n.end();
  }
  std::string of_result; // identifies what the text does not contain
  for (const auto& [batch, rate] : m.rates) of_result += fmt::format("{} {} ", batch, rate);
  m.text_hash = hash_of(text + network_text + of_result);
  return m;
}

machine_file read_machine(const std::filesystem::path& file, const std::filesystem::path& network) {
  const auto text_of_file = [](const std::filesystem::path& path) {
    try {
      return read_text(path);
    } catch (const toml_error& e) {
      throw failure(exit_code::usage, fmt::format("{}: error: {}", path.string(), e.what()));
    }
  };
  return parse_machine(file.string(), text_of_file(file), network.string(),
                       network.empty() ? "" : text_of_file(network));
}

double drawn_factor(const machine_file& m, double first, double second) {
  if (!(m.variation > 0)) return 1;
  if (m.quantiles.empty()) { // Box and Muller
    constexpr double two_pi = 6.283185307179586;
    return std::max(0.1, 1 + m.variation * std::sqrt(-2 * std::log(first)) * std::cos(two_pi * second));
  }
  const std::vector<double>& q = m.quantiles;
  const auto parts = static_cast<double>(q.size() - 1);
  double sum = -(q.front() + q.back()) / 2; // of the means of the parts
  for (const double x : q) sum += x;
  const auto left = static_cast<std::size_t>(first * parts);
  const double x = first * parts - static_cast<double>(left);
  return (q[left] + (q[left + 1] - q[left]) * x) * parts / sum;
}

double step_ns_of(const machine_file& m, double batch) {
  curve seconds;
  for (const auto& [of, rate] : m.rates) seconds.emplace_back(of, 1e9 * of / rate);
  if (batch < seconds.front().first) return seconds.front().second * batch / seconds.front().first;
  if (batch > seconds.back().first) return seconds.back().second * batch / seconds.back().first;
  return between(seconds, batch);
}

double contention_of(const machine_file& m, double workers) {
  const double cores = m.on_cores ? m.cores : 0;
  const double sharing = cores > 0 ? std::max(1.0, workers / cores) : 1;
  if (m.contention.empty()) return sharing;
  const auto& [most, slowdown] = m.contention.back();
  if (workers <= most) return workers < m.contention.front().first ? 1 : between(m.contention, workers);
  const double shared_then = cores > 0 ? std::max(1.0, most / cores) : 1;
  return slowdown * sharing / shared_then;
}

double operation_contention_of(const machine_file& m, double ranks) {
  const curve& all = m.operation_contention;
  if (all.empty() || ranks < all.front().first) return 1;
  return ranks < all.back().first ? between(all, ranks) : all.back().second;
}

double load_factor(const machine_file& m, std::uint32_t host, double threads) {
  if (!m.on_cores) return 1;
  const double left = 1 - host_of(m.between, host).core_load;
  if (!(m.cores > 0)) return 1 / left;
  return std::max(1.0, threads / (m.cores * left)) / std::max(1.0, threads / m.cores);
}

const machine_file::host& host_of(const machine_file::network& n, std::uint32_t number) {
  const auto found = n.single.find(number);
  return found == n.single.end() ? n : found->second;
}

double rate_of(const machine_file::network& n, const machine_file::host& h) {
  const double left = h.bytes_per_ns * n.goodput * (1 - h.link_load);
  if (!(h.packet_loss > 0)) return left;
  constexpr double packet = 1460;
  const double most = packet / std::max(2 * h.latency_ns, 1.0) * std::sqrt(1.5 / h.packet_loss);
  return std::min(left * (1 - h.packet_loss), most);
}

} // namespace regatta
