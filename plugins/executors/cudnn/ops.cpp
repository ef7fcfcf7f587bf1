// SPDX-License-Identifier: Apache-2.0
#include "ops.hpp"

#include <algorithm>
#include <cmath>

namespace cudnn {
namespace {

constexpr float one = 1, zero = 0;

void describe(const tensor_descriptor& d, std::size_t batch, const value& v) {
  check(cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, static_cast<int>(batch),
                                   static_cast<int>(v.channels), static_cast<int>(v.height), static_cast<int>(v.width)),
        "describing a tensor");
}

// The first algorithm that can run, always gives the same result, and wants no tensor cores: the convolution's own math
// type keeps those that would do either at fp32.
template <class P> const P& choose(const std::vector<P>& found, const std::string& name) {
  for (const P& p : found)
    if (p.status == CUDNN_STATUS_SUCCESS && p.determinism == CUDNN_DETERMINISTIC &&
        (p.mathType == CUDNN_FMA_MATH || p.mathType == CUDNN_DEFAULT_MATH))
      return p;
  throw rg::error(RG_E_UNSUPPORTED, "layer " + name + ": cuDNN has no deterministic algorithm in fp32 for it");
}

} // namespace

// ------------------------------------------------------------------------------------------------- convolution ---

convolution::convolution(std::string name, value* in, value* out, const shape& s, weight* w, weight* bias)
    : op(std::move(name), {in}, out), shape_(s), w_(w), bias_(bias) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void convolution::prepare(device& d, std::size_t batch) {
  batch_ = batch;
  const value &in = *inputs_[0].from, &out = *output_;
  const auto stride = static_cast<int>(shape_.stride), padding = static_cast<int>(shape_.padding);
  describe(x_, batch, in);
  describe(y_, batch, out);
  const auto kernel = static_cast<int>(shape_.kernel);
  check(cudnnSetFilter4dDescriptor(filter_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, static_cast<int>(out.channels),
                                   static_cast<int>(in.channels), kernel, kernel),
        "describing a filter");
  check(cudnnSetConvolution2dDescriptor(convolution_, padding, padding, stride, stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT),
        "describing a convolution");
  check(cudnnSetConvolutionMathType(convolution_, CUDNN_FMA_MATH), "choosing fp32");

  int count = 0;
  std::vector<cudnnConvolutionFwdAlgoPerf_t> ahead(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  check(cudnnGetConvolutionForwardAlgorithm_v7(d.dnn, x_, filter_, convolution_, y_, static_cast<int>(ahead.size()),
                                               &count, ahead.data()),
        "choosing an algorithm");
  ahead.resize(static_cast<std::size_t>(count));
  forward_ = choose(ahead, name_).algo;
  std::vector<cudnnConvolutionBwdDataAlgoPerf_t> data(CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
  check(cudnnGetConvolutionBackwardDataAlgorithm_v7(d.dnn, filter_, y_, convolution_, x_, static_cast<int>(data.size()),
                                                    &count, data.data()),
        "choosing an algorithm");
  data.resize(static_cast<std::size_t>(count));
  data_ = choose(data, name_).algo;
  std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> filters(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
  check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(d.dnn, x_, y_, convolution_, filter_,
                                                      static_cast<int>(filters.size()), &count, filters.data()),
        "choosing an algorithm");
  filters.resize(static_cast<std::size_t>(count));
  weights_by_ = choose(filters, name_).algo;

  std::size_t bytes = 0, most = 0;
  check(cudnnGetConvolutionForwardWorkspaceSize(d.dnn, x_, filter_, convolution_, y_, forward_, &bytes), "asking");
  most = std::max(most, bytes);
  check(cudnnGetConvolutionBackwardDataWorkspaceSize(d.dnn, filter_, y_, convolution_, x_, data_, &bytes), "asking");
  most = std::max(most, bytes);
  check(cudnnGetConvolutionBackwardFilterWorkspaceSize(d.dnn, x_, y_, convolution_, filter_, weights_by_, &bytes),
        "asking");
  d.workspace.reserve(std::max(most, bytes));
}

void convolution::forward(device& d, const run&) {
  check(cudnnConvolutionForward(d.dnn, &one, x_, x(), filter_, w_->data.get(), convolution_, forward_,
                                d.workspace.get<void>(), d.workspace.bytes(), &zero, y_, output_->data),
        name_.c_str());
  if (bias_)
    kernels::add_bias(d.stream, output_->data, bias_->data.get(), batch_, output_->channels, output_->spatial());
}

void convolution::backward(device& d, const run& r) {
  const float* dy = output_->gradient;
  const float* of_weights = adds(r, *w_) ? &one : &zero;
  check(cudnnConvolutionBackwardFilter(d.dnn, &one, x_, x(), y_, dy, convolution_, weights_by_, d.workspace.get<void>(),
                                       d.workspace.bytes(), of_weights, filter_, w_->gradient.get()),
        name_.c_str());
  if (bias_)
    kernels::channel_sums(d.stream, dy, bias_->gradient.get(), batch_, output_->channels, output_->spatial(),
                          adds(r, *bias_));
  if (dx())
    check(cudnnConvolutionBackwardData(d.dnn, &one, filter_, w_->data.get(), y_, dy, convolution_, data_,
                                       d.workspace.get<void>(), d.workspace.bytes(), inputs_[0].add ? &one : &zero, x_,
                                       dx()),
          name_.c_str());
}

double convolution::flops() const {
  const double products = static_cast<double>(w_->elements) * static_cast<double>(output_->spatial());
  return 2 * products * (inputs_[0].from->needs_gradient ? 3 : 2);
}

// ------------------------------------------------------------------------------------------------------- dense ---

dense::dense(std::string name, value* in, value* out, weight* w, weight* bias, std::size_t inputs, std::size_t outputs)
    : op(std::move(name), {in}, out), w_(w), bias_(bias), ins_(inputs), outs_(outputs) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

// cuBLAS is column-major: to it, our row-major [m, n] is [n, m].
void dense::forward(device& d, const run&) {
  const auto n = static_cast<int>(rows()), i = static_cast<int>(ins_), o = static_cast<int>(outs_);
  check(blas().sgemm(d.cublas, CUBLAS_OP_T, CUBLAS_OP_N, o, n, i, &one, w_->data.get(), i, x(), i, &zero, output_->data,
                     o),
        name_.c_str());
  if (bias_) kernels::add_bias(d.stream, output_->data, bias_->data.get(), rows(), outs_, 1);
}

void dense::backward(device& d, const run& r) {
  const auto n = static_cast<int>(rows()), i = static_cast<int>(ins_), o = static_cast<int>(outs_);
  const float* dy = output_->gradient;
  check(blas().sgemm(d.cublas, CUBLAS_OP_N, CUBLAS_OP_T, i, o, n, &one, x(), i, dy, o, adds(r, *w_) ? &one : &zero,
                     w_->gradient.get(), i),
        name_.c_str());
  if (bias_) kernels::channel_sums(d.stream, dy, bias_->gradient.get(), rows(), outs_, 1, adds(r, *bias_));
  if (dx())
    check(blas().sgemm(d.cublas, CUBLAS_OP_N, CUBLAS_OP_N, i, n, o, &one, w_->data.get(), i, dy, o,
                       inputs_[0].add ? &one : &zero, dx(), i),
          name_.c_str());
}

double dense::flops() const {
  const double rows = static_cast<double>(inputs_[0].from->elements()) / static_cast<double>(ins_);
  return 2 * rows * static_cast<double>(ins_ * outs_) * (inputs_[0].from->needs_gradient ? 3 : 2);
}

// -------------------------------------------------------------------------------------------------- batch norm ---

batch_norm::batch_norm(std::string name, value* in, value* out, const tensors& t, double epsilon, double momentum)
    : op(std::move(name), {in}, out), t_(t), epsilon_(epsilon), momentum_(momentum) {
  weights_ = {t.scale, t.bias, t.mean, t.variance};
}

void batch_norm::prepare(device&, std::size_t batch) {
  batch_ = batch;
  describe(x_, batch, *output_);
  check(cudnnDeriveBNTensorDescriptor(channels_, x_, CUDNN_BATCHNORM_SPATIAL), "describing channels");
  mean_.reserve(output_->channels * sizeof(float));
  inverse_.reserve(output_->channels * sizeof(float));
}

// cuDNN's own running variance is the unbiased one; ours is the batch's.
void batch_norm::forward(device& d, const run& r) {
  const float *scale = t_.scale->data.get(), *bias = t_.bias->data.get();
  if (!r.training) {
    check(cudnnBatchNormalizationForwardInference(d.dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x_, x(), x_,
                                                  output_->data, channels_, scale, bias, t_.mean->data.get(),
                                                  t_.variance->data.get(), epsilon_),
          name_.c_str());
    return;
  }
  check(cudnnBatchNormalizationForwardTraining(d.dnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x_, x(), x_, output_->data,
                                               channels_, scale, bias, 0, nullptr, nullptr, epsilon_, mean_.get(),
                                               inverse_.get()),
        name_.c_str());
  kernels::running_statistics(d.stream, t_.mean->data.get(), t_.variance->data.get(), mean_.get(), inverse_.get(),
                              static_cast<float>(momentum_), static_cast<float>(epsilon_), output_->channels);
}

// cuDNN writes the gradient of the input whether it is wanted or not; batch norm of the batch itself is refused.
void batch_norm::backward(device& d, const run& r) {
  const float* of_weights = adds(r, *t_.scale) ? &one : &zero;
  check(cudnnBatchNormalizationBackward(d.dnn, CUDNN_BATCHNORM_SPATIAL, &one, inputs_[0].add ? &one : &zero, &one,
                                        of_weights, x_, x(), x_, output_->gradient, x_, dx(), channels_,
                                        t_.scale->data.get(), t_.scale->gradient.get(), t_.bias->gradient.get(),
                                        epsilon_, mean_.get(), inverse_.get()),
        name_.c_str());
}

// ------------------------------------------------------------------------------------------------- elementwise ---

void relu::forward(device& d, const run&) {
  kernels::relu(d.stream, x(), output_->data, batch_ * output_->elements());
}

void relu::backward(device& d, const run&) {
  if (dx())
    kernels::relu_gradient(d.stream, output_->data, output_->gradient, dx(), batch_ * output_->elements(),
                           inputs_[0].add);
}

dropout::dropout(std::string name, value* in, value* out, double p, std::uint32_t layer)
    : op(std::move(name), {in}, out), p_(p), layer_(layer) {}

kernels::dropping dropout::of(const run& r) const {
  return {.seed = rg::derive_seed(r.batch.seed, r.batch.step, layer_, rg::stream_dropout),
          .first = r.batch.first_sample,
          .threshold = static_cast<std::uint32_t>(std::lround(p_ * 65536)),
          .scale = static_cast<float>(1 / (1 - p_))};
}

void dropout::forward(device& d, const run& r) {
  const std::size_t n = output_->elements();
  if (r.training)
    kernels::dropout(d.stream, of(r), x(), output_->data, batch_, n, false);
  else
    kernels::copy(d.stream, x(), output_->data, batch_ * n, false);
}

void dropout::backward(device& d, const run& r) {
  if (dx()) kernels::dropout(d.stream, of(r), output_->gradient, dx(), batch_, output_->elements(), inputs_[0].add);
}

void addition::forward(device& d, const run&) {
  kernels::sum(d.stream, x(), inputs_[1].from->data, output_->data, batch_ * output_->elements());
}

void addition::backward(device& d, const run&) {
  for (const edge& e : inputs_)
    if (e.from->gradient)
      kernels::copy(d.stream, output_->gradient, e.from->gradient, batch_ * output_->elements(), e.add);
}

// ----------------------------------------------------------------------------------------------------- pooling ---

pooling::pooling(std::string name, value* in, value* out, const window& w, bool average)
    : op(std::move(name), {in}, out), window_(w), average_(average) {}

void pooling::prepare(device&, std::size_t batch) {
  batch_ = batch;
  if (!average_) places_.reserve(batch * output_->elements() * sizeof(std::int32_t));
}

void pooling::forward(device& d, const run&) {
  if (average_)
    kernels::average_pool(d.stream, window_, x(), output_->data, planes());
  else
    kernels::max_pool(d.stream, window_, x(), output_->data, places_.get<std::int32_t>(), planes());
}

void pooling::backward(device& d, const run&) {
  if (!dx()) return;
  if (average_)
    kernels::average_pool_gradient(d.stream, window_, output_->gradient, dx(), planes(), inputs_[0].add);
  else
    kernels::max_pool_gradient(d.stream, window_, output_->gradient, places_.get<std::int32_t>(), dx(), planes(),
                               inputs_[0].add);
}

// -------------------------------------------------------------------------------------------------------- loss ---

void cross_entropy::prepare(device&, std::size_t batch) {
  batch_ = batch;
  probabilities_.reserve(batch * inputs_[0].from->elements() * sizeof(float));
  losses_.reserve(batch * sizeof(double));
  right_.reserve(batch * sizeof(std::int32_t));
  host_losses_.resize(batch);
  host_right_.resize(batch);
}

void cross_entropy::check_labels(const run& r, std::size_t samples) const {
  const std::size_t classes = inputs_[0].from->elements();
  const auto* labels = static_cast<const std::int32_t*>(r.batch.inputs[inputs_[1].from->input]);
  for (std::size_t s = 0; s < samples; ++s)
    if (labels[s] < 0 || static_cast<std::size_t>(labels[s]) >= classes)
      throw rg::error(RG_E_OPERATION, "sample " + std::to_string(s) + " of step " + std::to_string(r.batch.step) +
                                          " has label " + std::to_string(labels[s]) + ", but there are " +
                                          std::to_string(classes) + " classes");
}

void cross_entropy::forward(device& d, const run& r) {
  const std::size_t samples = r.training ? batch_ : std::min<std::size_t>(batch_, r.batch.valid);
  check_labels(r, samples);
  kernels::cross_entropy(d.stream, x(), labels(), probabilities_.get(), losses_.get<double>(),
                         right_.get<std::int32_t>(), batch_, inputs_[0].from->elements());
  if (r.training) return;
  d.download(host_losses_.data(), losses_.get<void>(), samples * sizeof(double));
  d.download(host_right_.data(), right_.get<void>(), samples * sizeof(std::int32_t));
  for (std::size_t s = 0; s < samples; ++s) {
    r.sums[0] += host_right_[s];
    r.sums[2] += host_losses_[s];
  }
  r.sums[1] += static_cast<double>(samples);
}

void cross_entropy::backward(device& d, const run& r) {
  if (dx())
    kernels::cross_entropy_gradient(d.stream, probabilities_.get(), labels(),
                                    static_cast<float>(1.0 / static_cast<double>(r.batch.global_samples)), dx(), batch_,
                                    inputs_[0].from->elements(), inputs_[0].add);
}

double cross_entropy::sum(device& d) {
  d.download(host_losses_.data(), losses_.get<void>(), batch_ * sizeof(double));
  double sum = 0;
  for (const double loss : host_losses_) sum += loss;
  return sum;
}

} // namespace cudnn
