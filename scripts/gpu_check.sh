#!/bin/sh
# scripts/gpu_check.sh BUILD [PART]...: everything that needs a real GPU, or the parts named. BUILD is `bin` in the
# folder that `make dist` makes.
#
#   ops       each operation, dtype and layout beside the CPU body (BUILD/compare_ops)
#   rules     tests/conformance, one script a rule of docs/semantics.md
#   mixes     tests/gpu: random mixes of all that a stream may hold, where no call may hang and each value must be
#             right; each function behind a pending host function; programs of tests/kernels, whose values must be
#             those of the virtual GPU (skipped without a compiler)
#   tests     tests/lua, but for what is about the simulator or runs the host itself (needs luaunit)
#   hazards   tests/hazard: what the checker finds, and that its fixes work
#   examples  scripts/examples, whose output must be that of the virtual GPU
#   shared    rules, hazards, examples, mixes and tests again, while six other processes use the GPU; without the six
#             scripts that need it alone, whose times decide whether they pass
#   bench     raw CUDA C, PyTorch, CuPy and millrace side by side (needs nvcc and python3)
#   sanitizer operations of networks, and sorts, under compute-sanitizer (of the CUDA toolkit)
#   all       ops rules mixes tests hazards examples shared bench sanitizer
#
# Without parts: all but `shared` and `sanitizer`. Needs from BUILD only `millrace` and `compare_ops`. The environment:
#
#   LOGS=FOLDER    where it writes `log` (what failed, whole; of the rest the last line), `summary`, and `bench.md`;
#                  default BUILD/gpu
#   BUDGET=SECONDS no script begins later than that after the start; what did not begin counts as a failure. It
#                  suits a machine that is lent for a time; default: no limit
#   JOBS=N         so many scripts at once in all parts but `rules`; default 1
#   OTHERS=N       processes beside those of `shared`; default 6
#
# A script may use 60 seconds of processor time, or what its line `-- timeout:` says, and last four times as long, as
# the rest of a busy machine may slow it down; but no longer than 20 seconds after BUDGET. Ends with one line a part;
# exits with 1 if one failed.
set -u
build=$1
shift
host=$build/millrace
logs=${LOGS:-$build/gpu}
mkdir -p "$logs"
export LUA_PATH="./tests/?.lua;$build/?.lua;;/usr/share/lua/5.4/?.lua;/usr/share/lua/5.3/?.lua"
export MILLRACE="$host"

AFTER_THE_END=20 # seconds that a script has to end once the time is over

now() { date +%s; }

# ---------------------------------------------------------------- one script: gpu_check.sh BUILD --one WORK FILE

# How many devices a script's header asks for. With more, names are longer, and every start takes seconds.
needs() { # file
    needed=$(sed -n 's/^-- options: .*--device virtual:\([0-9]*\).*/\1/p' "$1")
    echo "${needed:-1}"
}
on_devices() { # how many, command...
    few=$(echo "$GPU_CHECK_VISIBLE" | cut -d , -f "1-$1")
    shift
    CUDA_VISIBLE_DEVICES=$few "$@"
}

is_example() { case $1 in scripts/examples/*) true ;; *) false ;; esac }

# What is right only if work overlaps, or if nobody takes the GPU away: the turns of other processes decide that.
needs_it_alone() {
    case $1 in
    tests/conformance/r08_* | tests/conformance/r25_* | tests/conformance/r42_*) true ;;
    scripts/examples/compute_communicate.lua | scripts/examples/default_streams.lua) true ;;
    scripts/examples/two_streams.lua) true ;;
    *) false ;;
    esac
}

reason_to_skip() { # file
    if grep -q '^-- virtual only' "$1"; then
        sed -n 's/^-- virtual only: //p' "$1"
    elif [ -n "${GPU_CHECK_SHARED:-}" ] && needs_it_alone "$1"; then
        echo "its times are those of a GPU that nobody else uses"
    elif [ "$(needs "$1")" -gt "$GPU_CHECK_DEVICES" ]; then
        echo "needs $(needs "$1") devices"
    elif is_example "$1" && grep -q 'mr\.explore' "$1" && ! grep -q 'mr\.backend == "virtual"' "$1"; then
        echo 'schedules are explored on the virtual GPU'
    fi
}

# An example that prints figures of the device says so in its header.
as_expected() { # file, output
    ! is_example "$1" || grep -qE '^-- (own pace: )?prints figures of the device' "$1" ||
        diff "tests/examples/$(basename "$1" .lua).out" "$2" > "$2.diff"
}

# A script ends with 77 where what it is about is not there (a second GPU). The result is the first word of a file.
run_one() { # work folder, file
    work=$1 file=$2
    name=$work/$(echo "$file" | tr / _)
    reason=$(reason_to_skip "$file")
    if [ -n "$reason" ]; then
        echo "skipped $file: $reason" > "$name.result"
        return
    fi
    if [ "$(now)" -ge "$GPU_CHECK_END" ]; then
        echo "LATE $file: did not begin, as the time was over" > "$name.result"
        return
    fi
    limit=$(sed -n 's/^-- timeout: \([0-9]*\).*/\1/p' "$file" | head -n 1)
    limit=${limit:-60}
    began=$(now)
    wall=$((4 * limit)) left=$((GPU_CHECK_END - began + AFTER_THE_END))
    [ "$wall" -lt "$left" ] || wall=$left
    # shellcheck disable=SC2016 # it is the inner shell that expands them
    on_devices "$(needs "$file")" timeout -k 5 "$wall" sh -c 'ulimit -t "$1"; shift; exec "$@"' sh "$limit" \
        "$host" --device cuda "$file" > "$name.out" 2>&1 < /dev/null
    status=$?
    took=$(($(now) - began))
    if [ $status -eq 77 ]; then
        echo "skipped $file: $(tail -n 1 "$name.out")" > "$name.result"
    elif [ $status -eq 0 ] && as_expected "$file" "$name.out"; then
        echo "ok $file: $took s" > "$name.result"
    else
        echo "FAILED $file: status $status, $took s" > "$name.result"
        [ ! -s "$name.out.diff" ] || cat "$name.out.diff" >> "$name.out"
    fi
}

if [ "${1:-}" = --one ]; then
    run_one "$2" "$3"
    exit 0
fi

# ---------------------------------------------------------------- the parts

summary=''
status=0
report() { # part, failures, text
    summary="$summary
$1: $3"
    [ "$2" -eq 0 ] || status=1
    printf '%s: %s\n' "$1" "$3" | tee -a "$logs/summary"
}
say() { printf '%s\n' "$*" | tee -a "$logs/log"; }

count() { # word, folder
    cat "$2"/*.result | grep -c "^$1 "
}

run_scripts() { # part, how many at once, files...
    part=$1 at_once=$2
    shift 2
    folder=$scratch/$part
    mkdir -p "$folder"
    began=$(now)
    printf '%s\n' "$@" | xargs -P "$at_once" -n 1 "$0" "$build" --one "$folder"
    for result in "$folder"/*.result; do
        say "$(cat "$result")"
        out=${result%.result}.out
        case $(cut -c 1-2 "$result") in
        FA) cat "$out" >> "$logs/log" && tail -n 12 "$out" | sed 's/^/         /' ;;
        esac
    done
    failed=$(($(count FAILED "$folder") + $(count LATE "$folder")))
    report "$part" $failed "$(count ok "$folder") passed, $(count FAILED "$folder") failed, \
$(count skipped "$folder") skipped, $(count LATE "$folder") did not begin, $(($(now) - began)) s"
}

run_part() { # rules, mixes, tests, hazards or examples; the name in the report
    jobs=${JOBS:-1}
    case $1 in
    rules) run_scripts "$2" 1 tests/conformance/*.lua ;;
    mixes) run_scripts "$2" "$jobs" tests/gpu/*.lua ;;
    tests) run_scripts "$2" "$jobs" tests/lua/*.lua ;;
    hazards) run_scripts "$2" "$jobs" tests/hazard/*.lua ;;
    examples) run_scripts "$2" "$jobs" scripts/examples/*.lua ;;
    esac
}

# Other processes begin and end with the part. They are told by a file, so that each ends in good order.
check_shared() {
    others=${OTHERS:-6} processes=''
    : > "$scratch/busy"
    for i in $(seq "$others"); do
        on_devices 1 "$host" --device cuda tests/gpu/support/busy.lua "$scratch/busy" > "$scratch/busy.$i" 2>&1 &
        processes="$processes $!"
    done
    export GPU_CHECK_SHARED=yes
    for name in rules hazards examples mixes tests; do run_part $name "shared-$name"; done
    unset GPU_CHECK_SHARED
    rm -f "$scratch/busy"
    broken=0
    for process in $processes; do wait "$process" || broken=$((broken + 1)); done
    for i in $(seq "$others"); do say "other process $i: $(tail -n 3 "$scratch/busy.$i")"; done
    report shared-others $broken "$broken of $others other processes failed"
}

check_ops() {
    on_devices 1 "$build/compare_ops" > "$scratch/ops" 2>&1
    result=$?
    tee -a "$logs/log" < "$scratch/ops"
    report ops $result "$(tail -n 1 "$scratch/ops")"
}

sanitize() { # tool, command...
    tool=$1
    shift
    left=$((end - $(now)))
    [ "$left" -gt 0 ] || left=1
    [ "$left" -lt 600 ] || left=600
    on_devices 1 timeout "$left" compute-sanitizer --tool "$tool" --error-exitcode 9 "$@" > "$scratch/output" 2>&1 < /dev/null
    result=$?
    say "== $tool $*: $result"
    [ $result -eq 0 ] && return
    failed=$((failed + 1))
    cat "$scratch/output" >> "$logs/log"
    tail -n 12 "$scratch/output" | sed 's/^/         /'
}

# Small shapes: the sanitizer makes kernels some hundred times slower.
check_sanitizer() {
    failed=0
    if ! command -v compute-sanitizer > /dev/null; then
        report sanitizer 1 'there is no compute-sanitizer on the PATH'
        return
    fi
    for kind in memcheck racecheck synccheck; do
        sanitize $kind "$host" --device cuda tests/gpu/network.lua 8
        sanitize $kind "$build/compare_ops" sort topk
    done
    report sanitizer $failed "$failed of 6 runs failed"
}

check_bench() {
    if [ "$(now)" -ge "$end" ]; then
        report bench 1 'did not begin, as the time was over'
        return
    fi
    timeout $((end - $(now))) scripts/bench/gpu/run.sh "$host" "$logs/bench.md"
    result=$?
    report bench $result "$([ $result -eq 0 ] && echo "table in $logs/bench.md" || echo "run.sh failed with status $result")"
}

# Nothing counts as passed where there is nothing to run on.
if ! devices=$("$host" --device cuda -e 'mr.synchronize() print(mr.device_count())' 2>&1 < /dev/null); then
    printf 'gpu_check: no GPU to check on: %s\n' "$devices" >&2
    exit 1
fi
[ $# -gt 0 ] || set -- ops rules mixes tests hazards examples bench
[ "$*" != all ] || set -- ops rules mixes tests hazards examples shared bench sanitizer
for part in "$@"; do
    case $part in
    ops | rules | mixes | tests | hazards | examples | shared | bench | sanitizer) ;;
    *) printf 'gpu_check: no part is called %s\n' "$part" >&2 && exit 2 ;;
    esac
done
end=$(($(now) + ${BUDGET:-1000000}))
export GPU_CHECK_DEVICES="$devices" GPU_CHECK_END="$end"
export GPU_CHECK_VISIBLE="${CUDA_VISIBLE_DEVICES:-$(seq -s , 0 $((devices - 1)))}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
: > "$logs/log"
: > "$logs/summary"
"$host" doctor > "$scratch/doctor" 2>&1
grep -i gpu "$scratch/doctor" | tee -a "$logs/log"

for part in "$@"; do
    say "
==== $part"
    case $part in
    ops) check_ops ;;
    shared) check_shared ;;
    bench) check_bench ;;
    sanitizer) check_sanitizer ;;
    *) run_part "$part" "$part" ;;
    esac
done
printf '\n==== summary%s\n' "$summary"
exit $status
