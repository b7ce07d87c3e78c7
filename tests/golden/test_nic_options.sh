#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the command says of the software NIC: its own rate, its pace, the faults it was told to have.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"
needs jq
soft="$BELLWETHER run one-op --on soft --set iterations=20"

ok 'a run says what its NIC could serve' "$soft > out &&
    grep -E '^software NIC: 1 thread, .*(could serve|BOTTLENECK)' out"
ok 'with as many threads as it was given' "$soft --set lanes=3 --set queues=3 --set machine.nic_threads=2 \
    --format json | jq -e '.notes | test(\"^software NIC: 2 threads\")'"
ok 'a paced run says whose pace it is and how late it was' "$soft --pace P-IB --format json |
    jq -e '(.notes | test(\"paced as on P-IB, its stages ran [0-9.]+ us late\")) and .platform == \"\" and
        (.origin | test(\"paced as the model says of platform P-IB\"))'"
ok 'soft is what is paced by default' "$BELLWETHER run one-op --pace P-IB --set iterations=4 --format json |
    jq -e '.executor == \"soft\"'"
ok 'a paced put takes no less than its stages' "$soft --pace P-IB --set pcie.gpu_read.ps=400000000 --format json |
    jq -e '.metrics[1].min_us >= 800'"
ok 'so does one of the proxy' "$soft --pace P-IB --stack mini-proxy --set pcie.host_read.ps=400000000 --format json |
    jq -e '.metrics[1].min_us >= 800'"
ok 'the pace is in the parameters and in their digest' "$soft --pace P-IB --format json > a &&
    $soft --pace P-IB --set nic.schedule.ps=2x --format json > b && $soft --format json > c &&
    jq -s -e '(map(.digest) | unique | length == 3) and .[0].parameters[\"platform.nic.schedule.ps\"] > 0 and
        (.[2].parameters | has(\"platform.nic.schedule.ps\") | not)' a b c"

for executor in 'null' 'sim --platform P-IB'; do
    "$BELLWETHER" run one-op --on $executor --pace P-IB > out 2> err
    status=$?
    ok "--pace on $executor is refused with one line" "[ $status -eq 2 ] && [ \$(wc -l < err) -eq 1 ] && [ ! -s out ] &&
        grep -- '--pace: executor ${executor%% *} has no software NIC that .* pace, expected soft or cuda' err"
done
ok '--pace wants a platform' "! $soft --pace P-NOWHERE 2> err && grep -q P-NOWHERE err"

ok 'a lost doorbell is recovered from' "$soft --set fault=lost-doorbell --set fault_index=7 --set fault_delay_us=3000 \
    --format json | jq -e '.metrics[1].max_us >= 3000'"
ok 'a CQE that is late is late' "$soft --set fault=late-cqe --set fault_index=7 --set fault_delay_us=3000 \
    --format json | jq -e '.metrics[1].max_us >= 3000 and .metrics[1].min_us < 3000'"
for fault in lost-doorbell late-cqe; do
    ok "the simulator knows $fault" "$BELLWETHER run one-op --platform P-IB --set fault=$fault --set fault_index=7 \
        --format json | jq -e '.metrics[1].max_us >= 1000 and .metrics[1].p50_us < 10'"
done
ok 'a WQE that fails is named' "! $soft --set fault=error-cqe --set fault_index=7 2> err &&
    grep 'syndrome 0x15 (transport retries exceeded) for the WQE at index 7 of queue 0' err"
ok 'a record cannot lose its doorbell' "! $soft --set fault=lost-doorbell --set nic_start=dbrec 2> err &&
    grep 'expected nic_start doorbell' err"
report
