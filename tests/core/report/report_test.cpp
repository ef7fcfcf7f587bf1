// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "report/latex.hpp"
#include "report/progress_line.hpp"
#include "report/render.hpp"
#include "report/stored_document.hpp"
#include "report/text_table.hpp"
#include "report_fixture.hpp"
#include "temporary_folder.hpp"

using namespace regatta;
using namespace regatta::test;
using report_fixture::json;

namespace {

// Up to an empty line or the end, from the line that begins so.
std::string paragraph(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  if (at == std::string::npos) return "";
  const std::size_t end = text.find("\n\n", at);
  return text.substr(at, end == std::string::npos ? end : end + 1 - at);
}

bool fits(const std::string& text, std::size_t width) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (display_width(text.substr(at, end - at)) > width) return false;
    at = end + 1;
  }
  return true;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Strategies x transports x batches, one combination missing.
json grid() {
  json result = report_fixture::result();
  json entries = json::array();
  for (const char* strategy : {"allreduce", "sync_ps"})
    for (const char* transport : {"shm", "tcp"})
      for (const int batch : {32, 64, 128}) {
        if (batch == 64 && strategy == std::string("sync_ps")) continue;
        entries.push_back(report_fixture::entry(
            {{"strategy.plugin", strategy}, {"transport.plugin", transport}, {"train.batch", batch}}, strategy, 2, 0,
            15.44 * batch + (transport == std::string("tcp") ? -100 : 0)));
      }
  result["results"] = entries;
  result["context"]["experiment"]["sweep"] =
      json::array({{{"key", "strategy.plugin"}}, {{"key", "transport.plugin"}}, {{"key", "train.batch"}}});
  return result;
}

} // namespace

TEST_CASE("the console table says how fast, how well it scaled, and why not better") {
  CHECK(
      render(report_fixture::result(), format::console, {0, "results/a/result.json"}) ==
      R"(vgg16-cifar   vgg16 cifar10, 15.25 M parameters, 61.0 MB of gradients   momentum, lr 0.01   fp32   1 thread and batch 128 a worker   data constant, content normal
one worker alone: 138.9 samples/s
2 cores Intel Xeon (AVX-512, AMX), 24 GiB, Linux 6.18   regatta 0.1.0 (3f2a91c, Release)   3 repeats of 30 steps   E from–to: range of 3 repeats, a 75 % interval; 95 % takes 6 repeats

strategy   transport  workers  servers  samples/s   ± cv     E  E from–to  detectable  E none  E/E none  lost to                                                       loss         sent/step
none       -                1        -      138.9  0.4 %     -          -           -       -         -  -                                                             2.31 → 1.94          -
allreduce  shm              2        -      273.0  0.4 %  0.98  0.97–0.99       3.1 %    0.99      0.99  communication 1.1 %  wait 0.6 %  compute -0.1 %  other 0.1 %  2.31 → 1.94    61.0 MB
sync_ps    tcp              2   2 (co)      268.2  0.4 %  0.96  0.96–0.97       3.1 %    0.99      0.97  communication 2.2 %  update 0.9 %  compute 0.4 %              2.31 → 1.94    61.1 MB

replicas identical   result checks passed   results/a/result.json
)");
}

TEST_CASE("weights in sparse tables do not count as dense gradients, and waiting for input shows") {
  json result = report_fixture::result();
  for (json& entry : result["results"]) entry["table_parameters"] = 10000010;
  for (const double input : {0.0001, 0.25}) {
    result["results"][1]["time"] = {{"input", input}, {"forward", 0.5}, {"backward", 0.5 - input}, {"wait", nullptr}};
    const std::string text = render(result, format::console, {0, ""});
    CHECK(has(text, "15.25 M parameters, 10.00 M of them in sparse tables, 21.0 MB of dense gradients"));
    CHECK(has(text, " input ") == (input > 0.01));
    CHECK(has(text, " 25.0 % ") == (input > 0.01));
  }
}

TEST_CASE("a narrow terminal gets what matters most, and is told the rest") {
  const json result = report_fixture::result();
  CHECK(paragraph(render(result, format::console, {80, ""}), "strategy") ==
        R"(strategy   transport  workers  servers  samples/s     E  E from–to
none       -                1        -      138.9     -          -
allreduce  shm              2        -      273.0  0.98  0.97–0.99
sync_ps    tcp              2   2 (co)      268.2  0.96  0.96–0.97
)");
  CHECK(has(render(result, format::console, {80, ""}),
            "left out at this width: detectable, E/E none, sent/step, ± cv, loss, E none,\n  lost to\n"));
  for (const std::size_t width : {60, 80, 100, 120}) CHECK(fits(render(result, format::console, {width, ""}), width));
}

TEST_CASE("a single case has everything else in the heading") {
  json result = report_fixture::result();
  json entry = result["results"][1];
  entry["case"] = json::object();
  result["results"] = json::array({entry});
  result["context"]["experiment"]["strategy"]["plugin"] = "allreduce";
  const std::string text = render(result, format::console);
  CHECK(has(text, "\nallreduce   over shm   workers: 2   one worker alone: 138.9 samples/s\n"));
  CHECK(
      paragraph(text, "samples/s   ± cv") ==
      R"(samples/s   ± cv     E  E from–to  detectable  E none  E/E none  lost to                                                       loss         sent/step
    273.0  0.4 %  0.98  0.97–0.99       3.1 %    0.99      0.99  communication 1.1 %  wait 0.6 %  compute -0.1 %  other 0.1 %  2.31 → 1.94    61.0 MB
)");
}

TEST_CASE("the heading names a worker that is made slow, unless which or how slow varies") {
  json result = report_fixture::result();
  json& experiment = result["context"]["experiment"];
  experiment["cluster"]["straggler.rank"] = 1;
  experiment["cluster"]["straggler.factor"] = 1.0;
  CHECK_FALSE(has(render(result, format::console), "times as long"));
  experiment["cluster"]["straggler.factor"] = 2.5;
  CHECK(has(render(result, format::console), "content normal   worker 1 computes 2.5 times as long\n"));
  double factor = 1; // every case another one
  for (json& entry : result["results"]) entry["case"]["cluster.straggler.factor"] = ++factor;
  CHECK_FALSE(has(render(result, format::console), "times as long"));
}

TEST_CASE("the heading names what is set of strategy and transport, by id where the plugin itself varies") {
  json result = report_fixture::result();
  json& given = result["context"]["given"];
  given["strategy"]["allreduce"] = {{"bucket", "1MiB"}};
  given["transport"]["shaped"] = {{"bandwidth", "1Gbit/s"}, {"over", "tcp"}};
  CHECK(has(render(result, format::console), // both are swept
            "\nallreduce.bucket: 1MiB   shaped.bandwidth: 1Gbit/s   shaped.over: tcp\n"));
  for (json& entry : result["results"]) entry["case"]["transport.plugin"] = "shaped";
  CHECK(has(render(result, format::console),
            "\nallreduce.bucket: 1MiB   transport.bandwidth: 1Gbit/s   transport.over: tcp\n"));
  for (json& entry : result["results"]) entry["case"]["strategy.allreduce.bucket"] = entry["workers"]; // a column
  CHECK_FALSE(has(render(result, format::console), "allreduce.bucket: 1MiB"));
}

TEST_CASE("the heading names a parameter that is swept over one value once") {
  json result = report_fixture::result();
  json& context = result["context"];
  context["plugins"] = json::array({{{"kind", "strategy"}, {"id", "geo_ps"}, {"parameters", {{"k", 400}}}}});
  context["experiment"]["sweep"] = json::array({{{"key", "strategy.geo_ps.k"}, {"values", {400}}}});
  for (json& entry : result["results"]) entry["case"]["strategy.geo_ps.k"] = 400;
  const std::string text = render(result, format::console);
  CHECK(text.find("k: 400") != std::string::npos);
  CHECK(text.find("k: 400") == text.rfind("k: 400"));
}

TEST_CASE("the heading names the algorithms that strategies ran, with their cases where they differ") {
  json result = report_fixture::result();
  CHECK_FALSE(has(render(result, format::console), "algorithms:"));
  for (json& entry : result["results"]) entry["fingerprint"]["algorithms"] = "ring";
  CHECK(has(render(result, format::console), "algorithms: ring\n"));
  result["results"][1]["fingerprint"]["algorithms"] = "halving_doubling, ring";
  result["results"][0]["fingerprint"]["algorithms"] = nullptr;
  const std::string cases = std::to_string(result["results"].size() - 1); // of those with algorithms
  CHECK(has(render(result, format::console), "algorithms: halving_doubling, ring (1 of " + cases + " cases)"));
}

TEST_CASE("cases that did not run say why, in their row") {
  json result = report_fixture::result();
  json& ring = result["results"][1];
  ring["status"] = "failed";
  ring["error"] = "rank 1 (worker 1, pid 4711): killed by SIGKILL;\nlast operation: backward of step 12";
  ring["samples_per_second"] = ring["loss"] = ring["efficiency"] = ring["lost"] = ring["bytes"] = nullptr;
  result["results"][2]["status"] = "skipped";
  result["results"][2]["error"] = "needs 30.1 GB of memory, 22.0 GB are free";
  const std::string wide = render(result, format::console);
  CHECK(paragraph(wide, "strategy") ==
        R"(strategy   transport  workers  servers  samples/s   ± cv  loss
none       -                1        -      138.9  0.4 %  2.31 → 1.94
allreduce  shm              2        -  failed: rank 1 (worker 1, pid 4711): killed by SIGKILL; last operation: backward of step 12
sync_ps    tcp              2   2 (co)  skipped: needs 30.1 GB of memory, 22.0 GB are free
)");
  CHECK(has(wide, "\n1 of 3 cases failed   1 of 3 cases skipped   result checks passed\n"));
  const std::string narrow = render(result, format::console, {80, ""});
  CHECK(has(narrow, R"(allreduce  shm              2        -  failed: rank 1 (worker 1, pid 4711):
                                        killed by SIGKILL; last operation:
                                        backward of step 12
)"));
  CHECK(has(render(result, format::markdown),
            "| sync_ps | tcp | 2 | 2 (co) | skipped: needs 30.1 GB of memory, 22.0 GB are free |  |"));
}

TEST_CASE("warnings name the cases they are of, and wrong results are not overlooked") {
  json result = report_fixture::result();
  result["context"]["warnings"] = {"x.toml:4:1: notice: a.b has no effect", "plugin folder build/: empty"};
  for (json& entry : result["results"]) entry["warnings"] = {"debug build: this program was not built for speed"};
  result["results"][2]["warnings"].push_back("oversubscribed: 4 ranks x 1 thread on 2 cores");
  result["results"][2]["replicas_identical"] = false;
  const std::string text = render(result, format::console);
  CHECK(has(text, "\nx.toml:4:1: notice: a.b has no effect\nwarning: plugin folder build/: empty\n"));
  CHECK(paragraph(text, "warning: plugin") == R"(warning: plugin folder build/: empty
warning: debug build: this program was not built for speed (3 cases)
warning: oversubscribed: 4 ranks x 1 thread on 2 cores [workers 2, strategy sync_ps, transport tcp]
)");
  CHECK(has(text, "\nwrong: workers 2, strategy sync_ps, transport tcp: the workers ended with different weights\n"));
  CHECK(has(text, "\nREPLICAS DIFFER   RESULT CHECKS FAILED\n"));
}

TEST_CASE("swept keys are columns, in the order of the sweep, unless they do not vary") {
  const std::string text = render(grid(), format::console);
  CHECK(paragraph(text, "batch") == R"(batch  strategy   transport  samples/s   ± cv  loss         sent/step
   32  allreduce  shm            494.1  0.4 %  2.31 → 1.94    61.0 MB
   64  allreduce  shm            988.2  0.4 %  2.31 → 1.94    61.0 MB
  128  allreduce  shm           1976.3  0.4 %  2.31 → 1.94    61.0 MB
   32  allreduce  tcp            394.1  0.4 %  2.31 → 1.94    61.0 MB
   64  allreduce  tcp            888.2  0.4 %  2.31 → 1.94    61.0 MB
  128  allreduce  tcp           1876.3  0.4 %  2.31 → 1.94    61.0 MB
   32  sync_ps    shm            494.1  0.4 %  2.31 → 1.94    61.0 MB
  128  sync_ps    shm           1976.3  0.4 %  2.31 → 1.94    61.0 MB
   32  sync_ps    tcp            394.1  0.4 %  2.31 → 1.94    61.0 MB
  128  sync_ps    tcp           1876.3  0.4 %  2.31 → 1.94    61.0 MB
)");
  CHECK_FALSE(has(text, "and batch 128")); // it varies: not in the heading
  CHECK(has(text, "   1 thread a worker   data constant, content normal\nworkers: 2\n"));
}

TEST_CASE("the staleness of an asynchronous strategy stands beside its loss") {
  json r = report_fixture::result();
  CHECK_FALSE(has(render(r, format::console), "staleness"));
  r["results"][1]["strategy"] = {{"staleness", {{"counts", {{"0", 3}, {"7", 1}}}, {"mean", 1.75}, {"max", 7}}}};
  const std::string text = render(r, format::console);
  CHECK(has(text, "staleness"));
  CHECK(has(text, "1.8, at most 7"));
  r["results"][1]["strategy"] = {{"staleness", {{"per_step", 3}}}}; // a strategy may call anything so
  CHECK_FALSE(has(render(r, format::console), "at most"));
}

TEST_CASE("an interrupted campaign without any case still renders") {
  json result = report_fixture::result();
  result["results"] = json::array();
  for (const format f : {format::console, format::markdown, format::csv, format::json, format::latex})
    CHECK_FALSE(render(result, f).empty());
  CHECK(has(render(result, format::console), "\nno case has run\n"));
  result["context"] = json::object();
  CHECK(has(render(result, format::console), "no case has run\n"));
}

TEST_CASE("markdown") {
  CHECK(
      render(report_fixture::result(), format::markdown) ==
      R"(* vgg16-cifar; vgg16 cifar10, 15.25 M parameters, 61.0 MB of gradients; momentum, lr 0.01; fp32; 1 thread and batch 128 a worker; data constant, content normal
* one worker alone: 138.9 samples/s
* 2 cores Intel Xeon (AVX-512, AMX), 24 GiB, Linux 6.18; regatta 0.1.0 (3f2a91c, Release); 3 repeats of 30 steps; E from–to: range of 3 repeats, a 75 % interval; 95 % takes 6 repeats

| strategy | transport | workers | servers | samples/s | ± cv | E | E from–to | detectable | E none | E/E none | lost to | loss | sent/step |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | ---: |
| none | - | 1 | - | 138.9 | 0.4 % | - | - | - | - | - | - | 2.31 → 1.94 | - |
| allreduce | shm | 2 | - | 273.0 | 0.4 % | 0.98 | 0.97–0.99 | 3.1 % | 0.99 | 0.99 | communication 1.1 %  wait 0.6 %  compute -0.1 %  other 0.1 % | 2.31 → 1.94 | 61.0 MB |
| sync_ps | tcp | 2 | 2 (co) | 268.2 | 0.4 % | 0.96 | 0.96–0.97 | 3.1 % | 0.99 | 0.97 | communication 2.2 %  update 0.9 %  compute 0.4 % | 2.31 → 1.94 | 61.1 MB |

* replicas identical; result checks passed
)");
}

TEST_CASE("the pivot takes the shape of a publication: one table for each other thing swept") {
  json result = grid();
  CHECK(render_pivot(result, false).empty());
  result["context"]["experiment"]["report"] = {
      {"rows", "strategy.plugin"}, {"columns", "train.batch"}, {"value", "samples_per_second"}};
  CHECK(render_pivot(result, false) == R"(samples_per_second [samples/s, global]: transport shm
strategy \ batch     32     64     128
allreduce         494.1  988.2  1976.3
sync_ps           494.1      -  1976.3

samples_per_second [samples/s, global]: transport tcp
strategy \ batch     32     64     128
allreduce         394.1  888.2  1876.3
sync_ps           394.1      -  1876.3
)");
  CHECK(has(render(result, format::console), "\n\nsamples_per_second [samples/s, global]: transport shm\n"));
  result["context"]["experiment"]["report"] = {
      {"rows", "transport.plugin"}, {"columns", "workers"}, {"value", "loss.first"}};
  result["results"] = json::array({result["results"][0], result["results"][3]});
  CHECK(render_pivot(result, true) == R"(loss.first [loss, global]

| transport \ workers | 2 |
| --- | ---: |
| shm | 2.31 |
| tcp | 2.31 |
)");
  result["results"][1]["status"] = "failed";
  CHECK(has(render_pivot(result, true), "| tcp | - |\n"));
}

TEST_CASE("CSV of cases without repeats: paths as headers, quoted where it must be") {
  json result = report_fixture::result();
  result["results"].erase(2);
  result["results"][0]["error"] = "said \"no\", twice\nor so";
  result["results"][0]["kernels"] = {{"conv1", "jit"}};
  const std::string csv = render(result, format::csv);
  const std::string header = csv.substr(0, csv.find('\n'));
  CHECK(header.starts_with("case.cluster.workers,case.strategy.plugin,case.transport.plugin,repeat,status,error,"));
  CHECK(has(header, ",efficiency.coverage,efficiency.high,efficiency.low,efficiency.max,efficiency.median,"
                    "efficiency.min,efficiency.n,efficiency.smallest_detectable,contention.coverage,"));
  CHECK_FALSE(has(header, ",efficiency,")); // null in one case, an object in the other
  CHECK(has(csv, "\n1,none,shm,,ok,\"said \"\"no\"\", twice\nor so\",1,0,"));
  CHECK_FALSE(has(header, ".curve"));
  CHECK(has(csv, ",\"{\"\"conv1\"\":\"\"jit\"\"}\","));
  CHECK(has(csv, "\n2,allreduce,shm,,ok,,2,0,"));
}

TEST_CASE("every cell of a pivot has the unit of its own case") {
  json result = report_fixture::result();
  json entries = json::array();
  for (const auto& [model, unit] : {std::pair{"vgg16", "images/s"}, {"bert", "sequences/s"}})
    for (const int batch : {32, 64}) {
      json e = report_fixture::entry({{"model.plugin", model}, {"train.batch", batch}}, "none", 1, 0, 2.0 * batch);
      e["throughput"] = {{"unit", unit}, {"scope", "global"}, {"median", 2.0 * batch}};
      entries.push_back(std::move(e));
    }
  result["results"] = entries;
  json& report = result["context"]["experiment"]["report"];
  report = {{"rows", "model.plugin"}, {"columns", "train.batch"}, {"value", "throughput"}};
  CHECK(render_pivot(result, false) == R"(throughput [global]
model \ batch  unit           32     64
vgg16          images/s     64.0  128.0
bert           sequences/s  64.0  128.0
)");
  CHECK(has(render_pivot(result, true), "| bert | sequences/s | 64.0 | 128.0 |\n"));
  std::swap(report["rows"], report["columns"]); // rows of mixed units
  CHECK(render_pivot(result, false) == R"(throughput [global]
batch \ model           vgg16               bert
32              64.0 images/s   64.0 sequences/s
64             128.0 images/s  128.0 sequences/s
)");
  for (json& e : result["results"]) e["throughput"]["unit"] = "sentences/s";
  CHECK(render_pivot(result, false).starts_with("throughput [sentences/s, global]\n"));
}

TEST_CASE("each figure of [report] has a unit and a scope in every format") {
  json result = report_fixture::result();
  for (json& e : result["results"]) {
    e["step_seconds"] = {{"median", 0.5}, {"p99", 0.75}};
    e["strategy"] = {{"staleness", {{"mean", 1.5}}}, {"pack_seconds", {{"per_step", 0.25}}}};
  }
  result["results"][2]["status"] = "failed";
  struct expected {
    const char *path, *unit, *scope;
  };
  for (const expected& x : {expected{"step_seconds.p99", "s", "rank"},
                            {"samples_per_second", "samples/s", "global"},
                            {"samples_per_second.cv", "ratio", "global"},
                            {"efficiency", "ratio", "global"},
                            {"loss.last", "loss", "global"},
                            {"bytes.sent_per_step.worker", "B/step", "rank"},
                            {"strategy.staleness.mean", "as reported", "global"},
                            {"strategy.pack_seconds.per_step", "s/step", "rank"}}) {
    CAPTURE(x.path);
    json& report = result["context"]["experiment"]["report"];
    report = {{"rows", "strategy.plugin"}, {"columns", "cluster.workers"}, {"value", x.path}};
    const std::string title = std::string(x.path) + " [" + x.unit + ", " + x.scope + "]";
    CHECK(has(render(result, format::console), "\n" + title));
    CHECK(has(render(result, format::markdown), "\n" + title));
    const json in_json = parsed(render(result, format::json)).at("results");
    for (const json& e : in_json) {
      CHECK(e.at("report").at(0).at("path") == x.path);
      CHECK(e.at("report").at(0).at("unit") == x.unit);
      CHECK(e.at("report").at(0).at("scope") == x.scope);
    }
    CHECK(in_json[1].at("report").at(0).at("value").is_number());
    CHECK(in_json[2].at("report").at(0).at("value").is_null());
    CHECK(has(render(result, format::latex), "\\caption{" + latex_text(title)));
  }
}

TEST_CASE("a pivot that is wider than the terminal comes in blocks") {
  json result = grid();
  result["context"]["experiment"]["report"] = {
      {"rows", "strategy.plugin"}, {"columns", "train.batch"}, {"value", "samples_per_second"}};
  CHECK(has(render_pivot(result, false, 31), R"(strategy \ batch     32     64
allreduce         494.1  988.2
sync_ps           494.1      -

strategy \ batch     128
allreduce         1976.3
sync_ps           1976.3
)"));
}

TEST_CASE("the heading says which model it is, what it trains on and how") {
  json result = report_fixture::result();
  json& experiment = result["context"]["experiment"];
  json& given = result["context"]["given"];
  experiment["model"] = {{"plugin", "bert"}, {"parameters", {{"size", "base"}, {"layers", 2}, {"dropout", 0.1}}}};
  given["model"]["bert"] = {{"layers", 2}};
  experiment["train"]["batch_unit"] = "tokens";
  given["train"] = {{"batch", 128}, {"accumulate", 4}};
  given["optimizer"] = {
      {"lr", 0.5}, {"weight_decay", 1e-4}, {"schedule.name", "step"}, {"schedule.milestones", {3, 6}}};
  experiment["optimizer"]["lr"] = 0.5;
  experiment["optimizer"]["schedule.name"] = "step";
  experiment["data"] = {{"source", "queue"}, {"queue_source", "dataset"}, {"content", "normal"}};
  given["data"] = {{"source", "queue"}, {"queue_source", "dataset"}, {"format", "sentences"}, {"path", "/data/wiki"}};
  result["context"]["plugins"] = json::array({{{"kind", "executor"}, {"id", "onednn"}},
                                              {{"kind", "strategy"}, {"id", "geo_ps"}, {"parameters", {{"k", 400}}}}});
  result["context"]["hosts"][0]["core_independence"] = {{"fma", 0.512}, {"copy", 0.93}};
  const std::string text = render(result, format::console);
  for (const char* part :
       {"   bert base (layers 2), 15.25 M parameters, ",
        "   momentum, lr 0.5, weight_decay 0.0001, schedule step (milestones [3, 6])   ", "   fp32, executor onednn   ",
        "   1 thread and batch 128 tokens a worker   ",
        "   data queue, of dataset, format sentences, path /data/wiki\n", "\ngeo_ps.k: 400   train.accumulate: 4\n",
        "\n2 cores Intel Xeon (AVX-512, AMX), 24 GiB, Linux 6.18   2 cores at once: FMA 0.51, copies 0.93 of two "
        "(hyperthreads of one core)   regatta "})
    CHECK_MESSAGE(has(text, part), part << " in " << text);
  experiment["data"]["queue_source"] = "random";
  experiment["data"]["content"] = "zeros";
  CHECK(has(render(result, format::console), "data queue, of random, content zeros"));
  for (const std::size_t width : {60, 80, 100}) CHECK(fits(render(result, format::console, {width, ""}), width));
  // A key that was swept and has one value after all is no column.
  result["results"].erase(2);
  result["results"].erase(0);
  experiment["sweep"].push_back({{"key", "model.layers"}, {"values", {2, 4}}});
  result["results"][0]["case"]["model.layers"] = 4;
  CHECK(has(render(result, format::console), "   model.layers: 4\n"));
}

TEST_CASE("losses of efficiency add up, gains have a minus") {
  json result = report_fixture::result();
  report_fixture::scale(result["results"][1], 1.021,
                        {{"input", 0.0},
                         {"compute", -0.042},
                         {"update", 0.003},
                         {"exposed_communication", 0.012},
                         {"wait", 0.002},
                         {"other", 0.004}});
  CHECK(has(render(result, format::console), "  compute -4.2 %  communication 1.2 %  update 0.3 %  other 0.6 %  "));
}

TEST_CASE("an interrupted campaign says how many of its cases there are") {
  json result = report_fixture::result();
  CHECK_FALSE(has(render(result, format::console), " of 24 cases"));
  result["context"]["cases"] = 24;
  CHECK(has(render(result, format::console), "\n3 of 24 cases   replicas identical"));
  result["results"][2]["status"] = "partial";
  result["results"][2]["error"] = "1 of 3 repeats";
  CHECK(has(render(result, format::console),
            "\n2 of 24 cases   1 of 24 cases with some of their repeats   replicas identical"));
}

TEST_CASE("texts of others stay texts in CSV and Markdown") {
  json result = report_fixture::result();
  result["results"].erase(2);
  json& one = result["results"][0];
  one["case"]["strategy.plugin"] = "=HYPERLINK(\"http://x\")";
  one["error"] = "\tcmd";
  one["throughput"] = {{"unit", "im\x1b[2Jages\n/s"}, {"scope", "@SUM(A1)"}, {"median", -4.5}};
  one["precision"] = "-2+3";
  result["results"][1]["precision"] = "+1";
  const std::string csv = render(result, format::csv);
  CHECK(has(csv, ",\"'=HYPERLINK(\"\"http://x\"\")\","));
  CHECK(has(csv, ",' cmd,"));
  CHECK(has(csv, ",'-2+3,"));
  CHECK(has(csv, ",'+1,"));
  CHECK(has(csv, ",'@SUM(A1),"));
  CHECK(has(csv, ",-4.5,")); // a number is a number
  CHECK_FALSE(has(csv, "\x1b"));

  result = report_fixture::result();
  result["context"]["warnings"] = {"<img src=x> & co|"};
  result["context"]["experiment"]["experiment"]["name"] = "a<b>|c";
  result["results"][1]["status"] = "failed";
  result["results"][1]["error"] = "<b>no</b> & | never";
  const std::string markdown = render(result, format::markdown);
  CHECK(has(markdown, "* warning: &lt;img src=x&gt; &amp; co\\|\n"));
  CHECK(has(markdown, "* a&lt;b&gt;\\|c; "));
  CHECK(has(markdown, "| failed: &lt;b&gt;no&lt;/b&gt; &amp; \\| never |"));
  CHECK_FALSE(has(markdown, "<"));
}

TEST_CASE("JSON is the document itself") {
  const json result = report_fixture::result();
  CHECK(parsed(render(result, format::json)) == result);
  CHECK(format_named("markdown") == format::markdown);
  CHECK_FALSE(format_named("xml"));
}

TEST_CASE("the progress line gives up what matters least") {
  const progress p{2, 6, "allreduce shm 2 workers", "baseline", 1, 3, {}, 17, 35, 271.34, 80.0};
  CHECK(progress_line(p, 0) ==
        "[2/6] allreduce shm 2 workers   baseline   repeat 1/3   step 17/35   271.3 samples/s   1 min 20 s left");
  CHECK(progress_line(p, 80) == "[2/6] allreduce shm 2 workers   baseline   step 17/35   1 min 20 s left");
  CHECK(progress_line(p, 50) == "[2/6] allreduce shm 2 workers   1 min 20 s left");
  CHECK(progress_line(p, 20) == "[2/6] allreduce shm…");
  CHECK(progress_line({1, 1, "", "", 1, 1, {}, 0, 0, {}, {}}, 80) == "[1/1]");
  for (std::size_t width = 1; width < 120; ++width) CHECK(display_width(progress_line(p, width)) <= width);
  CHECK(human_duration(45.4) == "45 s");
  CHECK(human_duration(3599.6) == "1 h 0 min");
  CHECK(human_duration(-3) == "0 s");
}

TEST_CASE("progress for programs is one object a line") {
  progress p{2, 6, "allreduce \xff\n", "", 1, 3, {}, 17, 35, 271.34, 80.0};
  CHECK(progress_object(p).find('\n') == std::string::npos);
  const json j = parsed(progress_object(p));
  CHECK(j == json{{"schema", "regatta.progress/1"},
                  {"kind", "progress"},
                  {"case", 2},
                  {"cases", 6},
                  {"label", "allreduce \xef\xbf\xbd\n"},
                  {"run", "case"},
                  {"repeat", 1},
                  {"repeats", 3},
                  {"step", 17},
                  {"steps", 35},
                  {"samples_per_second", 271.34},
                  {"seconds_left", 80.0},
                  {"half_width", nullptr}});
  p.phase = "baseline";
  p.steps = 0;
  p.samples_per_second.reset();
  p.half_width = 0.05;
  p.repeats = 0;
  const json other = parsed(progress_object(p));
  CHECK(other["run"] == "baseline");
  for (const char* unknown : {"step", "steps", "samples_per_second", "repeats"}) CHECK(other[unknown].is_null());
  CHECK(other["half_width"] == 0.05);
  CHECK(parsed(message_object("warning: x"))["text"] == "warning: x");
  CHECK(parsed(message_object("warning: x"))["kind"] == "message");
  CHECK(parsed(end_object(4, "r/result.json")) ==
        json{{"schema", "regatta.progress/1"}, {"kind", "end"}, {"exit_code", 4}, {"result", "r/result.json"}});
}

TEST_CASE("a folder in place of a result's file is refused as one that cannot be read") {
  const regatta::test::temporary_folder folder;
  std::filesystem::create_directory(folder.path / "result.json");
  CHECK_FALSE(content_of(folder.path / "result.json"));
  CHECK_THROWS_WITH(read_stored(folder.path.string(), {"regatta.result/1"}), doctest::Contains("cannot be read"));
}

TEST_CASE("texts on a terminal") {
  CHECK(display_width("± 2 → 1") == 7);
  CHECK(shortened("abc→def", 5) == "abc→…");
  CHECK(shortened("abc", 3) == "abc");
  CHECK(flow({"one", "", "two", "three"}, 9) == "one   two\nthree\n");
  CHECK(flow({"a b c d e f"}, 5) == "a b c\n  d e\n  f\n");
  CHECK(fill("a bb ccc", 6, 2) == "a bb\n  ccc\n");
  text_table table{
      {{"k"}, {"a", true, 1}, {"b", true, 2}}, {{{"x", "1", "22"}, ""}, {{"yy", "3", "4"}, "long|note"}}, 1};
  CHECK(draw(table, 0) == "k   a   b\nx   1  22\nyy  long|note\n");
  CHECK(draw_markdown(table) == "| k | a | b |\n| --- | ---: | ---: |\n| x | 1 | 22 |\n| yy | long\\|note |  |\n");
  CHECK(fit(table, 6) == std::vector<std::string>{"b"});
  CHECK(width_of(table) == 5);
  CHECK(fit(table, 1) == std::vector<std::string>{"a"}); // and what says what a row is stays
}
