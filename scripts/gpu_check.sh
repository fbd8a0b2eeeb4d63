#!/bin/sh
# scripts/gpu_check.sh BUILD [ops|rules|mixes|tests|hazards|examples|bench|sanitizer]...: everything that needs a real
# GPU but the sanitizer, or the parts named.
#
#   ops       each operation, dtype and layout beside the CPU body (BUILD/compare_ops)
#   rules     tests/conformance, one script a rule of docs/semantics.md
#   mixes     tests/gpu: random mixes of all that a stream may hold, where no call may hang and each value must be right;
#             programs of tests/kernels, whose values must be those of the virtual GPU (skipped without a compiler)
#   tests     tests/lua, but for what is about the simulator or runs the host itself (needs luaunit)
#   hazards   tests/hazard: what the checker finds, and that its fixes work
#   examples  scripts/examples, whose output must be that of the virtual GPU
#   bench     raw CUDA C, PyTorch, CuPy and millrace side by side (needs nvcc and python3)
#   sanitizer operations of networks, and sorts, under compute-sanitizer (of the CUDA toolkit)
#
# Needs from BUILD only `millrace` and `compare_ops`, so that a machine with a GPU needs no compiler for the first
# four. Logs go to the folder that LOGS names, or BUILD/gpu. Ends with one line a part; exits with 1 if one failed.
set -u
build=$1
shift
[ $# -gt 0 ] || set -- ops rules mixes tests hazards examples bench
host=$build/millrace
logs=${LOGS:-$build/gpu}
mkdir -p "$logs"
summary=''
status=0
export LUA_PATH="./tests/?.lua;$build/?.lua;;/usr/share/lua/5.4/?.lua;/usr/share/lua/5.3/?.lua"
export MILLRACE=$host

# Nothing counts as passed where there is nothing to run on.
if ! devices=$("$host" --device cuda -e 'mr.synchronize() print(mr.device_count())' 2>&1 < /dev/null); then
    printf 'gpu_check: no GPU to check on: %s\n' "$devices" >&2
    exit 1
fi

# What a script's header asks for is what it gets: with more devices names are longer, and every start takes seconds.
visible=${CUDA_VISIBLE_DEVICES:-$(seq -s , 0 $((devices - 1)))}
needs() { # file
    needed=$(sed -n 's/^-- options: .*--device virtual:\([0-9]*\).*/\1/p' "$1")
    echo "${needed:-1}"
}
on_devices() { # how many, command...
    few=$(echo "$visible" | cut -d , -f "1-$1")
    shift
    CUDA_VISIBLE_DEVICES=$few "$@"
}

report() { # part, failures, text
    summary="$summary
$1: $3"
    [ "$2" -eq 0 ] || status=1
}

check_ops() {
    on_devices 1 "$build/compare_ops" > "$logs/ops" 2>&1
    result=$?
    cat "$logs/ops"
    report ops $result "$(tail -n 1 "$logs/ops")"
}

# A script ends with 77 where what it is about is not there (a second GPU); one that is about the simulator says so
# in its header.
run_scripts() { # part, files...
    part=$1
    shift
    passed=0 failed=0 skipped=0
    : > "$logs/$part"
    for file in "$@"; do
        if grep -q '^-- virtual only' "$file"; then
            skipped=$((skipped + 1))
            printf 'skipped  %s: %s\n' "$file" "$(sed -n 's/^-- virtual only: //p' "$file")"
            continue
        fi
        needed=$(needs "$file")
        if [ "$needed" -gt "$devices" ]; then
            skipped=$((skipped + 1))
            printf 'skipped  %s: needs %s devices\n' "$file" "$needed"
            continue
        fi
        on_devices "$needed" timeout 120 "$host" --device cuda "$file" > "$logs/output" 2>&1 < /dev/null
        result=$?
        case $result in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) && printf 'skipped  %s: %s\n' "$file" "$(tail -n 1 "$logs/output")" ;;
        *)
            failed=$((failed + 1))
            printf 'FAILED   %s (status %s)\n' "$file" "$result"
            tail -n 12 "$logs/output" | sed 's/^/         /'
            ;;
        esac
        { printf '== %s: %s\n' "$file" "$result" && cat "$logs/output"; } >> "$logs/$part"
    done
    report "$part" $failed "$passed passed, $failed failed, $skipped skipped"
}

# An example that prints figures of the device says so in its header; 77: it needs more devices.
check_examples() {
    passed=0 failed=0 skipped=0
    for file in scripts/examples/*.lua; do
        if grep -q 'mr\.explore' "$file" && ! grep -q 'mr\.backend == "virtual"' "$file"; then
            skipped=$((skipped + 1))
            printf 'skipped  %s: schedules are explored on the virtual GPU\n' "$file"
            continue
        fi
        expected=tests/examples/$(basename "$file" .lua).out
        on_devices "$(needs "$file")" timeout 60 "$host" --device cuda "$file" > "$logs/output" 2>&1 < /dev/null
        result=$?
        if [ $result -eq 77 ]; then
            skipped=$((skipped + 1))
            printf 'skipped  %s: %s\n' "$file" "$(tail -n 1 "$logs/output")"
        elif [ $result -eq 0 ] && { grep -q '^-- prints figures of the device' "$file" ||
            cmp -s "$logs/output" "$expected"; }; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            printf 'FAILED   %s (status %s)\n' "$file" "$result"
            diff "$expected" "$logs/output" | head -n 12 | sed 's/^/         /'
        fi
    done
    report examples $failed "$passed passed, $failed failed, $skipped skipped"
}

sanitize() { # tool, command...
    tool=$1
    shift
    on_devices 1 timeout 600 compute-sanitizer --tool "$tool" --error-exitcode 9 "$@" > "$logs/output" 2>&1 < /dev/null
    result=$?
    { printf '== %s %s: %s\n' "$tool" "$*" $result && cat "$logs/output"; } >> "$logs/sanitizer"
    [ $result -eq 0 ] && return
    failed=$((failed + 1))
    printf 'FAILED   %s %s (status %s)\n' "$tool" "$*" $result
    tail -n 12 "$logs/output" | sed 's/^/         /'
}

# Small shapes: the sanitizer makes kernels some hundred times slower.
check_sanitizer() {
    failed=0
    : > "$logs/sanitizer"
    if ! command -v compute-sanitizer > "$logs/output"; then
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
    scripts/bench/gpu/run.sh "$host" "$logs/bench.md"
    result=$?
    report bench $result "$([ $result -eq 0 ] && echo "table in $logs/bench.md" || echo "run.sh failed")"
}

for part in "$@"; do
    printf '\n==== %s\n' "$part"
    case $part in
    ops) check_ops ;;
    rules) run_scripts rules tests/conformance/*.lua ;;
    mixes) run_scripts mixes tests/gpu/*.lua ;;
    tests) run_scripts tests tests/lua/*.lua ;;
    hazards) run_scripts hazards tests/hazard/*.lua ;;
    examples) check_examples ;;
    bench) check_bench ;;
    sanitizer) check_sanitizer ;;
    *) printf 'gpu_check: no part is called %s\n' "$part" >&2 && exit 2 ;;
    esac
done
printf '\n==== summary%s\n' "$summary"
exit $status
