// SPDX-License-Identifier: Apache-2.0
#include "kernels/loss.hpp"

#include "kernels/for_elements.hpp"

namespace cudnn::kernels {
namespace {

// With lse = log(sum of exp(x)) over the logits x and smoothing e: loss = lse - (1 - e) x[label] - (e / classes) sum x.
template <class T> void entropy_of(cudaStream_t s, cross_entropy_args c, const T* logits, cross_entropy_results out) {
  for_rows(s, c.rows, c.classes, [=] REGATTA_DEVICE(const block& b, index_t r) {
    const T* x = logits + std::size_t{r} * c.classes;
    const std::int32_t label = c.labels[r];
    if (label == c.ignored) {
      if (!b.leads()) return;
      out.losses[r] = out.plain[r] = 0;
      out.right[r] = 0;
      return;
    }
    float most = -3.4028235e38F;
    for (index_t i = b.first(); i < c.classes; i += b.step())
      if (to_float(x[i]) > most) most = to_float(x[i]);
    most = b.most(most);
    index_t first = c.classes;
    double exponentials = 0, plain = 0;
    for (index_t i = b.first(); i < c.classes; i += b.step()) {
      const float v = to_float(x[i]);
      if (v == most && i < first) first = i;
      exponentials += static_cast<double>(expf(v - most));
      plain += static_cast<double>(v);
    }
    first = b.least(first);
    exponentials = b.sum(exponentials);
    plain = b.sum(plain);
    if (!b.leads()) return;
    const double lse = static_cast<double>(most) + log(exponentials), at = static_cast<double>(to_float(x[label]));
    const double smoothing = static_cast<double>(c.smoothing);
    out.shifts[r] = static_cast<float>(lse);
    out.plain[r] = lse - at;
    out.losses[r] = lse - (1 - smoothing) * at - smoothing / c.classes * plain;
    out.right[r] = first == static_cast<index_t>(label) ? 1 : 0;
  });
}

template <class T>
void entropy_gradient_of(cudaStream_t s, cross_entropy_args c, const T* logits, const float* shifts, const float* share,
                         T* dx, bool add) {
  const auto f = [=] REGATTA_DEVICE(index_t i, float logit, float& dxi) {
    const index_t r = i / c.classes, at = i % c.classes;
    const std::int32_t label = c.labels[r];
    float gradient = 0;
    if (label != c.ignored) {
      gradient = expf(logit - shifts[r]) - c.smoothing / static_cast<float>(c.classes);
      if (static_cast<std::int32_t>(at) == label) gradient -= 1 - c.smoothing;
    }
    dxi = gradient * *share;
  };
  for_elements(s, c.rows * c.classes, f, in<T>{logits}, out<T>{dx, add});
}

template <class T>
void two_classes_of(cudaStream_t s, ranking r, const T* logits, double* losses, float* wrong,
                    unsigned long long* histogram) {
  for_each(s, r.samples, [=] REGATTA_DEVICE(index_t i) {
    const std::int32_t label = r.labels[i];
    const double behind = static_cast<double>(to_float(logits[2 * i + (1 - label)])) -
                          static_cast<double>(to_float(logits[2 * i + label]));
    const double small = exp(-fabs(behind)); // never overflows
    wrong[i] = static_cast<float>((behind > 0 ? 1 : small) / (1 + small));
    losses[i] = (behind > 0 ? behind : (behind != behind ? behind : 0.0)) + log1p(small);
    if (!histogram) return;
    const double clicked = label ? 1 - static_cast<double>(wrong[i]) : static_cast<double>(wrong[i]);
    index_t bucket = clicked >= 0 ? static_cast<index_t>(clicked * r.buckets) : 0; // NaN: the loss shows it
    if (bucket >= r.buckets) bucket = r.buckets - 1;
    count_one(histogram + static_cast<index_t>(label) * r.buckets + bucket);
  });
}

template <class T>
void two_classes_gradient_of(cudaStream_t s, ranking r, const float* wrong, const float* share, T* dx, bool add) {
  for_each(s, 2 * r.samples, [=] REGATTA_DEVICE(index_t i) {
    const bool right = static_cast<std::int32_t>(i % 2) == r.labels[i / 2];
    put(dx + i, (right ? -wrong[i / 2] : wrong[i / 2]) * *share, add);
  });
}

template <class T>
void hinge_of(cudaStream_t s, const T* positive, const T* negative, float margin, double* losses, std::int32_t* right,
              std::size_t n) {
  for_each(s, n, [=] REGATTA_DEVICE(index_t i) {
    const float loss = margin - to_float(positive[i]) + to_float(negative[i]);
    losses[i] = loss < 0 ? 0.0 : static_cast<double>(loss); // NaN stays NaN
    right[i] = to_float(positive[i]) > to_float(negative[i]) ? 1 : 0;
  });
}
template <class T>
void hinge_gradient_of(cudaStream_t s, const T* positive, const T* negative, float margin, float sign,
                       const float* share, T* dx, std::size_t n, bool add) {
  for_each(s, n, [=] REGATTA_DEVICE(index_t i) {
    const float loss = margin - to_float(positive[i]) + to_float(negative[i]);
    put(dx + i, loss > 0 ? sign * *share : 0, add);
  });
}

template <class T> void total_of(cudaStream_t s, const T* values, std::size_t n, double* out, bool add) {
  const auto count = static_cast<index_t>(n);
  for_rows(s, 1, 512 + 1, [=] REGATTA_DEVICE(const block& b, index_t) {
    double sum = 0;
    for (index_t i = b.first(); i < count; i += b.step()) sum += static_cast<double>(values[i]);
    sum = b.sum(sum);
    if (b.leads()) *out = add ? *out + sum : sum;
  });
}

} // namespace

void cross_entropy(cudaStream_t s, dtype t, const cross_entropy_args& c, const void* logits,
                   const cross_entropy_results& out) {
  by_type(t, [&](auto* of) { entropy_of(s, c, as(of, logits), out); });
}

void cross_entropy_gradient(cudaStream_t s, dtype t, const cross_entropy_args& c, const void* logits,
                            const float* shifts, const float* share, void* dx, bool add) {
  by_type(t, [&](auto* of) { entropy_gradient_of(s, c, as(of, logits), shifts, share, as(of, dx), add); });
}

void two_classes(cudaStream_t s, dtype t, const ranking& r, const void* logits, double* losses, float* wrong,
                 unsigned long long* histogram) {
  by_type(t, [&](auto* of) { two_classes_of(s, r, as(of, logits), losses, wrong, histogram); });
}

void two_classes_gradient(cudaStream_t s, dtype t, const ranking& r, const float* wrong, const float* share, void* dx,
                          bool add) {
  by_type(t, [&](auto* of) { two_classes_gradient_of(s, r, wrong, share, as(of, dx), add); });
}

void hinge(cudaStream_t s, dtype t, const void* positive, const void* negative, float margin, double* losses,
           std::int32_t* right, std::size_t samples) {
  by_type(t, [&](auto* of) { hinge_of(s, as(of, positive), as(of, negative), margin, losses, right, samples); });
}

void hinge_gradient(cudaStream_t s, dtype t, const void* positive, const void* negative, float margin, float sign,
                    const float* share, void* dx, std::size_t samples, bool add) {
  by_type(t, [&](auto* of) {
    hinge_gradient_of(s, as(of, positive), as(of, negative), margin, sign, share, as(of, dx), samples, add);
  });
}

void total(cudaStream_t s, const double* values, std::size_t n, double* out, bool add) {
  total_of(s, values, n, out, add);
}

void total(cudaStream_t s, const std::int32_t* values, std::size_t n, double* out, bool add) {
  total_of(s, values, n, out, add);
}

void count_labels(cudaStream_t s, const std::int32_t* labels, std::int32_t ignored, std::size_t n, double* out) {
  const auto count = static_cast<index_t>(n);
  for_rows(s, 1, 512 + 1, [=] REGATTA_DEVICE(const block& b, index_t) {
    double sum = 0;
    for (index_t i = b.first(); i < count; i += b.step()) sum += labels[i] != ignored ? 1.0 : 0.0;
    sum = b.sum(sum);
    if (b.leads()) *out += sum;
  });
}

void add_number(cudaStream_t s, double n, double* out) {
  for_each(s, 1, [=] REGATTA_DEVICE(index_t) { *out += n; });
}

void combine(cudaStream_t s, const double* losses, const double* factors, std::size_t n, double* out) {
  for_each(s, 1, [=] REGATTA_DEVICE(index_t) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += losses[i] * factors[i];
    *out = sum;
  });
}

void add_counts(cudaStream_t s, const unsigned long long* counts, std::size_t n, double* out) {
  for_each(s, n, [=] REGATTA_DEVICE(index_t i) { out[i] += static_cast<double>(counts[i]); });
}

} // namespace cudnn::kernels
