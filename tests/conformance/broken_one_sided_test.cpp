// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` finds the defect of each broken put or get in the right test, and reports nothing else.
#include "broken.hpp"

using namespace regatta::test;

TEST_CASE("broken puts and gets") {
  // (On a busy machine its puts are noticed too early in unpolled-notifications, too.)
  finds("transport/notifies_early", {"notifications"}, {"get-after-put", "fifo"});
  finds("transport/rounds_regions_up", {"one-sided-refusals"}, {"put-get", "notifications", "get-after-put"});
  finds("transport/gets_stale", {"get-after-put"}, {"put-get", "notifications", "one-sided-refusals"});
  finds("transport/completes_puts_twice", {"put-get", "notifications"}, {"fifo", "cancel"});
  finds("transport/takes_any_key", {"one-sided-refusals"}, {"put-get", "notifications", "get-after-put"});
  finds("transport/merges_notifications", {"notifications"}, {"put-get", "get-after-put", "one-sided-refusals"});
}

TEST_CASE("a transport without put and get is not tested for them") {
  const names all = {"put-get",       "notifications",      "unpolled-notifications",
                     "get-after-put", "one-sided-refusals", "cancelled-owner",
                     "killed-owner"};
  CHECK(check("transport/reorders", all, all).skipped == all);
}
