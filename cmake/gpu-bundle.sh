#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ./dev gpu-bundle: packs the program, its plugins and the tests that need a GPU into build/regatta-gpu.tar.gz. The archive
# runs on any x86-64 Linux with this machine's glibc or a newer one. It contains all other libraries that it links, except
# for CUDA, cuDNN and NCCL, which are looked up in /usr/local/cuda and LD_LIBRARY_PATH.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/gpu stage=$root/build/regatta-gpu
jobs=${1:-$(nproc)}
cuda=/usr/local/cuda/lib64

# DT_RPATH, not DT_RUNPATH: only the former also applies to the libraries that the packed libraries need.
rpath="\$ORIGIN/../lib;\$ORIGIN/..;$cuda"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DREGATTA_CUDA_ARCHITECTURES=all \
  -DREGATTA_GPU_TEST_PROGRAM=regatta -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON "-DCMAKE_INSTALL_RPATH=$rpath" \
  -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags -DCMAKE_MODULE_LINKER_FLAGS=-Wl,--disable-new-dtags >/dev/null
for plugin in cudnn nccl; do
  ninja -C "$build" -t query "$plugin" >/dev/null 2>&1 || { echo "gpu-bundle: plugin $plugin would be missing: CUDA, cuDNN or NCCL was not found" >&2; exit 1; }
done
tests=(on_gpu_test nccl_on_gpu_test layers_test sequence_test sparse_layers_test flash_test gpu_arithmetic_test)
ninja -C "$build" -j "$jobs" product "${tests[@]}"

rm -rf "$stage"
cmake --install "$build" --prefix "$stage" --strip >/dev/null
mkdir -p "$stage/tests" "$stage/examples"
cp "${tests[@]/#/$build/tests/}" "$stage/tests/"
cp "$root/tests/gpu/run-all.sh" "$root/tests/gpu/ladder.sh" "$stage/"
cp "$root"/examples/*.toml "$stage/examples/"
cp "$root/docs/gpu.md" "$root/LICENSE" "$stage/"
rm -rf "$stage/include" "$stage/lib/cmake"
# OpenMPI loads its components from the paths of its distribution, so it cannot be packed.
rm -f "$stage/lib/regatta/mpi.so"
echo "transport mpi: OpenMPI cannot be packed; build Regatta on the machine" >>"$stage/lib/regatta/left-out.txt"

# Copies all linked libraries except glibc's and NVIDIA's.
mapfile -t files < <(find "$stage/bin" "$stage/lib" "$stage/tests" -type f \( -name '*.so' -o -perm -u+x \))
for file in "${files[@]}"; do LD_LIBRARY_PATH=$cuda ldd "$file" 2>/dev/null || true; done |
  awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  grep -Ev '/(libc|libm|libmvec|libdl|librt|libpthread|libresolv|libutil|ld-linux-x86-64)\.so|/lib(cuda|cudart|cudnn|cublas|nccl)[A-Za-z_]*\.so' |
  while read -r library; do cp -L "$library" "$stage/lib/"; done

# A library with a RUNPATH would look for its own libraries there instead of beside itself.
for library in "$stage"/lib/*.so*; do
  ! readelf -d "$library" | grep -q RUNPATH || { echo "gpu-bundle: $library has a RUNPATH: it would not find its own libraries" >&2; exit 1; }
done

tar -C "$root/build" -czf "$root/build/regatta-gpu.tar.gz" regatta-gpu
du -h "$root/build/regatta-gpu.tar.gz"
echo "unpack it anywhere; regatta-gpu/run-all.sh runs the tests that need a GPU and the benchmark"
