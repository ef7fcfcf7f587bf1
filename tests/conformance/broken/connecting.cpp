// SPDX-License-Identifier: Apache-2.0
//
// Transports with a defect in connecting, ending, or running with one rank.
#include "connecting/changed_host.hpp"
#include "connecting/connects_in_vain.hpp"
#include "connecting/dies_unconnected.hpp"
#include "connecting/exact.hpp"
#include "connecting/ignores_a_proof.hpp"
#include "connecting/keeps_rejected.hpp"
#include "connecting/never_misses_anybody.hpp"
#include "connecting/no_word_of_memory.hpp"
#include "connecting/nobody_and_anybody.hpp"
#include "connecting/repeats_its_proof.hpp"
#include "connecting/trusts_everybody.hpp"
#include "connecting/trusts_the_listener.hpp"
#include "connecting/waits_for_ever.hpp"

RG_PLUGIN("broken_connecting", "1.0",
          rg::transport<trusts_everybody>("trusts_everybody", "broken: does not ask for the run's secret"),
          rg::transport<trusts_the_listener>("trusts_the_listener", "broken: only the connecting rank proves itself"),
          rg::transport<ignores_a_proof>("ignores_a_proof", "broken: computes a proof and ignores it"),
          rg::transport<repeats_its_proof>("repeats_its_proof", "broken: a proof without a challenge"),
          rg::transport<keeps_rejected>("keeps_rejected", "broken: a descriptor for each failed connect()"),
          rg::transport<waits_for_ever>("waits_for_ever", "broken: close() ignores its deadline"),
          rg::transport<never_misses_anybody>("never_misses_anybody", "broken: who cannot be reached is there"),
          rg::transport<connects_in_vain>("connects_in_vain", "broken: no rank ever connects"),
          rg::transport<dies_unconnected>("dies_unconnected", "broken: must be connected before it ends"),
          rg::transport<nobody_and_anybody>("nobody_and_anybody", "broken: takes what it cannot deliver"),
          rg::transport<exact>("exact", "nothing wrong: no message is shorter than its receive"),
          rg::transport<no_word_of_memory>("no_word_of_memory", "broken: caps().memory is 0"))
