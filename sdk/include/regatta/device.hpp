// SPDX-License-Identifier: Apache-2.0
//
// The C++ layer for executors whose models compute on a device with its own memory. The class below is the device
// (rg_device of ext/device.h, which says what each function does and in which context it is called). Errors are thrown
// as rg::error:
//
//   struct gpu {
//     static constexpr const char* kind = "cuda";
//     gpu(const rg_host* host, std::int32_t index, std::uint32_t streams); // open; the destructor is close
//     void* allocate(std::uint64_t bytes);
//     void release(void* address) noexcept;
//     void* allocate_host(std::uint64_t bytes);
//     void release_host(void* address) noexcept;
//     void copy(std::uint32_t stream, void* to, const void* from, std::uint64_t bytes);
//     void work(std::uint32_t stream, const rg_work& work);
//     void wait_for(std::uint32_t stream, rg_fence fence);
//     rg_fence record(std::uint32_t stream);
//     bool passed(rg_fence fence);
//     void wait(rg_fence fence);
//     void notify(std::uint32_t stream, void (*f)(void*), void* context);
//     rg_sensors sensors();                // optional; starts from rg::no_sensors()
//     rg_fence mark(std::uint32_t stream); // optional, together with elapsed()
//     double elapsed(rg_fence from, rg_fence to);
//     void gemm(std::uint32_t stream, const rg_gemm& what, const void* a, const void* b, void* c); // optional
//     void* handle(std::uint32_t stream);                                                          // optional
//     rg::exported_memory export_memory(void* address, std::uint64_t bytes);                       // optional
//   };
//
//   rg_component mine = rg::executor<executor>("mine", "one line");
//   mine.extension = [](const char* id) -> const void* {
//     return std::strcmp(id, RG_EXT_DEVICE) == 0 ? rg::device_functions<gpu>() : nullptr;
//   };
#pragma once

#include <regatta/ext/device.h>
#include <regatta/members.hpp>
#include <regatta/plugin.hpp>

#include <concepts>
#include <limits>
#include <memory>

namespace rg {
RG_MEMBER_NAME(sensors)
RG_MEMBER_NAME(mark)
RG_MEMBER_NAME(elapsed)
RG_MEMBER_NAME(gemm)
RG_MEMBER_NAME(handle)
RG_MEMBER_NAME(export_memory)

// A new file descriptor, which the engine closes, and where the memory is in it. fd = -1: the memory has none.
struct exported_memory {
  std::int32_t fd = -1;
  std::uint64_t offset = 0;
};

// Returns sensors without any reading: NaN and empty strings.
inline rg_sensors no_sensors() noexcept {
  auto s = make_versioned<rg_sensors>();
  s.utilisation = s.memory_used = s.memory_total = s.clock = s.memory_clock = s.power = s.energy = s.temperature =
      std::numeric_limits<double>::quiet_NaN();
  return s;
}

namespace detail::devices {

template <class D>
concept is_device = std::constructible_from<D, const rg_host*, std::int32_t, std::uint32_t> &&
    requires(D d, void* p, const void* from, const rg_work& w, void (*f)(void*)) {
  { d.allocate(std::uint64_t{}) } -> std::same_as<void*>;
  d.release(p);
  { d.allocate_host(std::uint64_t{}) } -> std::same_as<void*>;
  d.release_host(p);
  d.copy(std::uint32_t{}, p, from, std::uint64_t{});
  d.work(std::uint32_t{}, w);
  d.wait_for(std::uint32_t{}, rg_fence{});
  { d.record(std::uint32_t{}) } -> std::same_as<rg_fence>;
  { d.passed(rg_fence{}) } -> std::same_as<bool>;
  d.wait(rg_fence{});
  d.notify(std::uint32_t{}, f, p);
};
template <class D>
concept has_sensors = requires(D d) {
  { d.sensors() } -> std::same_as<rg_sensors>;
};

template <class D>
concept tells_time = requires(D d) {
  { d.mark(std::uint32_t{}) } -> std::same_as<rg_fence>;
  { d.elapsed(rg_fence{}, rg_fence{}) } -> std::same_as<double>;
};

template <class D>
concept multiplies = requires(D d, const rg_gemm& what, const void* a, void* c) {
  d.gemm(std::uint32_t{}, what, a, a, c);
};
template <class D>
concept has_handles = requires(D d) {
  { d.handle(std::uint32_t{}) } -> std::convertible_to<void*>;
};
template <class D>
concept exports_memory = requires(D d, void* p) {
  { d.export_memory(p, std::uint64_t{}) } -> std::same_as<exported_memory>;
};

template <class D> struct entry {
  struct instance {
    instance(const rg_host* h, std::int32_t index, std::uint32_t streams) : host(h), device(h, index, streams) {}
    const rg_host* host;
    D device;
  };
  static D& of(void* self) noexcept { return static_cast<instance*>(self)->device; }
  template <class F> static rg_status fenced(void* self, F&& f) noexcept {
    return fence(static_cast<instance*>(self)->host, std::forward<F>(f));
  }
  static rg_status open(const rg_host* host, std::int32_t index, std::uint32_t streams, void** self) noexcept {
    return fence(host, [&] { *self = std::make_unique<instance>(host, index, streams).release(); });
  }
  static void close(void* self) noexcept { delete static_cast<instance*>(self); }
  static rg_status allocate(void* self, std::uint64_t bytes, void** address) noexcept {
    return fenced(self, [&] { *address = of(self).allocate(bytes); });
  }
  static void release(void* self, void* address) noexcept { of(self).release(address); }
  static rg_status allocate_host(void* self, std::uint64_t bytes, void** address) noexcept {
    return fenced(self, [&] { *address = of(self).allocate_host(bytes); });
  }
  static void release_host(void* self, void* address) noexcept { of(self).release_host(address); }
  static rg_status copy(void* self, std::uint32_t stream, void* to, const void* from, std::uint64_t bytes) noexcept {
    return fenced(self, [&] { of(self).copy(stream, to, from, bytes); });
  }
  static rg_status work(void* self, std::uint32_t stream, const rg_work* work) noexcept {
    return fenced(self, [&] { of(self).work(stream, copy_versioned(*work)); });
  }
  static rg_status wait_for(void* self, std::uint32_t stream, rg_fence f) noexcept {
    return fenced(self, [&] { of(self).wait_for(stream, f); });
  }
  static rg_status record(void* self, std::uint32_t stream, rg_fence* f) noexcept {
    return fenced(self, [&] { *f = of(self).record(stream); });
  }
  static rg_status passed(void* self, rg_fence f) noexcept {
    return fenced(self, [&] { return of(self).passed(f) ? rg_status{RG_OK} : rg_status{RG_AGAIN}; });
  }
  static rg_status wait(void* self, rg_fence f) noexcept {
    return fenced(self, [&] { of(self).wait(f); });
  }
  static rg_status notify(void* self, std::uint32_t stream, void (*f)(void*), void* context) noexcept {
    return fenced(self, [&] { of(self).notify(stream, f, context); });
  }
  static rg_status sensors(void* self, rg_sensors* out) noexcept {
    return fenced(self, [&] { fill_versioned(out, of(self).sensors()); });
  }
  static rg_status mark(void* self, std::uint32_t stream, rg_fence* f) noexcept {
    return fenced(self, [&] { *f = of(self).mark(stream); });
  }
  static rg_status elapsed(void* self, rg_fence from, rg_fence to, double* ns) noexcept {
    return fenced(self, [&] { *ns = of(self).elapsed(from, to); });
  }
  static rg_status gemm(void* self, std::uint32_t stream, const rg_gemm* what, const void* a, const void* b,
                        void* c) noexcept {
    return fenced(self, [&] { of(self).gemm(stream, *what, a, b, c); });
  }
  static rg_status handle(void* self, std::uint32_t stream, void** out) noexcept {
    return fenced(self, [&] { *out = of(self).handle(stream); });
  }
  static rg_status export_memory(void* self, void* address, std::uint64_t bytes, std::int32_t* fd,
                                 std::uint64_t* offset) noexcept {
    return fenced(self, [&] {
      const exported_memory made = of(self).export_memory(address, bytes);
      *fd = made.fd;
      *offset = made.offset;
    });
  }
  static constexpr rg_device make_functions() {
    rg_device f = {sizeof(rg_device), D::kind, &open,   &close,    &allocate, &release, &allocate_host,
                   &release_host,     &copy,   &work,   &wait_for, &record,   &passed,  &wait,
                   &notify,           nullptr, nullptr, nullptr,   nullptr,   nullptr,  nullptr};
    if constexpr (has_sensors<D>) f.sensors = &sensors;
    if constexpr (tells_time<D>) {
      f.mark = &mark;
      f.elapsed = &elapsed;
    }
    if constexpr (multiplies<D>) f.gemm = &gemm;
    if constexpr (has_handles<D>) f.handle = &handle;
    if constexpr (exports_memory<D>) f.export_memory = &export_memory;
    return f;
  }
  static constexpr rg_device functions = make_functions();
};

} // namespace detail::devices

// Returns the functions of the device class D, for the extension RG_EXT_DEVICE of an executor's component.
template <class D> const rg_device* device_functions() {
  static_assert(detail::devices::is_device<D>,
                "a device needs: a constructor (const rg_host*, std::int32_t index, std::uint32_t streams), allocate, "
                "release, allocate_host, release_host, copy, work, wait_for, record, passed, wait and notify, as "
                "regatta/device.hpp lists them");
  RG_OPTIONAL_MEMBER(D, sensors, detail::devices::has_sensors<D>, "rg_sensors sensors()");
  RG_OPTIONAL_MEMBER(D, mark, detail::devices::tells_time<D>, "rg_fence mark(std::uint32_t stream), beside elapsed()");
  RG_OPTIONAL_MEMBER(D, elapsed, detail::devices::tells_time<D>,
                     "double elapsed(rg_fence from, rg_fence to), beside mark()");
  RG_OPTIONAL_MEMBER(D, gemm, detail::devices::multiplies<D>,
                     "void gemm(std::uint32_t stream, const rg_gemm& what, const void* a, const void* b, void* c)");
  RG_OPTIONAL_MEMBER(D, handle, detail::devices::has_handles<D>, "void* handle(std::uint32_t stream)");
  RG_OPTIONAL_MEMBER(D, export_memory, detail::devices::exports_memory<D>,
                     "rg::exported_memory export_memory(void* address, std::uint64_t bytes)");
  if constexpr (detail::devices::is_device<D>) return &detail::devices::entry<D>::functions;
  return nullptr;
}

} // namespace rg
