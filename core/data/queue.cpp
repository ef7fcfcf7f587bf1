// SPDX-License-Identifier: Apache-2.0
//
// Batches that a separate thread generates or reads ahead, in a queue of `prefetch` micro-batches.
#include "base/failure.hpp"
#include "data/formats.hpp"

#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

class queue_source final : public data_source {
public:
  queue_source(std::vector<data_input> inputs, std::unique_ptr<data_source> of, std::uint64_t prefetch)
      : inputs_(std::move(inputs)), of_(std::move(of)), buffers_(prefetch) {}

  ~queue_source() override {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    if (producer_.joinable()) producer_.join();
  }

  void plan(const request& r) override {
    request_ = r;
    for (buffer& b : buffers_)
      for (const data_input& input : inputs_) {
        b.bytes.emplace_back(r.samples * input.elements * rg::size_of(input.type));
        b.pointers.push_back(b.bytes.back().data());
      }
    producer_ = std::thread([this] { produce(); });
  }

  void fill(std::uint64_t step, std::uint64_t global_batch, std::uint64_t first, std::uint64_t samples,
            std::span<void* const> out) override {
    if (!producer_.joinable() || step != taken_ / request_.micros || global_batch != request_.global_batch ||
        samples != request_.samples || first != request_.first + taken_ % request_.micros * samples)
      throw failure(exit_code::plugin,
                    fmt::format("the queue was not asked for step {} sample {} when it was planned", step, first));
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return made_ > taken_ || error_; });
      if (made_ == taken_) std::rethrow_exception(error_);
    }
    const buffer& b = buffers_[taken_ % buffers_.size()];
    for (std::size_t i = 0; i < out.size(); ++i) std::memcpy(out[i], b.bytes[i].data(), b.bytes[i].size());
    {
      const std::lock_guard lock(mutex_);
      ++taken_;
    }
    changed_.notify_all();
  }

  std::uint64_t size() const noexcept override { return of_->size(); }
  std::vector<double> frequencies(std::size_t input) const override { return of_->frequencies(input); }
  std::uint64_t skipped() const noexcept override { return of_->skipped(); }

private:
  struct buffer {
    std::vector<std::vector<std::uint8_t>> bytes; // by input
    std::vector<void*> pointers;
  };

  void produce() {
    std::unique_lock lock(mutex_);
    try {
      for (;;) {
        changed_.wait(lock, [this] { return quit_ || made_ < taken_ + buffers_.size(); });
        if (quit_) return;
        const std::uint64_t batch = made_;
        lock.unlock();
        of_->fill(batch / request_.micros, request_.global_batch,
                  request_.first + batch % request_.micros * request_.samples, request_.samples,
                  buffers_[batch % buffers_.size()].pointers);
        lock.lock();
        ++made_;
        changed_.notify_all();
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  std::vector<data_input> inputs_;
  std::unique_ptr<data_source> of_;
  request request_{};
  std::vector<buffer> buffers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // count micro-batches; guarded by mutex_, except that the only writing thread reads without it
  std::uint64_t made_ = 0, taken_ = 0;
  bool quit_ = false;
  std::exception_ptr error_;
  std::thread producer_; // the last member: it uses all of the above
};

} // namespace

std::unique_ptr<data_source> make_queue(std::vector<data_input> inputs, std::unique_ptr<data_source> of,
                                        std::uint64_t prefetch) {
  return std::make_unique<queue_source>(std::move(inputs), std::move(of), prefetch);
}

} // namespace regatta
