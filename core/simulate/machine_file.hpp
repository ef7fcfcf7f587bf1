// SPDX-License-Identifier: Apache-2.0
//
// A machine file: how long one model computes on one machine, and what a message costs there. `regatta calibrate`
// writes it, or somebody by hand; `regatta simulate` reads it. docs/simulation.md has its keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace regatta {

// Of one worker alone, for a batch of `batch` samples. Times are in ns.
struct tensor_times {
  std::string name;
  double forward = 0, backward = 0; // as in compute_times (simulator/simulation.hpp)
  std::optional<double> variation;  // of both together: standard deviation over mean of measured steps; for people
};

// The rows of a sparse table that a worker touches.
struct touched_table {
  std::string name;
  double batch = 0, rows = 0; // different rows in a step of `batch` samples, in the mean
  std::optional<double> zipf; // in place of `rows`: the exponent of Zipf's law from which rows are drawn
  double draws = 0;           // rows that a sample names; 0: as many as the model says
};

// The work of a rank's processor for each send and each receive, in the names of LogGOPS: the mean of the sender's and the
// receiver's.
struct message_work {
  double overhead_ns = 0, overhead_ns_per_byte = 0; // o, O
  // Bytes of a message beyond `large_from` take `large_factor` times O: large messages leave the caches, fill buffers of
  // the kernel, or are sent by another protocol.
  double large_from = std::numeric_limits<double>::infinity(), large_factor = 1;
  bool operator==(const message_work&) const = default;
};

// The costs of a message between two ranks, in the same names. The work is that between ranks of one host.
struct message_costs : message_work {
  std::optional<message_work> between_hosts; // where ranks are on several; std::nullopt: the same
  double latency_ns = 0;                     // L
  double send_share = 0.5;                   // the sender's part of 2 * O
  double gap_ns = 0;                         // g
  double bytes_per_ns = 10;                  // 1 / G
  double add_ns_per_byte = 0;                // of a receive that adds, on top of O
  std::optional<double> residual;            // of the fit, relative; std::nullopt: written by hand
  // How many times that of ping-pong `overhead_ns` is, and the same of `overhead_ns_per_byte`, where calibrate has fitted
  // them to steps of two workers; the residual is that of the steps' time. For people.
  std::optional<double> overhead_in_training, overhead_per_byte_in_training, in_training_residual;
  double apply_in_training = 1; // how many times as long "apply" takes after messages: gradients are not in the caches
  // ns that computing loses for each ns of a processor's work on messages, where no core is idle; std::nullopt:
  // unknown, nothing. Its residual is that of the time that computing takes.
  std::optional<double> computing_loss, computing_loss_residual;
  bool operator==(const message_costs&) const = default;
};

struct machine_file {
  std::string name, date, cpu; // for people
  std::string model;           // the id of the model that `tensors` belongs to; empty: any
  std::string fingerprint;     // fingerprint.model of that model and its parameters; empty: unknown
  double cores = 0;            // that compute at once without sharing; 0: unknown, each rank has its own

  // The computing: `rates`, samples/s of one worker's whole step by batch, ascending; or `operations`, the FLOP/s at
  // which it computes a step; or `tensors` at `batch`.
  std::vector<std::pair<double, double>> rates;
  double operations = 0;
  bool on_cores = true;           // computing takes cores of the host; false: it runs on a device, or sleeps
  double forward_share = 1.0 / 3; // without `tensors`: the part of the computing that is the forward pass
  bool by_bytes = false;          // without `tensors`: their times are as their sizes; else equal
  double batch = 0;               // samples of the step that `tensors` are of
  std::vector<tensor_times> tensors;
  double after_ns = 0; // after the last tensor's gradients, of `batch` samples: gradients of sparse tables' rows
  std::vector<touched_table> tables;
  double input_ns = 0;  // before the forward pass
  double other_ns = 0;  // between steps: what the engine does beside the phases
  double variation = 0; // standard deviation of a step's computing, relative to its mean; 0: all steps take the mean
  // The computing of steps, ascending, at equally spaced probabilities from 0 to 1, relative to each other. Without
  // quantiles, steps are normally distributed.
  std::vector<double> quantiles;
  // How many times longer computing takes beside the other workers of a host: by number of workers, ascending.
  std::vector<std::pair<double, double>> contention;
  // The same of operations of strategies, which take memory bandwidth: by number of ranks of a host that run them at
  // once, ascending. Empty: as long as alone.
  std::vector<std::pair<double, double>> operation_contention;

  double work_ns_per_byte = 0.1;                   // of a strategy's operations, for each byte read or written
  std::map<std::string, double> work_of;           // the same of named operations: "apply", "axpy"
  std::map<std::string, message_costs> transports; // by id, inside a host; "default" for all others

  // A host's link, the same in each direction, and what others take of the host.
  struct host {
    double bytes_per_ns = 1.25, latency_ns = 20'000;
    double jitter_ns = 0;                // the largest extra latency of a message
    double packet_loss = 0;              // the share of packets that the link loses
    double link_load = 0, core_load = 0; // the shares of the link and of the cores that others take
    // Of a single host: steps, or the virtual time, after which it leaves the run; 0: it stays.
    double leaves_after = 0, leaves_at_ns = 0;
    bool operator==(const host&) const = default;
  };
  // Switches that each connect `hosts` hosts, whose links together have `oversubscription` times the bandwidth of the
  // switch's link to the others.
  struct tier {
    double hosts = 1, oversubscription = 1;
    bool operator==(const tier&) const = default;
  };
  struct network : host {                 // of all hosts but those in `single`
    double goodput = 1;                   // the share of a link's rate that messages get
    bool own_servers = false;             // servers have hosts of their own
    bool shared_cores = false;            // all hosts are on one machine, whose cores their ranks share
    std::optional<double> residual;       // of the fit, relative; std::nullopt: not measured. For people
    std::vector<tier> tiers;              // from the hosts to the top
    std::map<std::uint32_t, host> single; // by number of the host
    bool operator==(const network&) const = default;
  } between;             // hosts
  std::string text_hash; // of the file's text, and of the network's: identifies what was simulated
};

// Returns the ns for each byte that a conversion to or from fp16, or bf16, reads or writes.
double conversion_ns_per_byte(const machine_file& m, bool fp16);

// The names of operations that `work` may have, with their kinds in virtual_work::of_kind.
const std::vector<std::pair<std::string, std::uint32_t>>& timed_operations();

// [any] Reads a machine file, and, unless `network` is empty, a file whose [network] takes the place of the machine's.
// Throws failure (usage) with all errors of a file, "FILE:LINE:COL: error: KEY: expected X, got Y".
machine_file read_machine(const std::filesystem::path& file, const std::filesystem::path& network = {});
// The same for texts; the names are those in messages.
machine_file parse_machine(const std::string& name, const std::string& text, const std::string& network_name = "",
                           const std::string& network_text = "");

// [any] Returns the text of a machine file that parse_machine() reads back; times are rounded to ns, other numbers to 4
// digits. Requires `rates`, `tensors` or `after_ns`: it has no `operations`.
std::string machine_text(const machine_file& m);

// [any] Returns the factor of the computing of a step, whose mean is 1; `first` and `second` are uniform in (0, 1). A
// normal distribution takes both numbers, and ends at a tenth.
double drawn_factor(const machine_file& m, double first, double second);

// [any] Returns the ns of a worker's whole step, with `batch` samples, by rates: interpolated between two batches,
// proportional to the batch outside of them. Requires rates.
double step_ns_of(const machine_file& m, double batch);

// [any] Returns how many times longer computing takes if `workers` workers share a host: interpolated; beyond the last
// number that was measured, in proportion to the workers where they are more than the cores. 1 if nothing is known.
double contention_of(const machine_file& m, double workers);

// [any] Returns how many times longer operations of strategies take if `ranks` ranks of a host run them at once:
// interpolated; beyond the last number that was measured, as long as with that. 1 if nothing is known.
double operation_contention_of(const machine_file& m, double ranks);

// [any] Returns how many times longer computing takes on a host whose workers have `threads` threads, because others
// take core_load of its cores: those that are idle first, if the number of cores is known.
double load_factor(const machine_file& m, std::uint32_t host, double threads);

// [any] Returns the properties of a host, counted from 0.
const machine_file::host& host_of(const machine_file::network& n, std::uint32_t number);

// [any] Returns the bytes per ns that messages get of a host's link: what is left of its bandwidth, and at most what a
// TCP connection reaches with its latency and loss: 1460 bytes / RTT * sqrt(1.5 / loss) (Mathis et al., 1997).
double rate_of(const machine_file::network& n, const machine_file::host& h);

} // namespace regatta
