#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is run on rxe0 inside the guest: many small runs in one process (cases.c), then the command from end to end.
cd /bell || exit 1
failed=0
. /environment

timeout 200 /bell/cases || failed=1

# expect STATUS PATTERN NAME ARGUMENTS...: `bellwether ARGUMENTS` ends with STATUS and prints PATTERN.
expect() {
    want=$1
    pattern=$2
    name=$3
    shift 3
    timeout 60 /bell/bellwether "$@" > out 2>&1
    got=$?
    if [ "$got" -eq "$want" ] && grep -q -e "$pattern" out; then
        echo "guest: ok $name"
    else
        echo "guest: FAILED $name: ended with $got, expected $want and '$pattern'"
        sed 's/^/    /' out
        failed=1
    fi
}

expect 0 'CPU threads post through libibverbs to any RDMA device$' 'bellwether list' list executors
expect 0 'driver rdma_rxe, is SOFTWARE' 'bellwether run, traced' run one-op --on verbs --stack mini-proxy \
    --set stack.batch=16 --set experiment.puts=32 --set experiment.iterations=10 -o trace.json
expect 0 'trace.json' 'bellwether check' check trace.json
expect 1 'queue 0: CQE for the write at index 0: remote access error' 'bellwether run, bad key' \
    run one-op --on verbs --set fault=bad-key
timeout 60 /bell/bellwether run round-trip --on verbs --set machine.peer=127.0.0.1:7480 --set machine.rank=0 \
    --set experiment.iterations=10 > out0 2>&1 &
expect 0 'the times are those that rank 0 measured' 'bellwether run, rank 1 of two processes' run round-trip \
    --on verbs --set machine.peer=127.0.0.1:7480 --set machine.rank=1 --set experiment.iterations=10
if ! wait $!; then
    echo 'guest: FAILED bellwether run, rank 0 of two processes:'
    cat out0
    failed=1
fi
[ "$failed" -eq 0 ]
