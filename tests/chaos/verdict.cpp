// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <csignal>

#include <fmt/format.h>

#include "report/record_file.hpp"

namespace regatta::chaos {

using namespace std::chrono_literals;
using nlohmann::json;
using test::parsed, test::read, test::within;
namespace fs = test::fs;

namespace {

using problems = std::vector<std::string>;

// A disturbance that must not change the results of any case.
bool is_harmless(const disturbance& d) {
  return d.kind == kind::dead_pipe || d.kind == kind::full_disk || (d.kind != kind::rank && d.signal == SIGSTOP);
}

bool ends_program(const disturbance& d) {
  return (d.kind == kind::coordinator || d.kind == kind::group) && d.signal != SIGSTOP;
}

bool is_orderly(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

// No process, no listening socket, no temporary file and, after an orderly end, no lock.
void judge_remains(const campaign_run& run, const observation& o, bool orderly, problems& p) {
  const bool gone = within(10s, [&] { return run.processes().empty(); });
  if (!gone)
    for (const pid_t pid : run.processes())
      p.push_back(fmt::format("process {} is left: {}", pid, read("/proc/" + std::to_string(pid) + "/comm")));
  const auto open = listening_sockets();
  for (const std::string& inode : o.sockets)
    if (open.count(inode)) p.push_back(fmt::format("the listening socket with inode {} is left", inode));
  for (const auto& entry : fs::directory_iterator(run.temporary())) {
    const std::string name = entry.path().filename().string();
    // ThreadSanitizer writes this file while a process starts, and leaves it behind in one that is killed there.
    if (!name.starts_with("tsan.rodata.")) p.push_back(fmt::format("a temporary file is left: {}", name));
  }
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/dev/shm", none)) {
    const std::string name = entry.path().filename().string();
    // Tests that run at the same time have folders there.
    if (name.find("regatta") != std::string::npos && !name.starts_with("regatta-test-"))
      p.push_back(fmt::format("shared memory is left: {}", entry.path().string()));
  }
  if (orderly && fs::exists(run.result() / "lock", none)) p.push_back("the lock file is left");
}

// Every line of records.jsonl has its checksum; only a last one may be torn, where the program was killed.
void judge_records(const campaign_run& run, bool torn_allowed, problems& p) {
  const fs::path file = run.result() / "records.jsonl", copy = run.temporary() / "records.jsonl";
  std::error_code none;
  if (!fs::exists(file, none)) return;
  fs::copy_file(file, copy, fs::copy_options::overwrite_existing); // reading cuts a torn line off
  for (const std::string& why : record_file(copy).read([](json&&) {}))
    if (!torn_allowed || why.find("incomplete") == std::string::npos) p.push_back(why);
  fs::remove(copy);
}

// The results of the document, or an empty array where it has none.
json results_of(const std::string& what, const std::string& text, problems& p) {
  const json document = parsed(text, true);
  if (document.is_object() && document.contains("results")) return document.at("results");
  p.push_back(what + " is no whole document");
  return json::array();
}

// The cases that are not "ok" are those of `failed`, and there is an entry for each case.
void judge_statuses(const json& results, const std::vector<std::size_t>& failed, problems& p) {
  if (results.size() != cases) p.push_back(fmt::format("{} of {} cases have an entry", results.size(), cases));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool may_fail = std::find(failed.begin(), failed.end(), i) != failed.end();
    const std::string status = results.at(i).value("status", "");
    if (status != (may_fail ? "failed" : "ok"))
      p.push_back(
          fmt::format("case {} has the status {}: {}", i + 1, status, results.at(i).value("error", json()).dump()));
  }
}

// Another rank than the one that was hit is named.
bool names_another(const std::string& text, std::uint32_t rank) {
  for (std::size_t at = text.find("rank "); at != std::string::npos; at = text.find("rank ", at + 1)) {
    const auto end = text.find_first_not_of("0123456789", at + 5);
    if (end == at + 5 || end == std::string::npos || text.compare(end, 2, " (") != 0)
      continue; // not "rank N (ROLE, pid P)"
    if (text.substr(at + 5, end - at - 5) != std::to_string(rank)) return true;
  }
  return false;
}

std::string what_happened(const disturbance& d) {
  return d.signal == SIGSTOP ? "stopped by a signal" : fmt::format("killed by SIG{}", sigabbrev_np(d.signal));
}

// One case failed by the rank, or one case has a warning about it: it had given its result.
void judge_rank(const campaign& c, const observation& o, problems& p) {
  const json results = results_of("standard output", o.out, p);
  const std::string name = fmt::format("rank {} (", c.disturbance.rank), pid = fmt::format("pid {})", o.pid);
  std::vector<std::size_t> failed;
  bool warned = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const json& e = results.at(i);
    warned = warned || e.value("warnings", json()).dump().find(pid) != std::string::npos;
    if (e.value("status", "") == "ok") continue;
    failed.push_back(i);
    const std::string error = e.at("error").is_string() ? e.at("error").get<std::string>() : "";
    if (!error.starts_with(name) || error.find(pid) == std::string::npos)
      p.push_back(fmt::format("the error does not begin with {}…, {}: {}", name, pid, error));
    else if (error.find(what_happened(c.disturbance)) == std::string::npos)
      p.push_back(fmt::format("the error does not say \"{}\": {}", what_happened(c.disturbance), error));
    if (names_another(error, c.disturbance.rank)) p.push_back("the error names another rank, too: " + error);
  }
  if (failed.size() > 1) p.push_back(fmt::format("{} cases failed, not one", failed.size()));
  if (failed.empty() && !warned) p.push_back("neither an error nor a warning names the rank that was hit");
  judge_statuses(results, failed, p);
  if (o.code != (failed.empty() ? 0 : 1))
    p.push_back(fmt::format("exit code {}, not {}", o.code, failed.empty() ? 0 : 1));
  if (!o.seconds || *o.seconds > in_time) p.push_back(fmt::format("the rank was not named within {} s", in_time));
}

void judge_hung(const campaign& c, const observation& o, problems& p) {
  const json results = results_of("standard output", o.out, p);
  judge_statuses(results, {c.hangs}, p);
  if (results.size() == cases) {
    const json& error = results.at(c.hangs).at("error");
    const char* const rank = c.disturbance.blames_any ? "rank " : "rank 1 (";
    if (!error.is_string() || !error.get<std::string>().starts_with(rank) ||
        error.get<std::string>().find("no progress for ") == std::string::npos)
      p.push_back(fmt::format("the error does not say that {} makes no progress: {}",
                              c.disturbance.blames_any ? "a rank" : "rank 1", error.dump()));
  }
  if (o.code != 1) p.push_back(fmt::format("exit code {}, not 1", o.code));
  if (!o.seconds || *o.seconds > hang_in_time)
    p.push_back(fmt::format("it took longer than {} s to end", hang_in_time));
}

void judge_ended(const disturbance& d, const observation& o, problems& p) {
  // By the signal itself where it came before the program's first line.
  if (o.code != -d.signal && !(is_orderly(d.signal) && o.code == 130))
    p.push_back(fmt::format("exit code {}, neither 130 nor the signal", o.code));
  if (!o.seconds || *o.seconds > in_time) p.push_back(fmt::format("it took longer than {} s to end", in_time));
}

void judge_harmless(const campaign& c, const campaign_run& run, const observation& o, problems& p) {
  judge_statuses(results_of("standard output", o.out, p), {}, p);
  int code = 0;
  if (c.disturbance.kind == kind::full_disk) { // 1 where something is missing on the disk
    problems missing;
    judge_statuses(results_of("result.json", read(run.result() / "result.json"), missing), {}, missing);
    code = missing.empty() ? 0 : 1;
    if (code == 1 && o.err.find("No space left on device") == std::string::npos)
      p.push_back("nothing says that the disk is full");
  }
  if (o.code != code) p.push_back(fmt::format("exit code {}, not {}", o.code, code));
}

} // namespace

std::vector<std::string> judge_disturbed(const campaign& c, const campaign_run& run, const observation& o) {
  problems p;
  if (o.skipped == "hang") return {"the program did not end"};
  const disturbance& d = c.disturbance;
  const bool ended = o.hit && ends_program(d);
  if (!o.hit && ends_program(d) && o.code != 0) p.push_back(fmt::format("exit code {} without a disturbance", o.code));
  if (!o.hit)
    judge_statuses(results_of("standard output", o.out, p), {}, p);
  else if (ended)
    judge_ended(d, o, p);
  else if (d.kind == kind::rank)
    judge_rank(c, o, p);
  else if (d.kind == kind::hung_plugin)
    judge_hung(c, o, p);
  else if (is_harmless(d))
    judge_harmless(c, run, o, p);
  const bool full = d.kind == kind::full_disk;
  std::error_code none;
  if (const fs::path file = run.result() / "result.json"; fs::exists(file, none) && !full)
    results_of("result.json", read(file), p);
  judge_records(run, full || (ended && !is_orderly(d.signal)), p);
  judge_remains(run, o, !ended || o.code == 130, p);
  return p;
}

std::vector<std::string> judge_resumed(const campaign& c, const campaign_run& run, const observation& o) {
  if (o.skipped == "hang") return {"--resume did not end"};
  problems p;
  const bool hangs = c.disturbance.kind == kind::hung_plugin; // the plugin hangs again
  std::vector<std::size_t> failed;
  if (hangs) failed.push_back(c.hangs);
  if (o.code != (hangs ? 1 : 0)) p.push_back(fmt::format("--resume ended with code {}", o.code));
  judge_statuses(results_of("standard output of --resume", o.out, p), failed, p);
  judge_statuses(results_of("result.json after --resume", read(run.result() / "result.json"), p), failed, p);
  judge_records(run, false, p);
  judge_remains(run, o, true, p);
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run.result(), none)) {
    const std::string name = entry.path().filename().string();
    if (name != "records.jsonl" && name != "result.json" && name != "logs" && name != "as-written.toml" &&
        !(name.starts_with("resolved-") && name.ends_with(".toml")))
      p.push_back("an unexpected file is left beside the result: " + name);
  }
  return p;
}

} // namespace regatta::chaos
