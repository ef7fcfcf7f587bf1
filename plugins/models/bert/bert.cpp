// SPDX-License-Identifier: Apache-2.0
//
// BERT pre-training (Devlin et al. 2019): prediction of masked tokens, whose output layer shares the token embedding,
// and whether the second sentence follows the first.
//
// Inputs: `tokens` (0 is padding) and `segments` (0 or 1) for each position; `masked_positions`, the positions to
// predict, and `masked_labels`, the tokens that belong there (positions with label 0 are ignored); `next_sentence`, 0
// or 1.
#include <regatta/model.hpp>

namespace {

struct bert {
  struct parameters {
    std::string size = "base";
    std::int64_t layers = 0, hidden = 0, heads = 0;
    std::int64_t vocabulary = 30522, positions = 512, sequence = 128, predictions = 20;
    double dropout = 0.1;
  };
  static constexpr auto fields = rg::fields(
      rg::field("size", &parameters::size, "base: 12 layers, hidden 768, 12 heads; large: 24, 1024, 16")
          .one_of("base", "large"),
      rg::field("layers", &parameters::layers, "number of layers; 0: that of `size`").range(0, 1000),
      rg::field("hidden", &parameters::hidden,
                "features of a position, 4 times as many inside a layer; 0: those of `size`")
          .range(0, 65536),
      rg::field("heads", &parameters::heads, "attention heads; must divide hidden; 0: those of `size`").range(0, 1024),
      rg::field("vocabulary", &parameters::vocabulary, "tokens in the vocabulary").range(3, 10000000),
      rg::field("positions", &parameters::positions, "positions that have an embedding").range(1, 65536),
      rg::field("sequence", &parameters::sequence, "positions of a sample, at most `positions`").range(1, 65536),
      rg::field("predictions", &parameters::predictions, "masked positions of a sample").range(1, 65536),
      rg::field("dropout", &parameters::dropout, "dropout probability of sub-layers' outputs, embeddings and attention")
          .range(0, 0.99));

  void build(rg::network& net, const parameters& p) const {
    const bool large = p.size == "large";
    const std::int64_t layers = p.layers ? p.layers : large ? 24 : 12;
    const std::int64_t hidden = p.hidden ? p.hidden : large ? 1024 : 768;
    const std::int64_t heads = p.heads ? p.heads : large ? 16 : 12;
    constexpr double deviation = 0.02; // standard deviation of all initial weights
    constexpr double epsilon = 1e-12;
    if (p.sequence > p.positions)
      throw rg::error(RG_E_CONFIG, "sequence: expected at most positions = " + std::to_string(p.positions) + ", got " +
                                       std::to_string(p.sequence));
    net.unit("sequences");

    const rg::value tokens = net.indices("tokens", {p.sequence}, p.vocabulary);
    net.tokens(tokens);
    const rg::value segments = net.indices("segments", {p.sequence}, 2);
    const rg::value masked = net.indices("masked_positions", {p.predictions}, p.sequence);
    const rg::value labels = net.indices("masked_labels", {p.predictions}, p.vocabulary);
    const rg::value next_sentence = net.index("next_sentence", 2);

    auto dense = [&](rg::value x, const std::string& name, std::int64_t outputs) {
      return rg::dense(x, name, outputs, {.deviation = deviation, .bias_decays = false});
    };
    auto norm = [&](rg::value x, const std::string& name) { return rg::layer_norm(x, name, {.epsilon = epsilon}); };
    auto join = [&](rg::value x, rg::value residual, const std::string& name) {
      return norm(rg::add(rg::dropout(x, p.dropout), residual), name + "_norm");
    };

    const std::uint32_t words = rg::embedding_table(net, "words", p.vocabulary, hidden, deviation);
    const std::uint32_t positions = rg::embedding_table(net, "positions", p.positions, hidden, deviation);
    const std::uint32_t sides = rg::embedding_table(net, "segments", 2, hidden, deviation);
    rg::value x = rg::add(rg::embedding(tokens, "word_embedding", words, {.positions = positions}),
                          rg::embedding(segments, "segment_embedding", sides)); // sequence x hidden
    x = rg::dropout(norm(x, "embedding_norm"), p.dropout);
    for (std::int64_t i = 1; i <= layers; ++i) {
      const std::string name = "layer" + std::to_string(i);
      const rg::value y =
          rg::attention(x, x, tokens, name + ".self", {.heads = heads, .dropout = p.dropout, .deviation = deviation});
      x = join(y, x, name + ".self");
      const rg::value inner = rg::gelu(dense(x, name + ".inner1", 4 * hidden)); // sequence x 4 hidden
      x = join(dense(inner, name + ".inner2", hidden), x, name + ".inner");
    }

    rg::value y = rg::gelu(dense(rg::select_positions(x, masked), "masked.transform", hidden)); // predictions x hidden
    y = rg::dense_shared(norm(y, "masked.norm"), "masked.logits", words, true); // predictions x vocabulary
    const rg::value first = rg::token_cross_entropy(y, labels, {.accuracy = true});
    const rg::value pooled = rg::tanh(dense(rg::first_position(x), "pooler", hidden)); // 1 x hidden
    const rg::value follows = dense(pooled, "next_sentence", 2);                       // dropout only in fine-tuning
    rg::sum_of_losses({first, rg::softmax_cross_entropy(rg::flatten(follows), next_sentence)});
  }
};

} // namespace

RG_PLUGIN("bert", "0.1.0", rg::graph_model<bert>("bert", "BERT in pre-training, base and large"))
