// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/rank_record.hpp"
#include "rank/session.hpp"

namespace regatta {

// [main] Runs a rank that is only a server: serves until every worker has finished, and takes part in the workers'
// collective calls on the control channel. Requires an open session and a passed barrier "ready". Throws failure; one
// of the serving thread is already reported to the coordinator.
rank_record run_server(session& s);

} // namespace regatta
