// SPDX-License-Identifier: Apache-2.0
//
// Kernels for losses. A loss is a double per row; sums over rows stay on the device until the step has ended. Kernels
// are enqueued in stream `s`, and the call returns at once. Pointers are to memory that the device can access; void
// pointers are to elements of type `t`. With `add` the result is added to the output, else it overwrites it. Inputs and
// outputs must not overlap unless a comment says so. Sizes and indices are not checked, and a kernel handles less than
// 2^32 elements. device::check_launch() reports errors of a launch. Logits and their gradients dx are of type t.
// `share`, one float in device memory, is the weight of a row in the gradient: the loss scale divided by the number of
// rows that count in the step on all workers. No kernel checks labels.
#pragma once

#include "kernels/dtype.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// Softmax and cross-entropy over rows of `classes` logits. Rows whose label is `ignored` have loss 0 and gradient 0;
// with ignored = -1, which is no label, all rows count. The target is 1 - smoothing for the label, plus smoothing /
// classes for every class.
struct cross_entropy_args {
  std::size_t rows;
  std::uint32_t classes;
  const std::int32_t* labels; // 0 .. classes - 1
  std::int32_t ignored;
  float smoothing;
};
// The outputs, per row: its loss, its loss without smoothing, the log of the sum of exponentials (undefined in ignored
// rows), and 1 if the label's logit is the first of the largest, else 0. None may be null.
struct cross_entropy_results {
  double *losses, *plain;
  float* shifts;
  std::int32_t* right;
};
void cross_entropy(cudaStream_t s, dtype t, const cross_entropy_args& c, const void* logits,
                   const cross_entropy_results& out);
void cross_entropy_gradient(cudaStream_t s, dtype t, const cross_entropy_args& c, const void* logits,
                            const float* shifts, const float* share, void* dx, bool add);

// Softmax and cross-entropy over two classes, with a histogram for the AUC metric. two_classes() writes wrong[i], the
// probability of the class that is not the label of sample i; the gradient reads it. histogram, [2, buckets], counts
// samples by label and by the probability of class 1; two_classes() adds to it. Null: no histogram, as in training.
struct ranking {
  std::size_t samples;
  std::uint32_t buckets;
  const std::int32_t* labels; // 0 or 1
};
void two_classes(cudaStream_t s, dtype t, const ranking& r, const void* logits, double* losses, float* wrong,
                 unsigned long long* histogram);
void two_classes_gradient(cudaStream_t s, dtype t, const ranking& r, const float* wrong, const float* share, void* dx,
                          bool add);

// losses[i] = max(0, margin - positive[i] + negative[i]); right[i] = 1 if positive[i] > negative[i], else 0.
void hinge(cudaStream_t s, dtype t, const void* positive, const void* negative, float margin, double* losses,
           std::int32_t* right, std::size_t samples);
// Computes the gradient of one argument: with sign -1 that of `positive`, with sign 1 that of `negative`.
void hinge_gradient(cudaStream_t s, dtype t, const void* positive, const void* negative, float margin, float sign,
                    const float* share, void* dx, std::size_t samples, bool add);

// *out = the sum of n values; with `add` it is added to *out. n < 2^32.
void total(cudaStream_t s, const double* values, std::size_t n, double* out, bool add);
void total(cudaStream_t s, const std::int32_t* values, std::size_t n, double* out, bool add);
// *out += the number of labels that are not `ignored`
void count_labels(cudaStream_t s, const std::int32_t* labels, std::int32_t ignored, std::size_t n, double* out);
// *out += n
void add_number(cudaStream_t s, double n, double* out);
// *out = the sum of losses[i] * factors[i]
void combine(cudaStream_t s, const double* losses, const double* factors, std::size_t n, double* out);
// out[i] += counts[i]
void add_counts(cudaStream_t s, const unsigned long long* counts, std::size_t n, double* out);

} // namespace cudnn::kernels
