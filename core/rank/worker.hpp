// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/record.hpp"
#include "rank/session.hpp"

namespace regatta {

// Trains: warm-up, barrier, timed steps, drain, evaluation. Serves too where a server shares the rank. [compute]
rank_record run_worker(session& s);

} // namespace regatta
