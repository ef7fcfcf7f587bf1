// SPDX-License-Identifier: Apache-2.0
//
// One direction of one lane between two ranks: a ring of records with one producer and one consumer, in the producer's
// control memory.
//
// A record is a header of 32 bytes, optionally followed by payload, rounded up to whole cache lines. So a message of a
// few bytes crosses in one line, whose first word signals its arrival. There are four kinds:
//
//   part    the payload follows the header (or a chunk of it, for messages that neither fit nor lie in the heap)
//   direct  the payload lies in the producer's heap at `offset`, where the consumer reads it
//   notice  no payload: a put of `total` bytes has arrived, with the notification `offset` (one_sided.hpp)
//   skip    no payload; fills the ring up to its end, because records are contiguous
//
// Why no locks are needed: positions only grow. The producer writes header and payload, makes sure that the `ready`
// word of the next header is cleared, and only then sets this record's `ready` to its position + 1. The consumer reads
// `ready` only at the position that it has reached. That word was cleared before the record in front of it was
// published, so an old record's payload is never taken for a header. The consumer returns room by moving `tail`, and
// the producer overwrites nothing that `tail` has not passed. Passing a record acknowledges it. If the producer waits
// for that, the outcome is in `status`, which stays readable until the producer itself overwrites it.
//
// The cost of a small message is that of moving lines between two caches. So the producer clears several lines ahead at
// once, instead of fetching the next line from the consumer's cache for every record. The consumer writes to a record
// only if the producer waits for its outcome, and moves `tail` past other records a quarter of the ring at a time: the
// rest of the ring has room for any record, so that no producer waits forever.
#pragma once

#include "memory.hpp"

#include <algorithm>
#include <atomic>
#include <new>

namespace shm {

enum class record_kind : std::uint32_t { part = 1, direct = 2, skip = 3, notice = 4 };

struct record {
  std::atomic<std::uint64_t> ready; // position + 1 once the record can be read
  std::uint64_t total;              // bytes of the whole message
  union {
    std::uint64_t offset; // direct: offset in the producer's heap; notice: the notification
    std::uint64_t waits;  // part: 1 if the send completes only when its last record is passed, 0 if it was eager
  };
  std::uint32_t bytes;              // part: bytes of payload behind this header
  std::uint16_t kind;               // record_kind
  std::atomic<std::int16_t> status; // written by the consumer: outcome of the message whose last record this is

  std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(record) == 32);

constexpr std::uint64_t cache_line = 64;
// Bytes in the ring of a record with this payload.
constexpr std::uint64_t record_bytes(std::uint64_t payload) {
  return round_up(sizeof(record) + payload, cache_line);
}

// Shared by both sides, besides the records. Each line has one writer, but the consumer resets `starved`.
struct ring_state {
  struct alignas(cache_line) consumer_line {
    std::atomic<std::uint64_t> tail;   // position: all records before it have been passed
    std::atomic<std::uint32_t> wanted; // while the consumer sleeps: whether a record should wake it
  } consumer;
  struct alignas(cache_line) producer_line {
    std::atomic<std::uint32_t> starved; // the producer waits for room
  } producer;
};

// The sending end. A position counts bytes since the start and never wraps. `capacity`, the bytes of the ring, is a
// multiple of cache_line; `state` and `data` must outlive the object, and must be zeros before the first record. [loop]
class ring_producer {
public:
  ring_producer() = default;
  ring_producer(ring_state* state, std::byte* data, std::uint64_t capacity)
      : state_(state), data_(data), capacity_(capacity) {}

  // Returns a record with room for `payload` bytes, or null if there is no room according to the tail that was last
  // read. The caller fills total, offset or waits, bytes, kind and payload, then calls publish_with_payload(). Requires
  // `payload` of at most largest_part(). If the record does not fit before the end of the ring, publishes a skip record
  // first, which moves head().
  record* reserve(std::uint64_t payload) noexcept {
    const std::uint64_t bytes = record_bytes(payload);
    const std::uint64_t skipped = at_ + bytes > capacity_ ? capacity_ - at_ : 0;
    // The header behind the record, which publish() clears, must be free as well.
    const std::uint64_t needed = skipped + bytes + cache_line;
    if (head_ + needed - tail_ > capacity_) return nullptr;
    if (skipped) {
      record* filler = at(at_);
      filler->kind = static_cast<std::uint16_t>(record_kind::skip);
      publish(filler, skipped);
    }
    return at(at_);
  }
  // Makes the record of reserve() readable for the consumer; `payload` as in reserve(). Does not wake the consumer.
  void publish_with_payload(record* r, std::uint64_t payload) noexcept { publish(r, record_bytes(payload)); }

  // Reads the consumer's tail. Before the next reserve(), which may overwrite them, read the status of all records
  // before that tail for which a send waits.
  void look() noexcept { tail_ = state_->consumer.tail.load(); }
  // Returns whether the consumer has passed all records before `position`, such as the value of head() after a record
  // was published. Reads the consumer's tail if needed; as for look(), read statuses before the next reserve().
  bool passed(std::uint64_t position) noexcept {
    if (tail_ < position) tail_ = state_->consumer.tail.load();
    return tail_ >= position;
  }
  // As passed(), but only by the tail that was last read.
  bool has_seen(std::uint64_t position) const noexcept { return tail_ >= position; }
  // The position behind the last published record.
  std::uint64_t head() const noexcept { return head_; }
  // Returns the largest payload of one record, in bytes: several such records fit the ring at a time.
  std::uint64_t largest_part() const noexcept { return capacity_ / 4 - cache_line; }
  // Asks the consumer to wake this rank when it makes room. Call look() and reserve() once more after it: room that was
  // made before the consumer could see this request wakes no rank.
  void starve() noexcept { state_->producer.starved.store(1); }
  // Whether the consumer asked to be woken by a record; it counts only while the consumer sleeps.
  bool is_wanted() const noexcept { return state_->consumer.wanted.load() != 0; }

private:
  record* at(std::uint64_t offset) noexcept { return reinterpret_cast<record*>(data_ + offset); }
  void publish(record* r, std::uint64_t bytes) noexcept {
    const std::uint64_t position = head_;
    head_ += bytes;
    at_ = at_ + bytes < capacity_ ? at_ + bytes : 0; // records are contiguous: none crosses the end
    if (head_ >= cleared_) clear_ahead();
    r->status.store(0, std::memory_order_relaxed);
    r->ready.store(position + 1); // sequentially consistent: the sleep word is read next
  }

  // Clears the lines from head_ on, so that no next header is an old one. reserve() has made sure that one of them is
  // free.
  void clear_ahead() noexcept {
    const std::uint64_t end = std::min(head_ + 8 * cache_line, tail_ + capacity_);
    for (cleared_ = head_; cleared_ < end; cleared_ += cache_line)
      at(cleared_ % capacity_)->ready.store(0, std::memory_order_relaxed);
  }

  ring_state* state_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0, head_ = 0, at_ = 0; // at_: offset of head_ in the ring
  std::uint64_t tail_ = 0;                         // as last read
  std::uint64_t cleared_ = 0;                      // lines from head_ to here hold no old header
};

// Returns a record's member, which is read from memory exactly once: the peer can change it at any time, and the value
// checked must be the value used.
template <class T> T read_once(const T& member) noexcept {
  return *static_cast<const volatile T*>(&member);
}

// The receiving end; arguments as for ring_producer. A peer wrote the records, so the caller must check their contents,
// and read members with read_once(). [loop]
class ring_consumer {
public:
  ring_consumer() = default;
  ring_consumer(ring_state* state, std::byte* data, std::uint64_t capacity)
      : state_(state), data_(data), capacity_(capacity) {}

  // Returns the next record, or null if there is none yet. The same record is returned until pop().
  record* peek() noexcept {
    for (;;) {
      record* r = reinterpret_cast<record*>(data_ + at_);
      if (r->ready.load() != tail_ + 1) return nullptr;
      if (read_once(r->kind) != static_cast<std::uint16_t>(record_kind::skip)) return r;
      advance(capacity_ - at_); // the producer learns of it when the record behind the skip is popped
    }
  }
  // Returns whether a payload of this size, behind the header of the record that peek() returned, lies within the ring.
  bool is_sound(std::uint64_t payload) const noexcept { return at_ + record_bytes(payload) <= capacity_; }
  // Passes the record that peek() returned; it must not be read afterwards. `payload` is the size in bytes that
  // is_sound() accepted. If `is_asked`, the producer waits for `status`, which is stored in the record. Returns true if
  // the caller must wake the producer, which waits for the status or for room.
  bool pop(record* r, std::uint64_t payload, rg_status status, bool is_asked) noexcept {
    if (is_asked) r->status.store(static_cast<std::int16_t>(status), std::memory_order_relaxed);
    advance(record_bytes(payload));
    if (!is_asked && tail_ - told_ < capacity_ / 4) return false;
    told_ = tail_;
    state_->consumer.tail.store(tail_); // sequentially consistent: `starved` is read next
    const bool starved = state_->producer.starved.load() != 0 && state_->producer.starved.exchange(0) != 0;
    return is_asked || starved;
  }
  // Says whether a record on this ring should wake this rank while it sleeps.
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
  std::uint64_t capacity_ = 0, tail_ = 0, at_ = 0; // at_: offset of tail_ in the ring
  std::uint64_t told_ = 0;                         // the value of tail_ that the producer can read
  bool wanted_ = false;
};

} // namespace shm
