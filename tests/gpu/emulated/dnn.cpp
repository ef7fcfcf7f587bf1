// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's convolutions as plain loops.
#include "dnn.hpp"

#include <vector>

struct cudnnTensorStruct {
  cudnnTensorFormat_t format;
  cudnnDataType_t type;
  int n, c, h, w;
  std::size_t at(int i, int j, int y, int x) const {
    const int k = format == CUDNN_TENSOR_NHWC ? ((i * h + y) * w + x) * c + j : ((i * c + j) * h + y) * w + x;
    return static_cast<std::size_t>(k);
  }
};
struct cudnnFilterStruct : cudnnTensorStruct {};
struct cudnnConvolutionStruct {
  int padding, stride;
};

namespace {

// Calls f(filter row, filter column, y row, y column) for all that element (r, c) of x takes part in.
template <class F>
void each_meeting(const cudnnTensorStruct& x, const cudnnFilterStruct& w, const cudnnConvolutionStruct& v,
                  const cudnnTensorStruct& y, const F& f) {
  for (int oy = 0; oy < y.h; ++oy)
    for (int ox = 0; ox < y.w; ++ox)
      for (int ky = 0; ky < w.h; ++ky)
        for (int kx = 0; kx < w.w; ++kx) {
          const int iy = oy * v.stride - v.padding + ky, ix = ox * v.stride - v.padding + kx;
          if (iy >= 0 && iy < x.h && ix >= 0 && ix < x.w) f(iy, ix, ky, kx, oy, ox);
        }
}

// Adds up in floats, and rounds once.
struct result {
  result(const cudnnTensorStruct& d, void* p, const void* beta)
      : shape(d), memory(p), sums(static_cast<std::size_t>(d.n * d.c * d.h * d.w)) {
    if (*static_cast<const float*>(beta) != 0)
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = load(p, d.type, i);
  }
  ~result() {
    for (std::size_t i = 0; i < sums.size(); ++i) store(memory, shape.type, i, sums[i]);
  }
  cudnnTensorStruct shape;
  void* memory;
  std::vector<float> sums;
};

// One algorithm, the same in all directions, preceded by one that must not be taken.
template <class P> cudnnStatus_t algorithms(int* count, P* out) {
  out[0] = out[1] = {};
  out[0].determinism = CUDNN_NON_DETERMINISTIC;
  out[1].determinism = CUDNN_DETERMINISTIC;
  out[0].mathType = out[1].mathType = CUDNN_DEFAULT_MATH;
  out[1].algo = static_cast<decltype(out[1].algo)>(1);
  *count = 2;
  return CUDNN_STATUS_SUCCESS;
}

} // namespace

extern "C" {

size_t cudnnGetVersion() {
  return 0;
}
const char* cudnnGetErrorString(cudnnStatus_t) {
  return "an error";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* h) {
  *h = new cudnnContext{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t h) {
  delete h;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s) {
  h->stream = s;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) {
  *d = new cudnnTensorStruct{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) {
  delete d;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t f, cudnnDataType_t t, int n,
                                         int c, int h, int w) {
  *d = {f, t, n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* d) {
  *d = new cudnnFilterStruct{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) {
  delete d;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t t, cudnnTensorFormat_t f, int k,
                                         int c, int h, int w) {
  *d = {{f, t, k, c, h, w}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* d) {
  *d = new cudnnConvolutionStruct{};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) {
  delete d;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad, int, int stride, int, int, int,
                                              cudnnConvolutionMode_t, cudnnDataType_t) {
  *d = {pad, stride};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t,
                                                     cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, int,
                                                     int* count, cudnnConvolutionFwdAlgoPerf_t* out) {
  return algorithms(count, out);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t,
                                                          cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
                                                          cudnnTensorDescriptor_t, int, int* count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* out) {
  return algorithms(count, out);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t,
                                                            cudnnTensorDescriptor_t, cudnnConvolutionDescriptor_t,
                                                            cudnnFilterDescriptor_t, int, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* out) {
  return algorithms(count, out);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t, cudnnTensorDescriptor_t, const void*,
                                                     cudnnFilterDescriptor_t, const void*, cudnnConvolutionDescriptor_t,
                                                     cudnnTensorDescriptor_t, void*, int, int* count,
                                                     cudnnConvolutionFwdAlgoPerf_t* out, void*, size_t) {
  return algorithms(count, out);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t, cudnnFilterDescriptor_t, const void*,
                                                          cudnnTensorDescriptor_t, const void*,
                                                          cudnnConvolutionDescriptor_t, cudnnTensorDescriptor_t, void*,
                                                          int, int* count, cudnnConvolutionBwdDataAlgoPerf_t* out,
                                                          void*, size_t) {
  return algorithms(count, out);
}
cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t, cudnnTensorDescriptor_t, const void*,
                                                            cudnnTensorDescriptor_t, const void*,
                                                            cudnnConvolutionDescriptor_t, cudnnFilterDescriptor_t,
                                                            void*, int, int* count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t* out, void*, size_t) {
  return algorithms(count, out);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void*, cudnnTensorDescriptor_t dx, const void* x,
                                      cudnnFilterDescriptor_t dw, const void* w, cudnnConvolutionDescriptor_t dv,
                                      cudnnConvolutionFwdAlgo_t, void*, size_t, const void* beta,
                                      cudnnTensorDescriptor_t dy, void* y) {
  cudnn::later(h->stream, [=, xs = *dx, ws = *dw, v = *dv, ys = *dy] {
    result out(ys, y, beta);
    for (int n = 0; n < xs.n; ++n)
      for (int o = 0; o < ys.c; ++o)
        for (int c = 0; c < xs.c; ++c)
          each_meeting(xs, ws, v, ys, [&](int iy, int ix, int ky, int kx, int oy, int ox) {
            out.sums[ys.at(n, o, oy, ox)] +=
                load(x, xs.type, xs.at(n, c, iy, ix)) * load(w, ws.type, ws.at(o, c, ky, kx));
          });
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void*, cudnnFilterDescriptor_t dw, const void* w,
                                           cudnnTensorDescriptor_t ddy, const void* dy, cudnnConvolutionDescriptor_t dv,
                                           cudnnConvolutionBwdDataAlgo_t, void*, size_t, const void* beta,
                                           cudnnTensorDescriptor_t ddx, void* dx) {
  cudnn::later(h->stream, [=, xs = *ddx, ws = *dw, v = *dv, ys = *ddy] {
    result out(xs, dx, beta);
    for (int n = 0; n < xs.n; ++n)
      for (int o = 0; o < ys.c; ++o)
        for (int c = 0; c < xs.c; ++c)
          each_meeting(xs, ws, v, ys, [&](int iy, int ix, int ky, int kx, int oy, int ox) {
            out.sums[xs.at(n, c, iy, ix)] +=
                load(dy, ys.type, ys.at(n, o, oy, ox)) * load(w, ws.type, ws.at(o, c, ky, kx));
          });
  });
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void*, cudnnTensorDescriptor_t dx, const void* x,
                                             cudnnTensorDescriptor_t ddy, const void* dy,
                                             cudnnConvolutionDescriptor_t dv, cudnnConvolutionBwdFilterAlgo_t, void*,
                                             size_t, const void* beta, cudnnFilterDescriptor_t ddw, void* dw) {
  cudnn::later(h->stream, [=, xs = *dx, ws = *ddw, v = *dv, ys = *ddy] {
    result out(ws, dw, beta);
    for (int n = 0; n < xs.n; ++n)
      for (int o = 0; o < ys.c; ++o)
        for (int c = 0; c < xs.c; ++c)
          each_meeting(xs, ws, v, ys, [&](int iy, int ix, int ky, int kx, int oy, int ox) {
            out.sums[ws.at(o, c, ky, kx)] +=
                load(x, xs.type, xs.at(n, c, iy, ix)) * load(dy, ys.type, ys.at(n, o, oy, ox));
          });
  });
  return CUDNN_STATUS_SUCCESS;
}
}
