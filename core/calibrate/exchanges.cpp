// SPDX-License-Identifier: Apache-2.0
#include "calibrate/exchanges.hpp"

#include "base/failure.hpp"
#include "results/campaign_records.hpp"
#include "simulate/campaign.hpp"
#include "simulate/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

// Means over the steps of all workers, in ns, as a rate is that of a mean step. `exposed` is the time from the last
// worker's gradients to the step's end, which is free of the waiting for workers that this machine slows down.
struct step_means {
  double computing = 0, exposed = 0, update = 0;
};
step_means means_of(const std::vector<rank_record>& ranks) {
  step_means sums;
  double count = 0;
  for (const rank_record& rank : ranks)
    for (std::size_t n = 0; n < rank.steps.size(); ++n) {
      std::int64_t last = 0;
      for (const rank_record& other : ranks)
        if (n < other.steps.size()) last = std::max(last, other.steps[n].compute_end);
      sums.computing += computing(rank.steps[n]);
      sums.exposed += static_cast<double>(rank.steps[n].end - last);
      sums.update += static_cast<double>(rank.steps[n].update);
      ++count;
    }
  if (count == 0) return {};
  return {sums.computing / count, sums.exposed / count, sums.update / count};
}

// Simulates a case; its times vary less than measured ones, so fewer steps suffice.
step_means simulated(const measuring& by, case_config c, const machine_file& m) {
  c.measure.steps = std::min<std::int64_t>(c.measure.steps, 50);
  const experiment e = only(by.e, std::move(c));
  campaign_records records(e);
  records.add(campaign_record(json::object()));
  std::vector<rank_record> ranks;
  std::string why;
  simulation_hooks hooks;
  hooks.record = [&](const json& record) {
    if (record.at("kind") == "failure") why = record.at("error");
    if (record.at("kind") == "run")
      for (const json& rank : record.at("ranks")) ranks.push_back(record_from_json(rank));
  };
  const int code = simulate_cases(by.answers, e, m, 1, records, hooks);
  if (code == static_cast<int>(exit_code::interrupted)) throw failure(exit_code::interrupted, "interrupted");
  if (!why.empty()) throw failure(static_cast<exit_code>(code), why);
  return means_of(ranks);
}

// Steps of two workers that exchange gradients, one after the other: how many times as long they compute as beside each
// other without messages, and the exposed time, in units of that computing.
struct measured_exchange {
  case_config steps;
  std::vector<double> computing, exposed, update; // the update in units of that beside the other worker
};

// How many times o, and O of the sender and of the receiver, are those of ping-pong.
using cost_factors = std::array<double, 3>;

// The costs of a transport for which a simulation of the exchanges has been compared with their measurement.
struct tried_costs {
  message_costs costs;                // computing_loss is set
  std::optional<loss_fit> loss;       // std::nullopt: computing loses too little to tell
  std::vector<double> exposed_errors; // for each exchange: of the exposed time, relative to the step's
  double residual = 0;                // the median of the errors of the step's time, relative to it
};

// Simulates the exchanges with these factors of the measured o and O, and fits computing_loss. `alone`: the computing of
// a simulation without messages.
tried_costs try_costs(machine_file& m, const std::string& transport, const message_costs& measured,
                      const cost_factors& factors, const std::vector<measured_exchange>& all, double alone,
                      const measuring& by) {
  message_costs& costs = m.transports.at(transport);
  costs = measured;
  const auto [of_message, of_send, of_receive] = factors;
  costs.overhead_in_training = of_message;
  costs.overhead_per_byte_in_training = (of_send + of_receive) / 2;
  costs.overhead_ns *= of_message;
  costs.overhead_ns_per_byte *= (of_send + of_receive) / 2;
  // Gradients are not in the caches, however small a message is.
  costs.large_from = message_work().large_from;
  costs.large_factor = 1;
  costs.send_share = of_send / (of_send + of_receive);
  std::vector<loss_sample> samples;
  for (const measured_exchange& x : all) {
    costs.computing_loss = 0;
    const double nothing = simulated(by, x.steps, m).computing;
    costs.computing_loss = 1;
    samples.push_back(
        {nothing, simulated(by, x.steps, m).computing - nothing, alone * median(x.computing).value_or(1)});
  }
  tried_costs tried;
  tried.loss = fit_loss(samples);
  costs.computing_loss = tried.loss ? tried.loss->loss : 1;
  std::vector<double> errors;
  for (const measured_exchange& x : all) {
    const step_means is = simulated(by, x.steps, m);
    const double exposed = alone * median(x.exposed).value_or(0),
                 step = exposed + alone * median(x.computing).value_or(1);
    tried.exposed_errors.push_back((is.exposed - exposed) / step);
    errors.push_back(std::abs((is.computing + is.exposed) / step - 1));
  }
  tried.residual = median(errors).value_or(0);
  tried.costs = costs;
  return tried;
}

// Fits the factors of o and O, and computing_loss, of a transport, so that what simulated steps expose and compute takes
// as long as in the measured ones: Gauss-Newton steps over the logarithms of the factors. `alone` is as for try_costs().
tried_costs fit_costs(machine_file& m, const std::string& transport, const std::vector<measured_exchange>& all,
                      double alone, const measuring& by) {
  constexpr int iterations = 8;
  constexpr double difference = 0.1, damping = 1e-4, most = 0.7; // of logarithms
  constexpr double least_factor = 0.05, most_factor = 20;
  const message_costs measured = m.transports.at(transport);
  const auto attempt = [&](const cost_factors& factors) {
    return try_costs(m, transport, measured, factors, all, alone, by);
  };
  const auto squares = [](const tried_costs& t) {
    return std::inner_product(t.exposed_errors.begin(), t.exposed_errors.end(), t.exposed_errors.begin(), 0.0);
  };
  tried_costs best = attempt({1, 1, 1});
  const auto keep_better = [&](const tried_costs& other) {
    if (squares(other) < squares(best)) best = other;
  };
  // Two ends are nearly alike, as either side of a message may have most of the work: so there are two beginnings.
  for (cost_factors factors : {cost_factors{1, 1.7, 0.3}, cost_factors{1, 0.3, 1.7}}) {
    for (int i = 0; i < iterations; ++i) {
      const tried_costs now = attempt(factors);
      keep_better(now);
      std::vector<std::vector<double>> derivatives(factors.size());
      for (std::size_t k = 0; k < factors.size(); ++k) {
        cost_factors more = factors;
        more[k] *= std::exp(difference);
        const tried_costs other = attempt(more);
        for (std::size_t x = 0; x < all.size(); ++x)
          derivatives[k].push_back((other.exposed_errors[x] - now.exposed_errors[x]) / difference);
      }
      const std::vector<double> step = least_squares_step(now.exposed_errors, derivatives, damping, most);
      for (std::size_t k = 0; k < factors.size(); ++k)
        factors[k] = std::clamp(factors[k] * std::exp(step[k]), least_factor, most_factor);
    }
    keep_better(attempt(factors));
  }
  return best;
}

void fit_exchanges(machine_file& m, const std::string& transport, const std::vector<measured_exchange>& all,
                   double alone, const measuring& by) {
  const message_work measured = m.transports.at(transport);
  tried_costs best = fit_costs(m, transport, all, alone, by);
  require_good_fit("steps with messages over " + transport, best.residual);
  message_costs& costs = m.transports.at(transport);
  if (best.costs.between_hosts)
    *best.costs.between_hosts = with_more_work(*best.costs.between_hosts, best.costs.overhead_ns - measured.overhead_ns,
                                               best.costs.overhead_ns_per_byte - measured.overhead_ns_per_byte);
  costs = best.costs;
  costs.in_training_residual = best.residual;
  if (!best.loss) {
    costs.computing_loss.reset();
    return;
  }
  require_good_fit("computing beside messages over " + transport, best.loss->residual);
  costs.computing_loss_residual = best.loss->residual;
}

// Returns the exchanges of two workers that are measured, each for all gradients in one bucket, which exposes it, and for
// smaller buckets, whose messages go beside the backward pass; first the ring with one bucket. In a ring both workers
// send and receive at once. With a parameter server in one worker's process one sends while the other receives, which
// tells the work of the two apart.
std::vector<measured_exchange> exchanges_over(const std::string& transport, const case_config& control, double bytes) {
  std::vector<measured_exchange> all;
  for (const double most : {bytes, std::min(bytes / 4, 4.0 * (1 << 20)), std::min(bytes / 16, 1.0 * (1 << 20))}) {
    const std::int64_t bucket = std::llround(std::max(most, 4096.0));
    case_config c = control;
    c.transport = {transport, {}};
    c.strategy = {"allreduce", {{"algorithm", "ring"}, {"bucket", bucket}}};
    all.push_back({c, {}, {}, {}});
    c.strategy = {"sync_ps", {{"bucket", bucket}, {"early", false}}};
    c.cluster.servers = 1;
    c.cluster.colocate = true;
    all.push_back({c, {}, {}, {}});
  }
  return all;
}

} // namespace

void add_exchanges(machine_file& m, const measuring& by, const case_config& alone) {
  if (m.cores < 2 * static_cast<double>(alone.cluster.threads) || alone.train.device != "cpu" || m.tensors.empty())
    return;
  case_config control = alone;
  control.cluster.workers = 2;
  if (alone.train.scaling == "strong") control.train.batch *= 2; // a worker's batch stays the same
  const auto bytes = static_cast<double>(by.answers.of(alone).model.weight_bytes);
  std::map<std::string, std::vector<measured_exchange>> exchanges; // by transport
  for (const auto& [transport, costs] : m.transports) exchanges[transport] = exchanges_over(transport, control, bytes);
  double error = 0;
  for (calibration_rounds rounds; rounds.next(error);) {
    error = 0;
    const step_means base = means_of(run_once(by, control).ranks);
    for (auto& [transport, all] : exchanges)
      for (measured_exchange& x : all) {
        const step_means is = means_of(run_once(by, x.steps).ranks);
        x.computing.push_back(is.computing / base.computing);
        x.exposed.push_back(is.exposed / base.computing);
        if (base.update > 0) x.update.push_back(is.update / base.update);
        error = std::max({error, standard_error(x.computing), standard_error(x.exposed)});
      }
  }
  // Of the ring with one bucket: the updates of others take turns with the backward pass.
  for (auto& [transport, costs] : m.transports)
    costs.apply_in_training = median(exchanges.at(transport).front().update).value_or(1);
  const double computing_alone = simulated(by, control, m).computing;
  for (const auto& [transport, all] : exchanges) fit_exchanges(m, transport, all, computing_alone, by);
}

} // namespace regatta
