// SPDX-License-Identifier: Apache-2.0
//
// Text matching with bags of words, the model of PaddlePaddle's FleetX benchmarks (Simnet-BOW): a query, a title that
// was clicked and one that was not share an embedding table; the cosine between query and title ranks titles.
#include <regatta/layers_sparse.hpp>
#include <regatta/model.hpp>

namespace {

struct simnet_bow {
  struct parameters {
    std::int64_t vocabulary = 1451594;
    std::int64_t dim = 128;
    std::int64_t hidden = 128;
    std::int64_t length = 32;
    double margin = 0.1;
    double embedding_lr = 3;
    bool sparse = true;
  };
  static constexpr auto fields = rg::fields(
      rg::field("vocabulary", &parameters::vocabulary, "tokens in the vocabulary; token 0 is padding").range(2, 1e9),
      rg::field("dim", &parameters::dim, "elements of a token's embedding").range(1, 4096),
      rg::field("hidden", &parameters::hidden, "elements of a text's vector").range(1, 65536),
      rg::field("length", &parameters::length, "tokens of a text, including padding").range(1, 65536),
      rg::field("margin", &parameters::margin,
                "margin of the hinge loss between the cosines of the right and the wrong title")
          .range(0, 2),
      rg::field("embedding_lr", &parameters::embedding_lr, "factor on the embedding's learning rate").range(0, 1e6),
      rg::field("sparse", &parameters::sparse, "train and exchange only the rows that a batch touches"));

  void build(rg::network& net, const parameters& p) const {
    net.unit("queries");
    const rg::value query = net.indices("query", {p.length}, p.vocabulary); // 32
    const rg::value positive = net.indices("positive", {p.length}, p.vocabulary);
    const rg::value negative = net.indices("negative", {p.length}, p.vocabulary);
    const auto table = rg::sparse_table(net, "embedding", p.vocabulary, p.dim, // 1451594 x 128
                                        {.sparse = p.sparse, .lr_scale = static_cast<float>(p.embedding_lr)});

    auto bag = [&](const rg::value& words, const std::string& name) { // 128
      return rg::softsign(rg::embedding_bag(words, name, table, 0));
    };
    const rg::value q = rg::dense(bag(query, "query_bag"), "query_fc", p.hidden, {.gain = 1}); // 128
    const auto title_fc = rg::dense_weights(net, "title_fc", p.dim, p.hidden, {.gain = 1});
    const rg::value right = rg::dense(bag(positive, "positive_bag"), "positive_fc", title_fc); // 128
    const rg::value wrong = rg::dense(bag(negative, "negative_bag"), "negative_fc", title_fc);
    rg::pairwise_hinge(rg::cosine(q, right), rg::cosine(q, wrong), p.margin);
  }
};

} // namespace

RG_PLUGIN("simnet", "0.1.0", rg::graph_model<simnet_bow>("simnet_bow", "query and title matching by bags of words"))
