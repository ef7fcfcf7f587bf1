// SPDX-License-Identifier: Apache-2.0
#include "device/device.hpp"

#include "base/failure.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <regatta/device.hpp>

namespace regatta {

device::device(const rg_device& functions, std::string name, std::int32_t index, const plugin_host::log_function& log,
               std::function<void()> wake)
    : host_(log), name_(std::move(name)), functions_(rg::copy_versioned(functions)), index_(index),
      wake_(std::move(wake)) {
  const auto& f = functions_;
  if (!f.kind || !f.open || !f.close || !f.allocate || !f.release || !f.allocate_host || !f.release_host || !f.copy ||
      !f.work || !f.wait_for || !f.record || !f.passed || !f.wait || !f.notify)
    throw failure(exit_code::plugin, fmt::format("{}: a function of {} is missing", name_, RG_EXT_DEVICE));
  check_status(f.open(host_.c(), index, streams, &self_), "opening the device");
}

device::~device() {
  functions_.close(self_);
}

void device::silence() {
  const std::lock_guard lock(mutex_);
  wake_ = {};
  silent_ = true;
}

void device::check_status(rg_status status, const char* what) {
  if (status >= 0) return; // building the text would cost more than the call
  check(status, host_, fmt::format("{}: {}", name_, what));
}

void device::lacks(const char* what) const {
  throw failure(exit_code::plugin, fmt::format("{}: {}: its device cannot do that: train on the cpu", name_, what));
}

void* device::allocate(std::uint64_t bytes) {
  void* p = nullptr;
  call(functions_.allocate, "allocating memory", std::max<std::uint64_t>(bytes, 1), &p);
  return p;
}

// The device frees it at its end: where a run ends early, its streams still access it.
void* device::allocate_shared(std::uint64_t bytes) {
  void* const p = allocate_host(bytes).release();
  std::memset(p, 0, bytes);
  return p;
}

device::own_memory device::allocate_own(std::uint64_t bytes) {
  return {allocate(bytes), free_memory{this, functions_.release}};
}

device::host_memory device::allocate_host(std::uint64_t bytes) {
  void* p = nullptr;
  call(functions_.allocate_host, "allocating pinned memory", std::max<std::uint64_t>(bytes, 1), &p);
  return {p, free_memory{this, functions_.release_host}};
}

void device::free_memory::operator()(void* p) const noexcept {
  const std::lock_guard lock(of->calls_);
  if (!of->silent_) release(of->self_, p);
}

bool device::run(const rg_work& work) {
  run(computing, work);
  return true;
}

void device::copy(void* to, const void* from, std::uint64_t bytes) {
  if (bytes) call(functions_.copy, "copying", computing, to, from, bytes);
}

rg::exported_memory device::export_memory(void* address, std::uint64_t bytes) {
  rg::exported_memory made;
  if (functions_.export_memory)
    call(functions_.export_memory, "exporting memory", address, bytes, &made.fd, &made.offset);
  return made;
}

void device::gemm(const rg_gemm& what, const void* a, const void* b, void* c) {
  call(functions_.gemm, "multiplying matrices", computing, &what, a, b, c);
}

void* device::handle(stream s) {
  void* out = nullptr;
  call(functions_.handle, "asking for a stream's handle", s, &out);
  return out;
}

void device::run(stream s, const rg_work& w) {
  const bool listed = w.kind == RG_OP_TOP_K || (w.index && (w.kind == RG_OP_FILL || w.kind == RG_OP_AXPY));
  if (!(listed ? w.index_count : w.count)) return; // launching an empty kernel is an error in CUDA
  if (w.kind == RG_OP_COPY)
    call(functions_.copy, "copying", s, w.target, w.source, w.count * rg::size_of(w.type));
  else
    call(functions_.work, "computing", s, &w);
}

void device::wait_for(stream s, rg_fence fence) {
  if (fence) call(functions_.wait_for, "waiting for a fence", s, fence);
}

rg_fence device::record(stream s) {
  rg_fence fence = 0;
  call(functions_.record, "creating a fence", s, &fence);
  return fence;
}

bool device::passed(rg_fence fence) {
  const rg_status s = functions_.passed(self_, fence); // [any] without the lock
  check_status(s, "computing");                        // errors of earlier work on the device often surface here
  return s != RG_AGAIN;
}

void device::notify(stream s) {
  const auto wake = [](void* self) {
    auto& d = *static_cast<device*>(self);
    const std::lock_guard lock(d.mutex_);
    if (d.wake_) d.wake_();
  };
  call(functions_.notify, "requesting a notification", s, wake, this);
}

rg_fence device::mark(stream s) {
  rg_fence fence = 0;
  call(functions_.mark, "creating a fence", s, &fence);
  return fence;
}

double device::elapsed(rg_fence from, rg_fence to) {
  double ns = 0;
  check_status(functions_.elapsed(self_, from, to, &ns), "reading the device's clock"); // [any] without the lock
  return ns;
}

// [any] without the lock, for which it is too slow.
std::optional<rg_sensors> device::sensors() {
  rg_sensors s = rg::no_sensors();
  if (!functions_.sensors || functions_.sensors(self_, &s) < 0) return std::nullopt;
  return s;
}

void device::synchronize() {
  check_status(functions_.wait(self_, record(computing)), "waiting for the device");
}

void device::read(void* to, const void* from, std::uint64_t bytes) {
  move(static_cast<char*>(to), static_cast<const char*>(from), bytes, true);
}

void device::write(void* to, const void* from, std::uint64_t bytes) {
  move(static_cast<char*>(to), static_cast<const char*>(from), bytes, false);
}

void device::move(char* to, const char* from, std::uint64_t bytes, bool read) {
  constexpr std::uint64_t most = std::uint64_t{4} << 20;
  const auto pinned = allocate_host(std::min(bytes, most));
  for (std::uint64_t at = 0; at < bytes; at += most) {
    const std::uint64_t n = std::min(most, bytes - at);
    if (!read) std::memcpy(pinned.get(), from + at, n);
    copy(read ? pinned.get() : to + at, read ? from + at : pinned.get(), n);
    synchronize();
    if (read) std::memcpy(to + at, pinned.get(), n);
  }
}

} // namespace regatta
