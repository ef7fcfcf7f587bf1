// SPDX-License-Identifier: Apache-2.0
//
// Whole runs on the emulated GPU with graph capture and replay.
#include "emulated_run.hpp"

using namespace emulated_run;

TEST_CASE("steps that are replayed train as steps that are launched") {
  const std::string two = gpu + "--set cluster.workers=2 --set strategy.plugin=allreduce --set transport.plugin=shm ";
  for (const std::string& options :
       {alone + gpu, alone + gpu + "--set train.accumulate=3 --set train.precision=fp16", two,
        two + "--set strategy.bucket=1KiB", two + "--set strategy.algorithm=sharded --set train.precision=bf16"}) {
    CAPTURE(options);
    CHECK(train(mlp, options).losses == train(mlp, options + " --set train.graphs=false").losses);
  }
  CHECK(train(mlp, two).kernels.at("graphs") == "2"); // one bucket: one forward and one backward graph
}
