// SPDX-License-Identifier: Apache-2.0
//
// Finds hosts that are worse than, or differ from, the others of a launch. A document regatta.preflight/1:
//   { "schema", "context": as in regatta.comm/1,
//     "hosts": [ { "name", "fma": FLOP/s and "copy": bytes/s of all CPUs, "cpu_share", "throttled", "interface",
//                  "subnet", "mtu", "cgroup_cpus", "gpus": NVIDIA's models, "devices": rates of GPUs
//                  (comm/device_checks.hpp), and medians over its links alone, null if none was measured: "sends",
//                  "receives": bytes/s, "latency": s, of those out, "loss_out", "loss_in": shares } ],
//     "links": a matrix (comm/matrix.hpp); null with one host,
//     "measured": members of a survey (comm/survey.hpp), but of "alone" and "at_once" the number of pairs: { "pairs",
//                 "alone", "at_once", "pairs_at_once", "rate_at_once", "seconds": { "alone", "at_once", "again" } };
//                 null with one host,
//     "bisection": { "pairs": at once, "halves": bytes/s of hosts of the first half with those of the second,
//                    "neighbours": of each host with the next one, "alone": the sum that they would reach if they did
//                    not share anything }; null with one host,
//     "suspects": [ { "hosts": [ name, ... ], "check", "evidence" } ], "notes": [ text ] }
// A suspect with one host is that host; with two, either of them or the path between them; with more, any of them.
// "check": program, plugin, interface, mtu, quota, gpu, compute, memory, gpu_compute, gpu_memory, path_mtu, bandwidth,
// latency, loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "comm/plan.hpp"

namespace regatta::comm {

// The facts that the coordinator knows of a host.
struct host_facts {
  std::string name;
  nlohmann::json description; // machine/host.hpp
  // Value by name of properties that must be equal on all hosts, and SHA-256 by path of files that must be; a null
  // value: the file is missing there. Both are null without a launcher, on one host.
  nlohmann::json program;
  nlohmann::json plugins;
};

// Returns how the links of so many hosts are measured. Up to 24 hosts: all pairs alone, which would take minutes with
// more. A healthy link is accused only if each of its measurements was disturbed, and 64 hosts have 4032 links: there,
// suspicious links are measured up to ten times, of up to 24 hosts up to four times.
pair_plan preflight_pairs(std::uint32_t hosts);

// Returns all members of the document but "schema" and "context". `results` are those of measure_pairs() with
// pair_plan::hosts, by rank; a rank is a host, as are the elements of `facts`.
// A fact that differs from that of more than half of the hosts makes a suspect. If no value has such a majority, all
// hosts are one suspect for "program" and "plugin" and if there are two hosts; else only a note says so. Rates are
// compared among hosts of one CPU model and number of CPUs (comm/outliers.hpp), links among all (comm/links.hpp): a
// host is a suspect if more than half of its links in one direction, and at least two, are far off, else each such link
// is. Of two hosts, both are named. Devices: comm/preflight_devices.hpp.
nlohmann::json preflight_of(const plan& p, const std::vector<host_facts>& facts,
                            const std::vector<nlohmann::json>& results);

// Returns the whole document, with "context", as text for a terminal, or as Markdown.
std::string preflight_text(const nlohmann::json& document, bool markdown);

} // namespace regatta::comm
