#!/bin/sh
# scripts/bench/gpu/run.sh HOST [FILE]: millrace on a GPU beside raw CUDA C, PyTorch and CuPy, in one run. Needs
# nvcc and python3 with PyTorch (CuPy if there is one). Prints a table, and writes it to FILE.
#
# The programs run by turns, five times what is about the cost of a call and twice what is about bandwidth (or as often as
# CALL_ROUNDS and RATE_ROUNDS say), and the better figure counts: whatever else the machine does only makes things
# slower. The last column is how millrace does against the best of the others: 1.05 is five per cent better.
set -eu
host=$1
file=${2:-/dev/null}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nvcc -O3 -std=c++17 -arch=native -o "$work/raw" "$here/raw.cu" -lcublas -lcuda
nvcc -O3 -arch=native -o "$work/context" "$here/context.cu"

now() { date +%s%N; }
first_result() { # program, command...: from nothing to the first result, whole process
    program=$1
    shift
    began=$(now)
    "$@" > "$work/first" 2>&1 || cat "$work/first" >&2
    printf '%s\tstart to first result\t%s\tms\n' "$program" "$((($(now) - began) / 1000000))"
}

{
    for round in $(seq "${CALL_ROUNDS:-5}"); do
        "$work/raw" small | sed 's/^/raw\t/'
        "$host" --device cuda "$here/ours.lua" small kernels graphs traced autograd | sed 's/^/millrace\t/'
        "$host" --device cuda --check "$here/ours.lua" small kernels 2>/dev/null | sed 's/^/checked\t/'
    done
    for round in $(seq "${RATE_ROUNDS:-2}"); do
        "$work/raw" large | sed 's/^/raw\t/'
        "$host" --device cuda "$here/ours.lua" large halves products convolutions networks order pinned peer pipeline | sed 's/^/millrace\t/'
        python3 "$here/peers.py"
        first_result raw "$work/context"
        first_result millrace "$host" --device cuda -e 'print((mr.rand(1000) + 1):sum():item())'
        first_result pytorch python3 -c 'import torch; print((torch.rand(1000, device="cuda") + 1).sum().item())'
    done
} > "$work/all"

awk -F '\t' '
function better(unit, a, b) { return unit == "us" || unit == "ms" ? a < b : a > b }
{
    if (!($2 in unit)) { order[++rows] = $2; unit[$2] = $4 }
    key = $1 SUBSEP $2
    if (!(key in best) || better($4, $3 + 0, best[key])) best[key] = $3 + 0
}
function cell(program, name, key) {
    key = program SUBSEP name
    return key in best ? sprintf("%.4g", best[key]) : "-"
}
END {
    count = split("raw pytorch cupy millrace checked", program, " ")
    printf "| %-28s | %-7s |", "work", "unit"
    for (p = 1; p <= count; p++) printf " %9s |", program[p]
    printf " %8s |\n", "millrace"
    printf "| %-28s | %-7s |", "----", "----"
    for (p = 1; p <= count; p++) printf " %9s |", "---:"
    printf " %8s |\n", "---:"
    for (r = 1; r <= rows; r++) {
        name = order[r]
        printf "| %-28s | %-7s |", name, unit[name]
        top = ""
        for (p = 1; p <= count; p++) {
            printf " %9s |", cell(program[p], name)
            key = program[p] SUBSEP name
            if (p <= 3 && key in best && (top == "" || better(unit[name], best[key], top))) top = best[key]
        }
        ours = ("millrace" SUBSEP name) in best ? best["millrace" SUBSEP name] : ""
        ratio = "-"
        if (ours != "" && top != "") ratio = sprintf("%.3f", unit[name] == "us" || unit[name] == "ms" ? top / ours : ours / top)
        printf " %8s |\n", ratio
    }
}' "$work/all" | tee "$file"
