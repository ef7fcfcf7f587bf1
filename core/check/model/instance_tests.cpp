// SPDX-License-Identifier: Apache-2.0
//
// Tests of several instances of a model in one process, and of the threads in which a step computes.
#include "check/model/model_under_test.hpp"

#include <cstring>
#include <ctime>

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

constexpr std::uint64_t samples_of_a_step = 4;

// An instance with its samples, and what its first step gave.
struct bound_instance {
  model_under_test model;
  samples batch_of_it;
  double loss = 0;
  std::vector<floats> gradients;

  bound_instance(const subject& s, std::uint64_t first_sample, float scale) : model(s, samples_of_a_step) {
    model.bind();
    for (std::uint32_t t = 0; t < model.tensors().size(); ++t)
      if (model.tensors()[t].kind == RG_TENSOR_DENSE)
        for (float& w : model.weights(t)) w *= scale;
    batch_of_it = model.make_samples(first_sample, samples_of_a_step);
    step();
    gradients = model.gradients();
  }
  double step() {
    model.prepare({&batch_of_it});
    return loss = model.step(batch_of_it);
  }
  void expect_the_same() {
    const double before = loss, after = step();
    require(after == before, fmt::format("the loss of an instance is {} before and {} after a step of another "
                                         "instance: they share memory",
                                         before, after));
    for (const std::uint32_t t : model.trained()) {
      const floats &was = gradients[t], &is = model.gradients(t);
      require(
          was.size() == is.size() && std::memcmp(was.data(), is.data(), is.size() * sizeof(float)) == 0,
          fmt::format("an instance gives another gradient of {} after a step of another instance: they share memory",
                      model.tensors()[t].name));
    }
  }
};

void instances(const subject& s) {
  bound_instance a(s, 0, 1), b(s, samples_of_a_step, 0.5F); // other samples and weights
  a.expect_the_same();
  b.expect_the_same();
}

double cpu_seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// CPU time, not wall time: it does not depend on the load of the machine. It includes threads that have ended.
void threads(const subject& s) {
  constexpr double enough = 0.1; // s
  model_under_test m(s, samples_of_a_step);
  const samples x = m.start();
  m.step(x);
  const double all_before = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), own_before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  double own = 0;
  for (int i = 0; i < 50 && own < enough; ++i) {
    m.step(x);
    own = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - own_before;
  }
  const double others = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - all_before - own;
  require(others <= 0.001 + 0.1 * own,
          fmt::format("other threads than the one that calls step() compute for {:.3g} ms, and that one for {:.3g} ms; "
                      "expected none, as rg_model_setup.threads is 1",
                      others * 1e3, own * 1e3));
}

} // namespace

std::vector<test> instance_tests() {
  return {
      {"instances", "a step of one instance does not change the results of another one", instances},
      {"threads", "with rg_model_setup.threads = 1, the thread that calls step() computes alone", threads},
  };
}

} // namespace regatta::conformance
