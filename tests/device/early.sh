#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which orderings the software NIC outruns when queues are in host memory:
#   sh tests/device/early.sh BELLWETHER [RUNS]
# 64 GPU threads with a queue each post as fast as they can, and the NIC fails a WQE that it reads before it has
# arrived (machine.nic_patience=0): the run then ends with an error CQE of syndrome 0x02.  Prints how many of RUNS (6)
# did so, by ordering and WQEs a doorbell: the table of docs/measuring.md.  A run that fails in any other way is counted
# apart and named; the exit status is then 1.
set -u
bellwether=${1:?usage: early.sh BELLWETHER [RUNS]}
runs=${2:-6}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
orderings='none gpu-fence gpu-fence+fenced-dbrec gpu-release-store threadfence system-release-store system-fence'
threads=64 puts=1024 iterations=40 warmup=4
failed=0

# run EXPERIMENT OPTIONS...: 0; 1: a WQE had not arrived; 2: it failed in another way, and $cause says how.
run() {
    timeout 100 "$bellwether" run "$@" --on cuda --set stack.queue_memory=host --set machine.pin=true \
        > "$work/out" 2> "$work/error"
    status=$?
    [ $status -ne 0 ] || return 0
    ! grep -q 'syndrome 0x02' "$work/error" || return 1
    cause=$(head -n 1 "$work/error")
    [ $status -ne 124 ] || cause='did not end within 100 s'
    cause=${cause:-exit status $status}
    return 2
}

cause='a WQE had not arrived'
if ! run one-op --set ordering=system-fence -o "$work/trace"; then
    echo "early.sh: a first run of one thread failed: $cause" >&2
    exit 1
fi
sed -n 's/.*"processor":"\([^"]*\)".*/\1/p' "$work/trace"
echo
echo "== of $runs runs, how many met a WQE that had not arrived when the NIC read it, by WQEs a doorbell"
echo "   $threads threads with a queue each, 8 B inline, host queues, 4 NIC threads;" \
    "$((threads * puts * (iterations + warmup))) puts a run, warm-up included"
printf '%-24s %7s %7s %7s\n' ordering 1 4 16
for ordering in $orderings; do
    line=$(printf '%-24s' "$ordering")
    : > "$work/remarks"
    for wqes in 1 4 16; do
        early=0 other=0 count=0
        while [ $count -lt "$runs" ]; do
            count=$((count + 1))
            run stream --set lanes=$threads --set queues=$threads --set puts=$puts --set iterations=$iterations \
                --set warmup=$warmup --set wqes_per_doorbell="$wqes" --set "ordering=$ordering" \
                --set machine.nic_threads=4 --set machine.nic_patience=0
            case $? in
            1) early=$((early + 1)) ;;
            2)
                other=$((other + 1))
                echo "      ^ $ordering, $wqes: another failure: $cause" >> "$work/remarks"
                ;;
            esac
        done
        failed=$((failed + other))
        [ $other = 0 ] || early="$early+$other"
        line="$line $(printf '%7s' "$early")"
    done
    echo "$line"
    cat "$work/remarks"
done
echo
echo "$failed runs failed in another way (behind a +); each that did not fail verified its payloads"
[ "$failed" -eq 0 ]
