#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs everything that needs a GPU, from an unpacked bundle (./dev gpu-bundle) or a checkout that was built: describes the
# machine, runs the tests on the GPU, the checks of NCCL with two ranks, and the benchmark. Prints one summary and writes
# logs to gpu-results/. Exit code: 0: all passed; 1: something failed; 77: there is no GPU.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ -d "$here/tests/gpu" ]; then # a checkout
  program=$here/build/release/bin tests=$here/build/release/tests plugin=$here/build/release/lib/regatta/cudnn.so
else
  program=$here/bin tests=$here/tests plugin=$here/lib/regatta/cudnn.so
fi
export PATH=$program:$PATH
out=$PWD/gpu-results
mkdir -p "$out"
summary=() failed=0

step() { # NAME COMMAND...
  local name=$1 log=$out/${1// /-}.log begin=$SECONDS code
  shift
  printf '%s ... ' "$name"
  timeout 1200 "$@" >"$log" 2>&1
  code=$?
  case $code in
  0) result=passed ;;
  77) result=skipped ;;
  *) result="FAILED ($code)" failed=1 ;;
  esac
  printf '%s\n' "$result"
  summary+=("$(printf '%-28s %-12s %5d s   %s' "$name" "$result" $((SECONDS - begin)) "$(basename "$log")")")
}

step "the machine" regatta doctor
cat "$out/the-machine.log"
[ -e /dev/nvidiactl ] || { echo "there is no NVIDIA GPU on this machine"; exit 77; }
# By default these tests run on the CPU or the emulated GPU.
for name in layers sequence sparse_layers flash gpu_arithmetic; do
  step "$name on the GPU" env REGATTA_LOOSER=10 REGATTA_EXECUTOR_PLUGIN="$plugin" "$tests/${name}_test"
done
step "models on the GPU" "$tests/on_gpu_test"
step "two ranks over NCCL" "$tests/nccl_on_gpu_test"
for model in 'mlp' 'vgg16 --set model.input=imagenet --set train.precision=bf16' \
  'resnet50 --set model.input=imagenet --set train.precision=bf16 --set train.batch=256' \
  'bert --set model.size=large --set train.precision=bf16 --set train.batch=64' \
  'transformer --set model.size=big --set train.precision=bf16 --set train.batch=32'; do
  printf '[model]\nplugin = "%s"\n[train]\ndevice = "cuda"\nbatch = 128\n[strategy]\nplugin = "none"\n[transport]\nplugin = "null"\n' \
    "${model%% *}" >"$out/bench.toml"
  rm -rf "$out/bench-${model%% *}"
  options=()
  [ "$model" = "${model%% *}" ] || read -ra options <<<"${model#* }"
  step "benchmark ${model%% *}" regatta run "$out/bench.toml" --progress never --out "$out/bench-${model%% *}" "${options[@]}"
  cat "$out/benchmark-${model%% *}.log"
done

printf '\n'
printf '%s\n' "${summary[@]}" | tee "$out/summary.txt"
exit $failed
