// SPDX-License-Identifier: Apache-2.0
//
// The sections of a page, in the order in which a person asks. Each is a function of the result that appends its parts
// and figures.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "page/page.hpp"
#include "page/view.hpp"
#include "page/writer.hpp"

namespace regatta::page {

// The first section: the experiment, the machine, and whether to trust the result.
void write_trust(writer& w, const result_view& r);
// The claims of the experiment with their verdicts; nothing if it has none.
void write_claims(writer& w, const result_view& r);
// How fast, and how well it scaled.
void write_speed(writer& w, const result_view& r);
// Why it is not faster: causes of lost efficiency; write_bounds().
void write_losses(writer& w, const result_view& r);
// Bytes, processor time and memory, and a table of times beside what the machine would allow.
void write_bounds(writer& w, const result_view& r);
// The steps by rank and over the run.
void write_steps(writer& w, const result_view& r);
// One step of all ranks as a timeline, and its critical path. `traces`: as in source.
void write_timeline(writer& w, const result_view& r, const trace_source& traces);
// Loss and metric over steps, time and bytes.
void write_learning(writer& w, const result_view& r);
// How to run it again. `toml`: the resolved experiment as text; empty: unknown.
void write_again(writer& w, const nlohmann::json& context, const std::string& toml);
// Results of `regatta comm` (schema regatta.comm/1).
void write_comm(writer& w, const nlohmann::json& document);

} // namespace regatta::page
