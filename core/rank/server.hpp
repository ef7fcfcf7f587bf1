// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/rank_record.hpp"
#include "rank/session.hpp"

namespace regatta {

// [main] Runs a rank that is only a server: serves until every worker has finished, and takes part in the workers'
// collective calls on the control channel. Requires an open session and a passed barrier "ready". Throws failure, which
// the caller reports to the coordinator. A failure of this thread while it serves is reported here too, at once,
// because the function may return only after the coordinator has aborted the run.
rank_record run_server(session& s);

} // namespace regatta
