// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/record.hpp"
#include "rank/session.hpp"

namespace regatta {

// Serves until every worker has said goodbye. [main]
rank_record run_server(session& s);

} // namespace regatta
