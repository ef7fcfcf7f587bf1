// SPDX-License-Identifier: Apache-2.0
//
// One direction of one lane between two ranks: a ring of records with one producer and one consumer, in the producer's
// control memory.
//
// A record is a header of 32 bytes, which may carry payload behind it, rounded up to whole cache lines; so a message of
// a few bytes crosses in one line, whose first word says that it is there. Three kinds:
//
//   part    payload (or a part of it, for messages that neither fit nor lie in the heap) lies behind the header
//   direct  the payload lies in the producer's heap at `offset`; the consumer reads it there
//   skip    nothing; fills the ring up to its end, for records are contiguous
//
// Why it is safe without locks: positions only grow. The producer writes header and payload, sees to it that the `ready`
// word of the header that will follow is cleared, and only then sets this record's `ready` to its position + 1. The
// consumer looks at `ready` of the position it has reached and nowhere else; that word was cleared before the record in
// front of it was published, so an old record's payload is never taken for a header. The consumer gives room back by
// moving `tail`, and the producer overwrites nothing that `tail` has not passed. A record that is passed is thereby
// acknowledged; where the producer waits for that, its outcome is in `status`, which stays readable for the producer,
// who alone will overwrite it.
//
// A message of a few bytes costs what it costs to move lines between two caches. So the producer clears several lines
// ahead at once, instead of taking the next one from the consumer's cache for every record, and the consumer writes
// nothing into a record whose outcome nobody asks for, and moves `tail` past such records a quarter of the ring at a time:
// the rest has room for any record, so that none waits for ever.
#pragma once

#include "memory.hpp"

#include <algorithm>
#include <atomic>
#include <new>

namespace shm {

enum class record_kind : std::uint32_t { part = 1, direct = 2, skip = 3 };

struct record {
  std::atomic<std::uint64_t> ready; // its position + 1 once it can be read
  std::uint64_t total;              // bytes of the whole message
  union {
    std::uint64_t offset; // direct: where in the heap
    std::uint64_t waits;  // part: whether the send completes only when its last record is passed
  };
  std::uint32_t bytes;              // part: payload behind this header
  std::uint16_t kind;               // record_kind
  std::atomic<std::int16_t> status; // written by the consumer: the outcome of the message that ends here

  std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(record) == 32);

constexpr std::uint64_t cache_line = 64;
constexpr std::uint64_t record_bytes(std::uint64_t payload) {
  return round_up(sizeof(record) + payload, cache_line);
}

// What both sides share beside the records. Each line has one writer.
struct ring_state {
  struct alignas(cache_line) consumer_line {
    std::atomic<std::uint64_t> tail;   // all records before it are done with
    std::atomic<std::uint32_t> wanted; // while the consumer sleeps: whether a record is worth waking it
  } consumer;
  struct alignas(cache_line) producer_line {
    std::atomic<std::uint32_t> starved; // the producer waits for room
  } producer;
};

// The sending end. [loop]
class ring_producer {
public:
  ring_producer() = default;
  ring_producer(ring_state* state, std::byte* data, std::uint64_t capacity)
      : state_(state), data_(data), capacity_(capacity) {}

  // A record with room for `payload` bytes, to be filled and given to publish(); null: no room as far as was seen.
  record* reserve(std::uint64_t payload) noexcept {
    const std::uint64_t bytes = record_bytes(payload);
    const std::uint64_t skipped = at_ + bytes > capacity_ ? capacity_ - at_ : 0;
    // The header behind it, which publish() clears, must be free as well.
    const std::uint64_t needed = skipped + bytes + cache_line;
    if (head_ + needed - tail_ > capacity_) return nullptr;
    if (skipped) {
      record* filler = at(at_);
      filler->kind = static_cast<std::uint16_t>(record_kind::skip);
      publish(filler, skipped);
    }
    return at(at_);
  }
  void publish_with_payload(record* r, std::uint64_t payload) noexcept { publish(r, record_bytes(payload)); }

  // Looks how far the consumer is. What records before that say is to be read before the next reserve().
  void look() noexcept { tail_ = state_->consumer.tail.load(); }
  // Whether the consumer is done with all records up to this one's end, as head() was after it was published.
  bool passed(std::uint64_t position) noexcept {
    if (tail_ < position) tail_ = state_->consumer.tail.load();
    return tail_ >= position;
  }
  // Likewise, as far as was seen.
  bool has_seen(std::uint64_t position) const noexcept { return tail_ >= position; }
  std::uint64_t head() const noexcept { return head_; }
  // Payload that fits one record so that a few of them are under way at a time.
  std::uint64_t largest_part() const noexcept { return capacity_ / 4 - cache_line; }
  // Asks the consumer to wake us when it makes room. Try reserve() once more after it.
  void starve() noexcept { state_->producer.starved.store(1); }
  bool is_wanted() const noexcept { return state_->consumer.wanted.load() != 0; }

private:
  record* at(std::uint64_t place) noexcept { return reinterpret_cast<record*>(data_ + place); }
  void publish(record* r, std::uint64_t bytes) noexcept {
    const std::uint64_t position = head_;
    head_ += bytes;
    at_ = at_ + bytes < capacity_ ? at_ + bytes : 0; // records are contiguous: none goes beyond the end
    if (head_ >= cleared_) clear_ahead();
    r->status.store(0, std::memory_order_relaxed);
    r->ready.store(position + 1); // sequentially consistent: the sleep word is looked at next
  }

  // The lines from head_ on, of which reserve() made sure of one: wherever the next headers come to lie, nothing is there.
  void clear_ahead() noexcept {
    const std::uint64_t end = std::min(head_ + 8 * cache_line, tail_ + capacity_);
    for (cleared_ = head_; cleared_ < end; cleared_ += cache_line)
      at(cleared_ % capacity_)->ready.store(0, std::memory_order_relaxed);
  }

  ring_state* state_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0, head_ = 0, at_ = 0; // at_: where in the ring head_ is
  std::uint64_t tail_ = 0;                         // as last seen
  std::uint64_t cleared_ = 0;                      // lines from head_ to here hold no old header
};

// A member of a record, read once: the peer can change it at any time, and what was checked must be what is used.
template <class T> T read_once(const T& member) noexcept {
  return *static_cast<const volatile T*>(&member);
}

// The receiving end. What a record says is the peer's word: the caller checks it. [loop]
class ring_consumer {
public:
  ring_consumer() = default;
  ring_consumer(ring_state* state, std::byte* data, std::uint64_t capacity)
      : state_(state), data_(data), capacity_(capacity) {}

  // The next record, or null.
  record* peek() noexcept {
    for (;;) {
      record* r = reinterpret_cast<record*>(data_ + at_);
      if (r->ready.load() != tail_ + 1) return nullptr;
      if (read_once(r->kind) != static_cast<std::uint16_t>(record_kind::skip)) return r;
      advance(capacity_ - at_); // what follows it is there already, and will be told of with it
    }
  }
  // Whether a payload of so many bytes lies within the ring.
  bool is_sound(std::uint64_t payload) const noexcept { return at_ + record_bytes(payload) <= capacity_; }
  // `payload`: its bytes, as they were checked. `is_asked`: the producer waits for the status. True: it waits for that,
  // or for the room that was made.
  bool pop(record* r, std::uint64_t payload, rg_status status, bool is_asked) noexcept {
    if (is_asked) r->status.store(static_cast<std::int16_t>(status), std::memory_order_relaxed);
    advance(record_bytes(payload));
    if (!is_asked && tail_ - told_ < capacity_ / 4) return false;
    told_ = tail_;
    state_->consumer.tail.store(tail_); // sequentially consistent: whether the producer starves is looked at next
    const bool starved = state_->producer.starved.load() != 0 && state_->producer.starved.exchange(0) != 0;
    return is_asked || starved;
  }
  void set_wanted(bool wanted) noexcept {
    if (wanted == wanted_) return;
    wanted_ = wanted;
    state_->consumer.wanted.store(wanted);
  }

private:
  void advance(std::uint64_t bytes) noexcept {
    tail_ += bytes;
    at_ = at_ + bytes < capacity_ ? at_ + bytes : 0;
  }

  ring_state* state_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0, tail_ = 0, at_ = 0; // at_: where in the ring tail_ is
  std::uint64_t told_ = 0;                         // tail_ as the producer knows it
  bool wanted_ = false;
};

} // namespace shm
