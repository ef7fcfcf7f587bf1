// SPDX-License-Identifier: Apache-2.0
//
// word2vec: its size, its noise, its gradients against a plain reference, and that words used alike become alike.
#include "kernels.hpp"

#include <doctest/doctest.h>
#include <executed.hpp>
#include <regatta/ext/frequencies.h>
#include <regatta/random.hpp>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace {

// The plugin's model, its tables whole in memory: what a step sees of them is cut out before it and put back after it.
class skip_gram {
public:
  struct shape {
    std::int64_t vocabulary = 354051, dim = 300, negatives = 5;
  };
  explicit skip_gram(const shape& s, std::uint64_t batch, std::uint32_t purpose = RG_PURPOSE_TRAIN,
                     std::uint32_t precision = RG_F32)
      : shape_(s), batch_(batch) {
    const rg_component& c = reference::load_component(REGATTA_PLUGINS "/word2vec.so", RG_KIND_MODEL, "word2vec");
    functions_ = static_cast<const rg_model*>(c.functions);
    frequencies_ = static_cast<const rg_frequencies*>(c.extension(RG_EXT_FREQUENCIES));
    REQUIRE(frequencies_ != nullptr);
    std::map<std::string, rg_value> given;
    given["vocabulary"].i = s.vocabulary;
    given["dim"].i = s.dim;
    given["negatives"].i = s.negatives;
    given["noise_exponent"].f = 0.75;
    std::vector<rg_value> values;
    for (std::uint32_t i = 0; i < c.param_count; ++i) values.push_back(given.at(rg::at_stride(c.params, i).name));
    host_.context = &error;
    host_.fail = [](void* context, rg_status status, const char* what) {
      *static_cast<std::string*>(context) = what;
      return status;
    };
    auto setup = rg::make_versioned<rg_model_setup>();
    setup.purpose = purpose;
    setup.precision = precision;
    setup.memory = RG_MEMORY_HOST;
    setup.threads = 1;
    setup.batch = batch;
    created = functions_->create(&host_, values.data(), &setup, &self_);
    if (created != RG_OK) return;
    REQUIRE(functions_->describe(self_, &info) == RG_OK);
  }
  ~skip_gram() {
    if (self_) functions_->destroy(self_);
  }
  skip_gram(const skip_gram&) = delete;
  skip_gram& operator=(const skip_gram&) = delete;

  const rg_tensor& tensor(std::size_t t) const { return rg::at_stride(info.tensors, t); }
  std::size_t width(std::size_t t) const { return static_cast<std::size_t>(tensor(t).shape[1]); }

  void start() {
    for (std::uint32_t t = 0; t < 2; ++t) {
      weights[t].resize(rg::storage_of(tensor(t)));
      gradients[t].resize(weights[t].size());
      REQUIRE(functions_->init(self_, t, nullptr, 0, 1, weights[t].data()) == RG_OK);
    }
  }
  rg_status tell_frequencies(std::uint32_t input, const std::vector<double>& counts) {
    return frequencies_->frequencies(self_, input, counts.data(), counts.size());
  }
  // Leaves the whole tables' gradients in `gradients`, 0 where a row was not touched. in_place: the step is shown the
  // rows where they lie, and no copy of them.
  double step(const std::vector<std::int32_t>& words, const std::vector<std::int32_t>& contexts, std::uint64_t number,
              bool in_place = false) {
    const void* const inputs[] = {words.data(), contexts.data()};
    auto b = rg::make_versioned<rg_batch>();
    b.input_count = 2;
    b.inputs = inputs;
    b.samples = b.valid = b.global_samples = batch_;
    b.step = number;
    b.seed = 1;
    b.flags = RG_BATCH_LAST;
    std::array<rg_rows, 2> rows{};
    for (auto& r : rows) r.struct_size = sizeof r;
    REQUIRE(functions_->rows(self_, &b, rows.data()) == RG_OK);
    std::array<rg_table_rows, 2> tables{};
    std::array<std::vector<float>, 2> in, out;
    std::array<std::vector<const void*>, 2> places;
    std::array<const void* const*, 2> rows_at{};
    for (std::uint32_t t = 0; t < 2; ++t) {
      REQUIRE(rows[t].tensor == t);
      REQUIRE(rows[t].count <= tensor(t).max_rows);
      in[t].resize(rows[t].count * width(t));
      out[t].assign(in[t].size(), std::nanf("")); // to be overwritten
      for (std::uint64_t r = 0; r < rows[t].count; ++r) {
        const float* const place = weights[t].data() + rows[t].rows[r] * width(t);
        places[t].push_back(place);
        if (!in_place) std::copy_n(place, width(t), in[t].data() + r * width(t));
      }
      if (in_place) rows_at[t] = places[t].data();
      tables[t] = {sizeof tables[t], t, rows[t].rows, rows[t].count, in[t].data(), out[t].data()};
    }
    b.tables = tables.data();
    b.table_count = 2;
    b.rows_at = rows_at.data();
    auto hooks = rg::make_versioned<rg_hooks>();
    auto result = rg::make_versioned<rg_step_result>();
    REQUIRE(functions_->step(self_, &b, &hooks, &result) == RG_OK);
    CHECK(result.count == batch_);
    for (std::uint32_t t = 0; t < 2; ++t) {
      std::fill(gradients[t].begin(), gradients[t].end(), 0.0F);
      for (std::uint64_t r = 0; r < rows[t].count; ++r)
        std::copy_n(out[t].data() + r * width(t), width(t), gradients[t].data() + rows[t].rows[r] * width(t));
    }
    return result.loss_sum;
  }
  void descend(float rate) {
    for (std::size_t t = 0; t < 2; ++t)
      for (std::size_t i = 0; i < weights[t].size(); ++i) weights[t][i] -= rate * gradients[t][i];
  }

  std::string error;
  rg_status created;
  rg_model_info info{.struct_size = sizeof(rg_model_info)};
  std::array<std::vector<float>, 2> weights, gradients; // of input and output

private:
  shape shape_;
  std::uint64_t batch_;
  rg_host host_ = rg::make_versioned<rg_host>();
  const rg_model* functions_ = nullptr;
  const rg_frequencies* frequencies_ = nullptr;
  void* self_ = nullptr;
};

std::vector<std::int32_t> drawn(std::size_t n, std::uint64_t seed, std::uint32_t range) {
  std::vector<std::int32_t> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<std::int32_t>(rg::to_index(rg::random_bits(seed, i)[0], range));
  return v;
}

word2vec_parts::alias_table noise_of(std::size_t words) {
  std::vector<double> p(words);
  for (std::size_t i = 0; i < words; ++i) p[i] = std::pow(static_cast<double>(i) + 1, -0.75);
  return word2vec_parts::alias_table(p);
}

double cosine(const float* a, const float* b, std::size_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

} // namespace

TEST_CASE("word2vec has the parameters of its publication") {
  const skip_gram m({}, 100, RG_PURPOSE_INIT);
  REQUIRE(m.created == RG_OK);
  CHECK(m.info.tensor_count == 2);
  CHECK(rg::storage_of(m.tensor(0)) + rg::storage_of(m.tensor(1)) == 212784651);
  CHECK(rg::storage_of(m.tensor(0)) == 354051 * 300);
  for (std::size_t t = 0; t < 2; ++t) CHECK(m.tensor(t).kind == RG_TENSOR_ROWS);
  CHECK(m.tensor(0).max_rows == 100);
  CHECK(m.tensor(1).max_rows == 600);
}

TEST_CASE("noise comes as often as its probability says, whichever part of a batch is drawn") {
  constexpr std::size_t words = 40, samples = 20000, negatives = 5;
  const auto noise = noise_of(words);
  const std::vector<std::uint32_t> contexts(samples, 7);
  std::vector<std::uint32_t> all(samples * (negatives + 1)), part(10 * (negatives + 1));
  word2vec_parts::draw(noise, 3, 0, contexts, negatives, all.data());
  word2vec_parts::draw(noise, 3, 500, std::span(contexts).first(10), negatives, part.data());
  CHECK(std::equal(part.begin(), part.end(), all.begin() + 500 * (negatives + 1)));

  std::vector<double> count(words);
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(all[i] < words);
    if (i % (negatives + 1) == 0)
      CHECK(all[i] == 7);
    else
      ++count[all[i]];
  }
  for (std::size_t k = 0; k < words; ++k) sum += std::pow(static_cast<double>(k) + 1, -0.75);
  for (std::size_t k = 0; k < words; ++k) {
    const double p = std::pow(static_cast<double>(k) + 1, -0.75) / sum, n = samples * negatives;
    CAPTURE(k);
    CHECK(std::abs(count[k] - n * p) < 5 * std::sqrt(n * p * (1 - p))); // five standard deviations
  }
}

TEST_CASE("noise follows the counts of contexts to the power of 3/4, and words that never come are none") {
  constexpr std::size_t words = 30, dim = 4, steps = 4000;
  skip_gram m({words, dim, 1}, 1);
  REQUIRE(m.created == RG_OK);
  m.start();
  std::vector<double> counts(20); // the last ten words are not even counted
  counts[3] = 1;
  counts[5] = 16;
  counts[19] = 81;                                                          // to the power of 3/4: 1, 8, 27
  REQUIRE(m.tell_frequencies(0, std::vector<double>(words, 1.0)) == RG_OK); // words themselves: draw no noise
  REQUIRE(m.tell_frequencies(1, counts) == RG_OK);
  std::map<std::size_t, double> drawn;
  for (std::uint64_t i = 0; i < steps; ++i) {
    m.step({2}, {0}, i); // outputs start at 0, so every bias that is touched has a gradient
    for (std::size_t w = 1; w < words; ++w)
      if (m.gradients[1][w * (dim + 1) + dim] != 0) ++drawn[w];
  }
  CHECK(drawn.size() == 3);
  for (const auto& [word, share] : std::map<std::size_t, double>{{3, 1 / 36.}, {5, 8 / 36.}, {19, 27 / 36.}}) {
    CAPTURE(word);
    CHECK(std::abs(drawn[word] - steps * share) < 5 * std::sqrt(steps * share * (1 - share))); // standard deviations
  }
  CHECK(m.tell_frequencies(1, {0, 0}) == RG_E_CONFIG);
  CHECK(m.error.find("expected a word with a count above 0 in the vocabulary, got none") != std::string::npos);
}

TEST_CASE("word2vec computes loss and gradients as a plain reference does") {
  // Widths that fill vectors and ones that do not; few words, so that noise meets its context and rows come twice.
  for (const std::int64_t dim : {1, 7, 16, 100, 301})
    for (const std::int64_t negatives : {1, 5, 63}) {
      CAPTURE(dim);
      CAPTURE(negatives);
      constexpr std::uint32_t vocabulary = 30, batch = 200, step = 4;
      const auto d = static_cast<std::size_t>(dim), n = static_cast<std::size_t>(negatives);
      skip_gram m({vocabulary, dim, negatives}, batch);
      REQUIRE(m.created == RG_OK);
      m.start();
      for (std::size_t t = 0; t < 2; ++t)
        for (std::size_t i = 0; i < m.weights[t].size(); ++i)
          m.weights[t][i] = rg::random_normals(t, i)[0] / std::sqrt(static_cast<float>(dim));
      const auto words = drawn(batch, 5, vocabulary), contexts = drawn(batch, 6, vocabulary);
      const double loss = m.step(words, contexts, step);

      std::vector<std::uint32_t> targets(batch * (n + 1));
      const std::vector<std::uint32_t> first(contexts.begin(), contexts.end());
      word2vec_parts::draw(noise_of(vocabulary), rg::derive_seed(1, step, 0, rg::stream_sampling), 0, first, n,
                           targets.data());
      double expected = 0;
      std::array<std::vector<double>, 2> slopes = {std::vector<double>(m.weights[0].size()),
                                                   std::vector<double>(m.weights[1].size())};
      std::size_t met = 0;
      for (std::size_t i = 0; i < batch; ++i)
        for (std::size_t k = 0; k <= n; ++k) {
          const std::size_t in = static_cast<std::size_t>(words[i]) * d, out = targets[i * (n + 1) + k] * (d + 1);
          if (k > 0 && targets[i * (n + 1) + k] == first[i]) {
            ++met;
            continue;
          }
          double x = m.weights[1][out + d];
          for (std::size_t e = 0; e < d; ++e) x += double{m.weights[0][in + e]} * m.weights[1][out + e];
          const double sign = k == 0 ? -1 : 1;
          expected += std::log1p(std::exp(sign * x));
          const double slope = sign / (1 + std::exp(-sign * x)) / batch;
          for (std::size_t e = 0; e < d; ++e) {
            slopes[0][in + e] += slope * m.weights[1][out + e];
            slopes[1][out + e] += slope * m.weights[0][in + e];
          }
          slopes[1][out + d] += slope;
        }
      CHECK(met > 0);
      CHECK(loss == doctest::Approx(expected).epsilon(1e-5));
      for (std::size_t t = 0; t < 2; ++t) {
        double apart = 0, size = 0;
        for (std::size_t i = 0; i < slopes[t].size(); ++i) {
          apart += std::pow(m.gradients[t][i] - slopes[t][i], 2);
          size += std::pow(slopes[t][i], 2);
        }
        CHECK(std::sqrt(apart / size) < 1e-5);
      }
    }
}

TEST_CASE("word2vec reads rows where they lie as it reads copies of them") {
  constexpr std::size_t words = 40, dim = 23, batch = 50;
  skip_gram m({words, dim, 5}, batch);
  REQUIRE(m.created == RG_OK);
  CHECK((m.info.flags & RG_MODEL_ROWS_IN_PLACE) != 0);
  m.start();
  for (std::size_t i = 0; i < m.weights[1].size(); ++i) m.weights[1][i] = rg::random_normals(1, i)[0];
  const auto in = drawn(batch, 5, words), out = drawn(batch, 6, words);
  const double copied = m.step(in, out, 4);
  const auto gradients = m.gradients;
  CHECK(m.step(in, out, 4, true) == copied);
  CHECK(m.gradients == gradients);
}

TEST_CASE("word2vec's gradients are the slopes of its loss") {
  constexpr std::size_t words = 12, dim = 5, batch = 20;
  skip_gram m({words, dim, 3}, batch);
  REQUIRE(m.created == RG_OK);
  m.start();
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t i = 0; i < m.weights[t].size(); ++i) m.weights[t][i] = 0.5F * rg::random_normals(t, i)[0];
  const auto in = drawn(batch, 5, words), out = drawn(batch, 6, words);
  m.step(in, out, 4);
  const auto gradients = m.gradients;
  constexpr float h = 0.01F;
  for (std::size_t t = 0; t < 2; ++t)
    for (std::size_t i = 0; i < m.weights[t].size(); ++i) {
      const float w = m.weights[t][i];
      m.weights[t][i] = w + h;
      const double above = m.step(in, out, 4); // the same noise
      m.weights[t][i] = w - h;
      const double slope = (above - m.step(in, out, 4)) / (2 * h) / batch;
      m.weights[t][i] = w;
      CHECK(gradients[t][i] == doctest::Approx(slope).epsilon(1e-3).scale(0.05)); // losses are sums of floats
    }
}

TEST_CASE("words with the same neighbours become alike within 400 steps, others do not") {
  // Words 2j and 2j + 1 are a planted pair: both stand beside the four contexts 20 + 4j .. 20 + 4j + 3.
  constexpr std::uint32_t planted = 10, batch = 256;
  constexpr std::size_t dim = 16;
  skip_gram m({60, dim, 5}, batch);
  REQUIRE(m.created == RG_OK);
  m.start();
  double first = 0, last = 0;
  for (std::uint64_t step = 0; step < 400; ++step) {
    auto words = drawn(batch, 1000 + step, 2 * planted), contexts = drawn(batch, 5000 + step, 4);
    for (std::size_t i = 0; i < batch; ++i) contexts[i] += 20 + words[i] / 2 * 4;
    last = m.step(words, contexts, step) / batch;
    if (step == 0) first = last;
    m.descend(2);
  }
  CHECK(first == doctest::Approx(6 * std::log(2)).epsilon(0.02)); // all scores begin at 0
  CHECK(last < 0.7 * first);
  double alike = 0, others = 0;
  const auto between = [&](std::uint32_t a, std::uint32_t b) {
    return cosine(&m.weights[0][a * dim], &m.weights[0][b * dim], dim);
  };
  for (std::uint32_t j = 0; j < planted; ++j) {
    alike += between(2 * j, 2 * j + 1) / planted;
    others += between(2 * j, (2 * j + 3) % (2 * planted)) / planted;
  }
  CAPTURE(alike);
  CAPTURE(others);
  CHECK(alike > 0.9);
  CHECK(others < 0.5);
}

TEST_CASE("word2vec says that it computes in fp32 only") {
  for (const std::uint32_t purpose : {RG_PURPOSE_TRAIN, RG_PURPOSE_INIT}) { // INIT: what a dry run sees
    const skip_gram m({100, 8, 5}, 4, purpose, RG_BF16);
    CHECK(m.created == RG_E_UNSUPPORTED);
    CHECK(m.error == "expected train.precision = \"fp32\", the only one of this model");
  }
}
