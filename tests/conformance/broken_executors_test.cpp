// SPDX-License-Identifier: Apache-2.0
//
// `regatta check` finds the defect of each broken executor in the right test, and skips ops that an executor lacks.
#include "broken.hpp"

using namespace regatta::test;

namespace {

const names refusals = {"unknown-op", "unknown-attribute"};
const names ops = {"dense",    "conv2d",    "batch_norm",          "max_pool",
                   "avg_pool", "attention", "token_cross_entropy", "cosine"};

names all_of(const names& a, const names& b) {
  names both = a;
  both.insert(b.begin(), b.end());
  return both;
}

} // namespace

TEST_CASE("an executor that runs the reference passes") {
  const names tests = all_of(all_of(ops, refusals), {"initial-values"});
  const findings f = check("executor/runs_the_reference", tests);
  CAPTURE(text_of(f.document));
  CHECK(f.code == 0);
  CHECK(f.passed == tests);
}

TEST_CASE("a gradient that is 5 % too long is found in the test of its op alone") {
  names others = all_of(ops, refusals);
  others.erase("avg_pool");
  finds("executor/five_percent_in_avg_pool", {"avg_pool"}, others);
  const findings f = check("executor/five_percent_in_avg_pool", {"avg_pool"});
  CHECK(text_of(f.document).find("the gradient of before.weight differs from that of the reference in fp64") !=
        std::string::npos);
}

TEST_CASE("an executor whose models start with other weights is found") {
  finds("executor/initialises_by_its_own_rule", {"initial-values"}, {"dense", "conv2d"});
}

TEST_CASE("an executor that ignores an attribute is found") {
  finds("executor/ignores_attributes", {"unknown-attribute"}, all_of(ops, {"unknown-op"}));
  const findings f = check("executor/ignores_attributes", {"unknown-attribute"});
  CHECK(text_of(f.document).find("compiles a graph with the unknown attribute regatta_check_attribute of op") !=
        std::string::npos);
}

TEST_CASE("an executor that blames the graph for what it lacks is found") {
  finds("executor/blames_the_graph", refusals, {"dense", "conv2d"});
}

TEST_CASE("ops that an executor lacks are skipped by name, and not green if nothing was tested") {
  const findings f = check("executor/has_no_convolution", all_of(ops, refusals), {"conv2d", "max_pool", "avg_pool"});
  CHECK(f.code == 0);
  CHECK(f.skipped == names{"conv2d", "max_pool", "avg_pool"});
  CHECK(text_of(f.document).find("it compiles no graph with op conv2d (") != std::string::npos);
  CHECK(text_of(f.document)
            .find("it compiles no graph with op max_pool: the suite's also have op conv2d, which it "
                  "lacks (") != std::string::npos);
  // The tests of its models then use a network without the op.
  CHECK(check("executor/has_no_convolution", {"seed", "gradient"}).passed == names{"seed", "gradient"});
  const findings nothing = check("executor/has_nothing", {"dense", "unknown-op", "unknown-attribute"},
                                 {"dense", "unknown-op", "unknown-attribute"});
  CHECK(nothing.code == 77);
  CHECK(nothing.passed.empty());
}

TEST_CASE("each executor of the catalogue with one mistake is found, and the sound one passes the same tests") {
  const std::vector<defect> mistakes = {{"executor/overwrites_shared", {"dense"}, {"relu"}},
                                        {"executor/first_position_only", {"dense"}, {"relu", "instances"}},
                                        {"executor/overflows", {"softmax_cross_entropy"}, {"dense"}},
                                        {"executor/uniform_is_constant", {"initial-values"}, {"dense"}},
                                        {"executor/shares_statics", {"instances"}, {"dense"}},
                                        {"executor/forgets_decay", {"description"}, {"dense"}},
                                        {"executor/smallest_logit", {"metric"}, {"evaluate"}},
                                        {"executor/starts_threads", {"threads"}, {"dense"}},
                                        {"executor/ignores_strides", {"longer-structs"}, {"dense"}},
                                        {"executor/computes_bf16_in_fp32", {"bf16"}, {"dense"}},
                                        {"executor/omits_no_op", {"unknown-op"}, {"dense"}},
                                        {"executor/attention_overflows", {"attention"}, {"dense"}},
                                        {"executor/backward_late", {"backward"}, {"dense"}},
                                        {"executor/never_trains", {"gradient"}, {"backward"}}};
  names all;
  for (const defect& d : mistakes) all = all_of(all, d.broken);
  const findings f = check("executor/runs_the_reference", all, {"bf16"});
  CAPTURE(text_of(f.document));
  CHECK(f.failed.empty());
  CHECK(f.skipped == names{"bf16"});
  finds_all(mistakes);
}

TEST_CASE("operations of a step that are off are found") {
  finds("executor/counts_multiply_adds", {"flops"}, {"dense"});
  finds("executor/counts_the_batch", {"flops"}, {"dense"});
  const findings unknown = check("executor/runs_the_reference", {"flops"}, {"flops"});
  CHECK(unknown.skipped == names{"flops"});
}

TEST_CASE("a step that never reports its backward pass is remarked") {
  const findings f = check("executor/never_backward", {"backward"});
  CAPTURE(text_of(f.document));
  CHECK(f.passed == names{"backward"});
  CHECK(text_of(f.document).find("step() never calls rg_hooks.backward()") != std::string::npos);
  const findings sound = check("executor/runs_the_reference", {"backward"});
  CHECK(text_of(sound.document).find("step() never calls") == std::string::npos);
}

TEST_CASE("an input that has no tokens is found") {
  finds("model/selecting", {"tokens"}, {"repeat"});
}

TEST_CASE("matrix products of a device that ignore beta are found") {
  const findings sound = check("executor/multiplies", {"gemm"});
  CAPTURE(text_of(sound.document));
  CHECK(sound.passed == names{"gemm"});
  finds("executor/ignores_beta", {"gemm"}, {});
  CHECK(check("executor/runs_the_reference", {"gemm"}, {"gemm"}).skipped == names{"gemm"});
}

TEST_CASE("the attributes of an executor's own op are tested by a model that has it") {
  const findings f = check("model/bent", {"unknown-attribute", "instances"});
  CAPTURE(text_of(f.document));
  CHECK(f.failed == names{"unknown-attribute"});
  CHECK(text_of(f.document).find("the unknown attribute regatta_check_attribute of op regatta_test.bend") !=
        std::string::npos);
}

TEST_CASE("an executor's own op can have lists and texts as attributes, and refuses numbers in their place") {
  const names all = {"unknown-attribute", "gradient", "instances"};
  const findings f = check("model/clamped", all);
  CAPTURE(text_of(f.document));
  CHECK(f.passed == all);
}

TEST_CASE("a graph with an attribute that an executor does not know is left to the next one") {
  const temporary_folder s;
  std::ofstream(s.path / "x.toml") << "[model]\nplugin = \"dilated\"\n[cluster]\nworkers = 1\n[train]\nbatch = 2\n"
                                      "[strategy]\nplugin = \"none\"\n[transport]\nplugin = \"null\"\n"
                                      "[measure]\nwarmup = 1\nsteps = 2\nrepeats = 1\nbaseline = false\n";
  const std::string run = "run x.toml --format json --progress never --plugin-path " BROKEN_PLUGINS " --set ";
  const outcome none = program(s, run + "train.executor=runs_the_reference --out none");
  CHECK(none.code == 77);
  CHECK_MESSAGE(none.err.find("layer wide (conv2d): this executor does not know the attribute dilation") !=
                    std::string::npos,
                none.err);
  const outcome next = program(s, run + "'train.executor=[\"runs_the_reference\", \"ignores_attributes\"]' --out next");
  REQUIRE_MESSAGE(next.code == 0, next.err);
  CHECK(parsed(next.out).at("results").at(0).at("fingerprint").at("executor") == "ignores_attributes");
}

#ifdef HAS_ONEDNN
TEST_CASE("a batch all of whose ids are padding touches no rows") {
  // With these seeds the one id of a batch is padding; the suite initialised the whole table then.
  for (const char* seed : {"5", "8"}) {
    CAPTURE(seed);
    const findings f =
        check("executor/onednn", {"sparse_embedding", "embedding_bag"}, {}, std::string("--seed ") + seed);
    CHECK(f.code == 0);
  }
}
#endif

TEST_CASE("--list says what each test of an executor expects") {
  const temporary_folder s;
  const outcome list = program(s, "check executor/runs_the_reference --list --plugin-path " BROKEN_PLUGINS);
  CHECK(list.code == 0);
  for (const char* text : {"unknown-op", "unknown-attribute", "conv2d", "odd sizes, kernels as large as the image"})
    CHECK(list.out.find(text) != std::string::npos);
}
