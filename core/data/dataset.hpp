// SPDX-License-Identifier: Apache-2.0
//
// The common parts of all datasets: the order of samples, threads that read them, and the handling of damaged records.
// A format only reads one sample at a time.
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

// The memory for one sample of one input.
struct sample_slot {
  const data_input* input;
  void* at; // the sample's first element

  std::uint64_t elements() const noexcept { return input->elements; }
  // Writes element `i` of an RG_INPUT_INDEX. Requires an id within the input's range.
  void index(std::uint64_t i, std::uint64_t id) const noexcept;
  std::span<float> floats() const noexcept { return {static_cast<float*>(at), input->elements}; }
  std::span<std::uint8_t> bytes() const noexcept { return {static_cast<std::uint8_t*>(at), input->elements}; }
  // Writes `ids`, cut to the length of the input and padded with zeros.
  void indices(std::span<const std::uint32_t> ids) const noexcept;
};

// A record that cannot be read; the text names file, line or record, and the reason. data.on_bad_record = "skip" skips
// it.
class bad_record : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class dataset_format {
public:
  virtual ~dataset_format() = default;

  // Returns the number of samples of one epoch.
  virtual std::uint64_t size() const noexcept = 0;

  // See data_source::frequencies().
  virtual std::vector<double> frequencies(const data_input&) const { return {}; }

  // [any, several threads at once] Writes sample `index` into one slot per input, in the order of the inputs. Random
  // choices depend only on `draw`, a seed of this sample in this epoch. Throws bad_record.
  virtual void read(std::uint64_t index, std::uint64_t draw, std::span<const sample_slot> out) const = 0;
};

// Throws failure (usage) for an input whose name `format` does not know; `known` lists the known ones.
[[noreturn]] void refuse_input(const data_input& input, const char* format, const std::string& known);
// Throw failure (usage) unless the input takes indices in at most one dimension, or a single index.
void require_indices(const data_input& input, const char* format);
void require_scalar(const data_input& input, const char* format);

// `config` decides threads and the handling of damaged records; `shuffle` and `seed` the order.
std::unique_ptr<data_source> make_dataset_source(std::vector<data_input> inputs, std::unique_ptr<dataset_format> format,
                                                 const data_config& config, bool shuffle, std::uint64_t seed);

} // namespace regatta
