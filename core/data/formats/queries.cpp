// SPDX-License-Identifier: Apache-2.0
//
// Queries and the titles that people chose. A line is a query, a right title and optionally a wrong title, separated by
// tabs. If the wrong title is missing, the right title of a random other line replaces it.
#include "data/formats.hpp"
#include "data/vocabulary.hpp"
#include "experiment/experiment.hpp"

#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

class queries final : public dataset_format {
  static constexpr const char* name = "queries";

public:
  queries(const std::vector<data_input>& inputs, const data_config& config, const std::filesystem::path& path)
      : text_(path, config.first_records) {
    std::uint64_t range = std::numeric_limits<std::uint32_t>::max();
    for (const data_input& input : inputs) {
      if (input.name != "query" && input.name != "positive" && input.name != "negative")
        refuse_input(input, name, "query, positive and negative");
      require_indices(input, name);
      range = std::min(range, input.range);
    }
    const text_file training(config.path, config.first_records);
    vocabulary_ = open_vocabulary(config, {&training}, range, config.tokens == "words" ? id_unknown + 1 : id_mask + 1);
  }

  std::uint64_t size() const noexcept override { return text_.lines(); }

  void read(std::uint64_t index, std::uint64_t draw, std::span<const sample_slot> out) const override {
    auto cells = cells_of(index);
    if (cells.size() == 2) {
      std::uint64_t other = rg::to_index(rg::random_bits(draw, 0)[0], static_cast<std::uint32_t>(text_.lines() - 1));
      if (other >= index) ++other;
      if (text_.lines() < 2)
        throw bad_record(fmt::format("{}: there is no other line to take a wrong title from", text_.position(index)));
      cells.push_back(cells_of(other)[1]);
    }
    for (const sample_slot& slot : out) {
      const std::size_t column = slot.input->name == "query" ? 0 : slot.input->name == "positive" ? 1 : 2;
      std::vector<std::uint32_t> ids;
      vocabulary_->encode(cells[column], ids);
      slot.indices(ids);
    }
  }

private:
  std::vector<std::string_view> cells_of(std::uint64_t index) const {
    auto cells = split_at(text_.line(index), '\t');
    if (cells.size() != 2 && cells.size() != 3)
      throw bad_record(fmt::format("{}: expected 2 or 3 columns, got {}", text_.position(index), cells.size()));
    for (const std::string_view cell : cells)
      if (cell.find_first_not_of(' ') == std::string_view::npos)
        throw bad_record(fmt::format("{}: a column is empty", text_.position(index)));
    return cells;
  }

  text_file text_;
  std::unique_ptr<vocabulary> vocabulary_;
};

} // namespace

std::unique_ptr<dataset_format> make_queries(const std::vector<data_input>& inputs, const data_config& config,
                                             const std::filesystem::path& path) {
  return std::make_unique<queries>(inputs, config, path);
}

} // namespace regatta
