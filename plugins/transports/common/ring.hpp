// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace transports {

// A FIFO queue that allocates only to become longer than ever before. One thread at a time. at(i) counts from the
// front. front() and pop() require an element, at(i) and erase(i) more than i. pop() removes the front element and
// returns it. push() makes references invalid.
template <class T> class ring {
public:
  bool empty() const { return first_ == last_; }
  std::size_t size() const { return last_ - first_; }
  T& front() { return at(0); }
  const T& front() const { return slots_[first_ & (slots_.size() - 1)]; }
  T& at(std::size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }

  void push(T value) {
    if (size() == slots_.size()) grow();
    slots_[last_++ & (slots_.size() - 1)] = std::move(value);
  }
  // Removes element i; those behind it move up.
  void erase(std::size_t i) {
    for (; i + 1 < size(); ++i) at(i) = std::move(at(i + 1));
    --last_;
  }
  T pop() { return std::move(slots_[first_++ & (slots_.size() - 1)]); }

private:
  void grow() {
    std::vector<T> wider(slots_.empty() ? 16 : 2 * slots_.size()); // a power of two: indices wrap by a mask
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i) wider[i] = std::move(at(i));
    slots_ = std::move(wider);
    first_ = 0;
    last_ = count;
  }

  std::vector<T> slots_;
  std::size_t first_ = 0, last_ = 0; // count up forever; the mask turns them into indices
};

} // namespace transports
