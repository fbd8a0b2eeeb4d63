#!/bin/sh
# Compiles sample.cu to the samples beside it: nvcc and clang, optimised and for a debugger. Run it where both compilers are, after a
# change of sample.cu; the samples belong to the sources, as most machines have at most one of the two.
set -eu
cd "$(dirname "$0")"
nvcc=${NVCC:-nvcc}
clang=${CLANG:-clang}
flags='-x cuda --cuda-gpu-arch=sm_80 --cuda-device-only -nocudainc -nocudalib -S -g -Xclang -target-feature -Xclang +ptx70'

"$nvcc" -arch=sm_90 -ptx -lineinfo -o nvcc.ptx sample.cu
"$nvcc" -arch=sm_75 -ptx -G -o nvcc_debug.ptx sample.cu
# shellcheck disable=SC2086 # the flags are several words
"$clang" $flags -O3 -o clang.ptx sample.cu
# shellcheck disable=SC2086
"$clang" $flags -O0 -o clang_debug.ptx sample.cu

# Paths of the machine, tabs and blanks at the ends of lines are not kept.
for sample in nvcc.ptx nvcc_debug.ptx clang.ptx clang_debug.ptx; do
    sed -i -E "s|\"$PWD/|\"tests/ptx/|; s|^(.*\.file.*)\"/[^\"]*/([^\"/]*)\"|\1\"include/\2\"|; s/\t/ /g; s/ +\$//" "$sample"
done
