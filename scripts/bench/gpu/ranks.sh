#!/bin/sh
# scripts/bench/gpu/ranks.sh HOST [FILE]: millrace on two GPUs of one computer, beside PyTorch. HOST is bin/millrace in the
# folder that `make dist` makes. Needs NCCL; the processes' part needs mpirun, and the comparison python3 with PyTorch.
#
# First tests/gpu/ranks.lua: the values of all collectives beside the host's, and the losses of data-parallel training
# beside those of one device: in one process, and where mpirun is there in two. Then the table: medians of each run, the
# better one of ROUNDS runs (default 2) that take turns. It goes to FILE, too. PARTS=check or PARTS=table does one of the two.
# DEVICE=virtual:2 tries the checks where no GPU is. Exits with 1 if a check failed. It takes about four minutes.
set -u
host=$1
file=${2:-/dev/null}
here=$(dirname "$0")
tests=$here/../../../tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# mpirun refuses root, and more ranks than cores, unless it is told.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
device=${DEVICE:-cuda}
one_process() { timeout 200 "$host" --device "$device" "$@"; }
# Each rank has half of the cores, here and in ranks.py. A virtual machine may hide which cores are threads of one, and two
# ranks on such cores have half the speed.
half=$(($(nproc) / 2))
[ "$half" -gt 0 ] || half=1
processes() {
    timeout 200 mpirun --oversubscribe --bind-to none -n 2 sh -c '
        first=$(($0 * OMPI_COMM_WORLD_LOCAL_RANK % $(nproc)))
        exec taskset -c "$first-$((first + $0 - 1))" "$@"' "$half" "$host" --device "$device" "$@"
}

has_mpi=yes
if ! command -v mpirun > /dev/null; then
    has_mpi=''
    echo 'ranks.sh: there is no mpirun here: processes are left out' >&2
fi

check() { # name, command...
    name=$1
    shift
    began=$(date +%s)
    if "$@" > "$work/check" 2>&1; then
        sed 's/^/ok: /' "$work/check"
    else
        status=1
        echo "FAILED: $name"
        tail -n 30 "$work/check" | sed 's/^/    /'
    fi
    echo "$name: $(($(date +%s) - began)) s"
}

if [ "${PARTS:-check}" = check ]; then
    "$host" --device "$device" doctor 2>&1 | grep -E '^(device|gpu|NCCL|MPI)'
    check 'one process' one_process "$tests/gpu/ranks.lua"
    check 'one process, checker on' one_process --check=error "$tests/gpu/ranks.lua"
    [ -z "$has_mpi" ] || check 'two processes' processes "$tests/gpu/ranks.lua"
fi
[ "${PARTS:-table}" = table ] || exit $status

rows() { # program, command...: its rows with the name of the program; what it says otherwise if it fails
    program=$1
    shift
    if ! "$@" > "$work/rows" 2> "$work/errors"; then
        status=1
        echo "FAILED: $program" >&2
        tail -n 20 "$work/errors" >&2
    fi
    awk -v program="$program" -F '\t' 'NF == 3 { printf "%s\t%s\n", program, $0 }' "$work/rows"
}

for round in $(seq "${ROUNDS:-2}"); do
    rows millrace one_process "$here/ranks.lua" spawn > "$work/one"
    grep -E 'one thread|DataParallel|one device|spawn' "$work/one"
    grep -vE 'one thread|DataParallel|one device|spawn' "$work/one" | sed 's/^millrace/spawn/'
    [ -z "$has_mpi" ] || rows processes processes "$here/ranks.lua" processes
    if python3 -c 'import torch' 2> /dev/null; then
        rows pytorch timeout 200 python3 "$here/ranks.py" threads
        rows pytorch timeout 200 python3 -m torch.distributed.run --standalone --nproc-per-node 2 "$here/ranks.py"
    fi
done > "$work/all"

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
    count = split("pytorch millrace spawn processes", program, " ")
    printf "| %-28s | %-5s |", "work", "unit"
    for (p = 1; p <= count; p++) printf " %9s |", program[p]
    printf " %8s |\n| %-28s | %-5s |", "ratio", "---", "---"
    for (p = 1; p <= count; p++) printf " %9s |", "---:"
    printf " %8s |\n", "---:"
    for (r = 1; r <= rows; r++) {
        name = order[r]
        printf "| %-28s | %-5s |", name, unit[name]
        ours = ""
        for (p = 1; p <= count; p++) {
            printf " %9s |", cell(program[p], name)
            key = program[p] SUBSEP name
            if (p > 1 && key in best) ours = best[key]
        }
        base = name
        sub(/, one thread$/, "", base)
        theirs = ("pytorch" SUBSEP base) in best ? best["pytorch" SUBSEP base] : ""
        ratio = "-"
        if (ours != "" && theirs != "") {
            is_time = unit[name] == "us" || unit[name] == "ms"
            ratio = sprintf("%.3f", is_time ? theirs / ours : ours / theirs)
        }
        printf " %8s |\n", ratio
    }
}' "$work/all" | tee "$file"
exit $status
