// SPDX-License-Identifier: Apache-2.0
//
// Click prediction on Criteo's display advertising data, the model of PaddlePaddle's FleetX benchmarks (ctr-dnn): 26
// categorical features, hashed to rows of one embedding table, and 13 numerical features, then three hidden layers.
#include <regatta/layers_sparse.hpp>
#include <regatta/model.hpp>

namespace {

struct ctr {
  struct parameters {
    std::int64_t rows = 1000001;
    std::int64_t dim = 10;
    std::int64_t slots = 26;
    std::int64_t features = 13;
    std::vector<std::int64_t> hidden = {400, 400, 400};
    bool sparse = true;
  };
  static constexpr auto fields =
      rg::fields(rg::field("rows", &parameters::rows, "rows of the table that all slots share").range(2, 1e9),
                 rg::field("dim", &parameters::dim, "elements of a row").range(1, 4096),
                 rg::field("slots", &parameters::slots, "categorical features, one id each").range(1, 4096),
                 rg::field("features", &parameters::features, "numerical features").range(1, 65536),
                 rg::field("hidden", &parameters::hidden, "units of each hidden layer").range(1, 1048576),
                 rg::field("sparse", &parameters::sparse, "train and exchange only the rows that a batch touches"));

  void build(rg::network& net, const parameters& p) const {
    net.unit("samples");
    const rg::value ids = net.indices("ids", {p.slots}, p.rows);     // 26
    const rg::value features = net.values("features", {p.features}); // 13
    const rg::value label = net.index("label", 2);
    const auto table = rg::sparse_table(net, "table", p.rows, p.dim, {.sparse = p.sparse}); // 1000001 x 10
    rg::value x = rg::concat({rg::sparse_embedding(ids, "embedding", table), features});    // 26 * 10 + 13
    for (std::size_t i = 0; i < p.hidden.size(); ++i)
      x = rg::relu(rg::dense(x, "fc" + std::to_string(i + 1), p.hidden[i])); // 400
    rg::softmax_cross_entropy_auc(rg::dense(x, "output", 2, {.gain = 1}), label);
  }
};

} // namespace

RG_PLUGIN("ctr", "0.1.0", rg::graph_model<ctr>("ctr", "click prediction: one sparse table, three hidden layers"))
