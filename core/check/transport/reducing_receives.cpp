// SPDX-License-Identifier: Apache-2.0
//
// Receives that add, whose result is bit-identical to a sum in the order in which they were posted, and receives into
// the same bytes.
#include "check/harness/rank_group.hpp"
#include "check/transport/collective_exercise.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include <fmt/format.h>

namespace regatta::conformance {
namespace {

void fill_terms(float* to, std::uint64_t count, std::uint64_t seed) {
  for (std::uint64_t i = 0; i < count; ++i) to[i] = term(seed, i);
}

void need_ordered_receives(const subject& which) {
  if (!(caps_of(which).flags & RG_CAP_ORDERED_RECEIVES))
    throw skipped("the engine orders its receives (it has no RG_CAP_ORDERED_RECEIVES)");
}

void need_reducing_receives(const subject& which) {
  if (!(caps_of(which).flags & RG_CAP_ADD)) throw skipped("it offers no receives that add (RG_CAP_ADD)");
}

void sums(const subject& which) {
  need_reducing_receives(which);
  run_ranks(which, {}, [](member& self) {
    const std::uint64_t counts[] = {0, 1, 2, 17, 1023, 2047, 2049, 32768, 100003, 3000001};
    const memory m = self->allocate(4 * 3000001 + 64);
    std::vector<float> expected;
    for (const std::uint64_t count : counts)
      for (const std::uint64_t shift : {0, 1, 4}) { // bytes
        std::byte* const at = m.data + shift;
        expected.resize(count + 1);
        if (self->rank() == 0) {
          fill_terms(expected.data(), count, count + 1);
          std::memcpy(at, expected.data(), 4 * count);
          self->finish(self->send(1, 0, m, shift, 4 * count));
        } else {
          fill_terms(expected.data(), count + 1, count + 2);
          std::memcpy(at, expected.data(), 4 * count + 4);
          for (std::uint64_t i = 0; i < count; ++i) expected[i] += term(count + 1, i);
          const std::uint64_t got = self->finish(self->recv(0, 0, m, shift, 4 * count, RG_TRANSFER_ADD));
          require(got == 4 * count, "a receive that adds completes with another length than its message's");
          require(std::memcmp(at, expected.data(), 4 * count + 4) == 0,
                  "a receive that adds " + std::to_string(count) +
                      " floats gives a wrong sum, or changes bytes behind it");
        }
      }
  });
}

void short_sums(const subject& which) {
  need_reducing_receives(which);
  run_ranks(which, {}, [](member& self) {
    const memory m = self->allocate(4 * 50000);
    fill_terms(m.floats(), 50000, self->rank());
    if (self->rank() == 0) {
      self->finish(self->send(1, 0, m, 0, 4 * 30001));
    } else {
      require(self->finish(self->recv(0, 0, m, 0, 4 * 50000, RG_TRANSFER_ADD)) == 4 * 30001,
              "a receive that adds completes with another length than its message's");
      for (std::uint64_t i = 0; i < 50000; ++i)
        require(m.floats()[i] == (i < 30001 ? term(1, i) + term(0, i) : term(1, i)),
                "a message shorter than its receive gives a wrong sum, or changes floats behind its end");
    }
  });
}

// The receiver posts in rank order. Messages are sent in the opposite order, each only after the one before was posted.
void posting_order(const subject& which) {
  need_reducing_receives(which);
  need_ordered_receives(which);
  run_ranks(which, {.ranks = 4, .lanes = 2}, [](member& self) {
    constexpr std::uint64_t rounds = 12, shift = 1000;
    const memory token = self->allocate(8);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t count = 3000 + round * 20011;
      const memory m = self->allocate(4 * (count + 3 * shift));
      const std::uint32_t me = self->rank();
      if (me == 0) {
        const std::uint64_t whole = count + 3 * shift;
        std::vector<float> expected(whole);
        fill_terms(expected.data(), whole, 77 + round);
        std::memcpy(m.data, expected.data(), 4 * whole);
        std::vector<std::uint64_t> receives;
        // Post two receives from every peer, each at another offset, so that all of them overlap.
        for (std::uint32_t pass = 0; pass < 2; ++pass)
          for (std::uint32_t peer = 1; peer < 4; ++peer) {
            const std::uint64_t first = peer * shift - shift * pass;
            receives.push_back(self->recv(peer, pass, m, 4 * first, 4 * count, RG_TRANSFER_ADD));
            for (std::uint64_t i = 0; i < count; ++i) expected[first + i] += term(peer * 10 + pass, i);
          }
        self->finish(receives);
        require(std::memcmp(m.data, expected.data(), 4 * whole) == 0,
                "overlapping receives that add are not applied in the order in which they were posted");
      } else {
        std::vector<std::uint64_t> sends;
        const memory second_message = self->allocate(4 * count);
        fill_terms(second_message.floats(), count, me * 10 + 1);
        fill_terms(m.floats(), count, me * 10);
        if (me < 3) self->finish(self->recv(me + 1, 0, token, 0, 8)); // the next rank has posted its messages by then
        sends.push_back(self->send(0, 1, second_message, 0, 4 * count));
        sends.push_back(self->send(0, 0, m, 0, 4 * count));
        self->poll(0);
        if (me > 1) sends.push_back(self->send(me - 1, 0, token, 0, 8));
        self->finish(sends);
      }
      self.barrier();
    }
  });
}

// Rank 2 sends before rank 1 does; rank 0 has posted the receive from rank 1 before.
void two_into_the_same(const subject& which, std::uint32_t flags, const char* wrong) {
  run_ranks(which, {.ranks = 3}, [flags, wrong](member& self) {
    constexpr std::uint64_t count = 200000;
    const memory m = self->allocate(4 * count), token = self->allocate(8);
    fill_terms(m.floats(), count, self->rank());
    if (self->rank() == 0) {
      const std::uint64_t first = self->recv(1, 0, m, 0, 4 * count);
      const std::uint64_t second = self->recv(2, 0, m, 0, 4 * count, flags);
      self->finish(second);
      self->finish(first);
      for (std::uint64_t i = 0; i < count; ++i) require(m.floats()[i] == (flags ? term(1, i) : 0) + term(2, i), wrong);
    } else if (self->rank() == 2) {
      const std::uint64_t sent = self->send(0, 0, m, 0, 4 * count);
      self->poll(0);
      self->finish(self->send(1, 0, token, 0, 8));
      self->finish(sent);
    } else {
      self->finish(self->recv(2, 0, token, 0, 8));
      self->finish(self->send(0, 0, m, 0, 4 * count));
    }
  });
}

void copy_then_add(const subject& which) {
  need_reducing_receives(which);
  need_ordered_receives(which);
  two_into_the_same(which, RG_TRANSFER_ADD,
                    "a receive that adds is not applied after an earlier receive into the same bytes");
}

void copy_then_copy(const subject& which) {
  need_ordered_receives(which);
  two_into_the_same(which, 0, "a receive is not applied after an earlier receive into the same bytes");
}

// ------------------------------------------------------------------------------------------------------ conversion ---

// Returns values from 2^-16 to 2^10, which fp16 can hold, partly as subnormals; also ties between two values of bf16 or
// fp16.
float moderate(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t x = (seed * 0x9e3779b97f4a7c15 + i) * 0xbf58476d1ce4e5b9;
  if (x % 7 == 0) return 1.0F + static_cast<float>(2 * (i % 500) + 1) / (i % 2 ? 256.0F : 2048.0F);
  const float mantissa = 1.0F + static_cast<float>(x >> 41) * 0x1p-23F;
  return std::ldexp(x & 1 ? -mantissa : mantissa, static_cast<int>((x >> 32) % 27) - 16);
}

void conversion(const subject& which) {
  const rg_transport_caps caps = caps_of(which);
  if (!(caps.flags & RG_CAP_CONVERT)) throw skipped("it does not convert to bf16 and fp16 (RG_CAP_CONVERT)");
  run_ranks(which, {}, [&](member& self) {
    for (const wire_type& type : std::span(wire_types).first(2)) // bf16 and fp16
      for (const std::uint64_t count : {0, 1, 17, 1023, 32769, 500'003})
        for (const bool add : {false, true}) {
          if (add && !(caps.flags & RG_CAP_ADD)) continue;
          const memory m = self->allocate(4 * count + 4);
          const std::uint32_t me = self->rank();
          for (std::uint64_t i = 0; i <= count; ++i) m.floats()[i] = moderate(me, i);
          if (me == 0) {
            self->finish(self->send(1, 0, m, 0, 4 * count, type.type));
            continue;
          }
          const std::uint64_t bytes =
              self->finish(self->recv(0, 0, m, 0, 4 * count, add ? RG_TRANSFER_ADD : 0, type.type));
          require(bytes == 4 * count,
                  "a converting receive completes with another length than its fp32 elements have in memory");
          for (std::uint64_t i = 0; i <= count; ++i) {
            const float received = rounded(moderate(0, i), type), had = moderate(1, i);
            const float expected = i == count ? had : add ? had + received : received;
            if (m.floats()[i] != expected)
              throw failed(fmt::format("element {} of {} is {:f} instead of {:f}", i, count, m.floats()[i], expected));
          }
        }
  });
}

} // namespace

std::vector<test> reducing_receive_tests() {
  return {
      {"add", "receives of any length and alignment can add", sums, false, true},
      {"add-short", "a message may be shorter than a receive that adds it", short_sums, false, true},
      {"add-order", "overlapping receives that add are applied in the order in which they were posted", posting_order,
       false, true},
      {"add-after-copy", "a receive that adds is applied after earlier receives into the same bytes", copy_then_add,
       false, true},
      {"overlap", "a receive is applied after an earlier receive into the same bytes", copy_then_copy, false, true},
      {"convert", "floats are sent as bf16 or fp16, rounded to nearest even, and added in fp32", conversion, false,
       true},
  };
}

} // namespace regatta::conformance
