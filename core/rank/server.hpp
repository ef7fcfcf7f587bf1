// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/record.hpp"
#include "rank/session.hpp"

namespace regatta {

// [main] Serves until every worker has finished.
rank_record run_server(session& s);

} // namespace regatta
