// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.hpp"

#include "kernels/channel_sums.hpp"
#include "kernels/for_elements.hpp"

namespace cudnn::kernels {
namespace {

template <class T> void layer_norm_of(cudaStream_t s, layer_normalising n, const T* x, T* y) {
  for_rows(s, n.rows, n.size, [=] REGATTA_DEVICE(const block& b, index_t r) {
    const T* in = x + std::size_t{r} * n.size;
    float sum = 0;
    for (index_t i = b.first(); i < n.size; i += b.step()) sum += to_float(in[i]);
    const float mean = b.sum(sum) / static_cast<float>(n.size);
    float square = 0;
    for (index_t i = b.first(); i < n.size; i += b.step()) {
      const float d = to_float(in[i]) - mean;
      square += d * d;
    }
    const float inverse = 1 / sqrtf(b.sum(square) / static_cast<float>(n.size) + n.epsilon);
    for (index_t i = b.first(); i < n.size; i += b.step())
      put(y + std::size_t{r} * n.size + i, (to_float(in[i]) - mean) * inverse * n.scale[i] + n.bias[i]);
    if (!b.leads()) return;
    n.mean[r] = mean;
    n.inverse[r] = inverse;
  });
}

template <class T>
void layer_norm_slopes(cudaStream_t s, layer_normalising n, const T* x, const T* dy, T* dx, bool add) {
  for_rows(s, n.rows, n.size, [=] REGATTA_DEVICE(const block& b, index_t r) {
    const std::size_t at = std::size_t{r} * n.size;
    const float mean = n.mean[r], inverse = n.inverse[r];
    float sum = 0, product = 0;
    for (index_t i = b.first(); i < n.size; i += b.step()) {
      const float g = to_float(dy[at + i]) * n.scale[i];
      sum += g;
      product += g * (to_float(x[at + i]) - mean) * inverse;
    }
    sum = b.sum(sum) / static_cast<float>(n.size);
    product = b.sum(product) / static_cast<float>(n.size);
    for (index_t i = b.first(); i < n.size; i += b.step()) {
      const float normal = (to_float(x[at + i]) - mean) * inverse;
      put(dx + at + i, (to_float(dy[at + i]) * n.scale[i] - sum - normal * product) * inverse, add);
    }
  });
}

// Gradients of bias and scale per feature: a feature is a channel in rows that are channels-last.
template <class T> struct norm_slopes {
  const T *x, *dy;
  const float *mean, *inverse;
  index_t size;
  REGATTA_DEVICE void operator()(index_t i, index_t, float& a, float& b) const {
    const float g = to_float(dy[i]);
    a += g;
    b += g * (to_float(x[i]) - mean[i / size]) * inverse[i / size];
  }
};

picture features_of(std::uint32_t size) {
  return {.channels = size, .spatial = 1, .last = true};
}

struct head {
  index_t sample, number, query;
};
REGATTA_DEVICE inline head head_of(const attending& a, index_t row) {
  return {row / a.queries / a.heads, row / a.queries % a.heads, row % a.queries};
}
REGATTA_DEVICE inline bool sees(const attending& a, const head& h, index_t key) {
  return (!a.causal || key <= h.query) && a.keys_of[h.sample * a.keys + key] != 0;
}
// Returns the factor of dropout for a probability: 0 or 1 / (1 - p).
REGATTA_DEVICE inline float kept(const attending& a, const dropping& d, const head& h, index_t key) {
  const std::uint64_t element = (std::uint64_t{h.number} * a.queries + h.query) * a.keys + key;
  return keeps(*d.seed, *d.first + h.sample, element, d.threshold) ? d.scale : 0;
}

template <class T>
void softmax_of(cudaStream_t s, attending a, const float* scores, T* probabilities, T* dropped, dropping d) {
  for_rows(s, a.samples * a.heads * a.queries, a.keys, [=] REGATTA_DEVICE(const block& b, index_t row) {
    const head h = head_of(a, row);
    const std::size_t at = std::size_t{row} * a.keys;
    constexpr float none = -3.4028235e38F;
    float most = none;
    for (index_t j = b.first(); j < a.keys; j += b.step())
      if (sees(a, h, j) && scores[at + j] > most) most = scores[at + j];
    most = b.most(most);
    float sum = 0;
    for (index_t j = b.first(); j < a.keys; j += b.step())
      if (sees(a, h, j)) sum += expf((scores[at + j] - most) * a.factor);
    sum = b.sum(sum);
    const float inverse = sum > 0 ? 1 / sum : (sum != sum ? sum : 0.0F); // NaN stays NaN
    for (index_t j = b.first(); j < a.keys; j += b.step()) {
      const float p = sees(a, h, j) ? expf((scores[at + j] - most) * a.factor) * inverse : 0;
      put(probabilities + at + j, p);
      if (dropped) put(dropped + at + j, d.seed ? p * kept(a, d, h, j) : p);
    }
  });
}

template <class T>
void softmax_slopes(cudaStream_t s, attending a, const T* probabilities, const float* slopes, dropping d, T* dscores) {
  for_rows(s, a.samples * a.heads * a.queries, a.keys, [=] REGATTA_DEVICE(const block& b, index_t row) {
    const head h = head_of(a, row);
    const std::size_t at = std::size_t{row} * a.keys;
    const auto slope = [&](index_t j) { return d.seed ? slopes[at + j] * kept(a, d, h, j) : slopes[at + j]; };
    float product = 0;
    for (index_t j = b.first(); j < a.keys; j += b.step()) product += slope(j) * to_float(probabilities[at + j]);
    product = b.sum(product);
    for (index_t j = b.first(); j < a.keys; j += b.step())
      put(dscores + at + j, a.factor * to_float(probabilities[at + j]) * (slope(j) - product));
  });
}

template <class T> void mask_of(cudaStream_t s, attending a, float hidden, T* mask, std::uint32_t* first) {
  for_rows(s, a.samples, a.keys, [=] REGATTA_DEVICE(const block& b, index_t sample) {
    const std::size_t at = std::size_t{sample} * a.keys;
    index_t least = a.keys;
    for (index_t j = b.first(); j < a.keys; j += b.step()) {
      const bool seen = a.keys_of[at + j] != 0;
      put(mask + at + j, seen ? 0 : hidden);
      if (seen && j < least) least = j;
    }
    least = b.least(least);
    if (b.leads()) first[sample] = least;
  });
}
// A thread computes the 8 elements that one block of random bits decides on, and stores them at once if they are
// aligned.
template <class T> void kept_of(cudaStream_t s, attending a, dropping d, T* kept) {
  const index_t size = a.heads * a.queries * a.keys, blocks = (size + 7) / 8;
  for_each(s, a.samples * blocks, [=] REGATTA_DEVICE(index_t i) {
    const index_t sample = i / blocks, begin = i % blocks * 8;
    const rg::bits4 bits = dropout_bits(*d.seed, *d.first + sample, begin);
    pack<T, 8> made;
    for (index_t e = 0; e < 8; ++e) put(made.of + e, keeps(bits, e, d.threshold) ? 1 : 0);
    T* const to = kept + std::size_t{sample} * size + begin;
    if (size % 8 == 0) {
      *reinterpret_cast<pack<T, 8>*>(to) = made;
      return;
    }
    for (index_t e = 0; e < 8 && begin + e < size; ++e) to[e] = made.of[e];
  });
}
template <class T>
void blank_of(cudaStream_t s, attending a, const std::uint32_t* first, T* rows, std::uint32_t width) {
  for_rows(s, a.samples * a.queries, width, [=] REGATTA_DEVICE(const block& b, index_t row) {
    const index_t last = a.causal && row % a.queries < a.keys ? row % a.queries : a.keys - 1;
    if (first[row / a.queries] <= last) return;
    for (index_t i = b.first(); i < width; i += b.step()) put(rows + std::size_t{row} * width + i, 0);
  });
}

template <class T> void take_of(cudaStream_t s, taking k, const T* x, T* y) {
  for_each(s, k.samples * k.taken * k.size, [=] REGATTA_DEVICE(index_t i) {
    const index_t row = i / k.size, sample = row / k.taken;
    const index_t from = k.indices ? static_cast<index_t>(k.indices[row]) : row % k.taken;
    y[i] = x[(sample * k.places + from) * k.size + i % k.size];
  });
}
// A position may be selected several times; its gradient is the sum, in order.
template <class T> void give_of(cudaStream_t s, taking k, const T* dy, T* dx, bool add) {
  for_each(s, k.samples * k.places * k.size, [=] REGATTA_DEVICE(index_t i) {
    const index_t row = i / k.size, sample = row / k.places, at = row % k.places;
    float sum = 0;
    for (index_t m = 0; m < k.taken; ++m) {
      const index_t from = k.indices ? static_cast<index_t>(k.indices[sample * k.taken + m]) : m;
      if (from == at) sum += to_float(dy[(sample * k.taken + m) * k.size + i % k.size]);
    }
    put(dx + i, sum, add);
  });
}

template <class T>
void cosine_of(cudaStream_t s, const T* a, const T* b, T* y, float* sizes, std::size_t rows, index_t size) {
  for_rows(s, rows, size, [=] REGATTA_DEVICE(const block& k, index_t r) {
    float across = 0, aa = 0, bb = 0;
    for (index_t i = k.first(); i < size; i += k.step()) {
      const float u = to_float(a[std::size_t{r} * size + i]), v = to_float(b[std::size_t{r} * size + i]);
      across += u * v;
      aa += u * u;
      bb += v * v;
    }
    across = k.sum(across);
    aa = k.sum(aa);
    bb = k.sum(bb);
    if (!k.leads()) return;
    const float lengths = sqrtf(aa) * sqrtf(bb);
    const bool said = !(lengths < 1e-12F);
    const float c = said ? across / lengths : 0;
    put(y + r, c);
    sizes[3 * r] = c;
    sizes[3 * r + 1] = said ? aa : 0;
    sizes[3 * r + 2] = said ? bb : 0;
  });
}

// With c the cosine: dc/da = b / (|a| |b|) - a c / |a|^2.
template <class T>
void cosine_slopes(cudaStream_t s, const T* a, const T* b, const T* dy, const float* sizes, bool second, T* da,
                   std::size_t rows, index_t size, bool add) {
  for_each(s, rows * size, [=] REGATTA_DEVICE(index_t i) {
    const float* z = sizes + 3 * (i / size);
    const float slope = to_float(dy[i / size]), square = second ? z[2] : z[1];
    const float along = z[2] != 0 ? to_float(b[i]) / (sqrtf(z[1]) * sqrtf(z[2])) - to_float(a[i]) * z[0] / square : 0;
    put(da + i, slope * along, add);
  });
}

} // namespace

void layer_norm(cudaStream_t s, number t, const layer_normalising& n, const void* x, void* y) {
  by_type(t, [&](auto* of) { layer_norm_of(s, n, as(of, x), as(of, y)); });
}

std::size_t layer_norm_partials(std::size_t rows, std::uint32_t size) {
  return 2 * std::size_t{chunks_of(features_of(size), rows)} * size;
}

void layer_norm_gradient(cudaStream_t s, number t, const layer_normalising& n, const void* x, const void* dy,
                         const layer_norm_gradients& g, float* partials) {
  const picture p = features_of(n.size);
  by_type(t, [&](auto* of) {
    channel_partials(
        s, p, n.rows, partials,
        norm_slopes<std::remove_pointer_t<decltype(of)>>{as(of, x), as(of, dy), n.mean, n.inverse, n.size});
    if (g.dx) layer_norm_slopes(s, n, as(of, x), as(of, dy), as(of, g.dx), g.add_dx);
  });
  const index_t chunks = chunks_of(p, n.rows), size = n.size;
  for_each(s, size, [=] REGATTA_DEVICE(index_t c) {
    put(g.dbias + c, static_cast<float>(total_of(partials, chunks, size, 0, c)), g.add_bias);
    put(g.dscale + c, static_cast<float>(total_of(partials, chunks, size, 1, c)), g.add_scale);
  });
}

void softmax(cudaStream_t s, number t, const attending& a, const float* scores, void* probabilities, void* dropped,
             const dropping& draw) {
  by_type(t, [&](auto* of) { softmax_of(s, a, scores, as(of, probabilities), as(of, dropped), draw); });
}

void softmax_gradient(cudaStream_t s, number t, const attending& a, const void* probabilities, const float* slopes,
                      const dropping& draw, void* dscores) {
  by_type(t, [&](auto* of) { softmax_slopes(s, a, as(of, probabilities), slopes, draw, as(of, dscores)); });
}

void mask_keys(cudaStream_t s, number t, const attending& a, float hidden, void* mask, std::uint32_t* first) {
  by_type(t, [&](auto* of) { mask_of(s, a, hidden, as(of, mask), first); });
}

void draw_kept(cudaStream_t s, number t, const attending& a, const dropping& draw, void* kept) {
  by_type(t, [&](auto* of) { kept_of(s, a, draw, as(of, kept)); });
}

void blank_unseeing(cudaStream_t s, number t, const attending& a, const std::uint32_t* first, void* rows,
                    std::uint32_t width) {
  by_type(t, [&](auto* of) { blank_of(s, a, first, as(of, rows), width); });
}

void take_places(cudaStream_t s, number t, const taking& k, const void* x, void* y) {
  by_type(t, [&](auto* of) { take_of(s, k, as(of, x), as(of, y)); });
}

void take_places_gradient(cudaStream_t s, number t, const taking& k, const void* dy, void* dx, bool add) {
  by_type(t, [&](auto* of) { give_of(s, k, as(of, dy), as(of, dx), add); });
}

void cosine(cudaStream_t s, number t, const void* a, const void* b, void* y, float* sizes, std::size_t rows,
            std::uint32_t size) {
  by_type(t, [&](auto* of) { cosine_of(s, as(of, a), as(of, b), as(of, y), sizes, rows, size); });
}

void cosine_gradient(cudaStream_t s, number t, const void* a, const void* b, const void* dy, const float* sizes,
                     bool second, void* da, std::size_t rows, std::uint32_t size, bool add) {
  by_type(t, [&](auto* of) {
    cosine_slopes(s, as(of, a), as(of, b), as(of, dy), sizes, second, as(of, da), rows, size, add);
  });
}

} // namespace cudnn::kernels
