// SPDX-License-Identifier: Apache-2.0
//
// Text in two languages: the lines of source.txt and target.txt in a folder are translations of each other. Both
// languages share one vocabulary (Vaswani et al., "Attention is all you need", 2017, section 5.1).
#include "base/failure.hpp"
#include "data/formats.hpp"
#include "data/vocabulary.hpp"
#include "experiment/experiment.hpp"

#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

class parallel final : public dataset_format {
  static constexpr const char* name = "parallel";

public:
  parallel(const std::vector<data_input>& inputs, const data_config& config, const std::filesystem::path& path)
      : source_(path / "source.txt", config.first_records), target_(path / "target.txt", config.first_records) {
    if (source_.lines() != target_.lines())
      throw failure(exit_code::run,
                    fmt::format("{} has {} lines, {} has {}: they must be each other's translation",
                                source_.path().string(), source_.lines(), target_.path().string(), target_.lines()));
    std::uint64_t range = std::numeric_limits<std::uint32_t>::max();
    for (const data_input& input : inputs) {
      if (input.name != "source" && input.name != "target_in" && input.name != "target_out")
        refuse_input(input, name, "source, target_in and target_out");
      require_indices(input, name);
      range = std::min(range, input.range);
    }
    const std::filesystem::path training = config.path;
    if (path == training) {
      vocabulary_ = open_vocabulary(config, {&source_, &target_}, range, id_mask + 1);
    } else {
      const text_file a(training / "source.txt", config.first_records),
          b(training / "target.txt", config.first_records);
      vocabulary_ = open_vocabulary(config, {&a, &b}, range, id_mask + 1);
    }
  }

  std::uint64_t size() const noexcept override { return source_.lines(); }

  void read(std::uint64_t index, std::uint64_t, std::span<const sample_slot> out) const override {
    std::vector<std::uint32_t> source, target{id_begin};
    vocabulary_->encode(source_.line(index), source);
    vocabulary_->encode(target_.line(index), target);
    if (source.empty() || target.size() == 1)
      throw bad_record(fmt::format("{}: it or its translation is empty", source_.position(index)));
    for (const sample_slot& slot : out) {
      // Sequences that are too long are cut; source and target_out still end with id_end.
      if (slot.input->name == "target_in") {
        slot.indices(target);
      } else {
        std::vector<std::uint32_t> ids = source;
        if (slot.input->name == "target_out") ids.assign(target.begin() + 1, target.end());
        if (ids.size() >= slot.elements()) ids.resize(slot.elements() - 1);
        ids.push_back(id_end);
        slot.indices(ids);
      }
    }
  }

private:
  text_file source_, target_;
  std::unique_ptr<vocabulary> vocabulary_;
};

} // namespace

std::unique_ptr<dataset_format> make_parallel(const std::vector<data_input>& inputs, const data_config& config,
                                              const std::filesystem::path& path) {
  return std::make_unique<parallel>(inputs, config, path);
}

} // namespace regatta
