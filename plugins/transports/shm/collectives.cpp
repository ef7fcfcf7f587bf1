// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include "arithmetic.hpp"

#include <algorithm>

#include <poll.h>
#include <sys/socket.h>

namespace shm {

// ------------------------------------------------------------------------------------------ the state in memory ---

struct group::header {
  struct alignas(cache_line) {
    std::atomic<std::uint32_t> value;
  } broken, starved; // starved: a member waits for others to leave a slot
};

// Written by the member alone.
struct alignas(cache_line) group::member_line {
  std::atomic<std::uint64_t> left; // operations it has left
  std::atomic<std::uint32_t> working;
};

// Counts for one operation at a time: its number + 1 above, the count below.
struct alignas(cache_line) group::counter {
  std::atomic<std::uint64_t> value;

  static std::uint64_t tag(std::uint64_t number) noexcept { return (number + 1) << 32; }
  std::uint64_t read(std::uint64_t number) const noexcept {
    const std::uint64_t v = value.load();
    return (v ^ tag(number)) >> 32 ? 0 : v & UINT32_MAX;
  }
  // One more, unless it is `limit` already. Returns what it was.
  std::uint64_t increase(std::uint64_t number, std::uint64_t limit) noexcept {
    for (std::uint64_t v = value.load();;) {
      const std::uint64_t count = (v ^ tag(number)) >> 32 ? 0 : v & UINT32_MAX;
      if (count >= limit || value.compare_exchange_weak(v, tag(number) | (count + 1))) return count;
    }
  }
};

struct alignas(cache_line) group::post {
  std::atomic<std::uint64_t> arrived;       // number + 1
  std::atomic<std::uint64_t> count, offset; // of the buffer: elements, where in the member's heap
  std::uint64_t reserved;
  std::byte payload[small];
};

// header, a line a member, then the slots: `done`, a `claimed` a slice, a post a member.
std::uint64_t group::state_bytes() const noexcept {
  const std::uint64_t n = members_.size();
  return sizeof(header) + n * sizeof(member_line) + slots * (sizeof(counter) * (1 + n) + n * sizeof(post));
}
group::header& group::head() const noexcept {
  return *reinterpret_cast<header*>(state_);
}
group::member_line& group::line(std::size_t member) const noexcept {
  return reinterpret_cast<member_line*>(state_ + sizeof(header))[member];
}
group::counter& group::done(std::uint64_t number) const noexcept {
  const std::uint64_t n = members_.size(), bytes = sizeof(counter) * (1 + n) + n * sizeof(post);
  return *reinterpret_cast<counter*>(state_ + sizeof(header) + n * sizeof(member_line) + number % slots * bytes);
}
group::counter& group::claimed(std::uint64_t number, std::size_t slice) const noexcept {
  return (&done(number))[1 + slice];
}
group::post& group::post_of(std::uint64_t number, std::size_t member) const noexcept {
  return reinterpret_cast<post*>(&done(number) + 1 + members_.size())[member];
}

// ------------------------------------------------------------------------------------------------------- set-up ---

namespace {

// What the lowest rank tells the others.
struct notice {
  std::uint64_t offset;
  std::uint64_t members, fingerprint; // so that members who mean different groups find out
};

std::uint64_t fingerprint(std::span<const std::uint32_t> members) noexcept {
  std::uint64_t h = 0xcbf2'9ce4'8422'2325; // FNV-1a
  for (std::uint32_t m : members) h = (h ^ m) * 0x100'0000'01b3;
  return h;
}

} // namespace

group::group(station& home, std::span<const std::uint32_t> members, std::uint64_t timeout_ns)
    : home_(home), members_(members.begin(), members.end()), terms_(members.size()), targets_(members.size()) {
  bool is_member = false;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::uint32_t rank = members_[i];
    if (i > 0 && rank <= members_[i - 1])
      throw rg::error(RG_E_OPERATION, "shm: split: members must be given in ascending order");
    if (rank == home.rank) {
      is_member = true;
      self_ = i;
      memories_.push_back(&home.memory.memory());
    } else if (const peer* p = home.find(rank)) {
      memories_.push_back(&p->memory());
    } else {
      throw rg::error(RG_E_UNSUPPORTED, "shm: split: this rank is not connected with rank " + std::to_string(rank) +
                                            ", but members of a group must be connected with each other");
    }
  }
  if (!is_member) throw rg::error(RG_E_OPERATION, "shm: split: this rank is no member of the group");
  if (self_ == 0)
    publish_state();
  else
    find_state(timeout_ns);
}

void group::publish_state() {
  state_ = static_cast<std::byte*>(home_.memory.allocate(state_bytes()));
  const notice n{home_.memory.offset_of(state_), members_.size(), fingerprint(members_)};
  for (std::uint32_t rank : members_) {
    if (rank == home_.rank) continue;
    if (::send(home_.find(rank)->socket(), &n, sizeof n, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof n))
      fail_with_errno(RG_E_PEER, "split: cannot reach rank " + std::to_string(rank));
  }
}

void group::find_state(std::uint64_t timeout_ns) {
  const std::string leader = "rank " + std::to_string(members_[0]);
  const peer& p = *home_.find(members_[0]);
  const std::uint64_t milliseconds = std::min<std::uint64_t>(timeout_ns / 1'000'000, INT32_MAX);
  pollfd waiting{p.socket(), POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(milliseconds)) == 0)
    throw rg::error(RG_E_PEER, "shm: split: " + leader + " did not call it in time");
  notice n{};
  if (::recv(p.socket(), &n, sizeof n, 0) != static_cast<ssize_t>(sizeof n))
    throw rg::error(RG_E_PEER, "shm: split: " + leader + " is gone");
  if (n.members != members_.size() || n.fingerprint != fingerprint(members_) ||
      !p.memory().spans(n.offset, state_bytes()))
    throw rg::error(RG_E_OPERATION, "shm: split: " + leader + " called it for another group");
  state_ = p.memory().base() + n.offset;
}

bool group::has(std::uint32_t rank) const noexcept {
  return std::binary_search(members_.begin(), members_.end(), rank);
}

// --------------------------------------------------------------------------------------------------- operations ---

void group::all_reduce(float* address, std::uint64_t count, std::uint64_t cookie) {
  if (is_ended()) throw rg::error(verdict_, "shm: all_reduce: the group has ended, since it lost a member");
  if (members_.size() == 1) return home_.complete(cookie, RG_OK);
  operation op{};
  op.address = op.shared = address;
  op.count = count;
  op.cookie = cookie;
  op.number = next_number_++;
  op.staged = op.fetched = count;
  if (!op.is_small() && !home_.memory.holds(address, count * sizeof(float))) {
    op.shared = static_cast<float*>(home_.memory.allocate(count * sizeof(float)));
    op.staged = op.fetched = 0;
  }
  operations_.push_back(op);
  if (posted_ + 1 == operations_.size() && op.staged == count && try_post(operations_.back())) ++posted_;
}

bool group::progress() {
  if (operations_.empty()) return false;
  if (is_ended()) {
    if (!is_quiet()) return false;
    while (!operations_.empty()) retire_first(verdict_);
    return true;
  }
  bool moved = false;
  while (posted_ < operations_.size()) {
    operation& op = operations_[posted_];
    if (stage(op)) return true;
    if (!try_post(op)) break;
    ++posted_;
    moved = true;
  }
  for (std::size_t i = 0; i < posted_ && all_arrived(operations_[i]); ++i) {
    operation& op = operations_[i];
    if (!op.is_sound || op.is_reduced) continue;
    if (op.is_small()) {
      reduce_small(op);
    } else if (reduce_portion(op)) {
      moved = true;
      break;
    }
  }
  while (finish_first()) moved = true;
  if (moved || (head().broken.value.load() == 0 && !lost_member())) return moved;
  // Nothing will move any more. What was complete by then has completed on all members, and so must here.
  while (finish_first()) {
  }
  end(RG_E_PEER);
  return true;
}

// Buffers outside the heap: a portion of it into scratch, where peers reach it.
bool group::stage(operation& op) {
  if (op.staged == op.count) return false;
  const std::uint64_t n = std::min<std::uint64_t>(op.count - op.staged, portion / sizeof(float));
  std::memcpy(op.shared + op.staged, op.address + op.staged, n * sizeof(float));
  op.staged += n;
  return true;
}

// False: a member has yet to leave the operation that had this slot before.
bool group::try_post(operation& op) {
  const auto has_room = [&] {
    if (op.number < all_left_ + slots) return true;
    all_left_ = UINT64_MAX;
    for (std::size_t m = 0; m < members_.size(); ++m) all_left_ = std::min(all_left_, line(m).left.load());
    return op.number < all_left_ + slots;
  };
  if (!has_room()) {
    head().starved.value.store(1);
    if (!has_room()) return false;
  }
  post& own = post_of(op.number, self_);
  own.count.store(op.count, std::memory_order_relaxed);
  if (!op.is_small())
    own.offset.store(home_.memory.offset_of(op.shared), std::memory_order_relaxed);
  else if (op.count > 0)
    std::memcpy(own.payload, op.address, op.count * sizeof(float));
  own.arrived.store(op.number + 1);
  if (all_arrived(op)) wake_others();
  return true;
}

bool group::all_arrived(operation& op) {
  if (op.have_all_arrived) return true;
  for (std::size_t m = 0; m < members_.size(); ++m)
    if (post_of(op.number, m).arrived.load() != op.number + 1) return false;
  op.have_all_arrived = op.is_sound = true;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const post& p = post_of(op.number, m);
    op.is_sound &=
        p.count.load() == op.count && (op.is_small() || memories_[m]->spans(p.offset.load(), op.count * sizeof(float)));
  }
  return true;
}

void group::reduce_small(operation& op) {
  for (std::size_t m = 0; m < members_.size(); ++m)
    terms_[m] = reinterpret_cast<const float*>(post_of(op.number, m).payload);
  float* const targets[] = {op.address};
  sum_to_all(terms_, targets, op.count);
  op.is_reduced = true;
  const std::uint64_t bytes = (members_.size() - 1) * (op.count * sizeof(float) + cache_line);
  home_.counters.bytes_sent += bytes;
  home_.counters.bytes_received += bytes;
}

namespace {

constexpr std::uint64_t portion_length = portion / sizeof(float);

// Whole cache lines, so that two members do not write to one (where buffers are aligned).
std::uint64_t slice_length(std::uint64_t count, std::uint64_t members) {
  return round_up((count + members - 1) / members, cache_line / sizeof(float));
}
// {first, count} of a slice.
std::pair<std::uint64_t, std::uint64_t> slice_at(std::uint64_t count, std::uint64_t members, std::uint64_t slice) {
  const std::uint64_t length = slice_length(count, members), first = std::min(slice * length, count);
  return {first, std::min(length, count - first)};
}
std::uint64_t portions_of(std::uint64_t slice_count) {
  return (slice_count + portion_length - 1) / portion_length;
}

} // namespace

// One portion that nobody has claimed. False: there is none, or the group is broken.
bool group::reduce_portion(operation& op) {
  if (op.is_exhausted) return false;
  line(self_).working.store(1);
  const bool moved = head().broken.value.load() == 0 && claim_and_reduce(op);
  line(self_).working.store(0);
  if (head().broken.value.load() != 0) wake_others(); // somebody waits for us to be out
  return moved;
}

bool group::claim_and_reduce(operation& op) {
  const std::uint64_t n = members_.size();
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t slice = (self_ + k) % n;
    const auto [first, count] = slice_at(op.count, n, slice);
    const std::uint64_t portions = portions_of(count);
    const std::uint64_t mine = claimed(op.number, slice).increase(op.number, portions);
    if (mine >= portions) continue;
    const std::uint64_t at = mine * portion_length;
    reduce(op, first + at, std::min(portion_length, count - at));
    done(op.number).increase(op.number, UINT32_MAX);
    if (is_done(op)) wake_others();
    return true;
  }
  op.is_exhausted = true;
  return false;
}

void group::reduce(const operation& op, std::uint64_t first, std::uint64_t count) noexcept {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const std::uint64_t offset = m == self_ ? home_.memory.offset_of(op.shared) : post_of(op.number, m).offset.load();
    targets_[m] = reinterpret_cast<float*>(memories_[m]->base() + offset) + first;
    terms_[m] = targets_[m];
  }
  sum_to_all(terms_, targets_, count);
}

bool group::is_done(const operation& op) const noexcept {
  std::uint64_t portions = 0;
  for (std::size_t s = 0; s < members_.size(); ++s)
    portions += portions_of(slice_at(op.count, members_.size(), s).second);
  return done(op.number).read(op.number) == portions;
}

// Takes the first operation off the list if it has ended, or brings it closer to that. False: nothing to do.
bool group::finish_first() {
  if (posted_ == 0) return false;
  operation& op = operations_.front();
  if (!op.have_all_arrived) return false;
  if (!op.is_sound) {
    rg::logger(home_.host)
        .warning("shm: members of a group call all_reduce with buffers of different lengths, here " +
                 std::to_string(op.count) + " elements");
    retire_first(RG_E_OPERATION);
    return true;
  }
  if (!op.is_reduced) {
    if (op.is_small() || !is_done(op)) return false;
    op.is_reduced = true;
    // Whoever did the work: of a buffer of b bytes the others read (n-1)/n b and wrote as much, on average.
    const std::uint64_t others = members_.size() - 1;
    const std::uint64_t bytes = 2 * others * op.count * sizeof(float) / members_.size() + others * cache_line;
    home_.counters.bytes_sent += bytes;
    home_.counters.bytes_received += bytes;
  }
  if (op.fetched < op.count) {
    const std::uint64_t n = std::min(op.count - op.fetched, portion_length);
    std::memcpy(op.address + op.fetched, op.shared + op.fetched, n * sizeof(float));
    op.fetched += n;
    if (op.fetched < op.count) return true;
  }
  retire_first(RG_OK);
  return true;
}

void group::retire_first(rg_status status) {
  const operation op = operations_.front();
  operations_.pop_front();
  if (posted_ > 0) --posted_;
  if (op.shared != op.address) home_.memory.free(op.shared);
  line(self_).left.store(op.number + 1);
  if (head().starved.value.load() != 0 && head().starved.value.exchange(0) != 0) wake_others();
  if (status == RG_OK) {
    home_.counters.messages_sent += members_.size() - 1;
    home_.counters.messages_received += members_.size() - 1;
  }
  home_.complete(op.cookie, status, op.count * sizeof(float));
}

// ---------------------------------------------------------------------------------------------------- the end ---

void group::end(rg_status status) {
  if (is_ended()) return;
  verdict_ = status;
  if (!operations_.empty()) {
    const peer* lost = lost_member();
    home_.report(status, "shm: all_reduce: " + (lost ? lost->loss() : "another member of the group ended it"));
  }
  head().broken.value.store(1);
  wake_others();
}

// Null: none.
const peer* group::lost_member() const noexcept {
  for (std::uint32_t rank : members_)
    if (const peer* p = home_.find(rank); p && p->is_lost()) return p;
  return nullptr;
}

bool group::is_quiet() const noexcept {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    if (m == self_ || home_.find(members_[m])->is_gone()) continue;
    if (line(m).working.load() != 0) return false;
  }
  return true;
}

void group::wake_others() noexcept {
  for (std::uint32_t rank : members_)
    if (peer* p = home_.find(rank)) p->wake();
}

} // namespace shm
