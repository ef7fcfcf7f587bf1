// SPDX-License-Identifier: Apache-2.0
//
// One collective of a transport with known elements, and the check of its result.
#pragma once

#include "check/harness/endpoint.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <regatta/collectives.hpp>
#include <regatta/ext/collectives.h>

namespace regatta::conformance {

struct collective_kind {
  const char* name;
  std::uint32_t kind; // RG_OP_ALL_REDUCE, ...
};
inline constexpr collective_kind collective_kinds[] = {
    {"all-reduce", RG_OP_ALL_REDUCE}, {"reduce-scatter", RG_OP_REDUCE_SCATTER},
    {"all-gather", RG_OP_ALL_GATHER}, {"broadcast", RG_OP_BROADCAST},
    {"reduce", RG_OP_REDUCE},         {"gather", RG_OP_GATHER},
    {"scatter", RG_OP_SCATTER},       {"all-to-all", RG_OP_ALL_TO_ALL},
    {"barrier", RG_OP_BARRIER}};

// Whether the chunks of all members are in the source, or in the target, while the other buffer has this rank's chunk.
bool cuts_source(std::uint32_t kind);
bool cuts_target(std::uint32_t kind);

// A floating-point type that RG_F32 can have on the wire.
struct wire_type {
  std::uint32_t type; // rg_type
  const char* name;
  int digits;         // of the significand, the leading one included
  int least_exponent; // of the smallest normal value
};
inline constexpr wire_type wire_types[] = {{RG_BF16, "bf16", 8, -126},
                                           {RG_F16, "fp16", 11, -14},
                                           {RG_F8_E4M3, "fp8 (E4M3)", 4, -6},
                                           {RG_F8_E5M2, "fp8 (E5M2)", 3, -14}};
// Returns `x` rounded to the type by definition: to the nearest value, ties to even. Requires that it does not
// overflow.
float rounded(float x, const wire_type& to);

// A collective as a transport may offer it.
struct offer {
  collective_kind of;
  std::uint32_t type = RG_F32, reduction = 0;
  const wire_type* wire = nullptr; // null: the type in memory
};
// The combinations that the suite tests: for each kind first those of RG_F32 and RG_SUM, without a wire type.
std::vector<offer> all_offers();

// A collective of a group with this rank in it. Every member r has elements W(r), as many as the buffer that all chunks
// are in; its source is W(r) or its chunk of that.
struct exercise {
  offer what;
  // Elements of the buffer with all chunks; in an all-to-all of source and target, where lay_out() rounds it down to a
  // multiple of the members.
  std::uint64_t count;
  std::uint32_t root = 0;
  bool in_place = true;
  bool has_counts = false;   // chunks of the test's own lengths
  bool in_rank_order = true; // RG_CAP_ASCENDING_SUMS; set by run_collectives()

  // Set by lay_out(); `cookie` by run_collectives().
  std::vector<std::uint64_t> counts{}, target_counts{};
  rg_collective call{};
  std::uint64_t source_at = 0, target_at = 0, end = 0, cookie = 0; // all but `cookie`: offsets in the memory, in bytes

  std::uint64_t element() const { return rg::size_of(what.type); }
  std::uint64_t target_bytes() const { return call.target.count * element(); }

  // Chooses the offsets (bytes) of the buffers from `at` on, with gaps. Returns the offset behind them. Here and below
  // `index` is this rank's number among `members`, counted from 0, and `rank` its number in the run.
  std::uint64_t lay_out(std::uint64_t at, std::uint32_t index, std::uint32_t members);
  void write_source(std::byte* to, std::uint32_t index, std::uint32_t members, std::uint32_t rank) const;
  // Throws failed if `got` is not the target that this rank must have. Without a wire type it must be exact, but an
  // average of floats may differ by four times their epsilon. With a wire type, elements that are not reduced must be
  // the source's, rounded; a maximum must be that of the rounded elements; a sum of n members may differ from the sum
  // of their rounded elements by (n + 1) u of it (an average by (n + 2) u of it), where u = 2^-digits is the largest
  // relative error of a rounding. Over 4000 elements or more the mean of these errors, with their signs, is at most
  // 0.2 u in magnitude.
  void verify(const std::byte* got, const std::vector<std::uint32_t>& members, std::uint32_t index) const;
  // Returns what messages call it: "all-reduce of 16 elements of type 1, in place".
  std::string name() const;

private:
  bool is_root(std::uint32_t index) const { return !rg::has_root(what.of.kind) || root == index; }
  bool uses_source(std::uint32_t index) const;
  bool uses_target(std::uint32_t index) const;
  rg::chunk chunk(std::uint32_t k, std::uint32_t members, std::uint32_t of = 0) const;
  std::uint64_t length(std::uint32_t i, std::uint32_t members) const;
  template <class T> T number(std::uint32_t rank, std::uint64_t i) const;
  template <class T> void write_numbers(std::vector<std::byte>& to, std::uint32_t rank) const;
  std::vector<std::byte> elements_of(std::uint32_t rank) const;
  std::string element_name(std::uint64_t i) const;
  void verify_reduction(const std::byte* got, const std::vector<std::uint32_t>& members, rg::chunk p) const;
  template <class T>
  void verify_numbers(const std::byte* got, const std::vector<std::uint32_t>& members, rg::chunk p) const;
  void verify_rounded(const std::byte* got, const std::vector<std::uint32_t>& members, rg::chunk p) const;
  void verify_copy(const std::byte* got, std::uint64_t at, std::uint32_t from, rg::chunk part) const;
};

// Returns exercises of several sizes, among them some that do not divide evenly among the members or leave chunks
// empty; in place where that is possible and not, with counts and without.
std::vector<exercise> of_all_sizes(const offer& o, std::uint32_t members);

// Begins all collectives in the group with the number `group` (rg_collectives.split), then waits for all. Every member
// calls it with the same exercises. Throws failed if a result is wrong, if the results of an all-reduce differ among
// the members, or if bytes outside the targets change (a reduce-scatter in place may change its whole source).
void run_collectives(endpoint& e, std::uint32_t group, const std::vector<std::uint32_t>& members,
                     std::vector<exercise> exercises);

} // namespace regatta::conformance
