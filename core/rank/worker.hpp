// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/rank_record.hpp"
#include "rank/session.hpp"

namespace regatta {

// [compute] Trains: warm-up, barrier, timed steps, drain, evaluation. Also serves where a server is co-located.
// Requires an open session and a passed barrier "ready". Throws failure; one of strategy_loop's second thread, or of a
// model's wrong call of a hook, is already reported to the coordinator.
rank_record run_worker(session& s);

} // namespace regatta
