// SPDX-License-Identifier: Apache-2.0
//
// Sources of samples for models. A sample is addressed by step and by index within the step's global batch: N workers
// with batches of B get exactly the samples of one worker with a batch of N x B, and a step can be repeated.
// Exceptions: queue and stream deliver each micro-batch once, in the order of plan(); a stream's producer decides which
// samples they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <regatta/abi.h>

namespace regatta {

struct data_config; // experiment/experiment.hpp

class data_source {
public:
  virtual ~data_source() = default;

  // [compute] Writes samples first .. first + samples - 1 of the global batch of `step`, which has `global_batch`
  // samples. `out` has one buffer per input, in the order of the inputs that the source was made for: [samples, shape
  // of the input...]. Blocks until the samples are there. One call at a time. Allocates nothing, except to parse text,
  // decode an image or receive a message. Throws failure: run if a record is damaged (unless skipped) or a stream
  // fails; plugin if plan() of a queue was not called, or did not announce this call.
  virtual void fill(std::uint64_t step, std::uint64_t global_batch, std::uint64_t first, std::uint64_t samples,
                    std::span<void* const> out) = 0;

  // [main] Announces the calls of fill(): steps 0, 1, ... in order, in each step `micros` calls, of which call m asks
  // for `samples` samples from first + m * samples on. queue and stream require it, once, before the first fill(); they
  // start their thread, connection and producer here, and throw failure if that fails. Others ignore it.
  struct request {
    std::uint64_t global_batch, first, samples, micros;
  };
  virtual void plan(const request&) {}

  // [any] Returns whether every step has the same samples, so that a buffer need not be filled again.
  virtual bool constant() const noexcept { return false; }

  // [any] Returns the number of samples of the dataset; 0: endless. Datasets wrap around without a gap: sample k of the
  // global batch of step t has position t * global_batch + k. Every size() positions are an epoch, which has every
  // sample once, in a new order if they are shuffled. So no sample is dropped, and a batch may span two epochs.
  virtual std::uint64_t size() const noexcept { return 0; }

  // [main] Returns weights proportional to the frequency of each index of the input with this number, counted from 0;
  // not normalised. Indices past the end never occur. Empty: unknown.
  virtual std::vector<double> frequencies(std::size_t) const { return {}; }

  // [any] Returns the number of damaged records that were skipped so far (data.on_bad_record = "skip").
  virtual std::uint64_t skipped() const noexcept { return 0; }
};

// [main] Returns the source that [data] describes, able to feed every input. Opens and checks the files, and may write
// a vocabulary beside them. Throws failure: usage if the configuration, or the shape or type of the model's inputs,
// does not fit; plugin if an rg_input is invalid; run if a file is damaged, has no sample or an index out of range, or
// if a vocabulary cannot be built.
//
//   random     RG_INPUT_VALUES by data.content: zeros, uniform (from 0 to 1; bytes: all) or normal (mean 0,
//              deviation 1; bytes: around 128, deviation 64); for i32 and i64 only zeros are accepted; RG_INPUT_INDEX
//              uniform over its range or, if that is at least 4096 (words, not classes), from a Zipf distribution with
//              the exponent data.zipf
//   constant   the samples of step 0 of `random`, in every step
//   dataset    the files at data.path in the format data.format: docs/data.md
//   queue      one of the above (data.queue_source), data.prefetch micro-batches ahead on a separate thread
//   stream     from another process: docs/data.md
std::unique_ptr<data_source> make_source(const data_config& config, std::span<const rg_input> inputs,
                                         std::uint64_t seed);

// [any] Returns how many threads make_source() starts to read or generate samples, beside the one that calls fill():
// that of a queue, and data.threads - 1 that read a dataset. cifar10 and npy are read by one thread.
std::size_t input_threads(const data_config& config);

// [main] Returns the source for evaluation: the dataset at data.evaluation_path, in data.format, never shuffled
// (cifar10: test_batch*.bin of a folder). Null if no path is given. Throws failure as make_source() does.
std::unique_ptr<data_source> make_evaluation_source(const data_config& config, std::span<const rg_input> inputs,
                                                    std::uint64_t seed);

// [main] Opens the datasets at data.path and data.evaluation_path and reads the first sample of each (words: none), so
// that a missing file, a wrong format or one that does not fit the model is found before anything starts. Looks at the
// first 1000 records at most and writes nothing; returns at once if data.generate will write the data. Throws failure:
// usage with a line for each error that begins with its key ("data.path: ..."), plugin if an rg_input is invalid.
void check_data(const data_config& config, std::span<const rg_input> inputs);

} // namespace regatta
