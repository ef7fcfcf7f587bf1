// SPDX-License-Identifier: Apache-2.0
#include "kernels/pooling.hpp"

#include "kernels/launch.hpp"

namespace cudnn::kernels {
namespace {

template <class T>
void max_pool_of(cudaStream_t s, window w, image_layout p, image_layout q, const T* x, T* y, std::int32_t* positions,
                 std::size_t samples) {
  for_each(s, samples * q.elements(), [=] REGATTA_DEVICE(index_t i) {
    const element_position at = position_of(q, i);
    const int o = static_cast<int>(at.position);
    put(y + i, max_of(x + start_of(p, at), w, o / w.out_width, o % w.out_width, positions[i]));
  });
}
template <class T>
void max_gradient_of(cudaStream_t s, window w, image_layout p, image_layout q, const T* dy,
                     const std::int32_t* positions, T* dx, std::size_t samples, bool add) {
  for_each(s, samples * p.elements(), [=] REGATTA_DEVICE(index_t i) {
    const element_position at = position_of(p, i);
    const int o = static_cast<int>(at.position);
    const index_t from = start_of(q, at);
    put(dx + i, max_gradient(dy + from, positions + from, w, o / w.width, o % w.width), add);
  });
}
template <class T>
void average_of_windows(cudaStream_t s, window w, image_layout p, image_layout q, const T* x, T* y,
                        std::size_t samples) {
  for_each(s, samples * q.elements(), [=] REGATTA_DEVICE(index_t i) {
    const element_position at = position_of(q, i);
    const int o = static_cast<int>(at.position);
    put(y + i, average_of(x + start_of(p, at), w, o / w.out_width, o % w.out_width));
  });
}
template <class T>
void average_gradient_of(cudaStream_t s, window w, image_layout p, image_layout q, const T* dy, T* dx,
                         std::size_t samples, bool add) {
  for_each(s, samples * p.elements(), [=] REGATTA_DEVICE(index_t i) {
    const element_position at = position_of(p, i);
    const int o = static_cast<int>(at.position);
    put(dx + i, average_gradient(dy + start_of(q, at), w, o / w.width, o % w.width), add);
  });
}

window stepping(window w, const image_layout& p) {
  w.step = p.channels_last ? static_cast<int>(p.channels) : 1;
  return w;
}

} // namespace

void max_pool(cudaStream_t s, dtype t, window w, const image_layout& p, const image_layout& q, const void* x, void* y,
              std::int32_t* positions, std::size_t samples) {
  by_type(t, [&](auto* of) { max_pool_of(s, stepping(w, p), p, q, as(of, x), as(of, y), positions, samples); });
}

void max_pool_gradient(cudaStream_t s, dtype t, window w, const image_layout& p, const image_layout& q, const void* dy,
                       const std::int32_t* positions, void* dx, std::size_t samples, bool add) {
  by_type(t,
          [&](auto* of) { max_gradient_of(s, stepping(w, p), p, q, as(of, dy), positions, as(of, dx), samples, add); });
}

void average_pool(cudaStream_t s, dtype t, window w, const image_layout& p, const image_layout& q, const void* x,
                  void* y, std::size_t samples) {
  by_type(t, [&](auto* of) { average_of_windows(s, stepping(w, p), p, q, as(of, x), as(of, y), samples); });
}

void average_pool_gradient(cudaStream_t s, dtype t, window w, const image_layout& p, const image_layout& q,
                           const void* dy, void* dx, std::size_t samples, bool add) {
  by_type(t, [&](auto* of) { average_gradient_of(s, stepping(w, p), p, q, as(of, dy), as(of, dx), samples, add); });
}

} // namespace cudnn::kernels
