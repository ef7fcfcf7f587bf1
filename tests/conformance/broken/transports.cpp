// SPDX-License-Identifier: Apache-2.0
//
// The example transport, each time with one defect that the conformance suite must find.
#include "transports/cancels_everybody.hpp"
#include "transports/cancels_twice.hpp"
#include "transports/cannot_spin.hpp"
#include "transports/closes_nothing.hpp"
#include "transports/completes_early.hpp"
#include "transports/counts_anew.hpp"
#include "transports/counts_in_31_bits.hpp"
#include "transports/counts_nothing.hpp"
#include "transports/crashes_on_cancel.hpp"
#include "transports/drops_at_close.hpp"
#include "transports/has_its_own_time.hpp"
#include "transports/has_no_device.hpp"
#include "transports/invents_a_completion.hpp"
#include "transports/knows_few_types.hpp"
#include "transports/leaves_a_file.hpp"
#include "transports/loses_last_byte.hpp"
#include "transports/mistakes_a_death.hpp"
#include "transports/never_fails.hpp"
#include "transports/never_returns.hpp"
#include "transports/one_lane_at_a_time.hpp"
#include "transports/one_way_at_a_time.hpp"
#include "transports/overstates.hpp"
#include "transports/refuses_a_choice.hpp"
#include "transports/reorders.hpp"
#include "transports/spins.hpp"
#include "transports/takes_and_refuses.hpp"
#include "transports/takes_anything.hpp"
#include "transports/tells_the_receiver.hpp"
#include "transports/wants_alignment.hpp"

RG_PLUGIN("broken_transports", "1.0", rg::transport<reorders>("reorders", "broken: swaps messages"),
          rg::transport<completes_early>("completes_early", "broken: a send is over before its bytes are safe"),
          rg::transport<drops_at_close>("drops_at_close", "broken: close does not send what is left"),
          rg::transport<closes_nothing>("closes_nothing", "broken: close() does nothing"),
          rg::transport<overstates>("overstates", "broken: every message is as long as its receive"),
          rg::transport<takes_and_refuses>("takes_and_refuses", "broken: what was refused is sent, too"),
          rg::transport<never_fails>("never_fails", "broken: what failed is said to have worked"),
          rg::transport<takes_anything>("takes_anything", "broken: accepts what it cannot send"),
          rg::transport<cancels_everybody>("cancels_everybody", "broken: cancels all for one"),
          rg::transport<loses_last_byte>("loses_last_byte", "broken: long messages arrive a byte shorter"),
          rg::transport<knows_few_types>("knows_few_types", "broken: refuses types of elements that it does not know"),
          rg::transport<spins>("spins", "broken: uses a core while it waits"),
          rg::transport<counts_in_31_bits>("counts_in_31_bits", "broken: two GiB are nothing"),
          rg::transport<one_way_at_a_time>("one_way_at_a_time", "broken: does not receive while it sends"),
          rg::transport<one_lane_at_a_time>("one_lane_at_a_time", "broken: lanes wait for each other"),
          rg::transport<wants_alignment>("wants_alignment", "broken: not from any address"),
          rg::transport<mistakes_a_death>("mistakes_a_death", "broken: a dead peer is no error of its own"),
          rg::transport<cannot_spin>("cannot_spin", "broken: only sleeps"),
          rg::transport<invents_a_completion>("invents_a_completion", "broken: completes nothing to wake"),
          rg::transport<never_returns>("never_returns", "broken: a poll that waits does so for ever"),
          rg::transport<tells_the_receiver>("tells_the_receiver", "nothing wrong: as over tag matching"),
          rg::transport<has_no_device>("has_no_device", "broken: cannot be opened"),
          rg::transport<counts_nothing>("counts_nothing", "broken: has no counters"),
          rg::transport<cancels_twice>("cancels_twice", "broken: a cancelled operation completes twice"),
          rg::transport<has_its_own_time>("has_its_own_time", "broken: time stamps are not of CLOCK_MONOTONIC"),
          rg::transport<counts_anew>("counts_anew", "broken: a counter of its own decreases"),
          rg::transport<crashes_on_cancel>("crashes_on_cancel", "broken: aborts"),
          rg::transport<leaves_a_file>("leaves_a_file", "broken: a file for every instance"),
          rg::transport<refuses_a_choice>("refuses_a_choice", "broken: not every value of its table will do"))
