// SPDX-License-Identifier: Apache-2.0
#include "kernels/cosine.hpp"

#include "kernels/launch.hpp"

namespace cudnn::kernels {
namespace {

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
void cosine_gradient_of(cudaStream_t s, const T* a, const T* b, const T* dy, const float* sizes, bool second, T* da,
                        std::size_t rows, index_t size, bool add) {
  for_each(s, rows * size, [=] REGATTA_DEVICE(index_t i) {
    const float* z = sizes + 3 * (i / size);
    const float gradient = to_float(dy[i / size]), square = second ? z[2] : z[1];
    const float along = z[2] != 0 ? to_float(b[i]) / (sqrtf(z[1]) * sqrtf(z[2])) - to_float(a[i]) * z[0] / square : 0;
    put(da + i, gradient * along, add);
  });
}

} // namespace

void cosine(cudaStream_t s, dtype t, const void* a, const void* b, void* y, float* sizes, std::size_t rows,
            std::uint32_t size) {
  by_type(t, [&](auto* of) { cosine_of(s, as(of, a), as(of, b), as(of, y), sizes, rows, size); });
}

void cosine_gradient(cudaStream_t s, dtype t, const void* a, const void* b, const void* dy, const float* sizes,
                     bool second, void* da, std::size_t rows, std::uint32_t size, bool add) {
  by_type(t, [&](auto* of) {
    cosine_gradient_of(s, as(of, a), as(of, b), as(of, dy), sizes, second, as(of, da), rows, size, add);
  });
}

} // namespace cudnn::kernels
