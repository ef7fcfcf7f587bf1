// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include "arithmetic.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

#include <poll.h>
#include <regatta/collectives.hpp>
#include <regatta/operation_names.hpp>
#include <sys/socket.h>

namespace shm {

// ------------------------------------------------------------------------------------------ the state in memory ---

struct group::header {
  struct alignas(cache_line) {
    std::atomic<std::uint32_t> value;
  } broken, starved; // broken: 1 + the lost rank; starved: a member waits until others leave a slot
};

// Written by its member only.
struct alignas(cache_line) group::member_line {
  std::atomic<std::uint64_t> left; // number of operations it has left
  std::atomic<std::uint32_t> working;
};

// A counter of one operation: the operation's number + 1 in the upper half, the count in the lower half.
struct alignas(cache_line) group::counter {
  std::atomic<std::uint64_t> value;

  static std::uint64_t tag(std::uint64_t number) noexcept { return (number + 1) << 32; }
  std::uint64_t read(std::uint64_t number) const noexcept {
    const std::uint64_t v = value.load();
    return (v ^ tag(number)) >> 32 ? 0 : v & UINT32_MAX;
  }
  // Increments the count unless it is `limit` already. Returns the count before.
  std::uint64_t increase(std::uint64_t number, std::uint64_t limit) noexcept {
    for (std::uint64_t v = value.load();;) {
      const std::uint64_t count = (v ^ tag(number)) >> 32 ? 0 : v & UINT32_MAX;
      if (count >= limit || value.compare_exchange_weak(v, tag(number) | (count + 1))) return count;
    }
  }
};

struct alignas(cache_line) group::post {
  std::atomic<std::uint64_t> arrived;       // number of the operation + 1
  std::atomic<std::uint64_t> count, offset; // of the buffer: its elements, and its offset in the member's heap
  std::atomic<std::uint64_t> shape;         // shape_of() the request: must be equal on all members
  std::byte payload[small];
};

// Layout: header, a line per member, then the slots, each with `done`, a `claimed` per chunk and a post per member.
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
group::counter& group::claimed(std::uint64_t number, std::size_t chunk) const noexcept {
  return (&done(number))[1 + chunk];
}
std::uint64_t& group::offset_of(std::uint64_t number, std::size_t member) noexcept {
  return offsets_[number % slots * members_.size() + member];
}
group::post& group::post_of(std::uint64_t number, std::size_t member) const noexcept {
  return reinterpret_cast<post*>(&done(number) + 1 + members_.size())[member];
}

// ------------------------------------------------------------------------------------------------------- set-up ---

std::uint64_t group_fingerprint(std::span<const std::uint32_t> members) noexcept {
  std::uint64_t h = 0xcbf2'9ce4'8422'2325; // FNV-1a
  for (std::uint32_t m : members) h = (h ^ m) * 0x100'0000'01b3;
  return h;
}

group::group(instance_state& home, std::span<const std::uint32_t> members, std::uint64_t timeout_ns)
    : home_(home), members_(members.begin(), members.end()), addresses_(members.size()), terms_(members.size()),
      targets_(members.size()), offsets_(slots * members.size()) {
  bool is_member = false;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const std::uint32_t rank = members_[i];
    if (i > 0 && rank <= members_[i - 1])
      throw rg::error(RG_E_OPERATION, "shm: split: expected members in ascending order, got rank " +
                                          std::to_string(rank) + " after " + std::to_string(members_[i - 1]));
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
  if (!is_member)
    throw rg::error(RG_E_OPERATION, "shm: split: expected rank " + std::to_string(home.rank) + " among the members");
  if (self_ == 0)
    publish_state();
  else
    find_state(timeout_ns);
}

void group::publish_state() {
  state_ = static_cast<std::byte*>(home_.memory.allocate(state_bytes()));
  const group_notice n{home_.memory.offset_of(state_), members_.size(), group_fingerprint(members_)};
  for (std::uint32_t rank : members_) {
    if (rank == home_.rank) continue;
    if (::send(home_.find(rank)->socket(), &n, sizeof n, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof n))
      fail_with_errno(RG_E_PEER, "split: cannot reach rank " + std::to_string(rank));
  }
}

void group::find_state(std::uint64_t timeout_ns) {
  using clock = std::chrono::steady_clock;
  const std::string leader = "rank " + std::to_string(members_[0]);
  peer& p = *home_.find(members_[0]);
  const auto deadline =
      clock::now() + std::chrono::milliseconds(std::min<std::uint64_t>(timeout_ns / 1'000'000, INT32_MAX));
  std::optional<group_notice> n;
  for (;;) {
    const bool is_open = p.read_socket();
    if ((n = p.take_notice())) break;
    if (!is_open)
      throw rg::error(RG_E_PEER, "shm: split: " + leader + " closed its connection before it created the group");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0) throw rg::error(RG_E_PEER, "shm: split: " + leader + " did not create the group in time");
    pollfd waiting{p.socket(), POLLIN, 0};
    ::poll(&waiting, 1, static_cast<int>(left));
  }
  if (n->members != members_.size() || n->fingerprint != group_fingerprint(members_) ||
      !p.memory().spans(n->offset, state_bytes()))
    throw rg::error(RG_E_OPERATION, "shm: split: " + leader +
                                        " created a group of other members: all members must call "
                                        "split() for the same groups in the same order");
  state_ = p.memory().base() + n->offset;
}

bool group::has(std::uint32_t rank) const noexcept {
  return std::binary_search(members_.begin(), members_.end(), rank);
}

// --------------------------------------------------------------------------------------------------- operations ---

namespace {

std::uint64_t shape_of(const request& r, std::size_t members) noexcept {
  std::uint64_t shape = r.kind | r.element << 16 | r.root << 24;
  for (std::size_t k = 0; r.counts && k < members; ++k) shape = (shape ^ (r.counts[k] + 1)) * 0x100'0000'01b3; // FNV-1a
  return shape;
}

} // namespace

group::range group::chunk_of(const operation& op, std::uint64_t member) const noexcept {
  const rg::chunk c = rg::chunk_of(op.count, op.counts, member, members_.size());
  return {c.first * op.element, c.end() * op.element};
}

group::range group::given(const operation& op, std::uint64_t member) const noexcept {
  if (op.kind == RG_OP_ALL_GATHER) return chunk_of(op, member);
  return {0, op.kind == RG_OP_BROADCAST && member != op.root ? 0 : op.bytes()};
}
group::range group::taken(const operation& op) const noexcept {
  return op.kind == RG_OP_REDUCE_SCATTER ? chunk_of(op, self_) : range{0, op.bytes()};
}

// An average over members: the sum is the same whichever members do the work.
std::uint64_t group::crossed(const operation& op) const noexcept {
  const std::uint64_t n = members_.size(), others = n - 1;
  const std::uint64_t times = op.kind != RG_OP_ALL_REDUCE ? 1 : op.is_small() ? n : 2;
  return times * others * op.bytes() / n + others * cache_line;
}

void group::begin(const request& r) {
  const std::string name = std::string("shm: ") + rg::operation_name(r.kind);
  if (is_ended())
    throw rg::error(verdict_, name + ": the group has ended, since it lost rank " +
                                  std::to_string(head().broken.value.load() - 1));
  if (r.kind == RG_OP_BROADCAST && r.root >= members_.size())
    throw rg::error(RG_E_OPERATION, name + ": expected a root below " + std::to_string(members_.size()) + ", got " +
                                        std::to_string(r.root));
  if (r.counts && std::accumulate(r.counts, r.counts + members_.size(), std::uint64_t{0}) != r.count)
    throw rg::error(RG_E_OPERATION, name + ": expected counts of chunks that add up to " + std::to_string(r.count));
  operation op{};
  static_cast<request&>(op) = r;
  op.given = given(op, self_);
  op.taken = taken(op);
  if (members_.size() == 1) {
    if (op.bytes() > 0 && op.target != op.source) std::memcpy(op.target, op.source, op.bytes());
    return home_.complete(r.cookie, RG_OK, r.bytes());
  }
  if (!op.is_small()) share(op); // may fail: a refused collective takes no number
  op.number = next_number_++;
  operations_.push_back(op);
  if (posted_ + 1 == operations_.size() && op.unstaged.size() == 0 && try_post(operations_.back())) ++posted_;
}

// Other members read and write this member's whole buffer: the caller's serves if it is in the heap and may be changed.
void group::share(operation& op) {
  std::byte* const whole = op.target - op.taken.at; // if the call is in place, or the target has all chunks
  const bool in_place = op.given.size() == 0 || op.source - op.given.at == whole;
  if ((in_place || op.kind != RG_OP_REDUCE_SCATTER) && home_.memory.holds(whole, op.bytes())) {
    op.shared = whole;
    if (!in_place) op.unstaged = op.given;
    return;
  }
  op.shared = static_cast<std::byte*>(home_.memory.allocate(op.bytes()));
  op.is_scratch = true;
  op.unstaged = op.given;
  op.unfetched = op.taken;
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
    if (!op.is_sound || op.is_worked) continue;
    if (op.is_small()) {
      work_small(op);
    } else if (work_unit(op)) {
      moved = true;
      break;
    }
  }
  while (finish_first()) moved = true;
  if (moved || (head().broken.value.load() == 0 && !lost_member())) return moved;
  // No operation can progress any more. Those that are complete here have completed on all members and must complete
  // here.
  while (finish_first()) {
  }
  end(RG_E_PEER);
  return true;
}

bool group::stage(operation& op) {
  if (op.unstaged.size() == 0) return false;
  const std::uint64_t n = std::min(op.unstaged.size(), unit_bytes);
  std::memcpy(op.shared + op.unstaged.at, op.source + (op.unstaged.at - op.given.at), n);
  op.unstaged.at += n;
  return true;
}

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
  own.shape.store(shape_of(op, members_.size()), std::memory_order_relaxed);
  if (!op.is_small())
    own.offset.store(home_.memory.offset_of(op.shared), std::memory_order_relaxed);
  else if (op.given.size() > 0)
    std::memcpy(own.payload + op.given.at, op.source, op.given.size());
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
    const std::uint64_t offset = offset_of(op.number, m) = p.offset.load();
    op.is_sound &= p.count.load() == op.count && p.shape.load() == shape_of(op, members_.size()) &&
                   (op.is_small() || memories_[m]->spans(offset, op.bytes()));
  }
  return true;
}

void group::work_small(operation& op) {
  const auto payload = [&](std::size_t m) { return post_of(op.number, m).payload; };
  if (op.sums()) {
    const range& r = op.taken;
    for (std::size_t m = 0; m < members_.size(); ++m) terms_[m] = reinterpret_cast<const float*>(payload(m) + r.at);
    float* const targets[] = {reinterpret_cast<float*>(op.target)};
    sum_to_all(terms_, targets, r.size() / sizeof(float));
  } else {
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (const range r = given(op, m); r.size() > 0) std::memcpy(op.target + r.at, payload(m) + r.at, r.size());
  }
  op.is_worked = true;
  home_.counters.bytes_sent += crossed(op);
  home_.counters.bytes_received += crossed(op);
}

namespace {

std::uint64_t units_of(std::uint64_t bytes) {
  return (bytes + unit_bytes - 1) / unit_bytes;
}

} // namespace

bool group::work_unit(operation& op) {
  if (op.is_exhausted) return false;
  line(self_).working.store(1);
  const bool moved = head().broken.value.load() == 0 && claim_and_work(op);
  line(self_).working.store(0);
  if (head().broken.value.load() != 0) wake_others(); // another member may wait until this one is out of its buffers
  return moved;
}

bool group::claim_and_work(operation& op) {
  const std::uint64_t n = members_.size();
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t chunk = (self_ + k) % n;
    const range all = chunk_of(op, chunk);
    const std::uint64_t units = units_of(all.size());
    const std::uint64_t mine = claimed(op.number, chunk).increase(op.number, units);
    if (mine >= units) continue;
    const std::uint64_t at = all.at + mine * unit_bytes;
    work(op, chunk, at, std::min(unit_bytes, all.end - at));
    done(op.number).increase(op.number, UINT32_MAX);
    if (is_done(op)) wake_others();
    return true;
  }
  op.is_exhausted = true;
  return false;
}

void group::work(const operation& op, std::size_t chunk, std::uint64_t at, std::uint64_t bytes) noexcept {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const std::uint64_t offset = m == self_ ? home_.memory.offset_of(op.shared) : offset_of(op.number, m);
    addresses_[m] = memories_[m]->base() + offset + at;
  }
  if (!op.sums()) return copy_to_others(op.kind == RG_OP_BROADCAST ? op.root : chunk, bytes);
  for (std::size_t m = 0; m < members_.size(); ++m) terms_[m] = targets_[m] = reinterpret_cast<float*>(addresses_[m]);
  const std::span<float* const> all(targets_);
  sum_to_all(terms_, op.kind == RG_OP_ALL_REDUCE ? all : all.subspan(chunk, 1), bytes / sizeof(float));
}

// Copies in blocks, so that each block is read from memory once.
void group::copy_to_others(std::size_t from, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t block = 16 << 10;
  for (std::uint64_t at = 0; at < bytes; at += block)
    for (std::size_t m = 0; m < members_.size(); ++m)
      if (m != from) std::memcpy(addresses_[m] + at, addresses_[from] + at, std::min(block, bytes - at));
}

bool group::is_done(const operation& op) const noexcept {
  std::uint64_t units = 0;
  for (std::size_t s = 0; s < members_.size(); ++s) units += units_of(chunk_of(op, s).size());
  return done(op.number).read(op.number) == units;
}

bool group::finish_first() {
  if (posted_ == 0) return false;
  operation& op = operations_.front();
  if (!op.have_all_arrived) return false;
  if (!op.is_sound) {
    rg::logger(home_.host)
        .warning(std::string("shm: the members of a group called different collectives, or with different buffers; "
                             "this rank called ") +
                 rg::operation_name(op.kind) + " of " + std::to_string(op.count) + " elements");
    retire_first(RG_E_OPERATION);
    return true;
  }
  if (!op.is_worked) {
    if (op.is_small() || !is_done(op)) return false;
    op.is_worked = true;
    home_.counters.bytes_sent += crossed(op);
    home_.counters.bytes_received += crossed(op);
  }
  if (op.unfetched.size() > 0) {
    const std::uint64_t n = std::min(op.unfetched.size(), unit_bytes);
    std::memcpy(op.target + (op.unfetched.at - op.taken.at), op.shared + op.unfetched.at, n);
    op.unfetched.at += n;
    if (op.unfetched.size() > 0) return true;
  }
  retire_first(RG_OK);
  return true;
}

void group::retire_first(rg_status status) {
  const operation op = operations_.front();
  operations_.pop_front();
  if (posted_ > 0) --posted_;
  if (op.is_scratch) home_.memory.free(op.shared);
  line(self_).left.store(op.number + 1);
  if (head().starved.value.load() != 0 && head().starved.value.exchange(0) != 0) wake_others();
  if (status == RG_OK) {
    home_.counters.messages_sent += members_.size() - 1;
    home_.counters.messages_received += members_.size() - 1;
  }
  home_.complete(op.cookie, status, op.bytes());
}

// ---------------------------------------------------------------------------------------------------- the end ---

void group::end(rg_status status) {
  if (is_ended()) return;
  verdict_ = status;
  const peer* lost = lost_member();
  std::uint32_t culprit = 0; // the first to see the loss names the rank for members that do not
  if (head().broken.value.compare_exchange_strong(culprit, (lost ? lost->rank() : home_.rank) + 1))
    culprit = head().broken.value.load();
  if (!operations_.empty())
    home_.report(status,
                 std::string("shm: ") + rg::operation_name(operations_.front().kind) + ": " +
                     (lost ? lost->loss() : "another member of the group lost rank " + std::to_string(culprit - 1)));
  wake_others();
}

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
