// SPDX-License-Identifier: Apache-2.0
//
// The properties of a compiled model that the engine relies on: initial weights, shares of a batch, accumulation,
// hooks, errors.
#include "layers_cases.hpp"
#include "model_graph.hpp"
#include "precisions.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <regex>
#include <set>

#include <regatta/ext/graph.h>

using namespace layers_cases;

namespace {

std::atomic<std::size_t> allocated{0}; // bytes asked of operator new in blocks above 4 KiB, in the whole process

void build_small(rg::network& net, bool norm, double dropout) {
  rg::value x = net.values("image", {3, 8, 8});
  const rg::value label = net.index("label", 5);
  auto block = [&](const std::string& name, std::int64_t channels) {
    x = rg::conv2d(x, name, channels, {.padding = 1});
    if (norm) x = rg::batch_norm(x, name + "_norm");
    x = rg::dropout(rg::relu(x), dropout);
  };
  block("a", 16);
  block("b", 24);
  x = rg::max_pool(x); // 24 x 4 x 4
  block("c", 32);
  x = rg::max_pool(x); // 32 x 2 x 2
  block("d", 32);
  x = rg::dropout(rg::relu(rg::dense(rg::flatten(x), "e", 24)), dropout);
  rg::softmax_cross_entropy(rg::dense(x, "out", 5, {.gain = 1}), label);
}

std::vector<std::vector<double>> gradients_of(const reference::executed& e) {
  std::vector<std::vector<double>> all;
  for (std::size_t t = 0; t < e.tensors.size(); ++t)
    if (e.tensors[t].kind == RG_TENSOR_DENSE) all.push_back(e.canonical(e.gradients[t].data(), t));
  return all;
}

} // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they bring their own
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"            // g++ 12 does not see that these belong together
void* operator new(std::size_t bytes) {
  if (bytes > 4096) allocated += bytes;
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
#endif

TEST_CASE("tensors say whether they are reordered, and are row-major on request") {
  rg::network net;
  build_small(net, true, 0);
  std::size_t reordered = 0;
  for (const bool row_major : {false, true}) {
    CAPTURE(row_major);
    reference::executed e(executor_plugin, *net.graph(), {.batch = 3, .row_major = row_major});
    e.start(1);
    e.step(make_batch(*net.graph(), 3, 1));
    for (std::size_t t = 0; t < e.tensors.size(); ++t) {
      CAPTURE(std::string(e.tensors[t].name));
      if (e.tensors[t].kind != RG_TENSOR_DENSE) continue;
      const auto gradient = e.canonical(e.gradients[t].data(), t);
      const bool same = std::equal(gradient.begin(), gradient.end(), e.gradients[t].data());
      CHECK(same == !e.tensors[t].reordered);
      if (row_major) CHECK(!e.tensors[t].reordered);
      reordered += e.tensors[t].reordered != 0;
    }
  }
  CHECK(reordered > 0); // oneDNN has blocks of 8 or 16 channels
}

TEST_CASE("a traced step has a span for each op, forward and then backward, in order") {
  struct recorder {
    std::vector<rg_span> spans;
    std::set<std::string> texts;
    std::uint32_t on = 0;
  } r;
  auto trace = rg::make_versioned<rg_trace>();
  trace.context = &r;
  trace.on = &r.on;
  trace.span = [](void* self, const rg_span* s) { static_cast<recorder*>(self)->spans.push_back(*s); };
  trace.text = [](void* self, const char* text) {
    return static_cast<recorder*>(self)->texts.insert(text).first->c_str();
  };
  rg::network net;
  build_small(net, false, 0);
  reference::executed e(executor_plugin, *net.graph(), {.trace = &trace});
  e.start(1);
  const reference::batch b = make_batch(*net.graph(), 4, 5);
  e.step(b);
  CHECK(r.spans.empty());
  r.on = 1;
  e.step(b);
  const auto count = [&](std::string_view pass) {
    return std::ranges::count_if(r.spans, [&](const rg_span& s) { return s.category == pass; });
  };
  CHECK(count("forward") > 10);
  CHECK(count("backward") > 5);
  CHECK(count("backward") <= count("forward")); // an op before the first weight has no backward pass
  CHECK(r.texts.contains("a"));
  for (std::size_t k = 0; k < r.spans.size(); ++k) {
    CHECK(r.spans[k].begin_ns <= r.spans[k].end_ns);
    if (k) CHECK(r.spans[k - 1].end_ns <= r.spans[k].begin_ns);
  }
}

TEST_CASE("the whole of a small network agrees with the reference") {
  for (const bool norm : {false, true})
    for (const double dropout : {0.0, 0.4}) {
      CAPTURE(norm);
      CAPTURE(dropout);
      rg::network net;
      build_small(net, norm, dropout);
      compare(*net.graph(), {.batch = 6}, 2e-5);
      compare(*net.graph(), {.batch = 7, .threads = 2, .kernels = RG_KERNELS_TIMED}, 5e-5);
    }
}

TEST_CASE("two halves of a batch give the gradients of the whole, dropout included") {
  rg::network net;
  build_small(net, false, 0.4);
  const rg_graph& g = *net.graph();
  reference::executed whole(executor_plugin, g, {.batch = 8}), half(executor_plugin, g, {.batch = 4});
  whole.start(3);
  half.start(3);
  const reference::batch b = make_batch(g, 8, 5);
  const double loss = whole.step(b).loss_sum;
  const auto expected = gradients_of(whole);

  SUBCASE("added by the caller, as two workers would") {
    double sum = half.step(part_of(b, 0, 4)).loss_sum;
    auto first = gradients_of(half);
    sum += half.step(part_of(b, 4, 4)).loss_sum;
    const auto second = gradients_of(half);
    CHECK(sum == doctest::Approx(loss).epsilon(1e-6));
    for (std::size_t t = 0; t < first.size(); ++t) {
      for (std::size_t i = 0; i < first[t].size(); ++i) first[t][i] += second[t][i];
      CHECK(distance(first[t], expected[t]) < 2e-6);
    }
  }
  SUBCASE("accumulated by the model") {
    half.step(part_of(b, 0, 4), 0);
    CHECK(std::none_of(half.events.begin(), half.events.end(),
                       [](const std::string& e) { return e.rfind("ready", 0) == 0; }));
    half.step(part_of(b, 4, 4), RG_BATCH_ACCUMULATE | RG_BATCH_LAST);
    const auto got = gradients_of(half);
    for (std::size_t t = 0; t < got.size(); ++t) CHECK(distance(got[t], expected[t]) < 2e-6);
  }
}

TEST_CASE("accumulation works with batch norm") {
  rg::network net;
  build_small(net, true, 0.3);
  const rg_graph& g = *net.graph();
  reference::executed e(executor_plugin, g, {.batch = 4});
  e.start(3);
  const reference::batch b = make_batch(g, 8, 5);
  e.step(part_of(b, 0, 4));
  auto sum = gradients_of(e);
  e.step(part_of(b, 4, 4));
  const auto second = gradients_of(e);
  e.step(part_of(b, 0, 4), 0);
  e.step(part_of(b, 4, 4), RG_BATCH_ACCUMULATE | RG_BATCH_LAST);
  const auto got = gradients_of(e);
  for (std::size_t t = 0; t < got.size(); ++t) {
    for (std::size_t i = 0; i < sum[t].size(); ++i) sum[t][i] += second[t][i];
    CHECK(distance(got[t], sum[t]) < 1e-6);
  }
}

TEST_CASE("starts depend on the seed alone, and canonical layouts go there and back") {
  rg::network net;
  build_small(net, true, 0);
  const rg_graph& g = *net.graph();
  reference::executed a(executor_plugin, g, {.batch = 8}), b(executor_plugin, g, {.batch = 3}),
      layout_only(executor_plugin, g, {.purpose = RG_PURPOSE_INIT});
  a.start(1);
  b.start(1);
  layout_only.start(1);
  CHECK(std::string(a.info.layout) == layout_only.info.layout);
  CHECK(layout_only.info.activation_bytes == 0);
  CHECK(a.info.activation_bytes > 0);
  for (std::size_t t = 0; t < a.tensors.size(); ++t) {
    CAPTURE(a.tensors[t].name);
    const auto start = a.canonical(a.weights[t].data(), t);
    CHECK(start == b.canonical(b.weights[t].data(), t));
    CHECK(std::equal(a.weights[t].data(), a.weights[t].data() + rg::storage_of(a.tensors[t]),
                     layout_only.weights[t].data()));
    b.set(t, start);
    CHECK(std::equal(a.weights[t].data(), a.weights[t].data() + rg::storage_of(a.tensors[t]), b.weights[t].data()));
  }
  b.start(2);
  const std::size_t w = a.index_of("c.weight");
  const auto one = a.canonical(a.weights[w].data(), w), two = b.canonical(b.weights[w].data(), w);
  CHECK(distance(one, two) > 1);
  double square = 0;
  for (double v : one) square += v * v;
  CHECK(std::sqrt(square / static_cast<double>(one.size())) ==
        doctest::Approx(std::sqrt(2.0 / (24 * 9))).epsilon(0.05));
}

TEST_CASE("gradients become ready in the order of the tensors, and weights are needed in the other") {
  rg::network net;
  build_small(net, true, 0.2);
  reference::executed e(executor_plugin, *net.graph(), {.batch = 2});
  e.start(1);
  e.step(make_batch(*net.graph(), 2, 1));
  const auto middle = std::find(e.events.begin(), e.events.end(), "backward");
  REQUIRE(middle != e.events.end());
  std::size_t dense = 0;
  for (const auto& t : e.tensors) dense += t.kind == RG_TENSOR_DENSE;
  CHECK(static_cast<std::size_t>(middle - e.events.begin()) == dense);
  std::size_t last = 0;
  for (auto i = middle + 1; i != e.events.end(); ++i) {
    const std::size_t t = e.index_of(i->substr(6));
    CHECK((i == middle + 1 || t > last));
    last = t;
  }
  CHECK(last == dense - 1);
  for (std::size_t t = 0; t < dense; ++t) CHECK(e.tensors[t].kind == RG_TENSOR_DENSE); // states come last
}

TEST_CASE("chosen of one instance make another choose the same") {
  rg::network net;
  build_small(net, true, 0.2);
  const rg_graph& g = *net.graph();
  reference::executed timed(executor_plugin, g, {.batch = 8, .kernels = RG_KERNELS_TIMED});
  const std::string chosen = timed.kernels();
  CHECK(chosen.find("b forward: ") != std::string::npos);
  CHECK(chosen.find("a data gradient") == std::string::npos); // the gradient of an image is not needed
  CHECK(chosen.find("ref") == std::string::npos);
  std::string changed = chosen;
  const std::string line = "b forward: ";
  const std::size_t at = changed.find(line) + line.size();
  const std::size_t end = changed.find('\n', at);
  const std::string other = changed.compare(at, 6, "direct") == 0 ? "winograd" : "direct";
  changed.replace(at, end - at, other);

  reference::executed again(executor_plugin, g, {.batch = 8, .kernels = RG_KERNELS_TIMED, .kernel_choices = chosen});
  CHECK(again.kernels() == chosen);
  CHECK(std::string(again.info.layout) == timed.info.layout);
  again.start(1);
  timed.start(1);
  const auto b = make_batch(g, 8, 1);
  CHECK(again.step(b).loss_sum == timed.step(b).loss_sum);
  CHECK(gradients_of(again) == gradients_of(timed));

  if (chosen.find("winograd") != std::string::npos) { // only where the machine has it
    reference::executed forced(executor_plugin, g,
                               {.batch = 8, .kernels = RG_KERNELS_TIMED, .kernel_choices = changed});
    CHECK(forced.kernels().find(line + other) != std::string::npos);
  }
  CHECK_THROWS(reference::executed(executor_plugin, g, {.kernels = RG_KERNELS_TIMED, .kernel_choices = "nonsense"}));
  CHECK_THROWS(reference::executed(executor_plugin, g, {.kernels = RG_KERNELS_TIMED, .kernel_choices = ""}));
  CHECK_THROWS(
      reference::executed(executor_plugin, g, {.kernels = RG_KERNELS_TIMED, .kernel_choices = "a forward: direct\n"}));
}

TEST_CASE("chosen kernels are kept in a file, and a damaged file is repaired") {
  namespace fs = std::filesystem;
  std::string folder = (fs::temp_directory_path() / "regatta-choices-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()));
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string restored = before ? before : "";
  setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const fs::path file = fs::path(folder) / "regatta" / "onednn-choices";
  auto read = [&] {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  auto write = [&](const std::string& text) { std::ofstream(file) << text; };

  rg::network net;
  build_small(net, true, 0.2);
  const rg_graph& g = *net.graph();
  auto timed = [&](std::uint64_t batch = 8) {
    return reference::executed(executor_plugin, g, {.batch = batch, .kernels = RG_KERNELS_TIMED}).kernels();
  };
  timed();
  const std::string kept = read();
  CHECK(kept.find("convolution ") != std::string::npos);
  CHECK(kept.find("gemm ") != std::string::npos);
  CHECK(std::distance(fs::directory_iterator(file.parent_path()), {}) == 1); // nothing half-written beside it

  // It is followed: with every product turned to dnnl_sgemm, and to matmul, that is what runs.
  for (const char* algorithm : {"gemm", "matmul"}) {
    write(std::regex_replace(kept, std::regex("\\t(matmul|gemm)\\t"), std::string("\t") + algorithm + "\t"));
    const std::string text = timed();
    CHECK(std::regex_search(text, std::regex(std::string("forward: ") + algorithm)));
    CHECK((std::string(algorithm) == "matmul") == (text.find("gemm dnnl_sgemm") == std::string::npos));
  }
  // The kernels of another batch size are added to it.
  timed(4);
  CHECK(read().size() > kept.size());

  // A foreign, damaged or truncated file, or one with unknown algorithms: kernels are timed again and the file is
  // repaired.
  const std::size_t heading = kept.find('\n') + 1;
  for (const std::string& wrong : {std::string("a photograph\n"), std::string(), std::string(100, '\0'),
                                   kept.substr(0, heading) + "no tabs\n\t\n\t\t\n", kept.substr(0, kept.size() - 3),
                                   std::regex_replace(kept, std::regex("\\t(matmul|gemm|direct)\\t"), "\tmagic\t")}) {
    write(wrong);
    CHECK(timed().find("b forward: ") != std::string::npos);
    const std::string mended = read();
    CHECK(mended.substr(0, heading) == kept.substr(0, heading));
    CHECK(std::count(kept.begin(), kept.end(), '\n') <= std::count(mended.begin(), mended.end(), '\n'));
  }
  // A folder that cannot be made costs nothing but time.
  setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
  CHECK(timed().find("b forward: ") != std::string::npos);
  restored.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", restored.c_str(), 1);
  fs::remove_all(folder);
}

TEST_CASE("winograd differs from the direct algorithm by rounding alone") {
  rg::network net;
  const rg::value image = net.values("image", {32, 16, 16});
  const rg::value label = net.index("label", 4);
  const rg::value x = rg::conv2d(rg::conv2d(image, "a", 48, {.padding = 1}), "b", 32, {.padding = 1});
  rg::softmax_cross_entropy(rg::dense(rg::flatten(x), "out", 4, {.gain = 0.1}), label);
  const rg_graph& g = *net.graph();
  reference::executed direct(executor_plugin, g, {.batch = 8});
  REQUIRE(direct.kernels().find("winograd") == std::string::npos);
  const std::string chosen = std::regex_replace(direct.kernels(), std::regex("(b [a-z ]+): direct"), "$1: winograd");
  std::unique_ptr<reference::executed> winograd;
  try {
    winograd = std::make_unique<reference::executed>(
        executor_plugin, g,
        reference::execution_options{.batch = 8, .kernels = RG_KERNELS_TIMED, .kernel_choices = chosen});
  } catch (const std::runtime_error& e) {
    MESSAGE("no winograd on this machine: " << std::string(e.what()));
    return;
  }
  CHECK(winograd->kernels().find("b weight gradient: winograd") != std::string::npos);
  direct.start(1);
  winograd->start(1);
  const auto b = make_batch(g, 8, 1);
  CHECK(winograd->step(b).loss_sum == doctest::Approx(direct.step(b).loss_sum).epsilon(1e-6));
  const auto expected = gradients_of(direct), got = gradients_of(*winograd);
  for (std::size_t t = 0; t < got.size(); ++t) CHECK(distance(got[t], expected[t]) < 5e-6);
}

TEST_CASE("a step allocates nothing once it has run") {
  rg::network net;
  build_small(net, true, 0.2);
  const model_graph::graph_of words("transformer.so", "transformer",
                                    {{"layers", model_graph::whole(1)},
                                     {"hidden", model_graph::whole(32)},
                                     {"heads", model_graph::whole(4)},
                                     {"vocabulary", model_graph::whole(50)},
                                     {"sequence", model_graph::whole(8)}});
  const rg_graph* graph = nullptr;
  std::uint32_t precision = RG_F32;
  SUBCASE("convolutions") {
    graph = net.graph();
  }
  SUBCASE("sequences") {
    graph = words.graph;
  }
  SUBCASE("convolutions in bf16") {
    graph = net.graph();
    precision = RG_BF16;
  }
  SUBCASE("sequences in bf16") {
    graph = words.graph;
    precision = RG_BF16;
  }
  if (precision == RG_BF16 && !regatta::test::computes_bf16()) {
    MESSAGE("left out: this CPU has no AVX-512");
    return;
  }
  const rg_graph& g = *graph;
  reference::executed e(executor_plugin, g, {.batch = 16, .precision = precision, .emulate = true});
  e.start(1);
  const auto b = make_batch(g, 16, 1);
  e.step(b);
  e.step(b, RG_BATCH_LAST | RG_BATCH_ACCUMULATE);
  const std::size_t before = allocated, heap = mallinfo2().uordblks;
  for (int i = 0; i < 5; ++i) {
    e.step(b);
    e.step(b, RG_BATCH_LAST | RG_BATCH_ACCUMULATE);
  }
  CHECK(allocated == before);
  CHECK(mallinfo2().uordblks <= heap + 4096); // small change of the test's own list of events
}

TEST_CASE("only valid samples count in an evaluation") {
  rg::network net;
  build_small(net, true, 0.2);
  const rg_graph& g = *net.graph();
  reference::executed e(executor_plugin, g, {.batch = 6});
  e.start(1);
  const auto b = make_batch(g, 6, 1);
  const auto all = e.evaluate(b, 6), some = e.evaluate(b, 4);
  CHECK(all[1] == 6);
  CHECK(some[1] == 4);
  CHECK(some[0] <= all[0]);
  CHECK(some[2] < all[2]);
  CHECK(e.metric(all) == doctest::Approx(all[0] / 6));
}

TEST_CASE("a step refuses a label that is not among the classes") {
  rg::network net;
  build_small(net, false, 0);
  const rg_graph& g = *net.graph();
  reference::executed e(executor_plugin, g, {.batch = 2});
  e.start(1);
  auto b = make_batch(g, 2, 1);
  b.inputs[1][1] = 17;
  CHECK_THROWS_WITH(e.step(b), "sample 1 of step 3 has label 17, but there are 5 classes");
}
