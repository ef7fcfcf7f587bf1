// SPDX-License-Identifier: Apache-2.0
//
// Sources of samples for models. A source is addressed only by step and by index within the step's global batch, and
// keeps no position: N workers with batches of B get exactly the samples of one worker with a batch of N x B, and a
// step can be repeated.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

struct data_config; // config/experiment.hpp

class data_source {
public:
  virtual ~data_source() = default;

  // [compute] Writes samples first .. first + samples of the global batch of `step`, which has `global_batch` samples.
  // `out` has one buffer per input, in the order of the inputs that the source was made for: [samples, shape of the
  // input...]. Allocates nothing, except to parse text or decode an image. Throws failure (run) if a file has changed
  // since it was opened and is now invalid.
  virtual void fill(std::uint64_t step, std::uint64_t global_batch, std::uint64_t first, std::uint64_t samples,
                    std::span<void* const> out) = 0;

  // [main] Announces the calls of fill(): steps 0, 1, ... in order, each with the micro-batches m = 0 .. micros - 1,
  // samples first + m * samples up to first + (m + 1) * samples. Called once, before the first fill(). Only sources
  // that work ahead use it.
  struct request {
    std::uint64_t global_batch, first, samples, micros;
  };
  virtual void plan(const request&) {}

  // [any] Returns how the values of an input in a step are computed, for a device that generates them itself; fill()
  // then accepts null for that input. kind is 0 if only fill() can provide them. For a given input kind is always 0 or
  // never.
  virtual rg_made made(std::uint64_t /*step*/, std::size_t /*input*/) const noexcept {
    rg_made none{};
    none.struct_size = sizeof none;
    return none;
  }

  // [any] Returns whether every step has the same samples, so that a buffer need not be filled again.
  virtual bool constant() const noexcept { return false; }

  // [any] Returns the samples of the dataset; 0: endless. Datasets wrap around without a gap: sample k of the global
  // batch of step t has position t * global_batch + k. Every size() positions are an epoch, which has every sample
  // once, in a new order if they are shuffled. So no sample is dropped, and a batch may span two epochs.
  virtual std::uint64_t size() const noexcept { return 0; }

  // [main] Returns the relative frequency of each index of an input; indices past the end never occur. Empty: unknown.
  virtual std::vector<double> frequencies(std::size_t) const { return {}; }

  // [any] Returns the number of damaged records that were skipped so far (data.on_bad_record = "skip").
  virtual std::uint64_t skipped() const noexcept { return 0; }
};

// [main] Returns the source that [data] describes, able to feed every input. Opens and checks the files. Throws
// failure: usage if the configuration or the model does not fit, run if a file is damaged.
//
//   random     RG_INPUT_VALUES by data.content: zeros, uniform (from 0 to 1; bytes: all) or normal (mean 0,
//              deviation 1; bytes: around 128, deviation 64); RG_INPUT_INDEX uniform over its range or, if that is
//              large (words, not classes), from a Zipf distribution with the exponent data.zipf
//   constant   the samples of step 0 of `random`, in every step
//   dataset    the files at data.path in the format data.format: docs/data.md
//   queue      one of the above (data.of), data.prefetch micro-batches ahead on a separate thread
//   stream     from another process: docs/data.md
std::unique_ptr<data_source> make_source(const data_config& config, std::span<const rg_input> inputs,
                                         std::uint64_t seed);

// [main] Returns the source for evaluation: data.evaluation_path, in data.format, never shuffled (cifar10:
// test_batch*.bin of a folder). Null if no path is given.
std::unique_ptr<data_source> make_evaluation_source(const data_config& config, std::span<const rg_input> inputs,
                                                    std::uint64_t seed);

// [main] Opens the data of [data] and reads a first sample, so that a missing file, a wrong format or one that does not
// fit the model is found before anything starts. Reads only the first records and writes nothing. Throws failure
// (usage) with a text that begins with the wrong key: "data.path: ...".
void check_data(const data_config& config, std::span<const rg_input> inputs);

} // namespace regatta
