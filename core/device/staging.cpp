// SPDX-License-Identifier: Apache-2.0
#include "device/staging.hpp"

namespace regatta {
namespace {

class on_host final : public staging {
public:
  explicit on_host(processor& host) : host_(host) {}
  scratch_memory allocate_scratch(std::uint64_t bytes) override { return allocate_aligned(bytes); }
  rg_fence pack(const rg_work& w) override {
    host_.run(w);
    return 0;
  }

private:
  processor& host_;
};

class on_device final : public staging {
public:
  explicit on_device(device& d) : device_(d) {}
  scratch_memory allocate_scratch(std::uint64_t bytes) override { return device_.allocate_own(bytes); }
  std::uint32_t scratch_place() const noexcept override { return RG_MEMORY_DEVICE; }
  // Later users of the scratch memory are ordered behind this work, here and in the transport.
  rg_fence pack(const rg_work& w) override {
    device_.run(device::computing, w);
    return 0;
  }
  rg_fence fence_for_transport() override { return device_.record(device::computing); }
  void wait_for(rg_fence fence) override { device_.wait_for(device::computing, fence); }

private:
  device& device_;
};

class through_host final : public staging {
public:
  explicit through_host(device& d) : device_(d) {}
  bool always_copies() const noexcept override { return true; }
  scratch_memory allocate_scratch(std::uint64_t bytes) override { return device_.allocate_host(bytes); }
  rg_fence pack(const rg_work& w) override { return move(device::to_host, w); }
  // Work that is enqueued later finds the bytes in their target.
  rg_fence unpack(const rg_work& w) override {
    const rg_fence done = move(device::from_host, w);
    device_.wait_for(device::computing, done);
    return done;
  }
  bool passed(rg_fence fence) override { return device_.passed(fence); }

private:
  rg_fence move(device::stream s, const rg_work& w) {
    device_.wait_for_stream(s, device::computing);
    device_.run(s, w);
    const rg_fence done = device_.record(s);
    if (s == device::to_host) device_.notify(s); // an operation waits for it to be posted
    return done;
  }

  device& device_;
};

} // namespace

std::unique_ptr<staging> stage_on_host(processor& host) {
  return std::make_unique<on_host>(host);
}
std::unique_ptr<staging> stage_on_device(device& d) {
  return std::make_unique<on_device>(d);
}
std::unique_ptr<staging> stage_through_host(device& d) {
  return std::make_unique<through_host>(d);
}

} // namespace regatta
