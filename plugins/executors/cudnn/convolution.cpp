// SPDX-License-Identifier: Apache-2.0
#include "convolution.hpp"

#include "maps.hpp"

#include <algorithm>

namespace cudnn {
namespace {

constexpr float one = 1, zero = 0;
constexpr std::size_t most_workspace = std::size_t{1} << 30; // what an algorithm is given when it is timed

void describe(const tensor_descriptor& d, std::size_t batch, const value& v) {
  check(cudnnSetTensor4dDescriptor(d, v.lies.last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, dnn_type(v.type),
                                   static_cast<int>(batch), static_cast<int>(v.shape[0]), static_cast<int>(v.shape[1]),
                                   static_cast<int>(v.shape[2])),
        "describing a tensor");
}

// What may be computed how. In fp32 without TF32, tensor cores are refused: the descriptor's own math type keeps those
// that would use them at fp32.
struct rules {
  bool exact;
  template <class P> bool allow(const P& p) const {
    return p.status == CUDNN_STATUS_SUCCESS && p.determinism == CUDNN_DETERMINISTIC && p.memory <= most_workspace &&
           (!exact || p.mathType == CUDNN_FMA_MATH || p.mathType == CUDNN_DEFAULT_MATH);
  }
};

// The algorithm for one of the three directions. `ask` and `time` fill an array of results, best first.
template <class P, class Ask, class Time>
P choose(choices& c, const std::string& name, const std::string& shape, const rules& allowed, int most, const Ask& ask,
         const Time& time) {
  std::vector<P> found(static_cast<std::size_t>(most));
  int count = 0;
  const int known = c.known(name, shape);
  if (c.times() && known < 0)
    time(most, &count, found.data());
  else
    ask(most, &count, found.data());
  found.resize(static_cast<std::size_t>(count));
  const auto first = [&](int number) {
    return std::find_if(found.begin(), found.end(), [&](const P& p) {
      return allowed.allow(p) && (number < 0 || static_cast<int>(p.algo) == number);
    });
  };
  auto chosen = first(known);
  if (chosen == found.end() && !c.given(name)) chosen = first(-1); // the cache knew one that is gone
  if (chosen == found.end())
    throw rg::error(RG_E_UNSUPPORTED, name + ": cuDNN has no deterministic algorithm for it" +
                                          (c.given(name) ? " of number " + std::to_string(known) : ""));
  c.pick(name, shape, static_cast<int>(chosen->algo));
  return *chosen;
}

} // namespace

convolution::convolution(std::string name, value* in, value* out, const shape& s, weight* w, weight* bias,
                         std::optional<function> f)
    : op(std::move(name), {in}, out), shape_(s), w_(w), end_(bias, f) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void convolution::prepare(device& d) {
  const value &in = *inputs_[0].from, &out = *output_;
  const auto stride = static_cast<int>(shape_.stride), padding = static_cast<int>(shape_.padding);
  const auto kernel = static_cast<int>(shape_.kernel);
  describe(x_, batch, in);
  describe(y_, batch, out);
  check(cudnnSetFilter4dDescriptor(filter_, dnn_type(d.computes.type),
                                   d.computes.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
                                   static_cast<int>(out.shape[0]), static_cast<int>(in.shape[0]), kernel, kernel),
        "describing a filter");
  check(cudnnSetConvolution2dDescriptor(convolution_, padding, padding, stride, stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT),
        "describing a convolution");
  const bool exact = d.computes.type == number::f32 && !d.computes.tf32;
  check(cudnnSetConvolutionMathType(convolution_, exact ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH), "choosing math");
  if (w_->copied) filter_slope_.reserve(w_->elements * size_of(d.computes.type));
  end_.prepare(d, out.lies, batch);
}

void* convolution::filter_slope() const {
  return w_->copied ? filter_slope_.get<void>() : w_->gradient;
}

void convolution::attach(device& d, choices& c) {
  const value &in = *inputs_[0].from, &made = *output_;
  const auto text = [](std::size_t n) { return ' ' + std::to_string(n); };
  const std::string key = std::to_string(static_cast<int>(d.computes.type)) + (d.computes.tf32 ? " tf32" : "") +
                          (in.lies.last ? " last" : "") + text(batch) + text(in.shape[0]) + text(in.shape[1]) +
                          text(in.shape[2]) + text(made.shape[0]) + text(shape_.kernel) + text(shape_.stride) +
                          text(shape_.padding);
  if (c.times() && c.known(name_ + " forward", "forward " + key) < 0) d.workspace.reserve(most_workspace);
  const rules allowed{d.computes.type == number::f32 && !d.computes.tf32};
  void *work = d.workspace.get<void>(), *slope = filter_slope();
  const std::size_t room = d.workspace.bytes();
  const void* filter = w_->multiplied();
  const auto asked = [](cudnnStatus_t s) { check(s, "choosing an algorithm"); };

  const auto ahead = choose<cudnnConvolutionFwdAlgoPerf_t>(
      c, name_ + " forward", "forward " + key, allowed, CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
      [&](int n, int* count, auto* out) {
        asked(cudnnGetConvolutionForwardAlgorithm_v7(d.dnn, x_, filter_, convolution_, y_, n, count, out));
      },
      [&](int n, int* count, auto* out) {
        asked(cudnnFindConvolutionForwardAlgorithmEx(d.dnn, x_, x(), filter_, filter, convolution_, y_, y(), n, count,
                                                     out, work, room));
      });
  const auto weights = choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
      c, name_ + " weights", "weights " + key, allowed, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
      [&](int n, int* count, auto* out) {
        asked(cudnnGetConvolutionBackwardFilterAlgorithm_v7(d.dnn, x_, y_, convolution_, filter_, n, count, out));
      },
      [&](int n, int* count, auto* out) {
        asked(cudnnFindConvolutionBackwardFilterAlgorithmEx(d.dnn, x_, x(), y_, dy(), convolution_, filter_, slope, n,
                                                            count, out, work, room));
      });
  std::size_t most = std::max(ahead.memory, weights.memory);
  forward_ = ahead.algo;
  weights_by_ = weights.algo;
  if (dx()) {
    const auto data = choose<cudnnConvolutionBwdDataAlgoPerf_t>(
        c, name_ + " data", "data " + key, allowed, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
        [&](int n, int* count, auto* out) {
          asked(cudnnGetConvolutionBackwardDataAlgorithm_v7(d.dnn, filter_, y_, convolution_, x_, n, count, out));
        },
        [&](int n, int* count, auto* out) {
          asked(cudnnFindConvolutionBackwardDataAlgorithmEx(d.dnn, filter_, filter, y_, dy(), convolution_, x_, dx(), n,
                                                            count, out, work, room));
        });
    data_ = data.algo;
    most = std::max(most, data.memory);
  }
  d.workspace.reserve(most);
}

void convolution::forward(device& d, const run&) {
  check(cudnnConvolutionForward(d.dnn, &one, x_, x(), filter_, w_->multiplied(), convolution_, forward_,
                                d.workspace.get<void>(), d.workspace.bytes(), &zero, y_, y()),
        name_.c_str());
  end_.forward(d, y());
}

void convolution::backward(device& d, const run& r) {
  end_.backward(d, y(), output_->gradient, end_.bias() && adds(r, *end_.bias()));
  const float* onto = !w_->copied && adds(r, *w_) ? &one : &zero;
  check(cudnnConvolutionBackwardFilter(d.dnn, &one, x_, x(), y_, dy(), convolution_, weights_by_,
                                       d.workspace.get<void>(), d.workspace.bytes(), onto, filter_, filter_slope()),
        name_.c_str());
  if (w_->copied)
    kernels::relayout(d.stream, d.computes.type, w_->copy_lies, filter_slope(), number::f32, w_->lies, w_->gradient,
                      w_->elements / w_->lies.elements(), adds(r, *w_));
  if (dx())
    check(cudnnConvolutionBackwardData(d.dnn, &one, filter_, w_->multiplied(), y_, dy(), convolution_, data_,
                                       d.workspace.get<void>(), d.workspace.bytes(), inputs_[0].add ? &one : &zero, x_,
                                       dx()),
          name_.c_str());
}

double convolution::flops() const {
  const double products = static_cast<double>(w_->elements) * static_cast<double>(output_->lies.spatial);
  return 2 * products * (inputs_[0].from->needs_gradient ? 3 : 2);
}

} // namespace cudnn
