// SPDX-License-Identifier: Apache-2.0
//
// A plugin that breaks a rule fails the case of `regatta run`; the error names the plugin and the rule.
#include "broken.hpp"

#include "simulator/simulation.hpp"

#include <map>

using namespace regatta::test;

namespace {

// Exit code of `regatta run` on a small case, and the status and error of its only result.
struct broken_run {
  int code;
  std::string status, error, err;
};

broken_run run(const std::string& options) {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml")
      << "[model]\nplugin = \"mlp\"\n[model.mlp]\nhidden = [5]\n[train]\nbatch = 4\nkernels = \"fixed\"\n"
         "[measure]\nwarmup = 2\nsteps = 5\nrepeats = 1\nbaseline = false\n";
  const outcome o =
      program(s, "run x.toml --out result --progress never --format json --plugin-path " BROKEN_PLUGINS " " + options);
  INFO(o.err);
  INFO(o.out);
  REQUIRE(!o.out.empty());
  const json entry = parsed(o.out).at("results").at(0);
  return {o.code, entry.at("status"), entry.at("error").is_null() ? "" : entry.at("error").get<std::string>(), o.err};
}

void fails(const std::string& options, int code, const std::vector<std::string>& says) {
  CAPTURE(options);
  const broken_run r = run(options);
  CAPTURE(r.error);
  CHECK(r.code == code);
  CHECK(r.status == "failed");
  for (const std::string& text : says) {
    CAPTURE(text);
    CHECK(r.error.find(text) != std::string::npos);
  }
}

const std::string refused = "a transfer with rank 99 on lane 0: there are ";

} // namespace

TEST_CASE("a strategy's activity that fails before it waits for anything fails the run") {
  const std::string at_once = "--set strategy.plugin=fails_at_once --set strategy.where=";
  for (const char* transport : {"tcp", "shm"})
    for (const char* workers : {"1", "2"}) {
      const std::string on = std::string(" --set transport.plugin=") + transport + " --set cluster.workers=" + workers;
      fails(at_once + "end_step" + on, 3, {"strategy fails_at_once: end_step of step 0: ", refused});
      fails(at_once + "end_step --set strategy.from=6" + on, 3, {"end_step of step 6: ", refused});
    }
  fails(at_once + "end_step --set strategy.from=3 --set strategy.how=throw", 3,
        {"strategy fails_at_once: end_step of step 3: it was asked to fail"});
  fails(at_once + "begin_step", 3, {"strategy fails_at_once: begin_step of step 0: ", refused});
  for (const char* workers : {"1", "2"})
    fails(at_once + "finish --set cluster.workers=" + workers, 3, {"strategy fails_at_once: finish: ", refused});
  fails(at_once + "serve --set cluster.servers=1", 3, {"strategy fails_at_once: serve: ", refused});
}

TEST_CASE("a strategy in C that ends an activity with an error within the call that begins it fails the run") {
  fails("--set strategy.plugin=fails_in_c", 1, {"strategy fails_in_c: end_step of step 0: the fabric said no"});
  fails("--set strategy.plugin=fails_in_c --set \"strategy.how=status 5\"", 3,
        {"strategy fails_in_c: end_step of step 0 ends with status 5"});
  fails("--set strategy.plugin=fails_in_c --set strategy.how=twice", 3,
        {"strategy fails_in_c: done(2): no activity with this number is running"});
}

TEST_CASE("pull_rows, too, and under virtual time") {
  const auto plugins = regatta::registry::of_files({BROKEN_PLUGINS "/broken_failing.so"});
  regatta::simulation_setup x;
  x.strategy = "fails_at_once";
  x.workers = 2;
  x.table_rows = 20;
  for (const char* where : {"own_rows", "pull_rows", "begin_step", "end_step", "finish"}) {
    CAPTURE(where);
    x.parameters = {{"where", where}};
    CHECK_THROWS_WITH(regatta::simulate(plugins, x), doctest::Contains(where));
  }
  x.parameters = {{"where", "serve"}};
  x.servers = 1;
  CHECK_THROWS_WITH(regatta::simulate(plugins, x), doctest::Contains("serve: a transfer with rank 99"));
  x.servers = 0;
  x.ghosts = true; // whose tables hold nothing
  x.table_rows = 0;
  x.tables = {{.rows = 20, .row = 4, .most = 9}};
  x.touches = [](std::uint32_t, std::uint64_t, std::uint32_t, std::vector<std::uint64_t>&) {};
  x.parameters = {{"where", "own_rows"}};
  CHECK_THROWS_WITH(regatta::simulate(plugins, x), doctest::Contains("own_rows: shard 1 of 1"));
}

TEST_CASE("a transport's completion that breaks a rule names the transport") {
  const auto miscounts = [](const std::string& how, const std::string& strategy = "allreduce") {
    return "--set cluster.workers=2 --set strategy.plugin=" + strategy +
           " --set transport.plugin=miscounts --set transport.how=" + how;
  };
  const std::string who = "transport miscounts: ";
  fails(miscounts("twice"), 3, {who, "reports a completion twice"});
  fails(miscounts("twice_later"), 3, {who, "reports a completion twice"});
  fails(miscounts("cookie"), 3, {who, "cookie was never given", "0xdeadbeef"});
  fails(miscounts("status_5"), 3, {who, "neither RG_OK nor an error", "status 5", "a send of "});
  fails(miscounts("bytes"), 3, {who, "a receive ends with more bytes than it has room for"});
}

TEST_CASE("an error that a strategy never reads fails the run") {
  fails("--set cluster.workers=2 --set strategy.plugin=reads_no_status --set transport.plugin=miscounts "
        "--set transport.how=error",
        1, {"transport miscounts: a send of ", "an operation failed"});
}

TEST_CASE("a model that misuses its hooks fails at once with its name") {
  const auto misuses = [](const std::string& how, const std::string& more = "") {
    return "--set model.plugin=misuses --set model.how=" + how + " --set model.step=3 --set optimizer.lr=0.001 " + more;
  };
  const std::string who = "model misuses: step 3 ";
  for (const char* workers : {"1", "2"}) {
    const std::string on = std::string("--set cluster.workers=") + workers;
    fails(misuses("ready_99", on), 3, {who + "calls ready(99), but the model has tensors 0 to 1"});
    fails(misuses("need_99", on), 3, {who + "calls need(99), but the model has tensors 0 to 1"});
    fails(misuses("backwards", on), 3, {who + "calls ready(0) of tensor bias after ready(1) of tensor weight"});
    fails(misuses("first_only", on), 3, {who + "returned without ready(1) of tensor weight"});
    fails(misuses("never_ready", on), 3, {who + "returned without ready(0) of tensor bias"});
  }
  // Only the last of several micro-batches calls ready().
  CHECK(run(misuses("nothing", "--set train.accumulate=2")).code == 0);
  fails(misuses("never_ready", "--set train.accumulate=2"), 3, {who + "returned without ready(0) of tensor bias"});
  fails(misuses("nothing", "--set model.early=true --set train.accumulate=2"), 3,
        {who + "calls ready(0) of tensor bias in a micro-batch that is not the step's last"});
}

TEST_CASE("a write outside of a buffer is found after warm-up, or after the last step") {
  const auto misuses = [](const std::string& how, int step) {
    return "--set model.plugin=misuses --set cluster.workers=2 --set optimizer.lr=0.001 --set model.how=" + how +
           " --set model.step=" + std::to_string(step);
  };
  fails(misuses("behind_bias", 0), 3,
        {"after warm-up: the padding behind the gradient of tensor bias was written", "out of bounds"});
  fails(misuses("behind_bias", 4), 3, {"after the last step: the padding behind the gradient of tensor bias"});
  fails(misuses("behind_weight", 0), 3, {"after warm-up: memory behind the gradients was written"});
  fails(misuses("behind_weight", 4), 3, {"after the last step: memory behind the gradients was written"});
  fails(misuses("before_bias", 0), 3, {"after warm-up: memory before the gradients was written"});
  fails(misuses("behind_state", 4), 3, {"after the last step: memory behind the state of tensor mean was written"});
  const std::string outside = "--set strategy.plugin=writes_outside --set strategy.where=";
  for (const char* transport : {"tcp", "shm"}) {
    const std::string over = std::string(" --set transport.plugin=") + transport;
    fails(outside + "behind" + over, 3, {"memory behind buffer 1 of strategy writes_outside was written"});
    fails(outside + "before" + over, 3, {"memory before buffer 1 of strategy writes_outside was written"});
    fails(outside + "padding" + over, 3, {"the padding behind the weights of tensor "});
  }
}

TEST_CASE("regatta check finds a strategy whose own code writes outside of its buffers") {
  for (const auto& [where, memory] : {std::pair<std::string, std::string>{"behind", "memory behind buffer 1 of"},
                                      {"before", "memory before buffer 1 of"},
                                      {"padding", "the padding behind the weights of a tensor"}}) {
    CAPTURE(where);
    const temporary_folder s;
    const outcome o = program(
        s, "check strategy/writes_outside --plugin-path " BROKEN_PLUGINS " --only drain --json --set where=" + where);
    CHECK(o.code == 1);
    CHECK(o.out.find(memory) != std::string::npos);
  }
}

TEST_CASE("regatta check finds a model that writes outside of its tensors, and one that names no tensor") {
  for (const char* how : {"behind_bias", "behind_weight", "before_bias", "need_99", "ready_99"}) {
    CAPTURE(how);
    const temporary_folder s;
    const outcome o = program(
        s, std::string("check model/misuses --plugin-path " BROKEN_PLUGINS " --only repeat --json --set how=") + how);
    CHECK(o.code == 1);
    const std::string text = o.out + o.err;
    const std::string expected =
        std::map<std::string, std::string>{{"behind_bias", "the step writes behind the gradient of tensor bias"},
                                           {"behind_weight", "the step writes behind the gradient of tensor weight"},
                                           {"before_bias", "the step writes before the gradient of tensor bias"},
                                           {"need_99", "the step calls need(99), but the model has 2 tensors"},
                                           {"ready_99", "the step calls ready(99), but the model has 2 tensors"}}[how];
    CHECK(text.find(expected) != std::string::npos);
  }
}

TEST_CASE("weights that never move though the gradient is not zero are refused, frozen ones are not") {
  const broken_run none = run("--set strategy.plugin=does_nothing --set cluster.workers=1");
  CHECK(none.code == 4);
  CHECK(none.status == "ok");
  CHECK(none.err.find("the weights never moved, though the gradient is not zero") != std::string::npos);
  // The learning rate is 0: always, or in all steps of this run.
  CHECK(run("--set optimizer.lr=0 --set cluster.workers=2").code == 0);
  CHECK(run("--set optimizer.schedule.name=linear --set optimizer.schedule.length=100 --set cluster.workers=2").code ==
        0);
  // There is no gradient.
  CHECK(run("--set model.plugin=null --set cluster.workers=2").code == 0);
}

TEST_CASE("a synchronous strategy of several workers that sends nothing is refused") {
  const broken_run silent = run("--set strategy.plugin=sends_nothing --set cluster.workers=2");
  CHECK(silent.code == 4);
  CHECK(silent.err.find("a synchronous strategy of 2 workers sent nothing in all timed steps") != std::string::npos);
  CHECK(run("--set strategy.plugin=sends_nothing --set cluster.workers=1").code == 0);
  CHECK(run("--set strategy.plugin=none --set cluster.workers=2").code == 0);
}

TEST_CASE("a strategy that sends where talks() says no, or allocates in a step, is refused in check and run") {
  for (const auto& [id, text] :
       {std::pair<std::string, std::string>{"talks_to_none", "says that these ranks exchange no message"},
        {"allocates_late", "alloc was called in a step"}}) {
    CAPTURE(id);
    const findings f = check("strategy/" + id, {"plan", "drain"});
    CHECK(f.failed == names{"drain"});
    CHECK(text_of(f.document).find(text) != std::string::npos);
    fails("--set cluster.workers=2 --set strategy.plugin=" + id, 3, {text});
  }
}

TEST_CASE("replicas of a lossy strategy must be identical") {
  const broken_run differs = run("--set strategy.plugin=int8_differs --set cluster.workers=2");
  CHECK(differs.code == 4);
  CHECK(differs.err.find("the workers ended with different weights") != std::string::npos);
  CHECK(run("--set strategy.plugin=int8_sound --set cluster.workers=2").code == 0);
}

TEST_CASE("a gradient that is not finite though the loss is, and a loss that never was") {
  const std::string clipped = "--set model.plugin=misuses --set optimizer.clip_norm=1 --set cluster.workers=2 ";
  fails(clipped + "--set model.how=nan_gradient", 4, {"after warm-up: the gradient of tensor weight is not finite"});
  fails(clipped + "--set model.how=nan_gradient --set model.step=6", 4,
        {"after the last step: the gradient of tensor weight is not finite"});
  fails(clipped + "--set model.how=nan_loss", 4,
        {"the loss of step 0 is not finite: look at the input (data.source = \"constant\") or the initial weights"});
  fails(clipped + "--set model.how=nan_loss --set model.step=2", 4,
        {"the loss of step 2 is not finite: training diverged"});
}
