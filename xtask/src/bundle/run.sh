#!/usr/bin/env bash
# Runs kauri's tests and benchmarks on a machine with an NVIDIA GPU, without Rust and without network.
# `cargo xtask bundle` wrote this folder.
#
#   run.sh test [FILTER]       all tests; a missing GPU is a failure
#   run.sh checked [FILTER]    all tests with bounds checks in the kernels
#   run.sh sanitize [FILTER]   compute-sanitizer's four tools over tests that use the GPU
#   run.sh large               tests of more than 2^32 items: take 120 GB of GPU memory
#   run.sh demo                the demo on cpu and on cuda must write the same rows
#   run.sh suite NAME...       benchmarks and their rivals, which nvcc builds if installed:
#                              first-call     first calls, each in a process of its own, on $KAURI_FIRST_CALL_SIZES points
#                              kdtree         trees and queries, of $KAURI_TREE_SIZES points
#                              join           joins, of $KAURI_JOIN_SIZES points a set
#                              join-thesis    the experiments that Løvik published, of all pairs of $KAURI_THESIS_SIZES points; profiles by
#                                             ncu, if installed, in join-thesis-ncu.csv, lovik-ncu.csv and the figures
#                              box-join       joins of boxes, of $KAURI_BOX_JOIN_SIZES boxes a set
#                              box-join-thesis the experiments on boxes that Løvik published, of $KAURI_BOX_THESIS_SIZES right boxes
#                              quadtree       quadtrees and octrees, of $KAURI_QUADTREE_SIZES points
#                              quadtree-host  quadtrees and octrees of points in host memory, also out of core, of
#                                             $KAURI_QUADTREE_HOST_SIZES points
#                              quadtree-gluck the experiments that Gluck published, of $KAURI_GLUCK_SIZES points
#                              sah            trees over the meshes in the folder `with` and over soups of $KAURI_SOUP_SIZES triangles,
#                                             and rays through them; the rival reads raw meshes there (benches/rivals/meshes.cuh)
#                              sah-chang      the experiment that Chang, Seo and Ihm published, on these meshes
#                              join-cpu       joins on the CPU, of $KAURI_JOIN_CPU_SIZES points a set
#                              kdtree-robinson the experiment that Robinson published, of $KAURI_ROBINSON_SIZES points
#                              kdtree-wald    the experiment that Wald published, of $KAURI_WALD_SIZES points
#                              primitives     of $KAURI_SIZES items
#   run.sh bench [ARGUMENTS]   the benchmarks' program; without arguments the suites first-call, kdtree and primitives
#   run.sh all                 test, checked, sanitize, demo and bench
#
# Logs and results go to $OUT, by default ./results. A failed part does not stop the next one. $KAURI_TIMEOUT is the time
# limit of a program in seconds, by default 600.
set -u

out=${OUT:-results}
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd) || exit 2
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 2

for packed in */*.gz; do
    if [ -e "$packed" ]; then gunzip -f "$packed" || exit 2; fi
done
export KAURI_DATA=$PWD/data
export KAURI_PTX_DIR=$PWD/ptx
export KAURI_REQUIRE_CUDA=1
# The simulator needs no GPU; its tests ran where the bundle was made.
export KAURI_SIM_ORDERS=0
export KAURI_GIT_REVISION=$(cat revision)
export RUST_BACKTRACE=1
limit=${KAURI_TIMEOUT:-600}
summary=$out/summary.txt
: >"$summary"
failed=0
# Arguments of the next suite that add profiles.
profiles=()

# note NAME STATE DETAIL...: adds a line to the summary
note() {
    local name=$1 state=$2
    shift 2
    printf '%-34s %-7s %5s s  %s\n' "$name" "$state" $((SECONDS - began)) "$*" | tee -a "$summary"
    if [ "$state" = FAILED ]; then failed=1; fi
}

# run NAME LOG COMMAND...: runs a part; its output goes to the log, and its last lines to the terminal if it fails
run() {
    local name=$1 log=$2 part status
    shift 2
    part=$(mktemp)
    began=$SECONDS
    timeout --kill-after=10 "$limit" "$@" >"$part" 2>&1
    status=$?
    { echo "=== $name: $*"; cat "$part"; } >>"$log"
    if [ $status = 0 ]; then
        note "$name" passed "$(grep -hoE '[0-9]+ passed.*ignored|(ERROR|RACECHECK) SUMMARY:.*' "$part" | sort -u | paste -sd ';')"
    else
        tail -n 60 "$part"
        if [ $status = 124 ]; then note "$name" FAILED "not done in $limit s"; else note "$name" FAILED "exit code $status"; fi
    fi
    rm -f "$part"
    return $status
}

tests() {
    local program
    for program in tests/*; do
        run "test ${program#tests/}" "$out/test.log" "$program" "$@"
    done
}

checked() {
    local program
    began=$SECONDS
    if [ ! -d ptx-checked ]; then
        note checked skipped 'the bundle was made without --checked'
        return
    fi
    export KAURI_PTX_DIR=$PWD/ptx-checked
    for program in tests/kauri.unit tests/kauri-tests.*; do
        run "checked ${program#tests/}" "$out/checked.log" "$program" "$@"
    done
    # Wrong accesses, each of which costs the process its GPU.
    run 'checked faults' "$out/checked.log" tests/kauri-tests.launch --ignored --test-threads 1
    export KAURI_PTX_DIR=$PWD/ptx
}

sanitize() {
    local sanitizer tool
    began=$SECONDS
    sanitizer=$(PATH=$PATH:/usr/local/cuda/bin:/opt/cuda/bin command -v compute-sanitizer)
    if [ -z "$sanitizer" ]; then
        note sanitize FAILED 'compute-sanitizer is not on the PATH'
        return
    fi
    for tool in memcheck racecheck initcheck synccheck; do
        # Small cases only: under these tools a kernel runs a hundred times as long. One thread, so that reports do not mix. The tests of the
        # simulator are small cases of every kernel; those that are skipped have kernels of their own, of which there is no PTX.
        unset KAURI_ALLOC
        KAURI_SIM_DEVICE=cuda run "$tool sim" "$out/sanitize.log" "$sanitizer" --tool "$tool" --error-exitcode 1 \
            --report-api-errors no tests/kauri-tests.sim --test-threads 1 --skip building_blocks:: \
            --skip custom_scores --skip boxes_of_points --skip look_back_over_groups "${@:-::}"
        # With every array an allocation of its own, memcheck sees an access beyond it.
        if [ $tool = memcheck ]; then export KAURI_ALLOC=paranoid; fi
        # Tests that make calls fail do it many times, and on purpose; those of the same bits say nothing new after a run.
        run "$tool launch" "$out/sanitize.log" "$sanitizer" --tool "$tool" --error-exitcode 1 --report-api-errors no \
            tests/kauri-tests.launch --test-threads 1 --skip errors:: --skip faults:: --skip the_same_bits "${@:-::}"
    done
}

large() {
    KAURI_LARGE=1 run 'large launch' "$out/large.log" tests/kauri-tests.launch --test-threads 1 more_items
    run 'large conformance' "$out/large.log" tests/kauri-tests.conformance --test-threads 1 --ignored more_than
}

demo() {
    local device
    for device in cpu cuda; do
        run "demo on $device" "$out/demo.log" bin/kauri demo nearest --device $device --out "$out/nearest-$device.csv"
    done
    run 'demo: the same rows' "$out/demo.log" cmp "$out/nearest-cpu.csv" "$out/nearest-cuda.csv"
    # They are large, and one that is the same as the other says nothing more.
    if cmp -s "$out/nearest-cpu.csv" "$out/nearest-cuda.csv"; then rm -f "$out"/nearest-*.csv; fi
}

bench() {
    if [ $# != 0 ]; then
        run "bench $*" "$out/bench.log" bin/kauri-bench "$@" --out "$out/bench.json"
        return
    fi
    suites first-call kdtree primitives
}

suites() {
    local name state cache
    for name in "$@"; do
        case $name in
            first-call) alone first-call cuda ${KAURI_FIRST_CALL_SIZES:-1000000} ;;
            kdtree) suite kdtree 'kdtree_*' ${KAURI_TREE_SIZES:-100000 1000000 10000000} ;;
            join) suite join join_lovik ${KAURI_JOIN_SIZES:-1000000 10000000 100000000} ;;
            join-thesis)
                build_rivals thesis_lovik
                profile join-thesis-ncu bin/kauri-bench --suite join-thesis-once --n 1000000
                profile lovik-ncu env ONCE=1 rivals/bin/thesis_lovik 1 1000000
                suite join-thesis thesis_lovik ${KAURI_THESIS_SIZES:-1000 10000 100000 1000000 10000000 100000000}
                profiles=()
                ;;
            box-join) suite box-join join_boxes ${KAURI_BOX_JOIN_SIZES:-10000 100000 1000000 10000000} ;;
            box-join-thesis) suite box-join-thesis thesis_boxes ${KAURI_BOX_THESIS_SIZES:-100 1000 10000 100000 1000000 10000000} ;;
            quadtree) suite quadtree 'quadtree_*' ${KAURI_QUADTREE_SIZES:-1000000 10000000 80000000 1000000000} ;;
            quadtree-host) alone quadtree-host cuda ${KAURI_QUADTREE_HOST_SIZES:-10000000 80000000 1000000000} ;;
            quadtree-gluck) alone quadtree-gluck cuda ${KAURI_GLUCK_SIZES:-100000 1000000 10000000 40000000 80000000} ;;
            sah) suite sah bvh_rays ${KAURI_SOUP_SIZES:-1000000 10000000} ;;
            sah-chang) alone sah-chang cuda ${KAURI_SOUP_SIZES:-1000000} ;;
            join-cpu) alone join-cpu cpu ${KAURI_JOIN_CPU_SIZES:-1000000} ;;
            kdtree-robinson) suite kdtree-robinson robinson_builds ${KAURI_ROBINSON_SIZES:-1048576 16777216} ;;
            kdtree-wald) suite kdtree-wald 'wald_*' ${KAURI_WALD_SIZES:-1000 10000 100000 1000000 10000000 100000000 1000000000} ;;
            primitives) suite primitives 'cub_*' ${KAURI_SIZES:-1000000 10000000 134217728 1073741824} ;;
            *)
                began=$SECONDS
                note "suite $name" FAILED 'there are box-join, box-join-thesis, first-call, join, join-cpu, join-thesis, kdtree, kdtree-robinson, kdtree-wald, primitives, quadtree, quadtree-gluck, quadtree-host, sah and sah-chang'
                ;;
        esac
    done
}

# find_meshes SUITE: for a suite of meshes, sets `models` to the options for the meshes in the bundle, and `raw_meshes` to those that rivals read
find_meshes() {
    local mesh
    models=() raw_meshes=()
    case $1 in sah*) ;; *) return ;; esac
    for mesh in with/*.ply with/*.obj; do
        if [ -e "$mesh" ]; then models+=(--model "$mesh"); fi
    done
    for mesh in with/*.raw; do
        if [ -e "$mesh" ]; then raw_meshes+=("$mesh"); fi
    done
}

# suite SUITE RIVALS SIZE...: runs a suite and the rivals whose names match the pattern
suite() {
    local suite=$1 sizes models raw_meshes
    find_meshes "$suite"
    rivals "${@:2}" "${raw_meshes[@]}"
    sizes=$(IFS=,; echo "${*:3}")
    run "bench $suite" "$out/bench.log" bin/kauri-bench --suite "$suite" --n "$sizes" "${models[@]}" --rivals "$out/rivals.jsonl" \
        "${profiles[@]}" --out "$out/$suite.json" --table "$out/$suite.md" --plots "$out/plots-$suite"
}

# alone SUITE DEVICE SIZE...: runs a suite without rivals
alone() {
    local suite=$1 sizes models raw_meshes
    find_meshes "$suite"
    sizes=$(IFS=,; echo "${*:3}")
    run "bench $suite" "$out/bench.log" bin/kauri-bench --suite "$suite" --device "$2" --n "$sizes" "${models[@]}" \
        --out "$out/$suite.json" --table "$out/$suite.md" --plots "$out/plots-$suite"
}

metrics=gpu__time_duration.sum,sm__warps_active.avg.pct_of_peak_sustained_active,launch__registers_per_thread
metrics=$metrics,launch__occupancy_limit_registers,launch__occupancy_limit_shared_mem,l1tex__t_sector_hit_rate.pct
metrics=$metrics,lts__t_sector_hit_rate.pct,l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum,lts__t_bytes.sum
metrics=$metrics,dram__bytes_read.sum,dram__bytes_write.sum,smsp__inst_executed_op_local_ld.sum,smsp__inst_executed_op_local_st.sum

# profile NAME COMMAND...: profiles the kernels of joins, in the order of the joins: occupancy, registers, cache hits, cache
# traffic, local memory; adds the result to the profiles of the next suite
profile() {
    local name=$1 ncu program
    shift
    began=$SECONDS
    ncu=$(PATH=$PATH:/usr/local/cuda/bin:/opt/cuda/bin command -v ncu)
    for program in "$@"; do
        case $program in rivals/bin/*) if [ ! -x "$program" ]; then ncu=; fi ;; esac
    done
    if [ -z "$ncu" ]; then
        note "$name" skipped 'ncu is not on the PATH, or there is no such program'
        return
    fi
    run "$name" "$out/ncu.log" "$ncu" --csv --page raw --print-units base --target-processes all --log-file "$out/$name.csv" \
        --kernel-name 'regex:^(join_rising|join_filter|join_in_registers|join_in_shared|join_append|filter)' \
        --metrics "$metrics" "$@" && profiles+=(--profile "$out/$name.csv")
}

# build_rivals PATTERN: builds the rivals whose names match; what an earlier call built stays
build_rivals() {
    local nvcc arch source program math pattern=$1
    began=$SECONDS
    nvcc=$(PATH=$PATH:/usr/local/cuda/bin:/opt/cuda/bin command -v nvcc)
    if [ -z "$nvcc" ]; then
        note rivals skipped 'nvcc is not on the PATH'
        return 1
    fi
    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
    "$nvcc" --version | tail -n 2 >>"$summary"
    mkdir -p rivals/bin
    # They take the compiler up to a minute each, side by side.
    for source in rivals/$pattern.cu; do
        program=rivals/bin/$(basename "$source" .cu)
        # As it was published.
        case $program in *_lovik) math=--use_fast_math ;; *) math= ;; esac
        if [ ! -x "$program" ]; then
            run "build $source" "$out/rivals.log" \
                "$nvcc" -O3 -std=c++17 -arch="sm_${arch:-90}" --extended-lambda $math "$source" -o "$program" &
        fi
    done
    wait
}

# rivals PATTERN SIZE_OR_RAW_MESH...: builds the rivals whose names match and runs them with the benchmarks' seed; writes their rows to
# rivals.jsonl
rivals() {
    local source program pattern=$1
    shift
    : >"$out/rivals.jsonl"
    build_rivals "$pattern" || return
    for source in rivals/$pattern.cu; do
        program=rivals/bin/$(basename "$source" .cu)
        if [ ! -x "$program" ]; then failed=1; continue; fi
        run "rival $source" "$out/rivals.log" env ROWS="$out/rivals.jsonl" sh -c '"$0" 1 "$@" >>"$ROWS"' "$program" "$@"
    done
}

command=${1:-all}
if [ $# -gt 0 ]; then shift; fi
{
    uname -srm
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    echo "kauri $KAURI_GIT_REVISION"
} >>"$summary" 2>&1
case $command in
    test) tests "$@" ;;
    checked) checked "$@" ;;
    sanitize) sanitize "$@" ;;
    large) large ;;
    demo) demo ;;
    suite) suites "$@" ;;
    bench) bench "$@" ;;
    all)
        tests
        checked
        sanitize
        demo
        bench
        ;;
    *)
        sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 2
        ;;
esac
echo
echo "=== summary, also in $summary"
cat "$summary"
exit $failed
