// SPDX-License-Identifier: Apache-2.0
//
// Criteo's display advertising data: one line per impression, 40 columns separated by tabs: label (clicked or not), 13
// integers, 26 categories of 8 hexadecimal digits. Integers and categories may be missing.
#include "base/failure.hpp"
#include "data/formats.hpp"
#include "data/text_file.hpp"
#include "experiment/experiment.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace regatta {
namespace {

constexpr std::size_t numbers = 13, categories = 26, columns = 1 + numbers + categories;

// Hashes slot and category by 64-bit FNV-1a and maps the hash to a row by the upper half of a 128-bit product. All
// slots share one table.
std::uint64_t row_of(std::size_t slot, std::string_view category, std::uint64_t rows) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](unsigned char c) { hash = (hash ^ c) * 0x100000001b3; };
  add(static_cast<unsigned char>(slot));
  for (const char c : category) add(static_cast<unsigned char>(c));
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93; // the upper bits of FNV alone are poorly distributed
  hash ^= hash >> 32;
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<wide>(hash * 0x9E3779B97F4A7C15) * rows >> 64);
}

class criteo final : public dataset_format {
  static constexpr const char* name = "criteo";

public:
  criteo(const std::vector<data_input>& inputs, const data_config& config, const std::filesystem::path& path)
      : text_(path, config.first_records) {
    for (const data_input& input : inputs) {
      if (input.name == "label") {
        require_scalar(input, name);
      } else if (input.name == "ids") {
        require_indices(input, name);
        if (input.elements > categories) throw too_many(input, categories, "categories");
      } else if (input.name == "features") {
        if (input.kind != RG_INPUT_VALUES || input.type != RG_F32)
          throw failure(exit_code::usage, "the model's input \"features\" is no f32: format \"criteo\" cannot feed it");
        if (input.elements > numbers) throw too_many(input, numbers, "numbers");
      } else {
        refuse_input(input, name, "label, features (13 numbers) and ids (26 categories)");
      }
    }
  }

  std::uint64_t size() const noexcept override { return text_.lines(); }

  void read(std::uint64_t index, std::uint64_t, std::span<const sample_slot> out) const override {
    const auto bad = [&](const std::string& what) {
      return bad_record(fmt::format("{}: {}", text_.position(index), what));
    };
    std::array<std::string_view, columns> cells;
    std::string_view rest = text_.line(index);
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t end = std::min(rest.find('\t'), rest.size());
      cells[c] = rest.substr(0, end);
      const bool last = end == rest.size();
      if (last != (c + 1 == columns))
        throw bad(last ? fmt::format("expected {1} columns, got {0}", c + 1, columns)
                       : fmt::format("more than {} columns", columns));
      rest.remove_prefix(last ? end : end + 1);
    }
    if (cells[0] != "0" && cells[0] != "1") throw bad("the label is neither 0 nor 1");
    for (const sample_slot& slot : out) {
      if (slot.input->name == "label") {
        slot.index(0, cells[0] == "1");
      } else if (slot.input->name == "features") {
        for (std::size_t i = 0; i < slot.elements(); ++i) slot.floats()[i] = feature(cells[1 + i], i, bad);
      } else {
        for (std::size_t i = 0; i < slot.elements(); ++i)
          slot.index(i, row_of(i, cells[1 + numbers + i], slot.input->range));
      }
    }
  }

private:
  static failure too_many(const data_input& input, std::size_t most, const char* what) {
    return {exit_code::usage, fmt::format("the model's input \"{}\" takes {}: format \"criteo\" has {} {}", input.name,
                                          input.elements, most, what)};
  }

  template <class Bad> static float feature(std::string_view cell, std::size_t i, Bad bad) {
    if (cell.empty()) return 0;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size())
      throw bad(fmt::format("number {} is none: \"{}\"", i + 1, cell.substr(0, 32)));
    return value > 0 ? std::log1p(static_cast<float>(value)) : 0; // a few values are about -1: treated as missing
  }

  text_file text_;
};

} // namespace

std::unique_ptr<dataset_format> make_criteo(const std::vector<data_input>& inputs, const data_config& config,
                                            const std::filesystem::path& path) {
  return std::make_unique<criteo>(inputs, config, path);
}

} // namespace regatta
