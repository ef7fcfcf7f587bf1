// SPDX-License-Identifier: Apache-2.0
//
// A queue that allocates only to become longer than ever before; std::deque would keep allocating as it moves along.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace shm {

// One thread at a time. T needs a default constructor. Indices count from the front and must be below size(). Calls of
// push_back() make references invalid; front(), back() and pop_front() require an element. pop_front() does not destroy
// it: a later push_back() overwrites it.
template <class T> class fifo {
public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t i) noexcept { return items_[(first_ + i) & (items_.size() - 1)]; }
  const T& operator[](std::size_t i) const noexcept { return items_[(first_ + i) & (items_.size() - 1)]; }
  T& front() noexcept { return (*this)[0]; }
  T& back() noexcept { return (*this)[size_ - 1]; }

  T& push_back(T item) {
    if (size_ == items_.size()) grow();
    ++size_;
    return back() = std::move(item);
  }
  void pop_front() noexcept {
    first_ = (first_ + 1) & (items_.size() - 1);
    --size_;
  }
  // Removes item i; those behind it move up.
  void erase(std::size_t i) noexcept {
    for (; i + 1 < size_; ++i) (*this)[i] = std::move((*this)[i + 1]);
    --size_;
  }

private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 64 : 2 * items_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    items_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> items_; // size is a power of two
  std::size_t first_ = 0, size_ = 0;
};

} // namespace shm
