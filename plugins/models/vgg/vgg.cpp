// SPDX-License-Identifier: Apache-2.0
//
// VGG16 (Simonyan and Zisserman 2015, configuration D), in the three variants that are commonly benchmarked: `cifar10`
// and `flowers` with batch norm after every convolution and two hidden layers of 512, as in PaddlePaddle's image
// classification, and `imagenet` as published: no batch norm, two hidden layers of 4096.
#include <regatta/model.hpp>

namespace {

struct vgg16 {
  struct parameters {
    std::string input = "cifar10";
    std::int64_t classes = 0, width = 64;
    bool batch_norm = true, sync_batch_norm = false;
    double dropout = 1;
  };
  static constexpr auto fields = rg::fields(
      rg::field("input", &parameters::input,
                "data set that the images come from; sets their size, the head and the classes")
          .one_of("cifar10", "flowers", "imagenet"),
      rg::field("classes", &parameters::classes, "number of classes; 0: 10 (cifar10), 102 (flowers), 1000 (imagenet)")
          .range(0, 1000000),
      rg::field("width", &parameters::width,
                "channels of the first block, and all others in proportion; 64 as published")
          .range(1, 1024),
      rg::field("batch_norm", &parameters::batch_norm,
                "batch norm before each ReLU; no effect with imagenet, which has none"),
      rg::field("sync_batch_norm", &parameters::sync_batch_norm,
                "batch norm over the batches of all workers, instead of each worker's own; executor onednn only"),
      rg::field("dropout", &parameters::dropout, "factor on every dropout probability; 0 turns dropout off")
          .range(0, 1));

  // Comments show the shape of one sample, channels x height x width, for cifar10 images of 32 x 32; flowers and
  // imagenet have 224 x 224.
  void build(rg::network& net, const parameters& p) const {
    const bool imagenet = p.input == "imagenet";
    const bool norm = p.batch_norm && !imagenet;
    const std::int64_t size = p.input == "cifar10" ? 32 : 224;
    const std::int64_t usual = imagenet ? 1000 : p.input == "flowers" ? 102 : 10;
    const std::int64_t classes = p.classes ? p.classes : usual;
    net.unit("images");

    auto activate = [&](rg::value x, const std::string& name) {
      return rg::relu(norm ? rg::batch_norm(x, name + "_norm", {.sync = p.sync_batch_norm}) : x);
    };

    rg::value x = net.values("image", {3, size, size}); // 3 x 32 x 32
    const rg::value label = net.index("label", classes);

    const std::int64_t w = p.width, channels[] = {w, 2 * w, 4 * w, 8 * w, 8 * w};
    const int depth[] = {2, 2, 3, 3, 3};
    for (int block = 0; block < 5; ++block) { // 64 x 16 x 16, 128 x 8 x 8, 256 x 4 x 4, 512 x 2 x 2, 512 x 1 x 1
      for (int i = 0; i < depth[block]; ++i) {
        const std::string name = "conv" + std::to_string(block + 1) + "_" + std::to_string(i + 1);
        x = activate(rg::conv2d(x, name, channels[block], {.kernel = 3, .padding = 1}), name);
        if (!imagenet && i + 1 < depth[block]) x = rg::dropout(x, p.dropout * (block == 0 ? 0.3 : 0.4));
      }
      x = rg::max_pool(x, {.kernel = 2, .stride = 2});
    }
    x = rg::flatten(x); // 512; imagenet and flowers 25088

    if (imagenet) {
      x = rg::dropout(rg::relu(rg::dense(x, "fc6", 64 * w)), p.dropout * 0.5); // 4096
      x = rg::dropout(rg::relu(rg::dense(x, "fc7", 64 * w)), p.dropout * 0.5); // 4096
    } else {
      x = activate(rg::dense(rg::dropout(x, p.dropout * 0.5), "fc6", 8 * w), "fc6"); // 512
      x = rg::dense(rg::dropout(x, p.dropout * 0.5), "fc7", 8 * w, {.gain = 1});     // 512
    }
    rg::softmax_cross_entropy(rg::dense(x, "fc8", classes, {.gain = 1}), label); // 10
  }
};

} // namespace

RG_PLUGIN("vgg", "0.1.0", rg::graph_model<vgg16>("vgg16", "VGG16 for CIFAR-10, Flowers-102 and ImageNet"))
