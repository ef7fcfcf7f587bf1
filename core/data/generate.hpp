// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace regatta {

// [main] Writes data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt into `dir`, which is made if
// necessary: a learnable set in CIFAR-10's binary format, where the real one is not available. Equal arguments give
// equal files; each seed draws other samples of the same ten classes. A linear model classifies about half of the test
// set correctly, a small convolutional network nearly all. Each file has samples_per_file records (CIFAR-10: 10000) of
// 3073 bytes. Returns 0. Throws failure (run) if it cannot write.
int make_cifar10_like(const std::filesystem::path& dir, std::uint64_t samples_per_file, std::uint64_t seed);

// [main] The other functions write `train` and `test` in the named format into `dir`: files or folders of that name,
// with the format's extension. Models for the format can learn them. Equal arguments give equal files; train and test
// are different samples of the same distribution. All throw failure (run) if they cannot write.

// imagenet: folders of images of side x side pixels, `pictures` per class in train and a fifth of it in test. A class
// has one colour and stripes of one direction.
void make_imagenet_like(const std::filesystem::path& dir, std::uint32_t classes, std::uint32_t pictures,
                        std::uint32_t side, std::uint64_t seed);
// criteo: lines of train.tsv, a fifth of it in test.tsv. A click is drawn by a logistic function of weights of some
// integers and categories.
void make_criteo_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);
// words: topics of 2 twins and 4 other words each ("t7a", "t7b"; "t7w0" ...). The twins have the same neighbours, so
// their vectors become similar. Words without topic ("f0" ...) are mixed in by a Zipf distribution.
void make_words_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint32_t topics, std::uint64_t seed);
// sentences: documents of 6 to 12 sentences in one of 16 topics. Within a topic, every word but the first of a sentence
// follows from the word before.
void make_sentences_like(const std::filesystem::path& dir, std::uint64_t documents, std::uint64_t seed);
// parallel: train/source.txt and so on; the target is the source in reverse order, with each of 40 words replaced by
// its translation.
void make_parallel_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);
// queries: a query and its title share words of one of 50 topics.
void make_queries_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);

} // namespace regatta
