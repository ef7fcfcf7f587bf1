// SPDX-License-Identifier: Apache-2.0
//
// The Transformer for translation (Vaswani et al., "Attention is all you need", 2017): encoder and decoder, layer norm
// after each residual addition, one embedding table for both languages and the output layer (section 3.4), and label
// smoothing.
//
// Inputs: `source`, `target_in` (the target shifted right by one position, after its start symbol) and `target_out`
// (the labels), token ids of one vocabulary. 0 is padding.
#include <regatta/model.hpp>

namespace {

struct transformer {
  struct parameters {
    std::string size = "base";
    std::int64_t layers = 6, hidden = 0, inner = 0, heads = 0;
    std::int64_t vocabulary = 32000, sequence = 64;
    double dropout = -1, smoothing = 0.1;
  };
  static constexpr auto fields = rg::fields(
      rg::field("size", &parameters::size,
                "base: hidden 512, inner 2048, 8 heads, dropout 0.1; big: 1024, 4096, 16, 0.3")
          .one_of("base", "big"),
      rg::field("layers", &parameters::layers, "layers of the encoder, and of the decoder").range(1, 100),
      rg::field("hidden", &parameters::hidden, "features of a position; 0: those of `size`").range(0, 65536),
      rg::field("inner", &parameters::inner,
                "features between the two dense layers of a feed-forward block; 0: 4 times hidden")
          .range(0, 262144),
      rg::field("heads", &parameters::heads, "attention heads; must divide hidden; 0: those of `size`").range(0, 1024),
      rg::field("vocabulary", &parameters::vocabulary, "tokens in the vocabulary, which both languages share")
          .range(3, 10000000),
      rg::field("sequence", &parameters::sequence, "positions of a sentence, in both languages").range(1, 65536),
      rg::field("dropout", &parameters::dropout,
                "probability, of every sub-layer's output and of the sums of embeddings "
                "and positions; -1: as the size has")
          .range(-1, 0.99),
      rg::field("smoothing", &parameters::smoothing, "label smoothing").range(0, 0.99));

  void build(rg::network& net, const parameters& p) const {
    const bool big = p.size == "big";
    const std::int64_t hidden = p.hidden ? p.hidden : big ? 1024 : 512, inner = p.inner ? p.inner : 4 * hidden;
    const std::int64_t heads = p.heads ? p.heads : big ? 16 : 8;
    const double dropout = p.dropout >= 0 ? p.dropout : big ? 0.3 : 0.1;
    net.unit("sentences");

    const rg::value source = net.indices("source", {p.sequence}, p.vocabulary);
    const rg::value target_in = net.indices("target_in", {p.sequence}, p.vocabulary);
    const rg::value target_out = net.indices("target_out", {p.sequence}, p.vocabulary);
    net.tokens(target_out);
    const std::uint32_t words = rg::embedding_table(net, "words", p.vocabulary, hidden);

    auto embed = [&](rg::value indices, const std::string& name) { // sequence x hidden
      const double scale = std::sqrt(static_cast<double>(hidden));
      return rg::dropout(rg::embedding(indices, name, words, {.scale = scale, .sinusoids = true}), dropout);
    };
    auto join = [&](rg::value x, rg::value residual, const std::string& name) {
      return rg::layer_norm(rg::add(rg::dropout(x, dropout), residual), name + "_norm");
    };
    // The projections have no bias, as in the paper.
    auto attend = [&](rg::value x, rg::value memory, rg::value indices, const std::string& name, bool causal) {
      const rg::value y = rg::attention(x, memory, indices, name, {.heads = heads, .causal = causal, .bias = false});
      return join(y, x, name);
    };
    auto feed_forward = [&](rg::value x, const std::string& name) {
      const rg::value y = rg::relu(rg::dense(x, name + "1", inner)); // sequence x inner
      return join(rg::dense(y, name + "2", hidden, {.gain = 1}), x, name);
    };

    rg::value memory = embed(source, "source_embedding");
    for (std::int64_t i = 1; i <= p.layers; ++i) {
      const std::string name = "encoder" + std::to_string(i);
      memory = feed_forward(attend(memory, memory, source, name + ".self", false), name + ".inner");
    }
    rg::value x = embed(target_in, "target_embedding");
    for (std::int64_t i = 1; i <= p.layers; ++i) {
      const std::string name = "decoder" + std::to_string(i);
      x = attend(x, x, target_in, name + ".self", true);
      x = feed_forward(attend(x, memory, source, name + ".cross", false), name + ".inner");
    }
    rg::token_cross_entropy(rg::dense_shared(x, "logits", words), target_out,
                            {.smoothing = p.smoothing}); // sequence x vocabulary
  }
};

} // namespace

RG_PLUGIN("transformer", "0.1.0",
          rg::graph_model<transformer>("transformer", "Transformer for translation, base and big"))
