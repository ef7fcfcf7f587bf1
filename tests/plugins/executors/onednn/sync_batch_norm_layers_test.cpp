// SPDX-License-Identifier: Apache-2.0
//
// Synchronised batch norm: workers with a part of a batch each compute the loss, the gradients and the states of the
// reference in fp64 with the whole batch.
#include "layers_cases.hpp"

#include <regatta/ext/graph.h>

#include <barrier>
#include <map>
#include <memory>
#include <set>
#include <thread>

using namespace layers_cases;

namespace {

// The host's side of the sums, for workers that are threads.
class meeting {
public:
  explicit meeting(std::uint32_t workers) : arrive_(workers), sides_(workers) {
    for (side& s : sides_) {
      s.all = this;
      s.table = rg::make_versioned<rg_step_collectives>();
      s.table.workers = workers;
      s.table.context = &s;
      s.table.reserve = [](void* self, std::uint64_t count) {
        auto& reserved = static_cast<side*>(self)->reserved;
        reserved = std::max(reserved, count);
      };
      s.table.all_reduce = [](void* self, const char* name, double* numbers, std::uint64_t count) -> rg_status {
        return static_cast<side*>(self)->sum(name, numbers, count);
      };
    }
  }
  const rg_step_collectives* table(std::size_t worker) const { return &sides_[worker].table; }

  struct side {
    meeting* all;
    rg_step_collectives table;
    std::uint64_t reserved = 0;
    std::vector<std::string> names; // of the sums
    std::vector<double> mine;
    rg_status status = RG_OK; // of the next sums

    rg_status sum(const char* name, double* numbers, std::uint64_t count) {
      if (status != RG_OK) return status;
      names.emplace_back(name);
      mine.assign(numbers, numbers + count);
      all->arrive_.arrive_and_wait();
      for (std::uint64_t i = 0; i < count; ++i) {
        numbers[i] = 0;
        for (const side& s : all->sides_) numbers[i] += i < s.mine.size() ? s.mine[i] : NAN;
      }
      all->arrive_.arrive_and_wait();
      return count <= reserved ? rg_status{RG_OK} : rg_status{RG_E_PLUGIN};
    }
  };
  std::vector<side>& sides() { return sides_; }

private:
  std::barrier<> arrive_;
  std::vector<side> sides_;
};

// Images through all forms of a batch norm: alone, with ReLU, residual, dropout, pooling, of vectors, and a bias before
// it that it takes over.
void build(rg::network& net, bool sync) {
  const rg::batch_norm_options o{.epsilon = 1e-3, .momentum = 0.8, .sync = sync};
  const rg::value image = net.values("image", {3, 8, 8}), label = net.index("label", 5);
  rg::value x = rg::relu(rg::batch_norm(rg::conv2d(image, "a", 19, {.padding = 1}), "an", o));
  const rg::value same = rg::batch_norm(rg::conv2d(x, "b", 19, {.padding = 1, .bias = false}), "bn", o);
  x = rg::relu(rg::add(same, x));
  x = rg::dropout(rg::relu(rg::batch_norm(rg::conv2d(x, "c", 8, {.padding = 1}), "cn", o)), 0.3);
  x = rg::max_pool(rg::relu(rg::batch_norm(rg::conv2d(x, "d", 40, {.padding = 1}), "dn", o)));
  x = rg::relu(rg::batch_norm(rg::dense(rg::flatten(x), "e", 21), "en", o));
  rg::softmax_cross_entropy(rg::dense(x, "f", 5), label);
}

constexpr std::size_t batch_of_worker = 4;

struct trained {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients, states; // gradients: the sum over workers
  double states_apart = 0;                                      // the largest distance of two workers' states
};

// One step of the workers, with the weights of `r`.
trained train(const rg_graph& g, const reference::interpreter& r, std::uint32_t workers, std::uint32_t threads,
              meeting& all, const reference::batch& whole) {
  std::vector<std::unique_ptr<reference::executed>> executed;
  for (std::uint32_t w = 0; w < workers; ++w) {
    executed.push_back(std::make_unique<reference::executed>(
        executor_plugin, g,
        reference::execution_options{.batch = batch_of_worker, .threads = threads, .collectives = all.table(w)}));
    copy(r, g, *executed.back());
  }
  trained t;
  std::vector<rg_step_result> results(workers);
  std::vector<std::thread> running;
  for (std::uint32_t w = 0; w < workers; ++w)
    running.emplace_back(
        [&, w] { results[w] = executed[w]->step(part_of(whole, w * batch_of_worker, batch_of_worker)); });
  for (std::thread& thread : running) thread.join();
  for (std::uint32_t w = 0; w < workers; ++w) {
    t.loss += results[w].loss_sum;
    for (std::uint32_t k = 0; k < g.tensor_count; ++k) {
      const std::string name = g.tensors[k].name;
      const std::size_t i = executed[w]->index_of(name);
      const bool state = g.tensors[k].kind == RG_TENSOR_STATE;
      const auto mine = executed[w]->canonical((state ? executed[w]->weights : executed[w]->gradients)[i].data(), i);
      auto& sum = (state ? t.states : t.gradients)[name];
      if (sum.empty())
        sum = mine;
      else if (state)
        t.states_apart = std::max(t.states_apart, distance(mine, sum));
      else
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += mine[e];
    }
  }
  return t;
}

// The largest distance of a gradient or a state to that of the reference with the whole batch.
double apart(const rg_graph& g, const reference::interpreter& r, const trained& t) {
  double most = 0;
  for (std::uint32_t k = 0; k < g.tensor_count; ++k) {
    const std::string name = g.tensors[k].name;
    const bool state = g.tensors[k].kind == RG_TENSOR_STATE;
    const auto& meant = state ? r.tensors[k] : r.gradients[k];
    // A bias before a batch norm has no gradient but rounding.
    most = std::max(most, distance((state ? t.states : t.gradients).at(name), meant, is_zero(meant) ? 1e-2 : 1e-6));
  }
  return most;
}

// Each batch norm's statistics are sums in fp32 over at most 1024 elements, then in fp64, and activations are fp32: the
// tolerance of layers_test, which one worker keeps.
constexpr double tolerance = 1e-5;

} // namespace

TEST_CASE("workers that synchronise batch norm compute what the reference computes with the whole batch") {
  for (const std::uint32_t workers : {2u, 3u})
    for (const std::uint32_t threads : {1u, 2u}) { // with 2, the samples of a block of channels are split
      CAPTURE(workers);
      CAPTURE(threads);
      rg::network net;
      build(net, true);
      const rg_graph& g = *net.graph();
      const reference::batch whole = make_batch(g, workers * batch_of_worker, 11);
      reference::interpreter r(g);
      fill(r, g);
      meeting all(workers);
      const trained t = train(g, r, workers, threads, all, whole);
      const double loss = r.forward(whole);
      r.backward(whole);
      CHECK(t.loss == doctest::Approx(loss).epsilon(tolerance));
      CHECK(apart(g, r, t) < tolerance);
      CHECK(t.states_apart == 0); // to the bit
      for (const meeting::side& s : all.sides()) {
        CHECK(s.names == all.sides()[0].names);
        CHECK(s.names.size() == 10); // five forward, five backward
        CHECK(s.names.front() == "an, mean and variance");
        CHECK(s.names.back() == "an, gradient");
      }
    }
}

TEST_CASE("without synchronisation they differ by far more than the tolerance") {
  rg::network net;
  build(net, false);
  const rg_graph& g = *net.graph();
  const reference::batch whole = make_batch(g, 2 * batch_of_worker, 11);
  reference::interpreter r(g);
  fill(r, g);
  meeting all(2);
  const trained t = train(g, r, 2, 1, all, whole);
  r.forward(whole);
  r.backward(whole);
  CHECK(apart(g, r, t) > 1000 * tolerance);
  CHECK(all.sides()[0].names.empty());
}

TEST_CASE("one worker alone: synchronised batch norm is batch norm, to the bit") {
  rg::network sync, own;
  build(sync, true);
  build(own, false);
  std::vector<std::vector<double>> gradients;
  for (const rg_graph* g : {sync.graph(), own.graph()}) {
    reference::interpreter r(*g);
    fill(r, *g);
    reference::executed e(executor_plugin, *g, {.batch = batch_of_worker, .threads = 2});
    copy(r, *g, e);
    e.step(make_batch(*g, batch_of_worker, 11));
    std::vector<double>& all = gradients.emplace_back();
    for (std::uint32_t k = 0; k < g->tensor_count; ++k) {
      const std::size_t i = e.index_of(g->tensors[k].name);
      const bool state = g->tensors[k].kind == RG_TENSOR_STATE;
      const auto mine = e.canonical((state ? e.weights : e.gradients)[i].data(), i);
      all.insert(all.end(), mine.begin(), mine.end());
    }
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE("a sum that fails ends the step with its status and the layer's name") {
  rg::network net;
  build(net, true);
  const rg_graph& g = *net.graph();
  meeting all(2);
  all.sides()[0].status = RG_E_PEER;
  reference::interpreter r(g);
  fill(r, g);
  reference::executed e(executor_plugin, g, {.batch = batch_of_worker, .collectives = all.table(0)});
  copy(r, g, e);
  CHECK_THROWS(e.step(make_batch(g, batch_of_worker, 11)));
  CHECK(e.error == "the sum over all workers failed: an, mean and variance");
}
