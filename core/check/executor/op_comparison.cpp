// SPDX-License-Identifier: Apache-2.0
#include "check/executor/op_comparison.hpp"

#include "check/model/model_under_test.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <interpreter.hpp>
#include <regatta/executor.hpp>
#include <regatta/random.hpp>

namespace regatta::conformance {
namespace {

// Of the length of a gradient. Rounding to fp32 makes 1e-6 in graphs this small, fast algorithms (Winograd, polynomials
// for exp) up to 1e-4; a wrong element at an edge makes 1e-2.
constexpr double most = 1e-3;
// A gradient this much shorter than the graph's longest is what rounding leaves of terms that cancel, such as that of a
// bias before batch norm.
constexpr double negligible = 1e-2;
constexpr std::uint32_t stream_weights = 1024; // of random numbers: beside those of regatta/random.hpp

using doubles = std::vector<double>;

// Replaces the initial values, among which are biases of 0 and scales of 1, by random numbers of the same size.
void randomize(floats& values, const rg_tensor& t, std::uint32_t number, std::uint64_t seed) {
  const bool constant = t.init == RG_INIT_CONSTANT, uniform = t.init == RG_INIT_UNIFORM;
  const double mean = constant ? t.init_a : 0;
  const double deviation = constant ? 0.1 : uniform ? (t.init_b - t.init_a) / 4 : t.init_b;
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(mean + deviation * rg::random_normals(seed, i / 4, number, stream_weights)[i % 4]);
}

doubles to_doubles(const floats& v) {
  return {v.begin(), v.end()};
}

doubles to_doubles(const byte_array& bytes, const rg_input& in, std::uint64_t samples) {
  doubles all(samples * elements_of(in));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (in.type == RG_F32) {
      float x = 0;
      std::memcpy(&x, bytes.data() + i * sizeof x, sizeof x);
      all[i] = x;
    } else {
      std::int32_t x = 0;
      std::memcpy(&x, bytes.data() + i * sizeof x, sizeof x);
      all[i] = x;
    }
  }
  return all;
}

double length_of(const doubles& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

template <class T> std::uint32_t index_of(const std::vector<T>& all, const char* name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const T& t) { return std::string_view(t.name) == name; });
  if (at == all.end()) throw failed(fmt::format("describe() has no {}, which the graph has", name));
  return static_cast<std::uint32_t>(at - all.begin());
}

// The executor's model and the reference, with the same weights and samples.
class two_steps {
public:
  two_steps(const subject& s, const rg_graph& graph, const rg_graph& same, std::uint64_t batch)
      : graph_(graph), model_(s, same, batch), reference_(graph, reference::interpreter::tables::rows_of_a_step),
        samples_(model_.start()) {
    for (std::uint32_t t = 0; t < graph.tensor_count; ++t) {
      const std::uint32_t at = index_of(model_.tensors(), graph.tensors[t].name);
      const bool rows = graph.tensors[t].kind == RG_TENSOR_ROWS;
      floats values(rows ? model_.weights(at).size() : elements_of(graph.tensors[t]));
      randomize(values, graph.tensors[t], t, s.seed);
      const floats memory = model_.from_canonical(at, values);
      std::copy(memory.begin(), memory.end(), model_.weights(at).begin()); // the model keeps the address
      reference_.tensors[t] = to_doubles(values);
      if (rows) reference_.rows[t] = model_.rows(at);
      model_index_.push_back(at);
    }
  }

  void compare() {
    const reference::batch batch = reference_batch();
    const double expected = reference_.forward(batch) / static_cast<double>(batch.samples);
    reference_.backward(batch);
    const rg_step_result got = model_.step(samples_, samples_.count, RG_BATCH_LAST);
    const double loss = got.loss_sum / static_cast<double>(got.count);
    require(std::abs(loss - expected) <= most * (1e-2 + std::abs(expected)),
            fmt::format("the loss is {:.7g}; expected {:.7g} of the reference in fp64", loss, expected));
    double longest = 0;
    for (const doubles& g : reference_.gradients) longest = std::max(longest, length_of(g));
    for (std::uint32_t t = 0; t < graph_.tensor_count; ++t) {
      const std::uint32_t at = model_index_[t];
      if (graph_.tensors[t].kind == RG_TENSOR_STATE)
        expect_equal(t, "state", model_.weights(at), reference_.tensors[t], 0);
      else
        expect_equal(t, "gradient", model_.gradients(at), reference_.gradients[t], negligible * longest);
    }
  }

  void compare_metric() {
    if (!model_.functions().evaluate || !model_.functions().metric || !model_.info().metric_sums)
      throw skipped("it has no metric");
    const std::string_view name = model_.info().metric ? model_.info().metric : "";
    require(name == "top1",
            fmt::format("the metric is named \"{}\"; expected \"top1\", as regatta/layers.hpp says", name));
    reference_.forward(reference_batch(), false);
    const rg_node& loss = graph_.nodes[graph_.node_count - 1];
    const doubles &logits = reference_.values[loss.inputs[0]], &labels = reference_.values[loss.inputs[1]];
    const std::size_t classes = logits.size() / labels.size();
    std::size_t right = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * classes);
      right +=
          static_cast<double>(std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) - row) == labels[i];
    }
    std::vector<double> sums(model_.info().metric_sums);
    model_.evaluate(samples_, samples_.count, sums);
    const double expected = static_cast<double>(right) / static_cast<double>(labels.size());
    const double got = model_.metric(sums);
    require(std::abs(got - expected) < 1e-6,
            fmt::format("top1 is {:.7g}; expected {:.7g}: the label has the largest logit in {} of {} samples", got,
                        expected, right, labels.size()));
  }

private:
  reference::batch reference_batch() const {
    reference::batch b;
    b.samples = b.global_samples = samples_.count;
    b.seed = model_.seed();
    b.step = model_under_test::step_number;
    b.first_sample = samples_.first;
    for (std::uint32_t i = 0; i < graph_.input_count; ++i) {
      const std::uint32_t at = index_of(model_.inputs(), graph_.inputs[i].name);
      b.inputs.push_back(to_doubles(samples_.inputs[at], graph_.inputs[i], samples_.count));
    }
    return b;
  }

  void expect_equal(std::uint32_t tensor, const char* what, const floats& memory, const doubles& expected,
                    double least_length) {
    const floats got = model_.canonical(model_index_[tensor], memory);
    doubles difference = expected;
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= got[i];
    const double length = std::max(length_of(expected), least_length), distance = length_of(difference);
    if (distance <= most * length) return;
    std::size_t worst = 0;
    for (std::size_t i = 0; i < difference.size(); ++i)
      if (!(std::abs(difference[i]) <= std::abs(difference[worst]))) worst = i;
    throw failed(
        fmt::format("the {} of {} differs from that of the reference in fp64 by {:.2g} of its length; expected "
                    "at most {}; most at element {}: {:.7g} instead of {:.7g}",
                    what, graph_.tensors[tensor].name, distance / length, most, worst, got[worst], expected[worst]));
  }

  const rg_graph& graph_;
  model_under_test model_;
  reference::interpreter reference_;
  samples samples_;
  std::vector<std::uint32_t> model_index_; // by number of the tensor in the graph
};

} // namespace

compilation try_compile(const subject& s, const rg_graph& graph, std::uint64_t batch) {
  return try_compile(*s.tested, s.parameters, graph, batch);
}

compilation try_compile(const component& executor, const std::map<std::string, nlohmann::json>& parameters,
                        const rg_graph& graph, std::uint64_t batch) {
  plugin_host host;
  const parameter_values values(executor, parameters);
  const auto setup = setup_of(batch, RG_PURPOSE_TRAIN, RG_F32);
  void* self = nullptr;
  const rg_status status = executor.executor.compile(host.c(), values.data(), &graph, &setup, &self);
  if (status == RG_OK) executor.executor_model.destroy(self);
  return {status, host.take_error()};
}

void compare_with_reference(const subject& s, const rg_graph& graph, const rg_graph& same, std::uint64_t batch) {
  two_steps(s, graph, same, batch).compare();
}

void compare_metric(const subject& s, const rg_graph& graph, std::uint64_t batch) {
  two_steps(s, graph, graph, batch).compare_metric();
}

void compare_description(const subject& s, const rg_graph& graph, std::uint64_t batch) {
  const model_under_test m(s, graph, batch);
  require(
      m.tensors().size() == graph.tensor_count,
      fmt::format("describe() has {} tensors; expected the {} of the graph", m.tensors().size(), graph.tensor_count));
  for (std::uint32_t t = 0; t < graph.tensor_count; ++t) {
    const rg_tensor &expected = graph.tensors[t], &got = m.tensors()[index_of(m.tensors(), expected.name)];
    const auto equal = [&](const char* member, double ours, double theirs) {
      require(theirs == ours, fmt::format("describe() says {} {} of {}; expected {} of the graph", member, theirs,
                                          expected.name, ours));
    };
    equal("kind", expected.kind, got.kind);
    equal("decay", expected.decay, got.decay);
    equal("lr_scale", expected.lr_scale, got.lr_scale);
    equal("compressible", expected.compressible != 0, got.compressible != 0);
    require(std::equal(got.shape, got.shape + got.ndim, expected.shape, expected.shape + expected.ndim),
            fmt::format("describe() gives {} another shape than the graph", expected.name));
  }
  const auto text = [](const char* words) { return std::string_view(words ? words : ""); };
  require(
      text(m.info().unit) == text(graph.unit),
      fmt::format("describe() says unit \"{}\"; expected \"{}\" of the graph", text(m.info().unit), text(graph.unit)));
  require(m.info().tokens_input == graph.tokens_input,
          fmt::format("describe() says tokens_input {}; expected {} of the graph", m.info().tokens_input,
                      graph.tokens_input));
}

void compare_initial_values(const subject& s, const rg_graph& graph, std::uint64_t batch) {
  model_under_test m(s, graph, batch);
  for (std::uint32_t t = 0; t < graph.tensor_count; ++t) {
    const rg_tensor& tensor = graph.tensors[t];
    if (tensor.kind == RG_TENSOR_ROWS) continue;
    const std::uint32_t at = index_of(m.tensors(), tensor.name);
    floats expected(elements_of(tensor));
    rg::initial_values(tensor, t, 0, s.seed, expected);
    const floats got = m.canonical(at, m.initial(at, s.seed));
    for (std::size_t i = 0; i < expected.size(); ++i)
      require(std::abs(got[i] - expected[i]) <= 1e-5F * (std::abs(expected[i]) + 1e-3F),
              fmt::format("element {} of {} begins with {:.7g}; expected {:.7g}, as rg::initial_values() gives it", i,
                          tensor.name, got[i], expected[i]));
  }
}

} // namespace regatta::conformance
