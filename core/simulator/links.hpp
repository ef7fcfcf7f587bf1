// SPDX-License-Identifier: Apache-2.0
//
// The way of a message from a send to its receiver: the sender's processor, the outgoing link, the latency, the links
// of switches (up from the sender's, down to the receiver's), the incoming link, the receiver's processor
// (network_options). Stages that cost nothing are left out. A processor's work may wait for a core
// (message_sink::works).
//
// With link_order::shared, what happens at the same time has no order: messages of one time pass a stage together, in a
// batch, and a stage begins with a batch at the end of an instant (end_instant()), when nothing else happens in it.
#pragma once

#include "message.hpp"
#include "network_options.hpp"

#include <cstdint>
#include <vector>

namespace regatta {

// The events that links report to the network. Called within submit(), handle() and end_instant().
class message_sink {
public:
  // The last byte of a message has left its rank. The sink calls links::travel() for it.
  virtual void left(std::uint32_t message) = 0;
  // A message has arrived at its receiver's host. The sink calls links::receive() for it, and for any copies of it.
  virtual void arrived(std::uint32_t message) = 0;
  // A message can be copied to its target.
  virtual void delivered(std::uint32_t message) = 0;
  // Returns whether the receive of a message adds; false if none is posted yet.
  virtual bool adds(const network_message& m) const = 0;
  // The processor of a rank works on messages for `ns`, from `earliest` on or, where it waits for a core, later. Returns
  // when it begins. `earliest` may be in the past: the work of a receive begins with the first byte, and is reported
  // when the last one has come. `receives`: whether it is that of a receive. The sends and receives of a rank take
  // turns.
  virtual std::uint64_t works(std::uint32_t rank, bool receives, std::uint64_t earliest, std::uint64_t ns) = 0;

protected:
  ~message_sink() = default;
};

class links {
public:
  // `link_of`: the link of each rank in options.links, one element for each rank; if options.links is empty, every rank
  // has its own link. Borrows the others.
  links(std::vector<std::uint32_t> link_of, const network_options& options, event_queue& events,
        slab<network_message>& all, message_sink& sink);
  // Begins to send a message, whose from, to, channel, lane and bytes are set.
  void submit(std::uint32_t m);
  void travel(std::uint32_t m);
  void receive(std::uint32_t m);
  // Handles an event of the kinds batch_left to batch_received.
  void handle(const event& e);
  // Begins what waits for the end of the instant; returns whether there was anything. Call it when all ranks have
  // reacted to all events up to now, until it returns false.
  bool end_instant();

private:
  // Messages that pass a stage together.
  struct batch {
    slab_queue messages;
    std::uint64_t count = 0, bytes = 0; // of messages; on a processor work_bytes()
    std::uint64_t submitted = 0;        // time
    std::uint64_t first = 0;            // when its first byte left, or came
    std::uint64_t not_before = 0;       // passes no earlier
    std::uint64_t takes = 0;            // what is left of its time on the link; on a processor, of adding
    std::uint64_t converts = 0;         // on a processor: the time of conversions
    std::uint64_t end = 0;              // while it is on the link
    std::uint32_t link = 0;
    std::uint32_t next = nothing;
  };
  struct lane_queue {
    std::uint32_t lane;
    slab_queue batches;  // shared
    slab_queue messages; // in_turn: there may be millions, and none has a batch before it leaves
  };
  struct outgoing { // a link
    double bytes_per_ns;
    std::uint32_t busy = nothing; // the batch that is leaving
    std::uint32_t busy_lane = 0;
    bool dirty = false;            // in dirty_links_
    std::vector<lane_queue> lanes; // ascending
  };
  struct incoming {               // a link or a processor; passes messages in the order in which they come
    std::uint64_t busy_until = 0; // with all messages so far
    std::uint32_t open = nothing; // shared: the batch of this instant
    double ns_per_byte = 0;       // of a link
    std::uint64_t gap_ns = 0;     // of a link: for each message, beside its bytes
  };

  std::uint32_t link_from(const network_message& m) const { return is_inside(m) ? inside_ + m.from : own_link(m.from); }
  bool is_inside(const network_message& m) const { return hosts_ && link_of_[m.from] == link_of_[m.to]; }
  std::uint32_t own_link(std::uint32_t rank) const { return hosts_ ? link_of_[rank] : rank; }
  std::uint64_t latency(const network_message& m) const;
  std::uint64_t jitter(const network_message& m);
  std::uint32_t stage_of(const network_message& m) const; // number in incoming_ of its next one; nothing: it has none
  std::uint64_t work_bytes(const network_message& m) const;
  std::uint64_t cost(std::uint64_t messages, std::uint64_t bytes, double ns_per_byte) const; // of a processor
  bool in_turn() const { return options_.order == link_order::in_turn; }

  std::uint64_t conversion(const network_message& m, bool adds) const; // of a processor
  void prepare(std::uint32_t b, std::uint64_t ns, std::uint64_t converts);
  void prepared(std::uint32_t m);      // by the sender's processor
  void begin_link(std::uint32_t link); // the next batch, if the link is free
  void begin_next(std::uint32_t link); // in_turn: the next message, if the link is free
  void begin_batch(outgoing& l, std::uint32_t lane, std::uint32_t b);
  void left(std::uint32_t b); // a batch
  void add_to(incoming& stage, std::vector<std::uint32_t>& dirty, std::uint32_t number, std::uint32_t m,
              std::uint64_t bytes);
  void pass(incoming& stage, std::uint32_t b, double ns_per_byte, std::uint64_t ns_per_message, std::uint64_t after,
            network_event kind);
  void passed(std::uint32_t b);   // a link in incoming_
  void process(std::uint32_t m);  // begins with the receiver's processor
  void received(std::uint32_t b); // the receiver's processor
  void begin_incoming(std::uint32_t link);
  void begin_processor(incoming& stage); // of a receiver
  void settle_incoming();
  void settle_processors();
  void settle_outgoing();

  std::vector<std::uint32_t> link_of_;
  const network_options options_;
  event_queue& events_;
  slab<network_message>& all_;
  message_sink& sink_;
  // Whether there are host links, overheads, incoming links that take time, links with jitter.
  bool hosts_, overhead_, receives_, jitters_;
  double send_ns_per_byte_, receive_ns_per_byte_; // of processors
  std::uint32_t inside_;                          // number of the first link inside a host
  slab<batch> batches_;
  std::vector<outgoing> outgoing_;
  std::vector<incoming> incoming_;        // by link; then of each tier: up and down by switch_tier::group_of
  std::vector<std::uint32_t> tier_begin_; // by tier: the number of its first link up in incoming_
  std::vector<std::uint32_t> groups_;     // by tier: their number
  std::vector<std::uint64_t> arrives_;    // with jitter, by sender, receiver and lane: when the last message does
  std::uint64_t delays_ = 0;              // with jitter: numbers drawn
  std::vector<incoming> processors_;      // by rank: of its sends and receives
  std::vector<std::uint32_t> outbox_;     // shared: batch of this instant, by rank
  std::vector<std::uint32_t> dirty_links_, dirty_incoming_, dirty_receivers_, dirty_outboxes_, settling_;
};

} // namespace regatta
