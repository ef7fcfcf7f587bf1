// SPDX-License-Identifier: Apache-2.0
//
// The binary version of the CIFAR-10 data set (Krizhevsky, 2009). A record is one byte of label and 3072 of image: red,
// then green, then blue, 32 rows of 32 pixels each.
#include "base/failure.hpp"
#include "data/convert.hpp"
#include "data/formats.hpp"
#include "data/mapped_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/core.h>

namespace regatta {
namespace {

constexpr std::uint64_t plane = 32 * 32, image_bytes = 3 * plane, record = 1 + image_bytes;

// Mean and standard deviation of each channel over the training set, for pixels from 0 to 1: the commonly used
// constants.
constexpr double mean[] = {0.4914, 0.4822, 0.4465};
constexpr double deviation[] = {0.2470, 0.2435, 0.2616};

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path, data_split split) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  const std::string prefix = split == data_split::train ? "data_batch_" : "test_batch";
  auto files = sorted_entries(path, [&](const std::filesystem::directory_entry& e) {
    return e.path().filename().string().starts_with(prefix) && e.path().extension() == ".bin";
  });
  if (files.empty()) throw failure(exit_code::usage, fmt::format("{}: holds no {}*.bin", path.string(), prefix));
  return files;
}

class cifar10 final : public dataset_format {
public:
  cifar10(const std::vector<data_input>& inputs, const std::filesystem::path& path, data_split split,
          std::uint64_t first_records)
      : inputs_(inputs) {
    for (const auto& input : inputs_) require_feedable(input);
    const std::uint64_t most = first_records ? first_records : UINT64_MAX;
    for (const auto& file : files_of(path, split))
      if (labels_.size() < most) open(mapped_file(file), most - labels_.size());
  }

  std::uint64_t size() const noexcept override { return labels_.size(); }

  void read(std::uint64_t index, std::uint64_t, std::span<const sample_slot> out) const override {
    const auto holder = std::ranges::upper_bound(parts_, index, {}, &part::first) - 1;
    const std::uint8_t* const pixels = holder->file.bytes().data() + (index - holder->first) * record + 1;
    for (const sample_slot& slot : out) {
      if (slot.input->kind == RG_INPUT_INDEX)
        slot.index(0, labels_[index]);
      else if (slot.input->type == RG_U8)
        std::memcpy(slot.at, pixels, image_bytes);
      else
        normalise(slot.floats().data(), pixels);
    }
  }

private:
  struct part {
    std::uint64_t first; // index of the first sample
    mapped_file file;
  };

  static void require_feedable(const data_input& input) {
    if (input.kind == RG_INPUT_INDEX) {
      if (input.elements == 1) return;
      throw failure(exit_code::usage,
                    fmt::format("the model's input \"{}\" takes {} indices a sample: format \"cifar10\" "
                                "has one label",
                                input.name, input.elements));
    }
    if (input.type != RG_F32 && input.type != RG_U8)
      throw failure(exit_code::usage, fmt::format("the model's input \"{}\" is neither f32 nor u8: format \"cifar10\" "
                                                  "cannot feed it",
                                                  input.name));
    using shape = std::vector<std::uint64_t>;
    if (input.shape != shape{3, 32, 32} && input.shape != shape{image_bytes})
      throw failure(exit_code::usage,
                    fmt::format("the model's input \"{}\" takes {}: the images of format \"cifar10\" are "
                                "3x32x32",
                                input.name, shape_text(input.shape)));
  }

  // Adds the first `most` records of a file; checks the size of the whole file.
  void open(mapped_file file, std::uint64_t most) {
    const auto bytes = file.bytes();
    const auto damaged = [&](const std::string& what) {
      return failure(exit_code::run, fmt::format("{}: {}", file.name(), what));
    };
    const std::uint64_t records = bytes.size() / record, rest = bytes.size() % record;
    if (rest != 0)
      throw damaged(fmt::format("record {} is truncated: {} of {} bytes; not CIFAR-10's binary version, or cut off",
                                records, rest, record));
    if (records == 0) throw damaged("is empty");
    const std::uint64_t first = labels_.size();
    // Labels are kept, not only checked: a model may index with them, and the file may change.
    for (std::uint64_t r = 0; r < std::min(records, most); ++r) {
      const std::uint8_t label = bytes[r * record];
      for (const auto& input : inputs_)
        if (input.kind == RG_INPUT_INDEX && label >= input.range)
          throw damaged(fmt::format("record {} has label {}, but the model's input \"{}\" has {} classes", r, label,
                                    input.name, input.range));
      labels_.push_back(label);
    }
    parts_.push_back({first, std::move(file)});
  }

  static void normalise(float* out, const std::uint8_t* pixels) noexcept {
    for (std::uint64_t c = 0; c < 3; ++c)
      bytes_to_floats(out + c * plane, pixels + c * plane, plane, static_cast<float>(1 / (255 * deviation[c])),
                      static_cast<float>(-mean[c] / deviation[c]));
  }

  std::vector<data_input> inputs_;
  std::vector<part> parts_; // ascending by `first`
  std::vector<std::uint8_t> labels_;
};

} // namespace

std::unique_ptr<dataset_format> make_cifar10(const std::vector<data_input>& inputs, const std::filesystem::path& path,
                                             data_split split, std::uint64_t first_records) {
  return std::make_unique<cifar10>(inputs, path, split, first_records);
}

} // namespace regatta
