// SPDX-License-Identifier: Apache-2.0
//
// Transports with a defect in an optional part: receives that add, conversion, regions, collectives.
#include "extensions/adds_in_sixteens.hpp"
#include "extensions/adds_on_arrival.hpp"
#include "extensions/copies_last.hpp"
#include "extensions/cuts_floats.hpp"
#include "extensions/overstates_sums.hpp"
#include "extensions/sums_alone.hpp"
#include "extensions/used_memory.hpp"

RG_PLUGIN("broken_extensions", "1.0",
          rg::transport<adds_on_arrival>("adds_on_arrival", "broken: adds in the order of arrival"),
          rg::transport<adds_in_sixteens>("adds_in_sixteens", "broken: adds whole lines only"),
          rg::transport<overstates_sums>("overstates_sums", "broken: every sum is as long as its receive"),
          rg::transport<copies_last>("copies_last", "broken: a copy overwrites what was added after it"),
          rg::transport<cuts_floats>("cuts_floats", "broken: does not round"),
          rg::transport<sums_alone>("sums_alone", "broken: an all-reduce of one rank"),
          rg::transport<used_memory>("used_memory", "broken: its memory is not zeroed"))
