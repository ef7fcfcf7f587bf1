// SPDX-License-Identifier: Apache-2.0
//
// Collectives over the example transport: a correct one, and others with one defect each.
#include "collectives/blames_the_collective.hpp"
#include "collectives/broadcasts_from_first.hpp"
#include "collectives/forgets_all.hpp"
#include "collectives/forgets_some.hpp"
#include "collectives/gathers_lines.hpp"
#include "collectives/overwrites_beside.hpp"
#include "collectives/places_by_rank.hpp"
#include "collectives/scatters_evenly.hpp"
#include "collectives/takes_any_collective.hpp"

RG_PLUGIN("broken_collectives", "1.0", rg::transport<sends_all>("sends_all", "sound, and slow"),
          rg::transport<sends_rounded>("sends_rounded", "sound, with a wire type"),
          rg::transport<scatters_evenly>("scatters_evenly", "broken: shares of its own cut"),
          rg::transport<gathers_lines>("gathers_lines", "broken: gathers whole lines only"),
          rg::transport<broadcasts_from_first>("broadcasts_from_first", "broken: one root for all"),
          rg::transport<places_by_rank>("places_by_rank", "broken: places are ranks"),
          rg::transport<forgets_some>("forgets_some", "broken: not too many at a time"),
          rg::transport<forgets_all>("forgets_all", "broken: does nothing"),
          rg::transport<blames_the_collective>("blames_the_collective", "broken: a death is no error of its own"),
          rg::transport<takes_any_collective>("takes_any_collective", "broken: refuses nothing"),
          rg::transport<overwrites_beside>("overwrites_beside", "broken: writes behind the buffer"))
