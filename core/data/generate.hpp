// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace regatta {

// Writes data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt into `dir`, made if need be: a
// learnable set in CIFAR-10's binary format, for where the real one cannot be had. The same arguments make the same
// files; every seed draws other samples of the same ten classes. A linear model gets about half of the test right, a
// small convolutional network nearly all. Each file has samples_per_file records (CIFAR-10: 10000) of 3073 bytes.
// Returns 0; throws failure (run) where it cannot write. [main]
int make_cifar10_like(const std::filesystem::path& dir, std::uint64_t samples_per_file, std::uint64_t seed);

// The others write `train` and `test`, each in the format named, into `dir`: files or folders of that name and the
// format's extension. They are learnable by what the format is made for; the same arguments make the same files, and
// train and test are different samples of the same thing. All throw failure (run) where they cannot write. [main]

// imagenet: folders of pictures of side x side pixels, `pictures` of each class in train and a fifth of it in test; a
// class has a colour and stripes of its own direction.
void make_imagenet_like(const std::filesystem::path& dir, std::uint32_t classes, std::uint32_t pictures,
                        std::uint32_t side, std::uint64_t seed);
// criteo: lines of train.tsv, a fifth of it in test.tsv; whether somebody clicks is drawn by a logistic function of
// weights that some numbers and categories have.
void make_criteo_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);
// words: topics of 2 twins and 4 other words each ("t7a", "t7b"; "t7w0" ...). The twins stand in the same company, so
// their vectors must become alike. Words of no topic ("f0" ...) come by Zipf in between.
void make_words_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint32_t topics, std::uint64_t seed);
// sentences: documents of 6 to 12 sentences in one of 16 topics. In a topic's language every word but the first of a
// sentence follows from the one before.
void make_sentences_like(const std::filesystem::path& dir, std::uint64_t documents, std::uint64_t seed);
// parallel: train/source.txt and so on; the target is the source backwards with every word replaced by its own
// translation, of 40 words.
void make_parallel_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);
// queries: a query and its title have words of one topic, of 50.
void make_queries_like(const std::filesystem::path& dir, std::uint64_t lines, std::uint64_t seed);

} // namespace regatta
