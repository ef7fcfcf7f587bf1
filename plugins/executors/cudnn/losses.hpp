// SPDX-License-Identifier: Apache-2.0
//
// Kernels for what networks end in. Losses are doubles, one a row; what rows add up to stays on the device until the step
// has ended. What is said in maps.hpp holds; `share`, in the device's memory, is what the loss of a row counts in the
// gradient, 1 / their number, times the loss scale.
#pragma once

#include "numbers.hpp"

#include <cuda_runtime_api.h>

namespace cudnn::kernels {

// Softmax and cross-entropy over rows of `classes` logits. Labels that are `ignored` have no loss and no gradient (-1:
// all count). The target is 1 - smoothing for the label and smoothing / classes for all.
struct classifying {
  std::size_t rows;
  std::uint32_t classes;
  const std::int32_t* labels;
  std::int32_t ignored;
  float smoothing;
};
// Of a row: its loss, its loss without smoothing, the logarithm of the sum of its exponentials, and whether the label's
// logit is the first of the largest.
struct classified {
  double *losses, *plain;
  float* shifts;
  std::int32_t* right;
};
void cross_entropy(cudaStream_t s, number t, const classifying& c, const void* logits, const classified& out);
void cross_entropy_gradient(cudaStream_t s, number t, const classifying& c, const void* logits, const float* shifts,
                            const float* share, void* dx, bool add);

// The same for two classes, with what an area under the curve is made of: wrong[i] is the probability of the class that
// sample i is not of. histogram, null in training: [2, buckets], by label and the probability of class 1.
struct ranking {
  std::size_t samples;
  std::uint32_t buckets;
  const std::int32_t* labels;
};
void two_classes(cudaStream_t s, number t, const ranking& r, const void* logits, double* losses, float* wrong,
                 unsigned long long* histogram);
void two_classes_gradient(cudaStream_t s, number t, const ranking& r, const float* wrong, const float* share, void* dx,
                          bool add);

// max(0, margin - positive + negative); right[i]: positive > negative.
void hinge(cudaStream_t s, number t, const void* positive, const void* negative, float margin, double* losses,
           std::int32_t* right, std::size_t samples);
// slope: -1 for the positive, 1 for the negative.
void hinge_gradient(cudaStream_t s, number t, const void* positive, const void* negative, float margin, float slope,
                    const float* share, void* dx, std::size_t samples, bool add);

// *out = or += the sum of n values.
void total(cudaStream_t s, const double* values, std::size_t n, double* out, bool add);
void total(cudaStream_t s, const std::int32_t* values, std::size_t n, double* out, bool add);
// *out += how many of the labels are not `ignored`.
void count_labels(cudaStream_t s, const std::int32_t* labels, std::int32_t ignored, std::size_t n, double* out);
// *out += n
void add_number(cudaStream_t s, double n, double* out);
// *out = the sum of losses[i] * factors[i]
void combine(cudaStream_t s, const double* losses, const double* factors, std::size_t n, double* out);
// out[i] += counts[i]
void add_counts(cudaStream_t s, const unsigned long long* counts, std::size_t n, double* out);

} // namespace cudnn::kernels
