// SPDX-License-Identifier: Apache-2.0
//
// An executor for tests: it runs graphs by the CPU's executor, on a fake GPU (streams.hpp). All arithmetic is the
// host's, so results are bit-identical to the CPU's if the order is right. It is built for two kinds of device
// (FAKE_KIND): "cuda", and "toy", which the engine has never heard of.
#include "device/host.hpp"
#include "fake_link.hpp"
#include "late_sums.hpp"
#include "memory/arithmetic.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <dlfcn.h>
#include <regatta/device.hpp>
#include <regatta/executor.hpp>

namespace {

using fake::gpu;

class fake_gpu {
public:
  static constexpr const char* kind = FAKE_KIND;

  fake_gpu(const rg_host*, std::int32_t, std::uint32_t streams) {
    for (std::uint32_t s = 0; s < streams; ++s) streams_.push_back(gpu_.make_stream());
  }
  ~fake_gpu() {
    const std::uint64_t waits = gpu_.waits();
    for (const std::size_t s : streams_) gpu_.wait(gpu_.record(s));
    for (void* p : pinned_) std::free(p);
    if (const char* name = std::getenv("REGATTA_FAKE_DEVICE_LOG"))
      if (std::FILE* file = std::fopen(name, "a")) {
        std::fprintf(file, "%llu\n", static_cast<unsigned long long>(waits));
        std::fclose(file);
      }
  }
  fake_gpu(const fake_gpu&) = delete;
  fake_gpu& operator=(const fake_gpu&) = delete;

  void* allocate(std::uint64_t bytes) { return gpu_.allocate(bytes); }
  void release(void*) noexcept {}
  // Fills memory with a pattern, so that a transport that sends from it before a copy fails.
  void* allocate_host(std::uint64_t bytes) {
    void* const p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(p, 0x7f, bytes);
    pinned_.insert(p);
    gpu_.pinned(p, bytes);
    return p;
  }
  void release_host(void* address) noexcept {
    pinned_.erase(address);
    std::memset(address, 0x5a, 16); // so that a later access shows
    std::free(address);
  }

  void copy(std::uint32_t stream, void* to, const void* from, std::uint64_t bytes) {
    gpu_.add(streams_.at(stream), [=] { std::memcpy(to, from, bytes); });
  }
  void work(std::uint32_t stream, const rg_work& work) {
    if (work.kind == RG_OP_GATHER_ROWS || work.kind == RG_OP_SCATTER_ROWS)
      throw rg::error(RG_E_UNSUPPORTED, "the fake device gathers and scatters nothing");
    const rg_update update = work.update ? *work.update : rg_update{};
    gpu_.add(streams_.at(stream), [this, work = rg_work(work), update]() mutable {
      if (work.update) work.update = &update;
      if (work.kind == RG_OP_APPLY) gpu_.spend(static_cast<double>(work.count)); // a nanosecond per element
      if (!processor_.run(work)) throw rg::error(RG_E_OPERATION, "an index outside of what it is about");
    });
  }
  void gemm(std::uint32_t stream, const rg_gemm& what, const void* a, const void* b, void* c) {
    gpu_.add(streams_.at(stream), [=] { regatta::arithmetic::gemm(what, a, b, static_cast<float*>(c)); });
  }
  // A strategy enqueues a function by calling what the handle points to (own_kernel.cpp).
  void* handle(std::uint32_t stream) {
    enqueue_ = [this, stream](std::function<void()> f) { gpu_.add(streams_.at(stream), std::move(f)); };
    return &enqueue_;
  }
  void wait_for(std::uint32_t stream, rg_fence fence) { gpu_.wait_for(streams_.at(stream), fence); }
  rg_fence record(std::uint32_t stream) { return gpu_.record(streams_.at(stream)); }
  rg_fence mark(std::uint32_t stream) { return gpu_.mark(streams_.at(stream)); }
  double elapsed(rg_fence from, rg_fence to) { return gpu_.elapsed(from, to); }
  bool passed(rg_fence fence) { return gpu_.passed(fence); }
  void wait(rg_fence fence) { gpu_.wait(fence); }
  void notify(std::uint32_t stream, void (*f)(void*), void* context) {
    gpu_.add(streams_.at(stream), [=] { f(context); });
    gpu_.passed(record(stream)); // starts the work: the caller waits for f
  }
  // The second reading, at the start of the timed region, differs from all later ones. There is no energy counter.
  rg_sensors sensors() {
    const bool second = readings_++ == 1;
    rg_sensors s = rg::no_sensors();
    std::strcpy(s.name, "fake");
    std::strcpy(s.driver, "none");
    s.utilisation = second ? 1 : 0.5;
    s.memory_used = second ? 2e9 : 1e9;
    s.memory_total = 4e9;
    s.clock = 1.5e9;
    s.power = second ? 10 : 250;
    s.temperature = second ? 50 : 40;
    return s;
  }

private:
  gpu& gpu_ = gpu::instance();
  std::vector<std::size_t> streams_;
  std::function<void(std::function<void()>)> enqueue_; // handle()
  std::set<void*> pinned_;
  int readings_ = 0;
  regatta::host_processor processor_; // of the device's thread
};

// The toy exports its memory, as a device of another vendor might.
struct toy : fake_gpu {
  using fake_gpu::fake_gpu;
  static rg::exported_memory export_memory(void* address, std::uint64_t) {
    return gpu::instance().export_memory(address);
  }
};
using offered = std::conditional_t<std::string_view(FAKE_KIND) == "toy", toy, fake_gpu>;

// The CPU's executor, loaded from its plugin.
const rg_executor& inner_executor(const rg_host* host) {
  static const rg_executor found = [&] {
    void* const library = dlopen(FAKE_DEVICE_INNER, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw rg::error(RG_E_UNSUPPORTED, dlerror());
    const auto entry = reinterpret_cast<rg_entry>(dlsym(library, RG_ENTRY_SYMBOL));
    return rg::copy_versioned(*static_cast<const rg_executor*>(entry(host)->components[0]->functions));
  }();
  return found;
}

class fake_model {
public:
  fake_model(const rg_host* host, const rg_graph& graph, rg_model_setup setup)
      : sums_(host), functions_(*inner_executor(host).model) {
    setup.memory = RG_MEMORY_HOST;
    check(inner_executor(host).compile(sums_.host(), nullptr, &graph, &setup, &inner_));
    stream_ = gpu_.make_stream();
    info_ = rg::make_versioned<rg_model_info>();
    check(functions_.describe(inner_, &info_));
    info_.flags &= ~std::uint32_t{RG_MODEL_ROWS_IN_PLACE}; // the windows are in host memory
  }
  ~fake_model() {
    gpu_.wait(gpu_.record(stream_));
    functions_.destroy(inner_);
  }
  fake_model(const fake_model&) = delete;
  fake_model& operator=(const fake_model&) = delete;

  rg_model_info describe() { return info_; }
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
    check(functions_.init(inner_, tensor, rows.empty() ? nullptr : rows.data(), rows.size(), seed, out.data()));
  }
  void bind(const rg_model_memory& memory) {
    if (memory.memory != RG_MEMORY_DEVICE) throw rg::error(RG_E_PLUGIN, "bind: the fake device was given host memory");
    do_now([&] { check(functions_.bind(inner_, &memory)); });
  }

  // Enqueues everything and waits for nothing, unless the model sums over the workers.
  rg_step_result step(const rg_batch& batch, const rg::hooks& hooks) {
    for (std::uint32_t i = info_.tensor_count; i-- > 0;)
      if (kind_of(i) == RG_TENSOR_DENSE)
        if (const rg_fence after = hooks.need(i)) gpu_.wait_for(stream_, after);
    hooks.forward(gpu_.mark(stream_));
    gpu_.add(stream_, [this] { gpu_.spend(3e6); });
    hooks.backward(gpu_.mark(stream_));
    if (!(batch.flags & RG_BATCH_HELD)) throw rg::error(RG_E_PLUGIN, "the engine does not hold a device's batch");
    auto mine = std::make_shared<late_batch>(batch, info_);
    for (const rg_table_rows& t : mine->tables)
      if (t.count && !(gpu_.is_pinned(t.weights) && gpu_.is_pinned(t.gradients)))
        throw rg::error(RG_E_PLUGIN, "the windows of tables are not in pinned memory");
    double* const loss = &losses_[steps_++ % losses_.size()];
    sums_.begin();
    gpu_.add(stream_, [this, mine, loss] {
      const std::unique_ptr<fake::late_sums, void (*)(fake::late_sums*)> ended(&sums_, [](auto* s) { s->end(); });
      keep(*mine); // as on a device, inputs are read now
      mine->batch.inputs = kept_.data();
      auto none = rg::make_versioned<rg_hooks>();
      auto result = rg::make_versioned<rg_step_result>();
      bring_windows(*mine);
      check(functions_.step(inner_, &mine->batch, &none, &result));
      if (mine->batch.flags & RG_BATCH_LAST) return_gradients(*mine);
      *loss = result.loss_sum;
      gpu_.spend(5e6);
    });
    const rg_fence done = gpu_.mark(stream_); // recorded before ready(), which lets other work start
    if (hooks.releases())                     // both passes are one piece of work
      for (std::uint32_t i = 0; i < info_.tensor_count; ++i)
        if (kind_of(i) == RG_TENSOR_DENSE) hooks.done(i, done);
    if (batch.flags & RG_BATCH_LAST)
      for (std::uint32_t i = 0; i < info_.tensor_count; ++i)
        if (kind_of(i) == RG_TENSOR_DENSE) hooks.ready(i, gpu_.record(stream_));
    auto result = rg::make_versioned<rg_step_result>();
    result.count = batch.samples;
    hooks.late_loss(loss, done);
    if (sums_.any()) {
      gpu_.passed(done); // starts the work
      sums_.serve();
    }
    return result;
  }
  void evaluate(const rg_batch& batch, std::span<double> sums) {
    do_now([&] { check(functions_.evaluate(inner_, &batch, sums.data())); });
  }
  void rows(const rg_batch& batch, std::span<rg_rows> out) { check(functions_.rows(inner_, &batch, out.data())); }
  double metric(std::span<const double> sums) {
    double value = 0;
    check(functions_.metric(inner_, sums.data(), &value));
    return value;
  }

private:
  // Copies the parts of a batch that are valid during the call only.
  struct late_batch {
    late_batch(const rg_batch& b, const rg_model_info& info) : batch(b), inputs(b.inputs, b.inputs + info.input_count) {
      if (b.global_counts) {
        counts.assign(b.global_counts, b.global_counts + info.count_kinds);
        batch.global_counts = counts.data();
      }
      for (std::uint32_t t = 0; t < b.table_count; ++t) {
        tables.push_back(rg::copy_versioned(rg::at_stride(b.tables, t)));
        rows.emplace_back(tables.back().rows, tables.back().rows + tables.back().count);
      }
      for (std::size_t t = 0; t < tables.size(); ++t) tables[t].rows = rows[t].data();
      batch.rows_at = nullptr;
    }
    rg_batch batch;
    std::vector<const void*> inputs;
    std::vector<std::uint64_t> counts;
    std::vector<rg_table_rows> tables; // memory of the engine; only the rows' numbers are copied
    std::vector<std::vector<std::uint64_t>> rows;
  };
  // Called on the device's thread. Reads the rows of tables now; gradients are returned by return_gradients().
  void bring_windows(late_batch& b) {
    windows_.resize(b.tables.size());
    seen_ = b.tables;
    for (std::size_t t = 0; t < seen_.size(); ++t) {
      const rg_table_rows& theirs = b.tables[t];
      const std::size_t elements =
          theirs.count * static_cast<std::size_t>(rg::at_stride(info_.tensors, theirs.tensor).shape[1]);
      windows_[t].weights.assign(rg::weights_of(theirs), rg::weights_of(theirs) + elements);
      windows_[t].gradients.resize(elements); // kept from the first micro-batch of a step to the last
      seen_[t].weights = windows_[t].weights.data();
      seen_[t].gradients = windows_[t].gradients.data();
    }
    b.batch.tables = seen_.data();
  }
  void return_gradients(const late_batch& b) {
    for (std::size_t t = 0; t < b.tables.size(); ++t)
      std::copy(windows_[t].gradients.begin(), windows_[t].gradients.end(), rg::gradients_of(b.tables[t]));
  }
  void keep(const late_batch& b) {
    memory_.clear();
    kept_.clear();
    for (std::uint32_t i = 0; i < info_.input_count; ++i) {
      const auto in = rg::copy_versioned(rg::at_stride(info_.inputs, i));
      std::uint64_t bytes = b.batch.samples * rg::size_of(in.type);
      for (std::uint32_t d = 0; d < in.ndim; ++d) bytes *= static_cast<std::uint64_t>(in.shape[d]);
      memory_.push_back(regatta::allocate_aligned(bytes));
      std::memcpy(memory_.back().get(), b.inputs[i], bytes);
      kept_.push_back(memory_.back().get());
    }
  }

  static void check(rg_status s) {
    if (s < 0) throw rg::error(s, "the CPU's executor refused");
  }
  std::uint32_t kind_of(std::uint32_t tensor) const { return rg::at_stride(info_.tensors, tensor).kind; }
  void do_now(gpu::task f) {
    gpu_.add(stream_, std::move(f));
    gpu_.wait(gpu_.record(stream_));
  }

  gpu& gpu_ = gpu::instance();
  fake::late_sums sums_;
  rg_model functions_;
  void* inner_ = nullptr;
  std::size_t stream_ = 0;
  rg_model_info info_{};
  std::array<double, 3> losses_{};
  std::uint64_t steps_ = 0;
  std::vector<std::unique_ptr<void, regatta::aligned_free>> memory_; // inputs of the last step; of the device's thread
  std::vector<const void*> kept_;
  struct window {
    std::vector<float> weights, gradients;
  };
  std::vector<window> windows_; // by table; of the device's thread
  std::vector<rg_table_rows> seen_;
};

struct executor {
  using model = fake_model;
  static constexpr std::uint32_t memory = RG_MEMORY_DEVICE;
  static constexpr const char* device = FAKE_KIND;
  static std::unique_ptr<model> compile(const rg_host* host, const rg::parameters_t<executor>&, const rg_graph& graph,
                                        const rg_model_setup& setup) {
    return std::make_unique<model>(host, graph, setup);
  }
};

constexpr rg_devices devices = {
    sizeof(rg_devices), FAKE_KIND, [](const rg_host*, std::uint32_t* count) -> rg_status { return *count = 2, RG_OK; },
    [](const rg_host*, std::uint32_t, char* text, std::uint64_t room) -> rg_status {
      return std::snprintf(text, room, "none"), RG_OK;
    },
    [](const rg_host*, std::uint32_t a, std::uint32_t b, char* text, std::uint64_t room) -> rg_status {
      return std::snprintf(text, room, "%s", a == b ? "CPUs 0-1" : "NV4"), RG_OK;
    }};

rg_component component() {
  rg_component c = rg::executor<executor>(FAKE_ID, "networks on a device that is none, for tests");
  c.extension = [](const char* id) -> const void* {
    if (std::strcmp(id, RG_EXT_DEVICES) == 0) return &devices;
    return std::strcmp(id, RG_EXT_DEVICE) == 0 ? rg::device_functions<offered>() : nullptr;
  };
  return c;
}

} // namespace

RG_PLUGIN(FAKE_ID "_device", "0.1.0", component(),
          rg::transport<fake::link>(FAKE_ID "_link", "between devices that are none, for tests"))
