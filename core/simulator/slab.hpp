// SPDX-License-Identifier: Apache-2.0
//
// Objects of one type under numbers, which are used again after give(). Objects never move.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace regatta {

constexpr std::uint32_t nothing = UINT32_MAX; // the number of no object

// T has a member `next` of std::uint32_t, with which its user makes lists; the slab uses it while an object is free.
template <class T> class slab {
public:
  T& operator[](std::uint32_t i) { return (*blocks_[i / size])[i % size]; }
  const T& operator[](std::uint32_t i) const { return (*blocks_[i / size])[i % size]; }
  // Returns the number of an object with its default values.
  std::uint32_t take() {
    if (free_ != nothing) {
      const std::uint32_t i = free_;
      free_ = (*this)[i].next;
      (*this)[i].next = nothing;
      return i;
    }
    if (used_ % size == 0) blocks_.push_back(std::make_unique<std::array<T, size>>());
    return used_++;
  }
  void give(std::uint32_t i) {
    (*this)[i] = T{};
    (*this)[i].next = std::exchange(free_, i);
  }

private:
  static constexpr std::uint32_t size = 256;
  std::vector<std::unique_ptr<std::array<T, size>>> blocks_;
  std::uint32_t used_ = 0, free_ = nothing;
};

// A queue of objects in a slab, linked by `next`.
struct slab_queue {
  std::uint32_t head = nothing, tail = nothing;
  bool empty() const { return head == nothing; }
  template <class T> void push(slab<T>& in, std::uint32_t i) {
    in[i].next = nothing;
    (head == nothing ? head : in[tail].next) = i;
    tail = i;
  }
  template <class T> void push_front(slab<T>& in, std::uint32_t i) {
    in[i].next = head;
    if (head == nothing) tail = i;
    head = i;
  }
  template <class T> std::uint32_t pop(slab<T>& in) {
    const std::uint32_t i = head;
    head = in[i].next;
    in[i].next = nothing;
    return i;
  }
};

} // namespace regatta
