#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs everything that needs a GPU, from an unpacked bundle (./dev gpu-bundle) or a checkout that was built, as a ladder:
# from the driver to ranks on several GPUs. Stops at the first rung that fails and runs that one again under
# compute-sanitizer (ladder.sh). After the last rung it runs benchmarks. Writes logs to gpu-results/. Exit code: 0: all
# passed; 1: a rung failed; 77: there is no GPU.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -d "$here/emulated" ]; then # a checkout
  build=$here/../../build/release
  program=$build/bin tests=$build/tests plugin=$build/lib/regatta/cudnn.so
else
  program=$here/bin tests=$here/tests plugin=$here/lib/regatta/cudnn.so
fi
export PATH=$program:$PATH
ladder_out=$PWD/gpu-results
mkdir -p "$ladder_out"
# shellcheck source=tests/gpu/ladder.sh
source "$here/ladder.sh"

[ -e /dev/nvidiactl ] || { echo "there is no NVIDIA GPU on this machine"; exit 77; }
# By default these tests run on the CPU or the emulated GPU. Sums on a GPU are in another order than the reference's.
on_gpu=(env REGATTA_LOOSER=10 "REGATTA_EXECUTOR_PLUGIN=$plugin")

run_mlp() { # OPTION...
  local file=$ladder_out/mlp.toml
  printf '[model]\nplugin = "mlp"\n[train]\ndevice = "cuda"\nbatch = 64\n[measure]\nwarmup = 1\nsteps = 5\nrepeats = 1\n' >"$file"
  regatta run "$file" --progress never --set measure.baseline=false "$@"
}
alone=(--set strategy.plugin=none --set transport.plugin=null)
export -f run_mlp
export ladder_out
mlp() { # NAME PROVES OPTION...
  local name=$1 proves=$2
  shift 2
  rung "$name" "$proves" bash -c 'run_mlp "$@"' run_mlp "$@"
}

# Where no case could run on a GPU (77), every other rung would be skipped.
rung "driver" "the plugins load, and a case can run on a GPU" bash -c 'regatta doctor && { run_mlp --dry-run || exit 1; }'
cat "$ladder_out/driver.log"
rung "stream and event" "streams are ordered by events alone" \
  "${on_gpu[@]}" "$tests/gpu_arithmetic_test" --test-case="streams are ordered*"
case_rungs "kernels" "${on_gpu[@]}" "$tests/gpu_arithmetic_test" --test-case-exclude="streams are ordered*"
rung "GEMM" "one dense layer, forward and backward" "${on_gpu[@]}" REGATTA_LAYER=dense "$tests/layers_test" --test-case="the executor's layers*"
rung "one convolution" "one convolution, forward and backward" \
  "${on_gpu[@]}" "REGATTA_LAYER=conv 3x3 of an image" "$tests/layers_test" --test-case="the executor's layers*"
for name in layers sequence sparse_layers; do
  rung "ops: $name" "each op by itself has the CPU's results" "${on_gpu[@]}" REGATTA_DEBUG_SYNC=1 "$tests/${name}_test"
done
for name in layers sequence sparse_layers; do
  layer_rungs "$name" "${on_gpu[@]}" "$tests/${name}_test" --test-case="the executor's layers*"
done
for name in layers sequence sparse_layers; do
  case_rungs "$name in networks" "${on_gpu[@]}" "$tests/${name}_test" --test-case-exclude="the executor's layers*,the reference's*"
done
case_rungs "flash attention" "${on_gpu[@]}" "$tests/flash_test"
mlp "checked model" "each op of a model has the CPU's results" "${alone[@]}" --set train.debug=sync
mlp "eager model" "a model trains, kernel by kernel" "${alone[@]}" --set train.graphs=false
mlp "captured model" "a step is captured and replayed" "${alone[@]}"
rung "models" "all models have the CPU's losses, replayed and launched" "$tests/on_gpu_test"
rung "NCCL pair" "two ranks exchange over NCCL" "$tests/nccl_on_gpu_test"
gpus=$(find /proc/driver/nvidia/gpus -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
ranks=$((gpus > 1 ? gpus : 2))
mlp "$ranks ranks" "$ranks ranks train over NCCL" --set cluster.workers=$ranks --set strategy.plugin=allreduce \
  --set transport.plugin=nccl --set transport.share=true

for model in 'mlp' 'vgg16 --set model.input=imagenet --set train.precision=bf16' \
  'resnet50 --set model.input=imagenet --set train.precision=bf16 --set train.batch=256' \
  'bert --set model.size=large --set train.precision=bf16 --set train.batch=64' \
  'transformer --set model.size=big --set train.precision=bf16 --set train.batch=32'; do
  name=${model%% *}
  printf '[model]\nplugin = "%s"\n[train]\ndevice = "cuda"\nbatch = 128\n[strategy]\nplugin = "none"\n[transport]\nplugin = "null"\n' \
    "$name" >"$ladder_out/bench.toml"
  rm -rf "$ladder_out/bench-$name"
  options=()
  [ "$model" = "$name" ] || read -ra options <<<"${model#* }"
  rung "benchmark $name" "the figures in benchmark-$name.log" \
    regatta run "$ladder_out/bench.toml" --progress never --out "$ladder_out/bench-$name" "${options[@]}"
  cat "$ladder_out/benchmark-$name.log"
done
ladder_summary
