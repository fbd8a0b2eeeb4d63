#!/bin/sh
# Compiles sample.cu and access.cu to the samples beside them: nvcc and clang, optimised and for a debugger. Run it where both
# compilers are, after a change of a source; the samples belong to the sources, as most machines have at most one of the two.
set -eu
cd "$(dirname "$0")"
nvcc=${NVCC:-nvcc}
clang=${CLANG:-clang}
flags='-x cuda --cuda-gpu-arch=sm_80 --cuda-device-only -nocudainc -nocudalib -S -Xclang -target-feature -Xclang +ptx70'

"$nvcc" -arch=sm_90 -ptx -lineinfo -o nvcc.ptx sample.cu
"$nvcc" -arch=sm_75 -ptx -G -o nvcc_debug.ptx sample.cu
# shellcheck disable=SC2086 # the flags are several words
"$clang" $flags -g -O3 -o clang.ptx sample.cu
# shellcheck disable=SC2086
"$clang" $flags -g -O0 -o clang_debug.ptx sample.cu

"$nvcc" -arch=sm_90 -ptx -o access_nvcc.ptx access.cu
"$nvcc" -arch=sm_75 -ptx -G -o access_nvcc_debug.ptx access.cu
# shellcheck disable=SC2086
"$clang" $flags -O3 -o access_clang.ptx access.cu
# shellcheck disable=SC2086
"$clang" $flags -O0 -o access_clang_debug.ptx access.cu

# Paths of the machine, tabs and blanks at the ends of lines are not kept; nor is what only a debugger reads, of access.cu.
for sample in *.ptx; do
    sed -i -E "s|\"$PWD/|\"tests/ptx/|; s|^(.*\.file.*)\"/[^\"]*/([^\"/]*)\"|\1\"include/\2\"|; s/\t/ /g; s/ +\$//" "$sample"
done
for sample in access_*.ptx; do
    sed -i -E '/^ *\.section/,$d; /^ *\.loc /d; /^\$L__(tmp|func)/d; /^ *\/\//d; /^$/d' "$sample"
done
