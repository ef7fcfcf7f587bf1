// SPDX-License-Identifier: Apache-2.0
//
// A strategy for tests with functions of its own: a matrix product (of the gradients with themselves), and a function
// that scales the result and adds it to the gradients. On the fake device the function is a kernel, which it enqueues
// by the stream's handle.
#include <regatta/strategy.hpp>

#include <cstring>
#include <functional>

namespace {

struct own_kernel {
  struct parameters {
    bool host_only = false;
  };
  static constexpr auto fields =
      rg::fields(rg::field("host_only", &parameters::host_only, "the function is for host memory"));
  static constexpr std::uint64_t rows = 4, columns = 8;

  static rg_plan plan(const parameters&, const rg_cluster&) { return {.struct_size = sizeof(rg_plan), .lanes = 1}; }
  static bool talks(const parameters&, const rg_cluster&, std::uint32_t, std::uint32_t) { return false; }
  own_kernel(rg::comm& c, const parameters& p) : comm(c), host_only(p.host_only), product(c.alloc(rows * rows)) {
    c.own(c.whole(), rg::role::worker);
  }

  rg::task<> end_step(std::uint64_t step) {
    const rg_buffer part = comm.gradients({0, rows * columns}), first = rg::sub(part, 0, rows * rows);
    const rg::matrix a(part, rows, columns);
    co_await comm.gemm(1, a, rg::transposed(a), 0, {product, rows, rows});
    const auto add = [](float* to, const float* from) {
      for (std::uint64_t i = 0; i < rows * rows; ++i) to[i] += 0.5F * from[i];
    };
    const auto on_host = [add](void* const* at) { add(static_cast<float*>(at[0]), static_cast<float*>(at[1])); };
    const auto anywhere = [on_host](const rg_run& on) {
      if (!on.stream) return on_host(on.addresses);
      if (std::strcmp(on.device, "cuda") != 0 && std::strcmp(on.device, "toy") != 0)
        throw rg::error(RG_E_PLUGIN, "a device of another kind");
      auto& enqueue = *static_cast<std::function<void(std::function<void()>)>*>(on.stream);
      enqueue([on_host, to = on.addresses[0], from = on.addresses[1]] {
        void* const addresses[] = {to, from};
        on_host(addresses);
      });
    };
    if (host_only)
      co_await comm.run(on_host, {1, 0}, first, product);
    else
      co_await comm.run(anywhere, {1, 0}, first, product);
    co_await comm.apply(0, comm.gradients(comm.whole()), step, rg::role::worker);
  }

  rg::comm& comm;

private:
  bool host_only;
  rg_buffer product;
};

} // namespace

RG_PLUGIN("own_kernel", "0.1.0", rg::strategy<own_kernel>("own_kernel", "a kernel of its own, for tests"))
