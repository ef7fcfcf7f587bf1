// SPDX-License-Identifier: Apache-2.0
//
// The sections of a page: noise, bounds, the timeline of a step, targets, and Markdown.
#include "stored_page.hpp"

#include <sstream>

#include "../timeline/synthetic_trace.hpp"
#include "base/failure.hpp"

using namespace regatta::test;
using regatta::page::render_page;

namespace {

// Two workers, of which the second one waits for the first one's gradients in step 1.
std::vector<regatta::rank_trace> two_workers() {
  using regatta::event_kind;
  synthetic_rank a(0), b(1, "worker 1");
  a.step(1, 1000, 9000);
  a.layer("fc1", "forward", 1100, 3000);
  a.layer("fc1", "backward", 3000, 6000);
  a.bucket(0, 6000);
  a.message(event_kind::send, 1, 0, 6100, 8000, 0);
  a.compute("exchange", "wait", 6000, 9000);
  b.step(1, 1000, 9500);
  b.layer("fc1", "forward", 1000, 2000);
  b.layer("fc1", "backward", 2000, 4000);
  b.message(event_kind::receive, 0, 0, 4000, 8500, 0);
  b.compute("exchange", "wait", 4000, 9500);
  b.operation("apply", 8500, 9400);
  return {a, b};
}

} // namespace

TEST_CASE("bytes and processor time stand beside what the machine would allow, or unknown") {
  json result = stored("example.json");
  for (json& entry : result["results"]) entry["lossy"] = false;
  const std::string before = page_of(result);
  for (const char* bound : {"at FMA peak", "at copy rate", "on the link"})
    CHECK_MESSAGE(before.find(std::string("&quot;") + bound) != std::string::npos, bound); // unknown for all cases
  CHECK(column(before, "least", "least") == std::vector<std::string>{"unknown", "394.7 kB", "unknown", "394.7 kB"});
  CHECK(column(before, "least", "gap") == std::vector<std::string>{"-", "1.00 x", "-", "1.00 x"});
  for (json& entry : result["results"]) {
    entry["flops_per_sample"] = 1e6; // times a batch of 32: 32 MFLOP, 0.32 ms at 1e11 FLOP/s of a CPU
    entry["communication_total"] = 0.002;
    entry["bytes"]["received_per_step"]["worker"] = 20e6; // 1 ms at 2e10 B/s
    for (json& repeat : entry["repeats"]) {
      repeat["machine"] = {{"fma", 2e11}, {"copy", 2e10}, {"line_round_trip_seconds", 1e-7}, {"clock_hz", nullptr}};
      repeat["case"]["samples"] = 320; // ten steps of a worker
      repeat["case"]["samples_per_worker_step"] = 32;
      repeat["case"]["cpu_seconds"] = {0.004, 0.0024}; // 0.64 ms a step
    }
  }
  const std::string page = page_of(result);
  const std::vector<std::string> twice(4, "2.00 x");
  CHECK(column(page, "at FMA peak", "processor/step") == std::vector<std::string>(4, "640.0 us"));
  CHECK(column(page, "at FMA peak", "at FMA peak") == std::vector<std::string>(4, "320.0 us"));
  CHECK(column(page, "at FMA peak", "gap") == twice);
  CHECK(column(page, "at FMA peak", "at copy rate") == std::vector<std::string>(4, "1.00 ms"));
  result["results"][3]["bytes"]["received_per_step"]["worker"] = 10e6; // may stay in caches
  CHECK(column(page_of(result), "at FMA peak", "at copy rate").at(3) == "unknown");
  result["context"]["hosts"][0]["core_independence"]["fma"] = 0.5; // a CPU alone is twice as fast
  CHECK(column(page_of(result), "at FMA peak", "at FMA peak").at(0) == "160.0 us");
  CHECK(page.find("on the link&quot;") != std::string::npos);  // shm: unknown
  result["results"][0]["repeats"][0]["machine"]["fma"] = 3e10; // disturbed: the highest rate counts
  CHECK(column(page_of(result), "at FMA peak", "at FMA peak").at(0) == "160.0 us");
  result["results"][2]["kernels"]["conv1 forward"] = "winograd jit_wino_4x3:avx512_core";
  CHECK(column(page_of(result), "at FMA peak", "at FMA peak").at(2) == "unknown");
  result["results"][1]["precision"] = "bf16";
  CHECK(column(page_of(result), "at FMA peak", "at FMA peak").at(1) == "unknown");
  result["results"][1]["lossy"] = true;
  CHECK(column(page_of(result), "least", "least").at(1) == "unknown");
}

TEST_CASE("the time that bytes take on a shaped link stands beside the step") {
  json result = stored("example.json");
  for (json& entry : result["results"]) {
    entry["case"]["transport.plugin"] = "shaped";
    entry["case"]["transport.bandwidth"] = "1Gbit/s";
    entry["step_seconds"]["median"] = 0.0125;
    entry["bytes"]["sent_per_step"]["worker"] = 500'000;
    entry["bytes"]["received_per_step"]["worker"] = 625'000;
  }
  const std::string page = page_of(result); // 625 kB at 125 MB/s
  CHECK(column(page, "on the link", "on the link") == std::vector<std::string>(4, "5.00 ms"));
  CHECK(column(page, "on the link", "gap") == std::vector<std::string>(4, "2.50 x"));
}

TEST_CASE("noise and disturbed repeats stand in the first section, with both figures") {
  json result = stored("example.json");
  for (json& entry : result["results"]) entry["noise"] = {{"min", 0.975}, {"median", 1.0}, {"max", 1.01}, {"n", 3}};
  result["results"][2]["noise"]["max"] = 1.0432;
  CHECK(page_of(result).find("disturbed") == std::string::npos);
  result["context"]["sampling"] = "a repeat is disturbed if it is";
  json& entry = result["results"][1];
  entry["efficiency"]["median"] = 0.7146;
  entry["undisturbed"] = {{"n", 2}, {"samples_per_second", 380000.0}, {"efficiency", 0.7414}};
  for (json& repeat : entry["repeats"]) repeat["disturbed"] = json::array();
  entry["repeats"][2]["disturbed"] = {"the rate of copies was 50 % of the median"};
  const std::string page = page_of(result);
  CHECK(page.find("baseline against itself <span data-case=\"0\" data-path=\"noise.min\" data-value=\"0.975\">") !=
        std::string::npos);
  CHECK(page.find("<span data-case=\"2\" data-path=\"noise.max\" data-value=\"1.0432\">1.04</span>") !=
        std::string::npos);
  CHECK(page.find("1 of 12 repeats disturbed, without which E changes most: <span data-case=\"1\" "
                  "data-path=\"efficiency.median\" data-value=\"0.7146\">0.71</span> to <span "
                  "data-case=\"1\" data-path=\"undisturbed.efficiency\" data-value=\"0.7414\">0.74</span>") !=
        std::string::npos);
  CHECK(page.find("The rule, fixed before the first run: a repeat is disturbed if it is.") != std::string::npos);
  CHECK(column(page, "disturbed", "disturbed") == std::vector<std::string>{"0 of 3", "1 of 3", "0 of 3", "0 of 3"});
  CHECK(column(page, "disturbed", "reasons").at(1) == "repeat 3: the rate of copies was 50 % of the median");
  check_numbers(parsed_markup(page), result);
}

TEST_CASE("the first section has at most five lines") {
  std::size_t facts = 0;
  parsed_markup(page_of(stored("example.json"))).each([&](const element& e) {
    if (e.name == "dl")
      facts = static_cast<std::size_t>(
          std::count_if(e.children.begin(), e.children.end(), [](const element& child) { return child.name == "dt"; }));
  });
  CHECK(facts >= 4);
  CHECK(facts <= 5);
}

TEST_CASE("one step of a trace is drawn with its layers, buckets and messages") {
  const json result = stored("example.json");
  std::vector<std::size_t> asked;
  const auto traces = [&](std::size_t of_case) {
    asked.push_back(of_case);
    return of_case == 1 ? two_workers() : std::vector<regatta::rank_trace>{};
  };
  const auto page = render_page({{result, "", traces}}, "figures");
  CHECK(asked == std::vector<std::size_t>{0, 1, 2, 3});
  const auto drawn =
      std::find_if(page.figures.begin(), page.figures.end(), [](const auto& f) { return f.name == "timeline-2"; });
  REQUIRE(drawn != page.figures.end());
  CHECK(drawn->title == "Step 1 of all ranks: allreduce, workers 2");
  for (const char* row :
       {"rank 0: worker 0,compute,fc1,1e-07,2e-06\n", "rank 0: worker 0,strategy,bucket 0 ready,5e-06,",
        "rank 0: worker 0,send,bucket 0,5.1e-06,7e-06\n", "rank 1: worker 1,receive,bucket 0,3e-06,7.5e-06\n",
        "rank 1: worker 1,strategy,apply,7.5e-06,8.4e-06\n"})
    CHECK_MESSAGE(drawn->csv.find(row) != std::string::npos, row, " in ", drawn->csv);
  for (const char* tip : {"<title>send bucket 0 to rank 1, 100 B, 1.90 us</title>", "<title>bucket 0 ready</title>",
                          "<title>fc1 backward, 3.00 us</title>", "class=\"arrow\""})
    CHECK_MESSAGE(page.html.find(tip) != std::string::npos, tip);
  CHECK(page.markdown.find("(<figures/timeline-2.svg>)") != std::string::npos);
  CHECK(column(page.html, "on the critical path", "on the critical path").at(0) == "fc1 backward");

  CHECK(page_of(result).find("This result has no trace.") != std::string::npos);
  const auto damaged = [](std::size_t) -> std::vector<regatta::rank_trace> {
    throw regatta::failure(regatta::exit_code::usage, "x.gz: it is no trace");
  };
  CHECK(render_page({{result, "", damaged}}).html.find("The trace cannot be shown: x.gz: it is no trace") !=
        std::string::npos);
}

TEST_CASE("a timeline of many events stays small") {
  synthetic_rank busy(0);
  busy.step(0, 0, 1'000'000);
  for (std::uint64_t i = 0; i < 20'000; ++i)
    busy.layer("layer " + std::to_string(i % 7), i % 2 ? "forward" : "backward", i * 50, i * 50 + 49);
  const json result = stored("example.json");
  const auto page = render_page({{result, "", [&](std::size_t) { return std::vector<regatta::rank_trace>{busy}; }}});
  for (const auto& f : page.figures)
    if (f.name.starts_with("timeline")) CHECK(f.drawing.element(f.width, f.height, "").size() < 60'000);
  CHECK(page.html.size() < 300'000);
}

TEST_CASE("bounds of the machine are lines in the charts of regatta comm") {
  json document = stored("comm.json");
  CHECK(page_of(document).find("Dashed") == std::string::npos);
  document["context"]["machine"] = {
      {"fma", 5e11}, {"copy", 2.5e10}, {"line_round_trip_seconds", 3e-7}, {"clock_hz", nullptr}};
  const std::string page = page_of(document);
  CHECK(page.find("data-context=\"machine.copy\" data-value=\"25000000000.0\">copies by two CPUs: 25.0 GB/s</text>") !=
        std::string::npos);
  CHECK(page.find("data-value=\"3e-07\">a cache line to another CPU: 150 ns</text>") != std::string::npos);
  check_numbers(parsed_markup(page), document);
  document["context"]["machine"] = nullptr; // one CPU
  CHECK(page_of(document).find("Dashed") == std::string::npos);
}

TEST_CASE("Markdown has the sections of the page in their order, and the same numbers") {
  const json result = stored("example.json");
  const auto page = render_page({{result, "[model]\nplugin = \"mlp\"\n"}, {stored("comm.json"), ""}}, "f");
  std::vector<std::string> headings, in_markdown;
  parsed_markup(page.html).each([&](const element& e) {
    if (e.name == "h1") headings.push_back("# " + e.text);
    if (e.name == "h2") headings.push_back("## " + e.text);
    if (e.name == "h3") headings.push_back("### " + e.text);
  });
  std::vector<std::string> cells, cells_of_markdown;
  parsed_markup(page.html).each([&](const element& e) {
    if (e.name == "th" || e.name == "td") cells.push_back(e.text);
  });
  std::size_t figures = 0;
  std::istringstream lines(page.markdown);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) in_markdown.push_back(line);
    figures += line.starts_with("![");
    if (!line.starts_with("| ") || line.starts_with("| ---")) continue;
    for (std::size_t at = 2, end; (end = line.find(" |", at)) != std::string::npos; at = end + 3)
      cells_of_markdown.push_back(line.substr(at, end - at));
  }
  CHECK(in_markdown == headings);
  CHECK(figures == page.figures.size());
  CHECK(cells.size() > 200);
  CHECK(cells_of_markdown == cells); // so its numbers are the checked ones of the page
  CHECK(page.markdown.find("```\n[model]\nplugin = \"mlp\"\n```") != std::string::npos);
  CHECK(render_page({{result, ""}}).markdown.find("![") == std::string::npos); // no folder to link to
}

TEST_CASE("the time to a target is that of the entries; where cases have several targets, each is named") {
  json result = stored("example.json");
  const auto give = [&](std::size_t i, double value) {
    json& entry = result["results"][i];
    entry["target"] = {{"metric", "top1"}, {"side", "at_least"}, {"value", value}, {"reached", 2}};
    entry["steps_to_target"] = {{"median", 9.0}, {"low", 8.0}, {"high", 9.0}, {"n", 3}, {"coverage", 0.75}};
    entry["seconds_to_target"] = {{"median", 0.0128}, {"low", 0.0119}, {"high", nullptr}, {"n", 3}, {"coverage", 0.75}};
  };
  give(1, 0.2);
  std::string page = page_of(result);
  CHECK(page.find("Time to a top1 of at least 0.2") != std::string::npos);
  CHECK(column(page, "reached", "reached") == std::vector<std::string>{"-", "2", "-", "-"});
  CHECK(column(page, "reached", "time").at(1) == "12.8 ms");
  CHECK(column(page, "reached", "from").at(1) == "11.9 ms");
  give(2, 0.3);
  page = page_of(result);
  CHECK(column(page, "reached", "target") == std::vector<std::string>{"-", "top1 ≥ 0.2", "top1 ≥ 0.3", "-"});
  check_numbers(parsed_markup(page), result);
}
