// SPDX-License-Identifier: Apache-2.0
//
// Residual networks (He et al. 2015, "Deep Residual Learning for Image Recognition", table 1), with the stride of a
// bottleneck in its 3x3 convolution, as in torchvision, tensorpack and FleetX. se_resnet50 adds squeeze-and-excitation
// (Hu et al. 2018, "Squeeze-and-Excitation Networks", section 3) before each addition.
//
// `imagenet` is the published network. `cifar10` has the same stages and another stem: one 3x3 convolution with stride
// 1 and no pooling, so that the last stage works on 4x4 positions. (The paper's own networks for CIFAR-10, with depth
// 6n + 2 and 16 to 64 channels, are different.)
#include <regatta/model.hpp>

namespace {

struct parameters {
  std::string input = "imagenet";
  std::int64_t depth = 50, classes = 0, width = 64;
  bool zero_init = false, sync_batch_norm = false;
};

constexpr auto fields = rg::fields(
    rg::field("input", &parameters::input,
              "data set that the images come from; sets their size, the stem and the classes")
        .one_of("imagenet", "cifar10"),
    rg::field("depth", &parameters::depth, "layers with weights: 18, 34, 50, 101 or 152").range(18, 152),
    rg::field("classes", &parameters::classes, "number of classes; 0: 1000 (imagenet), 10 (cifar10)").range(0, 1000000),
    rg::field("width", &parameters::width, "channels of the first stage; 64 as published").range(1, 1024),
    rg::field("zero_init", &parameters::zero_init,
              "initialise the scale of each block's last batch norm with 0, so that the block begins as the identity"),
    rg::field("sync_batch_norm", &parameters::sync_batch_norm,
              "batch norm over the batches of all workers, instead of each worker's own; executor onednn only"));

struct stages {
  int blocks[4];
  bool bottleneck;
};

stages stages_of(std::int64_t depth) {
  switch (depth) {
  case 18: return {{2, 2, 2, 2}, false};
  case 34: return {{3, 4, 6, 3}, false};
  case 50: return {{3, 4, 6, 3}, true};
  case 101: return {{3, 4, 23, 3}, true};
  case 152: return {{3, 8, 36, 3}, true};
  default: throw rg::error(RG_E_CONFIG, "depth: expected 18, 34, 50, 101 or 152, got " + std::to_string(depth));
  }
}

rg::value norm_conv(rg::value x, const std::string& name, std::int64_t channels, std::int64_t kernel,
                    std::int64_t stride, bool sync, double scale = 1) {
  x = rg::conv2d(x, name, channels, {.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false});
  return rg::batch_norm(x, name + "_norm", {.scale = scale, .sync = sync});
}

// Scales each channel by a factor that two small dense layers compute from the averages of all channels.
rg::value squeeze_and_excite(rg::value x, const std::string& name) {
  constexpr std::int64_t reduction = 16;
  const std::int64_t channels = x.dims()[0];
  rg::value s = rg::global_avg_pool(x);
  s = rg::relu(rg::dense(s, name + "_squeeze", std::max<std::int64_t>(1, channels / reduction)));
  return rg::scale_channels(x, rg::sigmoid(rg::dense(s, name + "_excite", channels, {.gain = 1})));
}

template <bool SqueezeAndExcite> struct resnet {
  using parameters = ::parameters;
  static constexpr auto fields = ::fields;

  void build(rg::network& net, const parameters& p) const {
    const stages form = stages_of(p.depth);
    const bool cifar = p.input == "cifar10";
    const std::int64_t size = cifar ? 32 : 224, usual = cifar ? 10 : 1000;
    const std::int64_t classes = p.classes ? p.classes : usual;
    net.unit("images");

    rg::value x = net.values("image", {3, size, size}); // 3 x 224 x 224
    const rg::value label = net.index("label", classes);
    if (cifar) {
      x = rg::relu(norm_conv(x, "stem", p.width, 3, 1, p.sync_batch_norm)); // 64 x 32 x 32
    } else {
      x = rg::relu(norm_conv(x, "stem", p.width, 7, 2, p.sync_batch_norm)); // 64 x 112 x 112
      x = rg::max_pool(x, {.kernel = 3, .stride = 2, .padding = 1});        // 64 x 56 x 56
    }
    std::int64_t channels = p.width;
    for (int stage = 0; stage < 4; ++stage, channels *= 2) // 256 x 56 x 56, 512 x 28 x 28, 1024 x 14 x 14, 2048 x 7 x 7
      for (int i = 0; i < form.blocks[stage]; ++i)
        x = block(x, "block" + std::to_string(stage + 1) + "_" + std::to_string(i + 1), channels,
                  stage > 0 && i == 0 ? 2 : 1, form.bottleneck, p);
    x = rg::global_avg_pool(x);                                                 // 2048
    rg::softmax_cross_entropy(rg::dense(x, "fc", classes, {.gain = 1}), label); // 1000
  }

private:
  static rg::value block(rg::value x, const std::string& name, std::int64_t channels, std::int64_t stride,
                         bool bottleneck, const parameters& p) {
    const bool sync = p.sync_batch_norm;
    const double last_scale = p.zero_init ? 0 : 1;
    const std::int64_t outputs = bottleneck ? 4 * channels : channels;
    const bool same = stride == 1 && x.dims()[0] == outputs;
    const rg::value shortcut = same ? x : norm_conv(x, name + "_shortcut", outputs, 1, stride, sync);
    if (bottleneck) {
      x = rg::relu(norm_conv(x, name + "_a", channels, 1, 1, sync));
      x = rg::relu(norm_conv(x, name + "_b", channels, 3, stride, sync));
      x = norm_conv(x, name + "_c", outputs, 1, 1, sync, last_scale);
    } else {
      x = rg::relu(norm_conv(x, name + "_a", channels, 3, stride, sync));
      x = norm_conv(x, name + "_b", outputs, 3, 1, sync, last_scale);
    }
    if constexpr (SqueezeAndExcite) x = squeeze_and_excite(x, name);
    return rg::relu(rg::add(x, shortcut));
  }
};

} // namespace

RG_PLUGIN("resnet", "0.1.0",
          rg::graph_model<resnet<false>>("resnet50", "ResNet of depth 18 to 152 for ImageNet and CIFAR-10"),
          rg::graph_model<resnet<true>>("se_resnet50", "ResNet with squeeze-and-excitation"))
