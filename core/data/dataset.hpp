// SPDX-License-Identifier: Apache-2.0
//
// The common parts of all dataset formats but npy: the order of samples, threads that read them, and the handling of
// damaged records. A format only reads one sample at a time.
#pragma once

#include "data/input.hpp"
#include "data/sample_order.hpp"
#include "data/source.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace regatta {

// The memory for one sample of one input.
struct sample_slot {
  const data_input* input;
  void* at; // the sample's first element, of type input->type

  std::uint64_t elements() const noexcept { return input->elements; }
  // Writes `id` to element `i`, in the input's type. Requires an RG_INPUT_INDEX and an id below its range.
  void index(std::uint64_t i, std::uint64_t id) const noexcept;
  // Return the elements. floats() requires an input of type RG_F32, bytes() of RG_U8.
  std::span<float> floats() const noexcept { return {static_cast<float*>(at), input->elements}; }
  std::span<std::uint8_t> bytes() const noexcept { return {static_cast<std::uint8_t*>(at), input->elements}; }
  // Writes `ids`, cut to the number of elements or padded with zeros. Requires what index() requires.
  void indices(std::span<const std::uint32_t> ids) const noexcept;
};

// A record that cannot be read; the text names file, line or record, and the reason. It ends the run, or with
// data.on_bad_record = "skip" the record after it is read in its place.
class bad_record : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The samples of one dataset in one format, made for the inputs of one model.
class dataset_format {
public:
  virtual ~dataset_format() = default;

  // [any] Returns the number of samples of one epoch; does not change.
  virtual std::uint64_t size() const noexcept = 0;

  // [main] Returns weights proportional to the frequency of each index of an input; empty: unknown.
  virtual std::vector<double> frequencies(const data_input&) const { return {}; }

  // [any, several threads at once] Writes sample `index` (below size()) into one slot per input, in the order of the
  // inputs that the format was made for. Random choices depend only on `draw`, a seed of this sample in this epoch.
  // Throws bad_record if the record is damaged; failure (run), which ends the run also with "skip", if the next record
  // would fail in the same way.
  virtual void read(std::uint64_t index, std::uint64_t draw, std::span<const sample_slot> out) const = 0;
};

// Throws failure (usage): `input` is none of the inputs that `format` can fill, which `known` lists for the message.
[[noreturn]] void refuse_input(const data_input& input, const char* format, const std::string& known);
// Throw failure (usage) unless the input is an RG_INPUT_INDEX and, require_indices(), has at most one dimension, or,
// require_scalar(), has one element. `format` is named in the message.
void require_indices(const data_input& input, const char* format);
void require_scalar(const data_input& input, const char* format);

// [main] Returns a source that reads `format`, which was made for `inputs`, on the calling thread and `threads` - 1
// more. `skip`: the next record replaces a damaged one; else, and if all are damaged, fill() throws failure (run).
// `shuffle` and `seed` decide the order of samples. Requires that the format has a sample. Throws failure: usage for
// more than 64 inputs, run if a thread cannot be started.
std::unique_ptr<data_source> make_dataset_source(std::vector<data_input> inputs, std::unique_ptr<dataset_format> format,
                                                 std::int64_t threads, bool skip, bool shuffle, std::uint64_t seed);

} // namespace regatta
