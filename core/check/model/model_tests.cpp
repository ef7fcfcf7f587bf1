// SPDX-License-Identifier: Apache-2.0
//
// Tests of a model, which computes its own step or is compiled by an executor; and of an executor, with a small
// network. All compute in fp32, except test `bf16`, and with fixed kernels (no autotuning).
#include "check/harness/allocation_watch.hpp"
#include "check/model/gradient.hpp"
#include "check/model/model_under_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <malloc.h>

namespace regatta::conformance {
namespace {

constexpr std::uint64_t batch = 4;

bool same_bits(const floats& a, const floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

floats sum_of(const floats& a, const floats& b) {
  floats s(a.size());
  std::transform(a.begin(), a.end(), b.begin(), s.begin(), std::plus<>());
  return s;
}

// Compares sums of the same terms in another order: allows fp32 rounding, with room for sums over a batch and an image.
void expect_near(const floats& got, const floats& expected, const std::string& what) {
  floats apart(got.size());
  std::transform(got.begin(), got.end(), expected.begin(), apart.begin(), std::minus<>());
  require(got.size() == expected.size() && norm(apart) <= 1e-4 * norm(expected) + 1e-9,
          fmt::format("the gradients of {} differ by {:.3g} (L2 norm); expected at most 1e-4 of their norm, {:.3g}",
                      what, norm(apart), norm(expected)));
}

std::vector<floats> gradients_of(model_under_test& m) {
  std::vector<floats> all;
  for (const std::uint32_t t : m.trained()) all.push_back(m.canonical(t, m.gradients(t)));
  return all;
}

// --------------------------------------------------------------------------------------------------------- weights ---

void seeds(const subject& s) {
  model_under_test a(s, batch), b(s, batch), other_batch(s, 2 * batch), server(s, batch, RG_PURPOSE_INIT);
  const auto layout = [](const model_under_test& m) { return std::string(m.info().layout ? m.info().layout : ""); };
  require(layout(a) == layout(server), "an instance for a server (RG_PURPOSE_INIT) has layout \"" + layout(server) +
                                           "\", one for training \"" + layout(a) + "\"");
  for (std::uint32_t t = 0; t < a.tensors().size(); ++t) {
    const rg_tensor& tensor = a.tensors()[t];
    if (tensor.kind == RG_TENSOR_ROWS) continue; // test `rows` checks these
    const floats w = a.initial(t, s.seed);
    require(std::all_of(w.begin(), w.end(), [](float x) { return std::isfinite(x); }),
            fmt::format("the initial weights of {} are not finite", tensor.name));
    require(same_bits(w, a.initial(t, s.seed)),
            fmt::format("init() gives other weights of {} the second time", tensor.name));
    require(same_bits(w, b.initial(t, s.seed)),
            fmt::format("init() of another instance gives other weights of {}", tensor.name));
    require(same_bits(w, server.initial(t, s.seed)),
            fmt::format("init() of an instance for a server (RG_PURPOSE_INIT) gives other weights of {}", tensor.name));
    if (layout(a) == layout(other_batch))
      require(same_bits(w, other_batch.initial(t, s.seed)),
              fmt::format("init() with another batch size gives other weights of {}", tensor.name));
  }
}

void layouts(const subject& s) {
  model_under_test m(s, batch);
  require(!m.functions().canonical == !m.functions().from_canonical,
          "it has only one of canonical() and from_canonical(); implement both or none");
  for (std::uint32_t t = 0; t < m.tensors().size(); ++t) {
    if (m.tensors()[t].kind == RG_TENSOR_ROWS) continue;
    const floats w = m.initial(t, s.seed);
    const floats canonical = m.canonical(t, w);
    require(same_bits(m.from_canonical(t, canonical), w),
            fmt::format("from_canonical(canonical(x)) differs from x for {}", m.tensors()[t].name));
    require(m.tensors()[t].reordered || std::equal(canonical.begin(), canonical.end(), w.begin()),
            fmt::format("canonical() changes the order of {}, whose rg_tensor.reordered is 0", m.tensors()[t].name));
  }
}

void rows(const subject& s) {
  model_under_test m(s, batch);
  bool any = false;
  for (std::uint32_t t = 0; t < m.tensors().size(); ++t) {
    const rg_tensor& tensor = m.tensors()[t];
    if (tensor.kind != RG_TENSOR_ROWS) continue;
    any = true;
    require(tensor.ndim >= 2 && tensor.shape[0] > 0,
            fmt::format("sparse table {} has fewer than two dimensions; expected rows, then the shape of a row",
                        tensor.name));
    const std::uint64_t row = rg::storage_of(tensor) / static_cast<std::uint64_t>(tensor.shape[0]);
    const std::uint64_t last = static_cast<std::uint64_t>(tensor.shape[0]) - 1;
    const std::vector<std::uint64_t> together = {0, last / 2, last};
    floats all(together.size() * row), one(row);
    auto start = [&](const std::uint64_t* numbers, std::uint64_t count, floats& out) {
      m.check(m.functions().init(m.self(), t, numbers, count, s.seed, out.data()), "init");
    };
    start(together.data(), together.size(), all);
    for (std::size_t k = 0; k < together.size(); ++k) {
      start(&together[k], 1, one);
      require(std::memcmp(one.data(), all.data() + k * row, row * sizeof(float)) == 0,
              fmt::format("init() gives other values of row {} of {} if other rows are in the same call", together[k],
                          tensor.name));
    }
  }
  if (!any) throw skipped("it has no sparse tables");
}

// ------------------------------------------------------------------------------------------------------------ step ---

void repeatable(const subject& s) {
  model_under_test a(s, batch), b(s, batch);
  std::vector<floats> first;
  double loss = 0;
  for (model_under_test* m : {&a, &b}) {
    const samples x = m->start();
    const rg_step_result result = m->step(x, x.count, RG_BATCH_LAST);
    const double l = result.loss_sum;
    require(std::isfinite(l), fmt::format("the loss is {}; expected a finite value", l));
    require(result.count > 0,
            "rg_step_result.count is 0; expected the number of terms of the loss: without it a run has "
            "no loss");
    if (m == &a) {
      loss = l;
      first = gradients_of(a);
      m->prepare({&x});
      require(m->step(x) == loss, "the same step gives another loss the second time");
    }
    require(l == loss, fmt::format("two instances give losses of {} and {} for the same step", loss, l));
    const auto again = gradients_of(*m);
    for (std::size_t t = 0; t < first.size(); ++t)
      require(same_bits(again[t], first[t]), fmt::format("the same step gives another gradient of {} the second time",
                                                         m->tensors()[m->trained()[t]].name));
  }
}

void ready_order(const subject& s) {
  model_under_test m(s, batch);
  const samples x = m.start();
  m.step(x);
  const std::vector<floats> expected = m.gradients(), start = m.weights();

  // Once a gradient is reported as final, check it and overwrite the weights, as an update would.
  std::int64_t last = -1;
  std::string wrong;
  const auto ready = [&](std::uint32_t tensor) {
    if (!wrong.empty()) return;
    if (static_cast<std::int64_t>(tensor) <= last) {
      wrong = fmt::format("the step calls ready({}) after ready({}); expected ascending tensors", tensor, last);
      return;
    }
    for (std::uint32_t t = static_cast<std::uint32_t>(last + 1); t <= tensor; ++t) {
      if (m.tensors()[t].kind != RG_TENSOR_DENSE) continue;
      if (!same_bits(m.gradients(t), expected[t]) && wrong.empty())
        wrong = fmt::format("at ready({}) the gradient of {} is not final", tensor, m.tensors()[t].name);
      std::fill(m.weights(t).begin(), m.weights(t).end(), std::numeric_limits<float>::quiet_NaN());
    }
    last = tensor;
  };
  m.prepare({&x});
  m.step(x, batch, RG_BATCH_LAST, {{}, ready});
  require(wrong.empty(), wrong);
  for (std::uint32_t t = 0; t < m.tensors().size(); ++t) {
    if (m.tensors()[t].kind != RG_TENSOR_DENSE) continue;
    require(static_cast<std::int64_t>(t) <= last,
            fmt::format("the step never calls ready() for {}", m.tensors()[t].name));
    require(
        same_bits(m.gradients(t), expected[t]),
        fmt::format("after ready(), the step still reads weights or writes the gradient of {}", m.tensors()[t].name));
    m.weights(t) = start[t];
  }
  // Only the last micro-batch of a step makes gradients final.
  std::uint64_t early = 0;
  m.prepare({&x});
  m.step(x, batch, 0, {{}, [&](std::uint32_t) { ++early; }});
  require(early == 0, "the step calls ready() in a micro-batch that is not the last (without RG_BATCH_LAST)");
}

void need_order(const subject& s) {
  model_under_test m(s, batch);
  const samples x = m.start();
  const double loss = m.step(x);
  const std::vector<floats> start = m.weights();
  for (std::uint32_t t = 0; t < m.tensors().size(); ++t)
    if (m.tensors()[t].kind == RG_TENSOR_DENSE)
      std::fill(m.weights(t).begin(), m.weights(t).end(), std::numeric_limits<float>::quiet_NaN());
  // Copy weights when need() asks for them, and not before.
  std::int64_t first = -1;
  const auto copy_weights = [&](std::uint32_t t) {
    if (m.tensors()[t].kind == RG_TENSOR_DENSE) m.weights(t) = start[t];
    if (first < 0) first = t;
    return RG_OK;
  };
  m.prepare({&x});
  rg_step_result result;
  m.check(m.try_step(x, batch, RG_BATCH_LAST, {copy_weights, {}}, result), "step");
  require(result.loss_sum == loss,
          fmt::format("weights are read before need(): the loss is {} instead of {}", result.loss_sum, loss));
  if (first < 0) return; // no dense weights
  for (std::uint32_t t = 0; t < m.tensors().size(); ++t) copy_weights(t);
  m.prepare({&x});
  const auto cancelled = [](std::uint32_t) -> rg_status { return RG_E_CANCELLED; };
  require(m.try_step(x, batch, RG_BATCH_LAST, {cancelled, {}}, result) == RG_E_CANCELLED,
          "the step does not return RG_E_CANCELLED, which its call of need() returned");
}

// Weights are there between need() and done() only: else each element is NaN.
void releases_weights(const subject& s) {
  model_under_test m(s, batch);
  if (!(m.info().flags & RG_MODEL_RELEASES)) throw skipped("it does not declare RG_MODEL_RELEASES");
  const samples x = m.start();
  const double loss = m.step(x);
  const std::vector<floats> start = m.weights(), expected = m.gradients();
  const auto dense = [&](std::uint32_t t) { return m.tensors()[t].kind == RG_TENSOR_DENSE; };
  const auto remove = [&](std::uint32_t t) {
    std::fill(m.weights(t).begin(), m.weights(t).end(), std::numeric_limits<float>::quiet_NaN());
  };
  std::vector<int> held(start.size()), needed(start.size()); // needed: in this pass
  std::string wrong;
  const auto note = [&](bool right, const char* what, std::uint32_t t) {
    if (!right && wrong.empty()) wrong = fmt::format("{} {}", what, m.tensors()[t].name);
  };
  for (std::uint32_t t = 0; t < start.size(); ++t)
    if (dense(t)) remove(t);
  const auto need = [&](std::uint32_t t) -> rg_status {
    if (!dense(t)) return RG_OK;
    note(!held[t], "need() without done() since the last need() of", t);
    note(++needed[t] == 1, "a pass calls need() twice for", t);
    held[t] = 1;
    m.weights(t) = start[t];
    return RG_OK;
  };
  const auto done = [&](std::uint32_t t) {
    if (!dense(t)) return;
    note(held[t], "done() without need() of", t);
    held[t] = 0;
    remove(t);
  };
  m.prepare({&x});
  const rg_step_result result =
      m.step(x, batch, RG_BATCH_LAST, {need, {}, done, [&] { std::ranges::fill(needed, 0); }});
  require(wrong.empty(), wrong);
  require(result.loss_sum == loss,
          fmt::format("weights are read before need() or after done(): the loss is {} instead of {}", result.loss_sum,
                      loss));
  for (std::uint32_t t = 0; t < start.size(); ++t) {
    if (!dense(t)) continue;
    require(!held[t], fmt::format("the step ends without done() for {}", m.tensors()[t].name));
    require(
        same_bits(m.gradients(t), expected[t]),
        fmt::format("weights are read before need() or after done(): the gradient of {} differs", m.tensors()[t].name));
    m.weights(t) = start[t];
  }
}

void allocates_nothing(const subject& s) {
  model_under_test m(s, batch);
  const samples x = m.start();
  m.step(x);
  m.step(x);
  std::vector<std::filesystem::path> files = {s.file};
  if (m.executor() && m.executor()->file != s.file) files.push_back(m.executor()->file);
  const allocation_watch watch(files);
  constexpr std::uint64_t steps = 5, rounds = 4;
  std::uint64_t growing = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::size_t used = mallinfo2().uordblks;
    for (std::uint64_t i = 0; i < steps; ++i) m.step(x);
    growing += mallinfo2().uordblks >= used + 16 * steps;
  }
  // Small blocks that are freed again are allowed: interfaces of libraries need them. The allocator's own bookkeeping
  // may grow sometimes, but not in every round.
  require(watch.large_blocks() == 0,
          fmt::format("{} steps allocate {} blocks of more than 4 KiB; expected none after the first steps",
                      rounds * steps, watch.large_blocks()));
  require(growing < rounds, fmt::format("memory in use grows with every {} steps", steps));
}

// ------------------------------------------------------------------------------------------------------- gradients ---

void accumulation(const subject& s) {
  model_under_test m(s, batch);
  m.bind();
  const samples a = m.make_samples(0, batch), b = m.make_samples(batch, batch);
  const auto alone = [&](const samples& part) {
    m.prepare({&a, &b});
    m.step(part, 2 * batch, RG_BATCH_LAST);
    return gradients_of(m);
  };
  const auto of_a = alone(a), of_b = alone(b);
  m.prepare({&a, &b});
  m.step(a, 2 * batch, 0);
  m.step(b, 2 * batch, RG_BATCH_ACCUMULATE | RG_BATCH_LAST);
  const auto together = gradients_of(m);
  for (std::size_t t = 0; t < together.size(); ++t)
    expect_near(together[t], sum_of(of_a[t], of_b[t]), m.tensors()[m.trained()[t]].name);
}

void batch_parts(const subject& s) {
  model_under_test whole(s, 2 * batch), part(s, batch);
  if (whole.has_state())
    throw skipped("it has state (such as batch statistics), so that parts of a batch give other gradients");
  const double loss = whole.step(whole.start());
  part.bind();
  const samples first = part.make_samples(0, batch), second = part.make_samples(batch, batch);
  double losses = 0;
  const auto alone = [&](const samples& x) {
    part.prepare({&first, &second});
    losses += part.step(x, 2 * batch, RG_BATCH_LAST).loss_sum;
    return gradients_of(part);
  };
  const auto of_first = alone(first), of_second = alone(second);
  require(
      std::abs(losses - loss) <= 1e-4 * std::abs(loss),
      fmt::format("the losses of two halves of a batch sum to {}, the loss of the whole batch is {}", losses, loss));
  const auto expected = gradients_of(whole);
  for (std::size_t t = 0; t < expected.size(); ++t)
    expect_near(sum_of(of_first[t], of_second[t]), expected[t], whole.tensors()[whole.trained()[t]].name);
}

// Compares gradients with those in fp32: a loss that is rounded to 8 bits is too coarse to compare gradients with it. A
// term that is missing, counted twice or of the wrong sign makes an error as long as the gradient itself. Rounding, and
// inputs of ReLUs that are positive in only one precision, make less than half of that. With batch normalisation over
// so few samples they make more, in all gradients except the last layer's: gradients of ResNet50 in bf16 differ from
// fp32 by 1.3 of their length, here and in PyTorch.
void half_precision(const subject& s) {
  constexpr double most = 0.6;
  model_under_test exact(s, batch), rounded(s, batch, RG_PURPOSE_TRAIN, RG_BF16);
  const auto step = [](model_under_test& m) { return m.step(m.start()); };
  const double expected_loss = step(exact), loss = step(rounded);
  require(
      std::abs(loss - expected_loss) <= 0.05 * std::abs(expected_loss),
      fmt::format("the loss is {} in bf16 and {} in fp32; expected at most 5 % of difference", loss, expected_loss));
  const auto expected = gradients_of(exact), got = gradients_of(rounded);
  // Sums of rounded numbers are never equal in all bits, but for a step that computes nothing.
  const auto is_zero = [](const floats& g) { return std::all_of(g.begin(), g.end(), [](float x) { return x == 0; }); };
  require(loss != expected_loss || !std::equal(got.begin(), got.end(), expected.begin(), same_bits) ||
              std::all_of(got.begin(), got.end(), is_zero),
          "loss and gradients in bf16 have the same bits as in fp32: it computes in fp32; expected that compile() or "
          "create() refuses a precision that it lacks, with RG_E_UNSUPPORTED");
  const std::size_t compared = exact.has_state() ? 1 : expected.size();
  double squared_difference = 0, squared_norm = 0;
  for (std::size_t t = 0; t < compared; ++t) {
    floats difference(expected[t].size());
    std::transform(got[t].begin(), got[t].end(), expected[t].begin(), difference.begin(), std::minus<>());
    squared_difference += dot(difference, difference);
    squared_norm += dot(expected[t], expected[t]);
  }
  require(std::sqrt(squared_difference) <= most * std::sqrt(squared_norm),
          fmt::format("gradients in bf16 differ from those in fp32 by {:.2g} of their norm; expected at most 0.6",
                      std::sqrt(squared_difference / squared_norm)));
}

// ------------------------------------------------------------------------------------------------------ evaluation ---

void evaluation(const subject& s) {
  model_under_test m(s, batch);
  if (!m.functions().evaluate || !m.info().metric_sums) throw skipped("it has no evaluate()");
  m.bind();
  const auto sums_of = [&](const samples& x, std::uint64_t valid, std::vector<double> sums) {
    m.prepare({&x});
    m.evaluate(x, valid, sums);
    return sums;
  };
  const std::vector<double> nothing(m.info().metric_sums);
  const samples x = m.make_samples(0, batch), rest = m.make_samples(1, batch);
  const auto all = sums_of(x, batch, nothing), twice = sums_of(x, batch, all);
  // Evaluate sample 0 from one batch, and the others from a batch that begins with sample 1.
  const auto parts = sums_of(rest, batch - 1, sums_of(x, 1, nothing));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double near = 1e-4 * (1 + std::abs(all[i]));
    require(std::abs(twice[i] - 2 * all[i]) <= 2 * near,
            fmt::format("metric sum {} is {} after a batch and {} after the same batch again; expected twice as much",
                        i, all[i], twice[i]));
    require(std::abs(parts[i] - all[i]) <= near,
            fmt::format("metric sum {} is {} in one batch, and {} if the samples come in two batches (rg_batch.valid)",
                        i, all[i], parts[i]));
  }
  if (!m.functions().metric) return;
  const double value = m.metric(all);
  require(std::isfinite(value), fmt::format("the metric is {}; expected a finite value", value));
}

} // namespace

std::vector<test> model_tests() {
  return {
      {"seed", "initial weights depend only on the seed, not on instance, batch size or role", seeds},
      {"layout", "canonical() and from_canonical() are inverse", layouts},
      {"rows", "initial values of a sparse table's row do not depend on the other rows of the call", rows},
      {"repeat", "the same step gives bit-identical loss and gradients", repeatable},
      {"ready",
       "ready() comes in tensor order, in the last micro-batch only; gradients are final then, and weights not read "
       "again",
       ready_order},
      {"done", "weights are read between need() and done() only (RG_MODEL_RELEASES), once a pass", releases_weights},
      {"need", "no weight is read before need(); an error of need() ends the step", need_order},
      {"allocations", "after the first steps, a step allocates no block above 4 KiB, and memory in use does not grow",
       allocates_nothing},
      {"gradient", "the integral of each tensor's gradient along a path equals the change of the loss",
       check_gradients},
      {"accumulate", "accumulated gradients of two micro-batches are their sum", accumulation},
      {"bf16",
       "in bf16, the loss is within 5 % of fp32, gradients differ by at most 0.6 of their norm, and not all bits are "
       "equal",
       half_precision},
      {"batch-parts", "the gradients of parts of a batch sum to those of the whole batch", batch_parts},
      {"evaluate", "evaluate() adds to its sums, and counts only the first `valid` samples", evaluation},
  };
}

} // namespace regatta::conformance
