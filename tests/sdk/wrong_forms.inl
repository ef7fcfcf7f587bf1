// SPDX-License-Identifier: Apache-2.0
//
// One class for each kind of component. WRONG is the number of the mistake that one of them has; 0: none.
#if WRONG == 16
#define FINAL final
#else
#define FINAL
#endif
struct strategy FINAL {
  struct parameters {
#if WRONG == 17
    double ratio = 0;
#endif
  };
  static rg_plan plan(const parameters&, const rg_cluster&) {
    return {};
  }
#if WRONG == 18
  strategy(rg::comm&, const parameters&) {}
#else
  strategy(rg::comm& c, const parameters&) : comm(c) {}
  rg::comm& comm;
#endif
  static rg::task<> end_step(std::uint64_t) {
    co_return;
  }
#if WRONG == 1
  void on_gradient(std::uint64_t) {}
#elif WRONG == 2
  void on_gradients(std::uint64_t, std::uint32_t) {}
#elif WRONG == 3
  void begin_step(int, int, int) {}
#elif WRONG == 4
  static bool talks(std::uint32_t, std::uint32_t) {
    return true;
  }
#elif WRONG == 5
  static int finish() {
    return 0;
  }
#elif WRONG == 6
private:
  static rg::task<> serve() {
    co_return;
  }
#endif
};

struct bucketwise : rg::data_parallel<bucketwise> {
  using data_parallel::data_parallel;
#if WRONG == 12
  static void exchange(rg::bucket) {}
#elif WRONG == 13
  static void update(rg::bucket) {}
#else
  static rg::task<> exchange(rg::bucket) {
    co_return;
  }
#endif
};

struct transport {
  struct parameters {};
  transport(const rg_host*, const parameters&) {}
  static rg_transport_caps caps() { return {}; }
  static rg_blob listen(const rg_world&) { return {}; }
  static void connect(std::span<const rg_blob>, std::uint64_t) {}
  static rg_status send(const rg_transfer&) { return RG_OK; }
  static rg_status recv(const rg_transfer&) { return RG_OK; }
  static std::uint32_t poll(std::uint64_t, std::uint64_t, std::span<rg_completion>) { return 0; }
  static void wake() noexcept {}
  static void cancel(std::uint32_t) {}
  static void close(std::uint64_t) {}
  static rg_counters counters() { return {}; }
#if WRONG == 7
  static int now() {
    return 0;
  }
#elif WRONG == 8
  static void remove(rg_region) {} // not noexcept
#else
  static void add(rg_region, void*, std::uint64_t, const rg_memory&) {}
  static void remove(rg_region) noexcept {}
  static constexpr std::uint32_t key_bytes = 8;
#if WRONG == 14
  static void expose(rg_region) {}
#else
  static void expose(rg_region, void*) {}
#endif
#if WRONG == 15
  static void put(const rg_one_sided_transfer&) {}
#else
  static rg_status put(const rg_one_sided_transfer&) {
    return RG_OK;
  }
#endif
  static rg_status get(const rg_one_sided_transfer&) {
    return RG_OK;
  }
#endif
};

struct model {
  struct parameters {};
  model(const rg_host*, const parameters&, const rg_model_setup&) {}
  static rg_model_info describe() { return {}; }
  static void init(std::uint32_t, std::span<const std::uint64_t>, std::uint64_t, std::span<float>) {}
  static void bind(const rg_model_memory&) {}
  static rg_step_result step(const rg_batch&, const rg::hooks&) { return {}; }
#if WRONG == 9
  static void rows(const rg_batch&) {}
#endif
};

struct device {
  static constexpr const char* kind = "test";
  device(const rg_host*, std::int32_t, std::uint32_t) {}
  static void* allocate(std::uint64_t) { return nullptr; }
  static void release(void*) noexcept {}
  static void* allocate_host(std::uint64_t) { return nullptr; }
  static void release_host(void*) noexcept {}
  static void copy(std::uint32_t, void*, const void*, std::uint64_t) {}
  static void work(std::uint32_t, const rg_work&) {}
  static void wait_for(std::uint32_t, rg_fence) {}
  static rg_fence record(std::uint32_t) { return 0; }
  static bool passed(rg_fence) { return true; }
  static void wait(rg_fence) {}
  static void notify(std::uint32_t, void (*)(void*), void*) {}
#if WRONG == 19
  static double sensors() {
    return 0;
  }
#endif
#if WRONG == 20
  static rg_fence mark(std::uint32_t) {
    return 0;
  } // and no elapsed()
#endif
};

struct compressor {
  static constexpr auto promise = rg::compression::contraction;
#if WRONG != 10
  static double delta(std::uint64_t) {
    return 1;
  }
#endif
  static std::uint64_t bytes(std::uint64_t n) {
    return n;
  }
  static void compress(std::span<const float>, std::span<std::byte>) {}
  static void decompress(std::span<const std::byte>, std::span<float>) {}
#if WRONG == 11
  static void add(std::span<std::byte>, std::span<const std::byte>) {}
#endif
#if WRONG == 21
  static constexpr std::string_view devices[] = {"cuda"};
  static void compress(const rg_run&, std::span<const float>, std::span<std::byte>) {}
#endif
#if WRONG == 22
  static void compress(const rg_run&, std::span<const float>, std::span<std::byte>) {}
#endif
};

#undef FINAL

inline void instantiate() {
  rg::strategy<strategy>("s", "");
  rg::strategy<bucketwise>("b", "");
  rg::transport<transport>("t", "");
  rg::model<model>("m", "");
  rg::device_functions<device>();
  rg::compressor<compressor>("c", "");
}
