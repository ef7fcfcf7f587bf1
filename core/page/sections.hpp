// SPDX-License-Identifier: Apache-2.0
//
// The sections of a page, in the order in which a person asks. Each function appends the headings, texts, tables and
// figures of its section to `w`.
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
// Why it is not faster: the causes of lost efficiency. Calls write_bounds() for the end of the section.
void write_losses(writer& w, const result_view& r);
// The costs of a step by case (bytes, CPU time, peak memory), and a table of measured times and bytes, each beside the
// least that the machine would allow.
void write_bounds(writer& w, const result_view& r);
// The steps by rank and over the run.
void write_steps(writer& w, const result_view& r);
// One step of all ranks as a timeline, and its critical path. traces(i) returns the traces of all ranks of case i, or
// an empty list if it has none. If it throws failure, the section shows the text of that. An empty `traces` means that
// no case has a trace; the section then says how to record one.
void write_timeline(writer& w, const result_view& r, const trace_source& traces);
// Loss and metric over steps, time and bytes.
void write_learning(writer& w, const result_view& r);
// How to run it again: command, hosts, plugins and data. `context` is the member "context" of the document, `toml` the
// resolved TOML of its first case; an empty `toml` is left out.
void write_again(writer& w, const nlohmann::json& context, const std::string& toml);
// Time and bandwidth by size, or the links between ranks if it has a matrix. `document` is a result of `regatta comm`
// (schema regatta.comm/1).
void write_comm(writer& w, const nlohmann::json& document);

} // namespace regatta::page
