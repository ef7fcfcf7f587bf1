// SPDX-License-Identifier: Apache-2.0
//
// ImageNet as unpacked: one folder of JPEG files per class; classes are numbered in the order of the folders' names.
// Training resizes the shorter side to 8/7 of the model's, crops at random and mirrors half of the images; evaluation
// crops the centre (He et al., "Deep residual learning", 2015, section 3.4).
#include "base/failure.hpp"
#include "data/formats.hpp"
#include "data/jpeg.hpp"
#include "data/mapped_file.hpp"
#include "experiment/experiment.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

bool is_class(const std::filesystem::directory_entry& e) {
  return e.is_directory();
}

bool is_image(const std::filesystem::directory_entry& e) {
  std::string extension = e.path().extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return c < 'A' || c > 'Z' ? c : c + 32; });
  return extension == ".jpg" || extension == ".jpeg";
}

std::vector<std::string> classes_of(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& f : sorted_entries(folder, is_class)) names.push_back(f.filename().string());
  if (names.empty())
    throw failure(exit_code::usage, fmt::format("{}: expected a folder for each class, got none", folder.string()));
  return names;
}

class imagenet final : public dataset_format {
  static constexpr const char* name = "imagenet";
  // For pixels from 0 to 1, over the training set: the commonly used constants.
  static constexpr float mean[] = {0.485F, 0.456F, 0.406F};
  static constexpr float deviation[] = {0.229F, 0.224F, 0.225F};

public:
  imagenet(const std::vector<data_input>& inputs, const data_config& config, const std::filesystem::path& path,
           bool training)
      : training_(training) {
    require_jpeg();
    const auto classes = classes_of(config.path);
    for (const data_input& input : inputs) {
      if (input.name == "label") {
        require_scalar(input, name);
        if (classes.size() > input.range)
          throw failure(exit_code::usage,
                        fmt::format("{}: {} classes, the model has {}", config.path, classes.size(), input.range));
      } else if (input.name == "image") {
        const auto& s = input.shape;
        if (input.kind != RG_INPUT_VALUES || (input.type != RG_F32 && input.type != RG_U8) || s.size() != 3 ||
            s[0] != 3 || s[1] != s[2])
          throw failure(exit_code::usage, fmt::format("the model's input \"image\" takes {}: format \"imagenet\" feeds "
                                                      "3 x N x N of f32 or u8",
                                                      shape_text(s)));
        side_ = s[1];
      } else {
        refuse_input(input, name, "image and label");
      }
    }
    for (const auto& folder : sorted_entries(path, is_class)) {
      if (config.first_records && files_.size() >= config.first_records) break;
      const auto at = std::ranges::lower_bound(classes, folder.filename().string());
      if (at == classes.end() || *at != folder.filename().string())
        throw failure(exit_code::usage, fmt::format("{}: no class of that name in {}", folder.string(), config.path));
      for (auto& file : sorted_entries(folder, is_image))
        files_.push_back({std::move(file), static_cast<std::uint32_t>(at - classes.begin())});
    }
  }

  std::uint64_t size() const noexcept override { return files_.size(); }

  void read(std::uint64_t index, std::uint64_t draw, std::span<const sample_slot> out) const override {
    const auto& [path, label] = files_[index];
    const std::uint64_t shorter = (side_ * 8 + 3) / 7;
    image p;
    std::string why;
    try {
      const mapped_file file(path);
      if (!decode_jpeg(file.bytes(), static_cast<std::uint32_t>(shorter), p, why))
        throw bad_record(fmt::format("{}: {}", path.string(), why));
    } catch (const failure& e) {
      throw bad_record(e.what());
    }
    const rg::bits4 bits = rg::random_bits(draw, 0);
    for (const sample_slot& slot : out) {
      if (slot.input->name == "label")
        slot.index(0, label);
      else
        crop(p, shorter, bits, slot);
    }
  }

private:
  struct entry {
    std::filesystem::path path;
    std::uint32_t label;
  };

  // Resizes only the cropped part, bilinearly between the centres of pixels.
  void crop(const image& p, std::uint64_t shorter, const rg::bits4& bits, const sample_slot& slot) const {
    const double scale = static_cast<double>(std::min(p.width, p.height)) / static_cast<double>(shorter);
    const auto wide = static_cast<std::uint64_t>(std::llround(static_cast<double>(p.width) / scale)),
               high = static_cast<std::uint64_t>(std::llround(static_cast<double>(p.height) / scale));
    const auto place = [&](std::uint64_t room, std::uint32_t b) {
      return training_ ? rg::to_index(b, static_cast<std::uint32_t>(room + 1)) : room / 2;
    };
    const std::uint64_t left = place(wide - side_, bits[0]), top = place(high - side_, bits[1]);
    const bool mirrored = training_ && bits[2] >> 31;
    for (std::uint64_t y = 0; y < side_; ++y) {
      const auto [y0, y1, fy] = between(static_cast<double>(top + y), scale, p.height);
      for (std::uint64_t x = 0; x < side_; ++x) {
        const auto [x0, x1, fx] = between(static_cast<double>(left + (mirrored ? side_ - 1 - x : x)), scale, p.width);
        for (std::size_t c = 0; c < 3; ++c) {
          const auto at = [&](std::size_t row, std::size_t column) {
            return static_cast<float>(p.pixels[(row * p.width + column) * 3 + c]);
          };
          const float upper = at(y0, x0) + fx * (at(y0, x1) - at(y0, x0)),
                      lower = at(y1, x0) + fx * (at(y1, x1) - at(y1, x0)), value = upper + fy * (lower - upper);
          const std::size_t to = (c * side_ + y) * side_ + x;
          // never negative, so truncation rounds; std::lround would be a function call
          const float half_up = value + 0.5F;
          if (slot.input->type == RG_U8)
            slot.bytes()[to] = static_cast<std::uint8_t>(half_up);
          else
            slot.floats()[to] = (value / 255 - mean[c]) / deviation[c];
        }
      }
    }
  }

  struct blend {
    std::size_t first, second;
    float share; // weight of `second`
  };
  static blend between(double at, double scale, std::uint32_t size) {
    const double from = std::clamp((at + 0.5) * scale - 0.5, 0.0, static_cast<double>(size - 1));
    const auto first = static_cast<std::size_t>(from);
    return {first, std::min<std::size_t>(first + 1, size - 1), static_cast<float>(from - std::floor(from))};
  }

  bool training_;
  std::uint64_t side_ = 1;
  std::vector<entry> files_;
};

} // namespace

std::unique_ptr<dataset_format> make_imagenet(const std::vector<data_input>& inputs, const data_config& config,
                                              const std::filesystem::path& path, bool training) {
  return std::make_unique<imagenet>(inputs, config, path, training);
}

} // namespace regatta
