// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>

namespace regatta {

// [any] Creates the folder of `file`, and creates or replaces `file`: `write` writes its contents into the stream.
// Throws failure (run) if either fails.
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);

// [main] Writes a learnable dataset in CIFAR-10's binary format into `dir`: data_batch_1.bin to data_batch_5.bin,
// test_batch.bin and batches.meta.txt. Creates `dir`; replaces files of these names. Equal arguments give equal files;
// each seed draws other samples of the same ten classes. A linear model classifies about half of the test set
// correctly, a small convolutional network nearly all. Each .bin file has samples_per_file records (CIFAR-10: 10000) of
// 3073 bytes. Throws failure (run) if it cannot write.
void generate_cifar10_like(const std::filesystem::path& dir, std::uint64_t samples_per_file, std::uint64_t seed);

// [main] Each of the other functions writes a learnable dataset in the named format of data.format into `dir`: files or
// folders `train` and `test`, which has a fifth as many samples, at least one. They create folders and replace files of
// these names. Equal arguments give equal files; train and test are different samples of the same distribution. All
// throw failure (run) if they cannot write.

// imagenet: for each class a folder of JPEG files in train, with `images` images, and one in test, with a fifth as
// many, at least one. Images are `side` pixels high and up to half as wide again. A class has one colour and stripes of
// one direction. Throws failure (usage) if this build has no JPEG encoder.
void generate_imagenet_like(const std::filesystem::path& dir, std::uint32_t classes, std::uint32_t images,
                            std::uint32_t side, std::uint64_t seed);
// criteo: train.tsv with `lines` lines, and test.tsv. The probability of a click is a logistic function of a weighted
// sum of some of the integers and categories.
void generate_criteo_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);
// words: train.txt with `lines` lines of 12 words, and test.txt. A line has one of `topics` topics; some of its words
// have no topic ("f0" ...) and follow a Zipf distribution. Each topic K has the twins "tKa" and "tKb", which have the
// same neighbours, so that their vectors become similar, and the words "tKw0" to "tKw3".
void generate_words_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint32_t topics,
                         std::uint64_t seed);
// sentences: train.txt with `documents` documents of 6 to 12 sentences, and test.txt. A document has one of 16 topics.
// Within a topic, the word before determines each word of a sentence but the first.
void generate_sentences_like(const std::filesystem::path& dir, std::uint64_t documents, std::uint64_t seed);
// parallel: train/source.txt and train/target.txt with `lines` lines each, and the same in test/. A target line is the
// source line in reverse order, with each of 40 words replaced by its translation.
void generate_parallel_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);
// queries: train.tsv with `lines` lines of a query, a right title and a wrong title, and test.tsv. The query and the
// right title have words of the same of 50 topics, the wrong title of another. About a third of all words have no
// topic.
void generate_queries_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);

} // namespace regatta
