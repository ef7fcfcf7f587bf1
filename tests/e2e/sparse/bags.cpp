// SPDX-License-Identifier: Apache-2.0
//
// Bags of words: a sample is `words` numbers w of a vocabulary; its score is the sum of their rows of a table plus a
// dense bias, and its loss half the squared distance from a target that depends on the words. With sparse = false the
// table is a dense tensor, and everything else is as it is.
#include <regatta/model.hpp>
#include <regatta/random.hpp>

#include <algorithm>
#include <array>

namespace {

class bags {
public:
  struct parameters {
    bool sparse = true;
    bool bias = true;
    std::int64_t vocabulary = 500;
    std::int64_t row = 6;
    std::int64_t words = 4;
  };
  static constexpr auto fields =
      rg::fields(rg::field("sparse", &parameters::sparse, "the table is sparse"),
                 rg::field("bias", &parameters::bias, "there is a dense tensor too"),
                 rg::field("vocabulary", &parameters::vocabulary, "rows of the table").range(1, 1e9),
                 rg::field("row", &parameters::row, "elements of a row").range(1, 1024),
                 rg::field("words", &parameters::words, "of a sample").range(1, 64));

  bags(const rg_host*, const parameters& p, const rg_model_setup& setup)
      : p_(p), row_(static_cast<std::size_t>(p.row)), words_(static_cast<std::size_t>(p.words)) {
    if (p.bias) described_.dense("bias", {p.row});
    const std::uint64_t touched = setup.batch * static_cast<std::uint64_t>(p.words);
    table_ = p.sparse ? described_.table("table", p.vocabulary, p.row,
                                         std::min(static_cast<std::uint64_t>(p.vocabulary), touched))
                      : described_.dense("table", {p.vocabulary, p.row});
    described_.indices("words", {p.words}, p.vocabulary);
  }

  rg_model_info describe() {
    rg_model_info info = described_.info();
    info.metric_sums = 2;
    info.metric = "distance";
    info.unit = "bags";
    info.tokens_input = 1;
    return info;
  }

  void init(std::uint32_t tensor, std::span<const std::uint64_t> rows, std::uint64_t seed, std::span<float> out) {
    if (tensor != table_) return std::fill(out.begin(), out.end(), 0.0F);
    for (std::size_t i = 0; i * row_ < out.size(); ++i)
      for (std::size_t d = 0; d < row_; ++d)
        out[i * row_ + d] = rg::to_uniform(rg::random_bits(seed, rows.empty() ? i : rows[i],
                                                           static_cast<std::uint32_t>(d), rg::stream_init)[0]) -
                            0.5F;
  }
  void bind(const rg_model_memory& m) {
    if (p_.bias) {
      bias_ = rg::weights_of(m, 0);
      bias_gradient_ = rg::gradients_of(m, 0);
    }
    weights_ = rg::weights_of(m, table_);
    gradients_ = rg::gradients_of(m, table_);
  }

  void rows(const rg_batch& b, std::span<rg_rows> out) {
    const auto* w = static_cast<const std::int32_t*>(b.inputs[0]);
    touched_.assign(w, w + b.samples * words_);
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    out[0].rows = touched_.data();
    out[0].count = touched_.size();
  }

  rg_step_result step(const rg_batch& b, const rg::hooks& hooks) {
    const float* weights = p_.sparse ? rg::weights_of(rg::at_stride(b.tables, 0)) : weights_;
    float* gradients = p_.sparse ? rg::gradients_of(rg::at_stride(b.tables, 0)) : gradients_;
    const std::size_t elements =
        (p_.sparse ? rg::at_stride(b.tables, 0).count : static_cast<std::size_t>(p_.vocabulary)) * row_;
    if (!(b.flags & RG_BATCH_ACCUMULATE)) {
      std::fill_n(gradients, elements, 0.0F);
      if (p_.bias) std::fill_n(bias_gradient_, row_, 0.0F);
    }
    hooks.backward();
    double loss = 0;
    std::vector<float> error(row_);
    for (std::uint64_t s = 0; s < b.samples; ++s) {
      loss += score(b, s, weights, error);
      const float scale = 1.0F / static_cast<float>(b.global_samples);
      for (std::size_t k = 0; k < words_; ++k) {
        float* g = gradients + place(b, word(b, s, k)) * row_;
        for (std::size_t d = 0; d < row_; ++d) g[d] += scale * error[d];
      }
      for (std::size_t d = 0; d < row_ && p_.bias; ++d) bias_gradient_[d] += scale * error[d];
    }
    if (b.flags & RG_BATCH_LAST)
      for (std::uint32_t t = 0; t < described_.tensors().size(); ++t)
        if (described_.tensors()[t].kind == RG_TENSOR_DENSE) hooks.ready(t);
    return {.loss_sum = loss, .count = b.samples};
  }
  void evaluate(const rg_batch& b, std::span<double> sums) {
    std::vector<float> error(row_);
    for (std::uint64_t s = 0; s < b.valid; ++s)
      sums[0] += score(b, s, p_.sparse ? rg::weights_of(rg::at_stride(b.tables, 0)) : weights_, error);
    sums[1] += static_cast<double>(b.valid);
  }
  double metric(std::span<const double> sums) { return sums[0] / sums[1]; }

private:
  std::uint64_t word(const rg_batch& b, std::uint64_t s, std::size_t k) const {
    return static_cast<std::uint64_t>(static_cast<const std::int32_t*>(b.inputs[0])[s * words_ + k]);
  }
  std::size_t place(const rg_batch& b, std::uint64_t word) const {
    if (!p_.sparse) return word;
    const rg_table_rows& t = rg::at_stride(b.tables, 0);
    return static_cast<std::size_t>(std::lower_bound(t.rows, t.rows + t.count, word) - t.rows);
  }
  // Half the squared distance; `error` becomes score - target.
  double score(const rg_batch& b, std::uint64_t s, const float* weights, std::vector<float>& error) const {
    double loss = 0;
    for (std::size_t d = 0; d < row_; ++d) error[d] = p_.bias ? bias_[d] : 0.0F;
    for (std::size_t k = 0; k < words_; ++k) {
      const std::uint64_t w = word(b, s, k);
      const float* row = weights + place(b, w) * row_;
      for (std::size_t d = 0; d < row_; ++d)
        error[d] += row[d] - static_cast<float>((w + d) % 5) * 0.25F; // what a word adds to the target
    }
    for (std::size_t d = 0; d < row_; ++d) loss += 0.5 * static_cast<double>(error[d]) * static_cast<double>(error[d]);
    return loss;
  }

  parameters p_;
  std::size_t row_, words_;
  std::uint32_t table_;
  rg::description described_;
  float *bias_ = nullptr, *bias_gradient_ = nullptr, *weights_ = nullptr, *gradients_ = nullptr;
  std::vector<std::uint64_t> touched_;
};

} // namespace

RG_PLUGIN("bags", "1.0", rg::model<bags>("bags", "for tests: one table, sparse or dense"))
