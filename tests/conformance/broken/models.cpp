// SPDX-License-Identifier: Apache-2.0
//
// The example model, each time with one defect.
#include "models/allocates.hpp"
#include "models/counts_no_terms.hpp"
#include "models/counts_rows.hpp"
#include "models/crashes.hpp"
#include "models/differs_a_little.hpp"
#include "models/divides_by_its_own_batch.hpp"
#include "models/doubles_in_bf16.hpp"
#include "models/evaluates_afresh.hpp"
#include "models/exits.hpp"
#include "models/five_percent_in_bias.hpp"
#include "models/five_percent_in_weight.hpp"
#include "models/forgets_to_accumulate.hpp"
#include "models/nan_in_bias.hpp"
#include "models/never_asks.hpp"
#include "models/opened.hpp"
#include "models/ready_too_early.hpp"
#include "models/starts_anyhow.hpp"
#include "models/turns_twice.hpp"
#include "models/wrong_gradient.hpp"

RG_PLUGIN("broken_models", "1.0",
          rg::model<wrong_gradient>("wrong_gradient", "broken: half of the gradient is missing"),
          rg::model<counts_no_terms>("counts_no_terms", "broken: a loss of no terms"),
          rg::model<exits>("exits", "broken: ends the process in its step"),
          rg::model<crashes>("crashes", "broken: a crash in its step"),
          rg::model<nan_in_bias>("nan_in_bias", "broken: a gradient that is not a number"),
          rg::model<opened>("sound_regression", "nothing wrong: what the others are made of"),
          rg::model<five_percent_in_weight>("five_percent_in_weight", "broken: a gradient that is 5 % too large"),
          rg::model<five_percent_in_bias>("five_percent_in_bias", "broken: a bias's gradient that is 5 % too small"),
          rg::model<differs_a_little>("differs_a_little", "broken: other gradients every other time"),
          rg::model<allocates>("allocates", "broken: memory in every step"),
          rg::model<ready_too_early>("ready_too_early", "broken: gradients that are not there yet"),
          rg::model<never_asks>("never_asks", "broken: reads weights that may not be there yet"),
          rg::model<forgets_to_accumulate>("forgets_to_accumulate", "broken: keeps the last micro-batch only"),
          rg::model<divides_by_its_own_batch>("divides_by_its_own_batch", "broken: a mean of means"),
          rg::model<starts_anyhow>("starts_anyhow", "broken: other weights every time"),
          rg::model<turns_twice>("turns_twice", "broken: its canonical layout does not lead back"),
          rg::model<counts_rows>("counts_rows", "broken: a row's start depends on who asks for it with others"),
          rg::model<doubles_in_bf16>("doubles_in_bf16", "broken: counts a gradient twice in bf16"),
          rg::model<evaluates_afresh>("evaluates_afresh", "broken: forgets the batches before"))
