// SPDX-License-Identifier: Apache-2.0
//
// The costs of a virtual network. Times are in ns, rates in bytes per ns (1.25 is 10 Gbit/s). The names of LogGOPS
// (Hoefler et al., 2010) stand behind the members: L, o, O, g, G.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace regatta {

// The link of a host to the network, full duplex. The ranks of the host share it.
struct network_link {
  double out_bytes_per_ns = 1, in_bytes_per_ns = std::numeric_limits<double>::infinity(); // 1 / G
  std::uint64_t latency_ns = 1000; // L; of two hosts the larger one counts
  std::uint64_t jitter_ns = 0;     // extra latency of a message: uniform from 0 to the larger one of two hosts
  bool operator==(const network_link&) const = default;
};

// Switches that each connect some links, with one link to the others, full duplex. Messages between links of different
// groups pass those of both.
struct switch_tier {
  std::vector<std::uint32_t> group_of; // by link of network_options::links
  double bytes_per_ns = 1;             // of a group's link, in each direction
};

// How a link serves messages that wait for it. See also network_options::urgent_lanes_first.
enum class link_order : std::uint8_t {
  // One message after the other, in the order of submission. A message that has begun to leave is not interrupted.
  in_turn,
  // Messages that are submitted at the same time on the same lane share the link, and have left when the last byte of
  // all of them has; those that were submitted earlier leave first. Messages on a more urgent lane interrupt others. The
  // link is as busy as with `in_turn`, but treats all peers alike: required to fold parameter servers, that is, to
  // simulate one worker and one server for all.
  shared
};

struct network_options {
  bool eager = true; // else rendezvous
  bool adds = true;  // the transport adds on receive, fp32 only
  // The transport has native collectives; they reduce fp32 only. They take the time of a ring with latency_ns and
  // bytes_per_ns, also beside `links`.
  bool collectives = false;
  bool hesitates = false; // every collective is refused once with RG_AGAIN, and accepted when the rank repeats it
  // Every other native collective ends 50 * latency_ns later on ranks with odd numbers: not all ranks see them end in
  // the same order.
  bool staggers = false;
  std::uint64_t latency_ns = 1000; // L, without `links`
  bool uneven = false;             // the latency of each pair of ranks is another multiple of `latency_ns`, from 1 to 5
  double bytes_per_ns = 1.0; // 1 / G of each rank's outgoing link, without `links`; the incoming one takes no time
  // The messages of one rank to another arrive in the order of their sends over all lanes, as if there were one queue;
  // with rendezvous only. A message without a receive then blocks those of the other lanes.
  bool one_queue = false;
  bool exact = false; // a receive of a shorter message ends with RG_E_PEER, as that of a longer one always does

  link_order order = link_order::in_turn;
  // Messages on lower lanes leave before those on higher ones. Else links serve all as if they had one lane: bytes that
  // are written to sockets wait in one queue of the kernel, whichever socket they are from.
  bool urgent_lanes_first = true;
  // The links of hosts; empty: every rank has a link of its own. simulation_setup::link_of says which ranks share one.
  // Messages between these take `inside`, which each rank has for itself. A message takes its receiver's incoming link
  // as well: bytes pass both links at once, and a busy receiver delays the last one.
  std::vector<network_link> links;
  // From the hosts to the top: links in one group of a tier are in one group of the next tier.
  std::vector<switch_tier> tiers;
  std::uint64_t seed = 1; // of the jitter
  network_link inside{10.0, std::numeric_limits<double>::infinity(), 500};
  // The work of a rank for each message, beside the model's computing. One thread of a rank does it, so its sends and
  // receives take turns. A send takes o + bytes * O before its last byte can leave. A receive takes as long from its
  // first byte on, and at least o after its last byte.
  std::uint64_t overhead_ns = 0;   // o
  double overhead_ns_per_byte = 0; // O, the mean of the sender's and the receiver's
  double send_share = 0.5;         // the sender's part of 2 * O, from 0 to 1
  // Each byte of a message beyond `large_from` counts as `large_factor` bytes of work.
  std::uint64_t large_from = UINT64_MAX;
  double large_factor = 1;
  double add_ns_per_byte = 0; // on top of O, of a receive that adds: a server's sum
  // Of each byte that the engine reads or writes where it converts a message to bf16 or fp16, before it is sent, and
  // back, once it has come. The thread that sends and receives does it.
  double bf16_ns_per_byte = 0, fp16_ns_per_byte = 0;
  std::uint64_t gap_ns = 0; // g, the time that a link takes for each message beside its bytes
};

} // namespace regatta
