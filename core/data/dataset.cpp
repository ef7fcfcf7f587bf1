// SPDX-License-Identifier: Apache-2.0
#include "data/dataset.hpp"

#include "base/failure.hpp"
#include "data/thread_pool.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <utility>

#include <fmt/core.h>
#include <regatta/plugin.hpp>

namespace regatta {

void sample_slot::index(std::uint64_t i, std::uint64_t id) const noexcept {
  switch (input->type) {
  case RG_U8: static_cast<std::uint8_t*>(at)[i] = static_cast<std::uint8_t>(id); break;
  case RG_I32: static_cast<std::int32_t*>(at)[i] = static_cast<std::int32_t>(id); break;
  default: static_cast<std::int64_t*>(at)[i] = static_cast<std::int64_t>(id); break;
  }
}

void sample_slot::indices(std::span<const std::uint32_t> ids) const noexcept {
  const std::uint64_t count = std::min<std::uint64_t>(ids.size(), elements());
  for (std::uint64_t i = 0; i < count; ++i) index(i, ids[i]);
  for (std::uint64_t i = count; i < elements(); ++i) index(i, 0);
}

void refuse_input(const data_input& input, const char* format, const std::string& known) {
  throw failure(exit_code::usage, fmt::format("format \"{}\" feeds {}, but the model takes an input \"{}\" too", format,
                                              known, input.name));
}

namespace {

void require(bool shape_fits, const data_input& input, const char* format, const char* fed) {
  const bool index = input.kind == RG_INPUT_INDEX;
  if (!index || !shape_fits)
    throw failure(exit_code::usage,
                  fmt::format("the model's input \"{}\" takes {}{}: format \"{}\" feeds it {}", input.name,
                              shape_text(input.shape), index ? "" : " that are not indices", format, fed));
}

} // namespace

void require_indices(const data_input& input, const char* format) {
  require(input.shape.size() <= 1, input, format, "a row of indices");
}

void require_scalar(const data_input& input, const char* format) {
  require(input.elements == 1, input, format, "one index");
}

namespace {

constexpr std::size_t most_inputs = 64;

class dataset_source final : public data_source {
public:
  dataset_source(std::vector<data_input> inputs, std::unique_ptr<dataset_format> format, std::uint64_t threads,
                 bool skip, bool shuffle, std::uint64_t seed)
      : inputs_(std::move(inputs)), format_(std::move(format)), order_{format_->size(), shuffle, seed}, seed_(seed),
        skip_(skip), threads_(threads) {
    for (const data_input& input : inputs_) strides_.push_back(input.elements * rg::size_of(input.type));
  }

  void fill(std::uint64_t step, std::uint64_t global_batch, std::uint64_t first, std::uint64_t samples,
            std::span<void* const> out) override {
    const std::uint64_t begin = step * global_batch + first;
    const auto one = [&](std::uint64_t k) { read(begin + k, k, out); };
    threads_.each(samples, std::ref(one)); // a std::function of the lambda itself would allocate
  }

  std::uint64_t size() const noexcept override { return order_.size; }
  std::vector<double> frequencies(std::size_t input) const override { return format_->frequencies(inputs_[input]); }
  std::uint64_t skipped() const noexcept override { return skipped_.load(std::memory_order_relaxed); }

private:
  void read(std::uint64_t position, std::uint64_t k, std::span<void* const> out) {
    std::array<sample_slot, most_inputs> slots;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      slots[i] = {&inputs_[i], static_cast<std::uint8_t*>(out[i]) + k * strides_[i]};
    const std::uint64_t sample = order_.at(position), epoch = position / order_.size;
    const std::uint64_t draw = rg::derive_seed(seed_, sample, static_cast<std::uint32_t>(epoch), rg::stream_sampling);
    // The next record replaces a record that is skipped.
    for (std::uint64_t tried = 0;; ++tried) {
      try {
        return format_->read((sample + tried) % order_.size, draw, {slots.data(), inputs_.size()});
      } catch (const bad_record& e) {
        if (!skip_)
          throw failure(exit_code::run,
                        fmt::format("{} (set data.on_bad_record = \"skip\" to leave it out)", e.what()));
        if (tried + 1 == order_.size)
          throw failure(exit_code::run,
                        fmt::format("expected a record that can be read, got none; the last: {}", e.what()));
        skipped_.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }

  std::vector<data_input> inputs_;
  std::vector<std::uint64_t> strides_; // bytes of a sample
  std::unique_ptr<dataset_format> format_;
  sample_order order_;
  std::uint64_t seed_;
  bool skip_;
  std::atomic<std::uint64_t> skipped_{0};
  thread_pool threads_;
};

} // namespace

std::unique_ptr<data_source> make_dataset_source(std::vector<data_input> inputs, std::unique_ptr<dataset_format> format,
                                                 std::int64_t threads, bool skip, bool shuffle, std::uint64_t seed) {
  if (inputs.size() > most_inputs)
    throw failure(exit_code::usage,
                  fmt::format("the model has {} inputs: datasets feed at most {}", inputs.size(), most_inputs));
  return std::make_unique<dataset_source>(std::move(inputs), std::move(format), static_cast<std::uint64_t>(threads),
                                          skip, shuffle, seed);
}

} // namespace regatta
