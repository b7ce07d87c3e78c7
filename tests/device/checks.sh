#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything that can be checked on a machine with a GPU and no RDMA NIC, but for what takes times (measure.sh):
#   sh tests/device/checks.sh BUILD
# BUILD holds bellwether and, under tests/device or beside it, device_mlx5 and device_doca.  Prints a line a check; the
# exit status is 1 when one failed.
set -u
build=${1:?usage: checks.sh BUILD}
bellwether=$build/bellwether
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0 done=0

# check WANTED WORDS COMMAND...: it ends within 120 s in that status, and its output has the words.
check() {
    wanted=$1 words=$2
    shift 2
    timeout 120 "$@" > "$work/out" 2>&1
    status=$?
    done=$((done + 1))
    if [ $status -eq "$wanted" ] && grep -q -e "$words" "$work/out"; then
        command="$(basename "$1") $(shift && echo "$*" | sed "s|$work/||g")"
        echo "ok: $command: $(grep -e "$words" "$work/out" | tail -n 1)"
    else
        failed=$((failed + 1))
        echo "FAILED: $*: exit status $status, expected $wanted and '$words':"
        tail -n 3 "$work/out"
    fi
}
# run WANTED WORDS OPTIONS...: of bellwether run on the GPU.
run() {
    wanted=$1 words=$2
    shift 2
    check "$wanted" "$words" "$bellwether" run "$@" --on cuda
}

"$bellwether" doctor > "$work/doctor"
sed -n '/GPU\|CUDA\|driver/p' "$work/doctor" | head -n 8

echo "== other libraries' code, and executor mlx5 over a device in software"
for program in device_mlx5 device_doca; do
    at=$build/tests/device/$program
    [ -x "$at" ] || at=$build/$program
    if [ ! -x "$at" ]; then
        echo "skipped: $program was not built"
        continue
    fi
    timeout 300 "$at"
    status=$?
    done=$((done + 1))
    [ $status -eq 0 ] || failed=$((failed + 1))
    [ $status -eq 0 ] || echo "FAILED: $program: exit status $status"
done
nvshmem=$(find / -xdev -name ibgda_device.cuh 2> /dev/null | head -n 1)
echo "nvshmem: ${nvshmem:-no ibgda_device.cuh on this machine}"
check 77 'there is no RDMA device here' "$bellwether" run one-op --on mlx5

echo "== traces keep the rules, in each sharing mode"
for sharing in owner ordered cooperative locked; do
    for memory in host gpu; do
        lanes=8 queues=2
        [ $sharing != owner ] || queues=8
        run 0 'trace:' round-trip --set queue_memory=$memory --set sharing=$sharing --set lanes=$lanes \
            --set queues=$queues --set iterations=50 -o "$work/trace.json"
        check 0 OK "$bellwether" check "$work/trace.json"
    done
done
for protocol in baseline tuned; do
    run 0 'trace:' round-trip --stack mini-proxy --set protocol=$protocol --set iterations=50 -o "$work/trace.json"
    check 0 OK "$bellwether" check "$work/trace.json"
done

echo "== faults end within their bound, and are named"
for stack in mini-gda mini-proxy; do
    set -- one-op --stack $stack --set queue_memory=host --set iterations=50
    run 1 'fault silent' "$@" --set fault=silent
    run 1 'syndrome 0x13 .* for the WQE at index .* of queue 0' "$@" --set fault=bad-key
    run 1 'syndrome 0x15 .* at index 7 of queue 0' "$@" --set fault=error-cqe --set fault_index=7
    run 0 'fault late-cqe struck at index 7' "$@" --set fault=late-cqe --set fault_index=7
    run 0 'fault lost-doorbell struck at index 7' "$@" --set fault=lost-doorbell --set fault_index=7
    run 1 'fault lost-doorbell, no recovery' "$@" --set fault=lost-doorbell --set fault_index=7 \
        --set fault_delay_us=0
done
run 1 'syndrome 0x15 .* at index 20 of queue 0' one-op --set queue_memory=host --set fault=error-cqe \
    --set cq=collapsed --set puts=4 --set wqes_per_doorbell=4 --set iterations=50 --set fault_index=20
run 1 'syndrome 0x15 .* at index 7 of queue 0' one-op --set queue_memory=gpu --set fault=error-cqe --set fault_index=7
run 1 'fault silent' round-trip --set queue_memory=gpu --set fault=silent

echo "== more than the GPU holds at once is refused; what just fits runs"
run 77 'queues: 160 CTAs .* are the most it holds' round-trip --set queue_memory=gpu --set lanes=2560 \
    --set queues=2560 --set lanes_per_cta=32 --set depth=16 --set iterations=2
run 77 'lanes: 8192 CTAs .* are the most it holds beside the software NIC' round-trip --set queue_memory=gpu \
    --set lanes=4096 --set queues=128 --set sharing=ordered --set iterations=2
run 0 'samples' round-trip --set queue_memory=gpu --set lanes=130 --set queues=130 --set iterations=20
run 0 'samples' round-trip --set queue_memory=gpu --set lanes=1024 --set queues=1024 --set lanes_per_cta=32 \
    --set depth=64 --set iterations=5

echo "== paced as a platform"
run 0 'paced as on P-IB' one-op --set queue_memory=host --pace P-IB --set iterations=200

echo "== compute-sanitizer"
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
[ -x "$sanitizer" ] || echo "skipped: compute-sanitizer is not here"
sanitize() {
    tool=$1
    shift
    [ ! -x "$sanitizer" ] || check 0 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$sanitizer" \
        --tool "$tool" --error-exitcode 9 "$bellwether" run round-trip --on cuda --set iterations=20 "$@"
}
for tool in memcheck racecheck; do
    sanitize "$tool" --set queue_memory=host --set sharing=owner --set lanes=8 --set queues=8
    for sharing in ordered cooperative locked; do
        sanitize "$tool" --set queue_memory=host --set sharing=$sharing --set lanes=8 --set queues=2
    done
done
sanitize memcheck --set queue_memory=gpu
sanitize memcheck --stack mini-proxy

echo
echo "$done checks, $failed failed"
[ "$failed" -eq 0 ]
