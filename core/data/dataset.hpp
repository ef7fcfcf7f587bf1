// SPDX-License-Identifier: Apache-2.0
//
// What all datasets share: the order of their samples, threads that read them, records that are damaged. A format only
// reads one sample at a time.
#pragma once

#include "data/input.hpp"
#include "data/order.hpp"
#include "data/source.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace regatta {

struct data_config;

// Where one sample of one input goes.
struct sample_slot {
  const data_input* input;
  void* at; // the sample's first element

  std::uint64_t elements() const noexcept { return input->elements; }
  // Element `i` of an RG_INPUT_INDEX; the id is within the input's range.
  void index(std::uint64_t i, std::uint64_t id) const noexcept;
  std::span<float> floats() const noexcept { return {static_cast<float*>(at), input->elements}; }
  std::span<std::uint8_t> bytes() const noexcept { return {static_cast<std::uint8_t*>(at), input->elements}; }
  // `ids`, then zeros up to the end; those that do not fit are cut off.
  void indices(std::span<const std::uint32_t> ids) const noexcept;
};

// A record that cannot be read: file, line or record, and why. One of these is skipped where data.on_bad_record says so.
class bad_record : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class dataset_format {
public:
  virtual ~dataset_format() = default;

  // Of one epoch.
  virtual std::uint64_t size() const noexcept = 0;

  // As data_source::frequencies.
  virtual std::vector<double> frequencies(const data_input&) const { return {}; }

  // Writes sample `index` into a slot for each input, in their order. Random choices depend on `draw` alone, a seed of
  // this sample's in this epoch; where `training` is false there are none but those the task is made of. Throws
  // bad_record. [any, several threads at once]
  virtual void read(std::uint64_t index, std::uint64_t draw, std::span<const sample_slot> out) const = 0;
};

// Throws failure (usage) where `format` knows no input of that name; the text lists those it knows.
[[noreturn]] void refuse_input(const data_input& input, const char* format, const std::string& known);
// Throws failure (usage) where a known input is not of that kind and of one dimension (none: a scalar).
void require_indices(const data_input& input, const char* format);
void require_scalar(const data_input& input, const char* format);

// Order, threads and bad records as data_config says.
std::unique_ptr<data_source> make_dataset_source(std::vector<data_input> inputs, std::unique_ptr<dataset_format> format,
                                                 const data_config& config, bool shuffle, std::uint64_t seed);

} // namespace regatta
