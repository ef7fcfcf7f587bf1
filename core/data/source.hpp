// SPDX-License-Identifier: Apache-2.0
//
// What models train on. A source is addressed by (step, place in the step's global batch) alone, and keeps no position:
// N workers with batches of B see exactly what one worker with a batch of N x B sees, and a step can be repeated.
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

  // Writes samples first .. first + samples of the global batch of `step`, which has `global_batch` samples, into one
  // buffer an input: [samples, shape of the input...], in the order of the inputs the source was made for. Allocates
  // nothing, but where text is taken apart or a picture decoded. Throws failure (run) where a file turns out to hold
  // something else than when it was opened. [compute]
  virtual void fill(std::uint64_t step, std::uint64_t global_batch, std::uint64_t first, std::uint64_t samples,
                    std::span<void* const> out) = 0;

  // What will be asked of fill(): steps 0, 1, ... in order, and of each the micro-batches m = 0 .. micros - 1, samples
  // first + m * samples up to first + (m + 1) * samples. Called once, before the first fill; only sources that work
  // ahead care. [main]
  struct request {
    std::uint64_t global_batch, first, samples, micros;
  };
  virtual void plan(const request&) {}

  // How an input's values of a step come about, for a device that makes them itself; fill() then takes null for it.
  // kind 0: fill() alone can make them. Always or never 0 of an input. [any]
  virtual rg_made made(std::uint64_t /*step*/, std::size_t /*input*/) const noexcept {
    rg_made none{};
    none.struct_size = sizeof none;
    return none;
  }

  // Every step has the same samples: a buffer filled once need not be filled again. [any]
  virtual bool constant() const noexcept { return false; }

  // Samples of the dataset; 0: endless. Datasets wrap around without a seam: sample k of the global batch of step t
  // stands at position t * global_batch + k, and each round of size() positions is an epoch, every sample once, in an
  // order of its own where they are shuffled. So no sample is dropped, and a batch may span two epochs. [any]
  virtual std::uint64_t size() const noexcept { return 0; }

  // How often each index of an input comes, in proportion; indices past the end never do. Empty: nobody knows. [main]
  virtual std::vector<double> frequencies(std::size_t) const { return {}; }

  // Records left out because they are damaged, so far (data.on_bad_record = "skip"). [any]
  virtual std::uint64_t skipped() const noexcept { return 0; }
};

// The source that [data] asks for, able to feed every input. Files are opened and checked here. Throws failure: usage
// where the configuration or the model does not fit, run where a file is damaged. [main]
//
//   random     RG_INPUT_VALUES as data.content says: zeros, uniform (from 0 to 1; bytes: all) or normal (mean 0,
//              deviation 1; bytes: around 128, deviation 64); RG_INPUT_INDEX evenly over its range, or, where that is
//              large (words, not classes), by Zipf with the exponent data.zipf
//   constant   the samples of step 0 of `random`, in every step
//   dataset    data.format says how data.path is read: docs/data.md
//   queue      one of the above, data.of, data.prefetch batches ahead on a thread of its own
//   stream     from another process: docs/data.md
std::unique_ptr<data_source> make_source(const data_config& config, std::span<const rg_input> inputs,
                                         std::uint64_t seed);

// What to evaluate on: data.evaluation_path, in data.format, in its order, never shuffled (cifar10: test_batch*.bin of a
// folder). Null where no path is given. [main]
std::unique_ptr<data_source> make_evaluation_source(const data_config& config, std::span<const rg_input> inputs,
                                                    std::uint64_t seed);

// Opens what [data] names and reads a first sample of it, so that a missing file, a wrong format or one that does not
// fit the model is found before anything starts. Looks at the first records only and writes nothing. Throws failure
// (usage), the text beginning with the key that is wrong: "data.path: ...". [main]
void check_data(const data_config& config, std::span<const rg_input> inputs);

} // namespace regatta
