#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same program on soft and on sim does the same: both traces keep the protocol, and a normalised diff finds no
# difference while each lane has its own queue.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"

# same ARGUMENTS...: of `run`, besides the executor.
same() {
    count=$((count + 1))
    if ! {
        "$BELLWETHER" run "$@" --set iterations=12 --set warmup=1 --on soft -o soft.json &&
            "$BELLWETHER" run "$@" --set iterations=12 --set warmup=1 --on sim --platform P-IB -o sim.json &&
            "$BELLWETHER" check soft.json sim.json &&
            "$BELLWETHER" diff --normalize --max 3 soft.json sim.json
    } > log 2>&1; then
        failed=$((failed + 1))
        echo "run $*"
        tail -n 4 log
    fi
}

for experiment in one-op round-trip; do
    for cq in ring collapsed; do
        for payload in inline pointer; do
            for lanes in 1 2; do
                many="--set cq=$cq --set payload=$payload --set lanes=$lanes --set queues=$lanes"
                # shellcheck disable=SC2086
                same $experiment --stack mini-gda $many
                # shellcheck disable=SC2086
                same $experiment --stack mini-proxy $many
            done
        done
    done
    for cq in ring collapsed; do
        # Two WQEs under way, payload and flag: with one CQE for all, what a poll sees depends on time.
        same $experiment --stack mini-proxy --set protocol=baseline --set cq=$cq
        # Across 2^16, where an index outgrows what the wire carries.
        same $experiment --set cq=$cq --set first_index=65530
        same $experiment --stack mini-proxy --set protocol=baseline --set cq=$cq --set first_index=65530
    done
done
for ordering in gpu-fence gpu-fence+fenced-dbrec gpu-release-store threadfence system-release-store system-fence; do
    same one-op --set ordering=$ordering
done
same one-op --set transport=dc --set queue_memory=host
same one-op --set bytes=64 --set puts=5 --set wqes_per_doorbell=2
same one-op --set depth=4 --set puts=9 --set bytes=8

# Without the header's first_index the checker would not follow: the traces did start where they were told to.
count=$((count + 1))
if ! "$BELLWETHER" run one-op --on soft --set first_index=65530 -o wrap.json > log 2>&1 ||
    ! sed 's/"first_index":65530/"first_index":0/' wrap.json > zero.json ||
    ! "$BELLWETHER" check wrap.json >> log 2>&1 || "$BELLWETHER" check zero.json >> log 2>&1 ||
    ! grep -q reserve-contiguous log; then
    failed=$((failed + 1))
    echo 'a queue that starts at 65530 was not seen'
    tail -n 4 log
fi

# A difference would be found.
count=$((count + 1))
"$BELLWETHER" run one-op --on soft --set bytes=16 -o other.json > log 2>&1 &&
    "$BELLWETHER" run one-op --on soft -o soft.json > log 2>&1
"$BELLWETHER" diff --normalize soft.json other.json > log 2>&1
if [ $? -ne 1 ]; then
    failed=$((failed + 1))
    echo 'puts of 8 and 16 bytes were found to be the same'
fi

# So would a completion that was lost on the way.
count=$((count + 1))
sed '0,/"name":"cqe"/{/"name":"cqe"/d}; /bellwether_end/,$d' soft.json > lost.json
"$BELLWETHER" diff --normalize soft.json lost.json > log 2>&1
if [ $? -ne 1 ] || ! grep -q 'cqe .* only in the first trace' log; then
    failed=$((failed + 1))
    echo 'a lost completion was not found'
    tail -n 4 log
fi

report
