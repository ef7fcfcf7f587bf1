// SPDX-License-Identifier: Apache-2.0
//
// Asks cuDNN itself for plans on a GPU that is only described: it must accept the executor's graphs and have engines
// for them. Computes nothing. Needs cuDNN 9.8, the first version that plans without a device.
#include "lib/convolution_graph.hpp"
#include "lib/flash_attention.hpp"

#include <doctest/doctest.h>

#include <string>

#if CUDNN_VERSION >= 90800

using namespace cudnn;

namespace {

// The format of cudnnBackendGetAttribute(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). Clock rates and memory sizes,
// except those of a block, only influence heuristics.
struct gpu {
  const char* name;
  int capability, processors, shared_memory;
};
constexpr gpu h200 = {"NVIDIA H200", 900, 132, 232448}, a100 = {"NVIDIA A100-SXM4-80GB", 800, 108, 166912},
              v100 = {"Tesla V100-SXM2-32GB", 700, 80, 98304};

descriptor described(const gpu& g) {
  const std::string text =
      R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
      R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"totalGlobalMem":80000000000,"smClockRateKHz":1500000,"memClockRateKHz":2000000,)"
      R"("l2CacheSize":41943040,"cudaDeviceId":0,"driverVer":13000,"multiProcessorCount":)" +
      std::to_string(g.processors) + R"(,"maxSharedMemoryPerBlockOptin":)" + std::to_string(g.shared_memory) +
      R"(,"deviceVer":)" + std::to_string(g.capability) + R"(,"deviceName":")" + g.name + "\"}";
  descriptor d(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  d.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()),
        text.data());
  d.finish("describing a GPU");
  return d;
}

const flash_shape bert = {
    .type = dtype::bf16, .samples = 8, .heads = 16, .queries = 128, .keys = 128, .size = 64, .causal = false};

} // namespace

// Few shapes, because cuDNN compiles a kernel for each.
TEST_CASE("cuDNN plans attention forward and backward, with dropout and without, on GPUs from sm_80 on") {
  flash_shape dropout_args = bert, decoder = bert, short_ones = bert;
  for (flash_shape* one : {&dropout_args, &decoder, &short_ones}) one->dropout = 0.1;
  decoder.type = dtype::f16;
  decoder.causal = true;
  short_ones.queries = 9;
  short_ones.keys = 17;
  short_ones.size = 40;
  for (const auto& [g, s] : {std::pair{h200, bert}, {h200, decoder}, {h200, short_ones}, {a100, dropout_args}}) {
    CAPTURE(g.name);
    CAPTURE(s.queries);
    CAPTURE(s.dropout);
    const descriptor d = described(g);
    planner p{.described = &d};
    const auto made = flash_attention::of(p, s);
    REQUIRE(made);
    CHECK(flash_attention::of(p, s));                 // a layer with the same shape reuses the plans
    CHECK(p.known.size() == (s.dropout > 0 ? 3 : 2)); // evaluation has a plan without dropout
    CHECK(made->statistics() == static_cast<std::size_t>(8 * 16 * s.queries));
    // The workspace holds the gradients of all scores; layers share it. It is the price of a deterministic order of
    // sums.
    const auto padded = [](std::int64_t n) { return static_cast<std::size_t>((n + 127) / 128 * 128); };
    CHECK(made->workspace() <= 8 * 16 * padded(s.queries) * padded(s.keys) * 2 + 4096);
  }
}

TEST_CASE("cuDNN has no attention in fp32, for odd heads, or on GPUs before sm_80") {
  const descriptor new_gpu = described(h200), old_gpu = described(v100);
  planner p{.described = &new_gpu};
  flash_shape s = bert;
  s.type = dtype::f32;
  CHECK(!flash_attention::of(p, s));
  s = bert;
  s.size = 12;
  CHECK(!flash_attention::of(p, s));
  s = bert;
  s.type = dtype::f16;
  p = {.described = &old_gpu};
  CHECK(!flash_attention::of(p, s));
}

// The first layers of VGG16 and a downsampling one of ResNet50. In fp32 the layout is NCHW.
TEST_CASE("cuDNN plans every convolution, those with bias and ReLU as one") {
  using of = convolution_graph;
  const convolution_shape shapes[] = {{dtype::bf16, true, 32, 3, 224, 224, 64, 224, 224, 3, 1, 1},
                                      {dtype::bf16, true, 32, 64, 56, 56, 64, 56, 56, 3, 1, 1},
                                      {dtype::bf16, true, 32, 256, 56, 56, 512, 28, 28, 1, 2, 0}};
  struct form {
    dtype type;
    bool last, exact;
  };
  const descriptor d = described(h200);
  planner p{.described = &d};
  for (const form& f : {form{dtype::bf16, true, false}, form{dtype::f16, true, false}, form{dtype::f32, true, false},
                        form{dtype::f32, false, true}})
    for (convolution_shape s : shapes) {
      s.type = f.type;
      s.last = f.last;
      CAPTURE(static_cast<int>(f.type));
      CAPTURE(f.exact);
      CAPTURE(s.in_channels);
      const auto planned = [&](graph g) {
        p.known.clear();
        return first_plan(p, "it", g, {.exact = f.exact}) != nullptr;
      };
      CHECK(planned(of::of(s, of::direction::y, false)));
      for (const bool add : {false, true}) CHECK(planned(of::of(s, of::direction::x, add)));
      CHECK(planned(of::of(s, of::direction::w, false)));
      const bool compiled = f.type != dtype::f32; // takes a second, so only one shape
      if (!compiled || (f.type == dtype::bf16 && s.stride > 1))
        CHECK(planned(of::of(s, of::direction::y, false, {.bias = true, .relu = true})));
      if (!compiled) CHECK(planned(of::of(s, of::direction::y, false, {.bias = true})));
    }
}

#else

TEST_CASE("cuDNN before 9.8 plans nothing without a GPU" * doctest::skip()) {}

#endif
