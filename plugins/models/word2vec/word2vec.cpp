// SPDX-License-Identifier: Apache-2.0
//
// Skip-gram with negative sampling: Mikolov, Sutskever, Chen, Corrado and Dean, "Distributed representations of words
// and phrases and their compositionality" (2013), section 2.2, with a bias for every output word as in PaddlePaddle's
// benchmark. A sample is a word and one of its neighbours. The data (data.format = "words") chooses the pairs,
// subsamples, and drops rare words.
//
//   x_k  = input[word] . output[k] + bias[k]                  k: the context, and `negatives` words of noise
//   loss = -log s(x_context) - sum over noise log s(-x_k)     s: the logistic function
//
// Noise is drawn with probability proportional to count^noise_exponent, 0.75 in the paper. The data supplies the counts
// of contexts (from a text's vocabulary, or from the distribution of generated words). Without counts, words are
// assumed to be numbered by falling frequency under Zipf's law with exponent 1. Noise that equals the context is
// ignored.
//
// Both tables are sparse. Row w of "output" holds dim weights and the word's bias: 354,051 x (300 + 301) parameters.
#include "kernels.hpp"
#include "noise.hpp"
#include "row_set.hpp"

#include <regatta/model.hpp>
#include <regatta/random.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

namespace {

namespace parts = word2vec_parts;

class word2vec {
public:
  struct parameters {
    std::int64_t vocabulary = 354051;
    std::int64_t dim = 300;
    std::int64_t negatives = 5;
    double noise_exponent = 0.75;
  };
  static constexpr auto fields =
      rg::fields(rg::field("vocabulary", &parameters::vocabulary, "words in the vocabulary").range(2, 1e9),
                 rg::field("dim", &parameters::dim, "elements of a word's vector").range(1, 65536),
                 rg::field("negatives", &parameters::negatives, "negative samples for each pair")
                     .range(1, parts::most_targets - 1),
                 rg::field("noise_exponent", &parameters::noise_exponent,
                           "negative samples are drawn in proportion to (a word's count)^this")
                     .range(0, 8));

  word2vec(const rg_host*, const parameters& p, const rg_model_setup& setup)
      : dim_(static_cast<std::size_t>(p.dim)), negatives_(static_cast<std::size_t>(p.negatives)),
        vocabulary_(static_cast<std::uint64_t>(p.vocabulary)), noise_exponent_(p.noise_exponent) {
    // bf16 would not make a step faster: a step is bound by reading the tables, which the optimizer needs in fp32.
    if (setup.precision != RG_F32)
      throw rg::error(RG_E_UNSUPPORTED, "expected train.precision = \"fp32\", the only one of this model");
    const std::uint64_t batch = setup.batch;
    described_.table("input", p.vocabulary, p.dim, std::min(batch, vocabulary_));
    described_.table("output", p.vocabulary, p.dim + 1, std::min(batch * (negatives_ + 1), vocabulary_));
    described_.indices("word", {}, p.vocabulary);
    described_.indices("context", {}, p.vocabulary);
    if (setup.purpose != RG_PURPOSE_TRAIN) return;
    std::vector<double> zipf(vocabulary_);
    for (std::size_t i = 0; i < zipf.size(); ++i) zipf[i] = 1 / (static_cast<double>(i) + 1);
    make_noise(zipf);
    for (auto& s : sets_) s = std::make_unique<parts::row_set>(vocabulary_);
    targets_.resize(batch * (negatives_ + 1));
    indices_[0].resize(batch);
    indices_[1].resize(targets_.size());
    zeros_.resize(dim_ + 1);
    for (std::size_t t = 0; t < 2; ++t) {
      rows_at_[t].reserve(described_.tensors()[t].max_rows);
      known_[t].reserve(described_.tensors()[t].max_rows);
    }
  }

  rg_model_info describe() {
    rg_model_info info = described_.info();
    info.metric_sums = 2;
    info.metric = "similarity";
    info.unit = "words";
    info.flags = RG_MODEL_ROWS_IN_PLACE;
    // A dot product, and two updates, for every target.
    info.flops_per_sample = 6.0 * static_cast<double>(dim_) * static_cast<double>(negatives_ + 1);
    return info;
  }

  // Words are uniform from -0.5/dim to 0.5/dim, outputs and biases 0, as in word2vec.c.
  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
    if (tensor != 0) return std::fill(out.begin(), out.end(), 0.0F);
    for (std::size_t i = 0; i * dim_ < out.size(); ++i) {
      const std::uint64_t row = rows.empty() ? i : rows[i];
      for (std::size_t d = 0; d < dim_; d += 4) {
        const auto four = rg::random_uniforms(seed, row, static_cast<std::uint32_t>(d), rg::stream_init);
        for (std::size_t e = d; e < std::min(d + 4, dim_); ++e)
          out[i * dim_ + e] = (four[e - d] - 0.5F) / static_cast<float>(dim_);
      }
    }
  }
  void bind(const rg_model_memory&) {}

  void frequencies(std::uint32_t input, std::span<const double> weights) {
    if (input == 1) make_noise(weights);
  }

  void rows(const rg_batch& b, std::span<rg_rows> out) {
    draw(b);
    for (auto& s : sets_) s->clear();
    for (const std::uint32_t word : input(b, 0)) sets_[0]->insert(word);
    for (std::size_t i = 0; i < b.samples * (negatives_ + 1); ++i) sets_[1]->insert(targets_[i]);
    for (std::size_t t = 0; t < 2; ++t) {
      const auto& rows = sets_[t]->finish();
      out[t].rows = rows.data();
      out[t].count = rows.size();
    }
  }

  rg_step_result step(const rg_batch& b, const rg::hooks& hooks) {
    look_up(b);
    hooks.backward(); // forward and backward pass are one loop
    for (std::size_t t = 0; t < 2; ++t) known_[t].assign(table(b, t).count, (b.flags & RG_BATCH_ACCUMULATE) != 0);
    const parts::windows w{rows_at(b, 0), rows_at(b, 1), rg::gradients_of(table(b, 0)), rg::gradients_of(table(b, 1)),
                           dim_};
    const double loss = parts::train(w, {indices(b, 0), indices(b, 1), negatives_ + 1}, zeros_.data(),
                                     {known_[0].data(), known_[1].data()}, 1.0F / static_cast<float>(b.global_samples));
    for (std::size_t t = 0; t < 2; ++t)
      for (std::uint64_t r = 0; r < table(b, t).count; ++r) // rows that only other micro-batches touch
        if (!known_[t][r]) std::fill_n(rg::gradients_of(table(b, t)) + r * width(t), width(t), 0.0F);
    return {.loss_sum = loss, .count = b.samples};
  }

  // The metric is how much more similar a word is to its context than to noise: the mean cosine of input[word] and
  // output[context], minus that of input[word] and the outputs of noise, without biases.
  void evaluate(const rg_batch& b, std::span<double> sums) {
    look_up(b);
    const float *const *words = rows_at(b, 0), *const *outputs = rows_at(b, 1);
    for (std::uint64_t i = 0; i < b.valid; ++i) {
      const float* in = words[indices_[0][i]];
      const std::uint32_t* targets = indices_[1].data() + i * (negatives_ + 1);
      const auto to_target = [&](std::size_t k) { return cosine(in, outputs[targets[k]]); };
      double noise = 0;
      for (std::size_t k = 1; k <= negatives_; ++k) noise += to_target(k);
      sums[0] += to_target(0) - noise / static_cast<double>(negatives_);
    }
    sums[1] += static_cast<double>(b.valid);
  }
  double metric(std::span<const double> sums) { return sums[1] > 0 ? sums[0] / sums[1] : 0; }

private:
  double cosine(const float* a, const float* b) const {
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < dim_; ++i) {
      const double x = a[i], y = b[i];
      ab += x * y;
      aa += x * x;
      bb += y * y;
    }
    return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
  }

  static std::span<const std::uint32_t> input(const rg_batch& b, std::size_t i) {
    return {static_cast<const std::uint32_t*>(b.inputs[i]), b.samples}; // from 0 to vocabulary - 1
  }

  // `counts`: relative counts of words from 0 on; words after the last are never drawn.
  void make_noise(std::span<const double> counts) {
    if (std::ranges::none_of(counts, [](double c) { return c > 0; }))
      throw rg::error(
          RG_E_CONFIG,
          "expected a word with a count above 0 in the vocabulary, got none: negative samples are drawn by count");
    std::vector<double> noise(vocabulary_);
    for (std::size_t i = 0; i < std::min(noise.size(), counts.size()); ++i)
      if (counts[i] > 0) noise[i] = std::pow(counts[i], noise_exponent_);
    noise_ = std::make_unique<parts::alias_table>(std::move(noise));
  }

  void draw(const rg_batch& b) {
    parts::draw(*noise_, rg::derive_seed(b.seed, b.step, 0, rg::stream_sampling), b.first_sample, input(b, 1),
                negatives_, targets_.data());
    drawn_step_ = b.step;
    drawn_sample_ = b.first_sample;
  }

  // Finds the rows of this batch's words and targets in the windows. With one micro-batch per step, the windows hold
  // the rows that rows() returned last.
  void look_up(const rg_batch& b) {
    if (drawn_step_ != b.step || drawn_sample_ != b.first_sample) draw(b);
    for (std::size_t t = 0; t < 2; ++t) {
      const rg_table_rows& given = table(b, t);
      const auto& known = sets_[t]->rows();
      if (given.count == known.size() && std::equal(known.begin(), known.end(), given.rows)) continue;
      sets_[t]->clear();
      for (std::uint64_t r = 0; r < given.count; ++r) sets_[t]->insert(given.rows[r]);
      sets_[t]->finish();
    }
    parts::find_indices(*sets_[0], input(b, 0), indices_[0].data());
    parts::find_indices(*sets_[1], std::span(targets_).first(b.samples * (negatives_ + 1)), indices_[1].data());
  }

  std::size_t width(std::size_t t) const { return dim_ + t; } // elements of a row

  std::span<const std::uint32_t> indices(const rg_batch& b, std::size_t t) const {
    return std::span(indices_[t]).first(b.samples * (t ? negatives_ + 1 : 1));
  }

  // The engine's array may have larger elements than this file knows.
  static const rg_table_rows& table(const rg_batch& b, std::size_t t) {
    return rg::at_stride(b.tables, static_cast<std::uint32_t>(t));
  }

  // Returns the address of each row's weights.
  const float* const* rows_at(const rg_batch& b, std::size_t t) {
    const rg_table_rows& given = table(b, t);
    const void* const* const in_place = b.rows_at ? b.rows_at[t] : nullptr;
    rows_at_[t].resize(given.count);
    for (std::uint64_t r = 0; r < given.count; ++r)
      rows_at_[t][r] = in_place ? static_cast<const float*>(in_place[r]) : rg::weights_of(given) + r * width(t);
    return rows_at_[t].data();
  }

  std::size_t dim_, negatives_;
  std::uint64_t vocabulary_;
  double noise_exponent_;
  rg::description described_;
  std::unique_ptr<parts::alias_table> noise_;
  std::array<std::unique_ptr<parts::row_set>, 2> sets_; // words; contexts and noise
  std::vector<std::uint32_t> targets_;                  // [samples, 1 + negatives]: the context, then noise
  std::uint64_t drawn_step_ = UINT64_MAX, drawn_sample_ = UINT64_MAX; // the batch for which targets_ was drawn
  std::array<std::vector<std::uint32_t>, 2> indices_; // numbers of the rows of words [samples] and of targets
  std::array<std::vector<const float*>, 2> rows_at_;  // by row number
  std::array<std::vector<std::uint8_t>, 2> known_;    // by row number; see parts::known_rows
  std::vector<float> zeros_;                          // one output row
};

} // namespace

RG_PLUGIN("word2vec", "0.1.0", rg::model<word2vec>("word2vec", "skip-gram with negative sampling: two sparse tables"))
