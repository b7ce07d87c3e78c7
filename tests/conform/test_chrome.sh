#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A trace as Perfetto's reader of Chrome JSON sees it: one array of events, whole slices on named tracks.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"
needs jq

claim() {
    count=$((count + 1))
    if ! jq -e "$3" "$2" > jq.out 2>&1; then
        failed=$((failed + 1))
        echo "$2: not so: $1"
        head -n 3 jq.out
    fi
}

# chrome FILE NAMES: what holds of every trace; NAMES are the kinds of its slices, sorted and joined by blanks.
chrome() {
    claim 'an array of objects' "$1" 'type == "array" and all(type == "object")'
    claim 'each has name, phase, process and thread' "$1" 'all((.name | type == "string" and length > 0) and
        (.ph == "X" or .ph == "M") and (.pid | type == "number") and (.tid | type == "number"))'
    claim 'each slice has start and duration' "$1" 'map(select(.ph == "X")) | length > 0 and
        all((.ts | type == "number" and . >= 0) and (.dur | type == "number" and . >= 0))'
    # jq reckons in doubles, and rounds both numbers and the product: once the clock has run for 4.8 hours (2^34 us) by
    # more than a picosecond.
    claim 'microseconds are the picoseconds' "$1" 'map(select(.ph == "X")) | all(
        (.ts * 1000000 - .args.ps | fabs) < 1 + .args.ps * 3.4e-16 and (.dur * 1000000 - .args.dur_ps | fabs) < 1)'
    claim 'each track has a name' "$1" '(map(select(.name == "thread_name") | [.pid, .tid])) as $named |
        map(select(.ph == "X") | [.pid, .tid]) | unique | all(. as $track | $named | index([$track]) != null)'
    claim 'each process has a name' "$1" '(map(select(.name == "process_name") | .pid)) as $named |
        map(select(.ph == "X") | .pid) | unique | all(. as $p | $named | index($p) != null)'
    claim "its slices are: $2" "$1" 'map(select(.ph == "X") | .name) | unique | join(" ") == "'"$2"'"'
    claim 'one operation, which holds all the steps of its lane' "$1" 'map(select(.ph == "X")) |
        (map(select(.name == "op")) | length == 1) and
        (map(select(.name == "op"))[0] as $op | map(select(.pid == 0 and .tid == 0 and .name != "flight")) |
            all(.args.ps >= $op.args.ps and .args.ps + .args.dur_ps <= $op.args.ps + $op.args.dur_ps))'
    claim 'the header says what ran' "$1" '.[0].args | .schema == "bell.trace/1" and (.digest | length == 16) and
        (.revision | length > 0) and (.processor | length > 0) and .stack != "" and .experiment == "one-op"'
    claim 'causes come earlier' "$1" 'map(select(.ph == "X") | .args) | all(.cause < .seq)'
}

one="one-op --set iterations=1 --set warmup=0"
for stack in mini-gda mini-proxy; do
    # shellcheck disable=SC2086
    "$BELLWETHER" run $one --stack $stack --on sim --platform P-IB -o $stack-sim.json > log 2>&1 &&
        "$BELLWETHER" run $one --stack $stack --on soft -o $stack-soft.json > log 2>&1 || {
        cat log
        exit 1
    }
done
gpu='build cqe dbrec deliver doorbell fence op poll reserve'
proxy_sim='build cqe dbrec deliver dequeue doorbell doorbell_flight enqueue fence flag flight op poll progress reserve'
proxy='build cqe dbrec deliver dequeue doorbell enqueue fence flag op poll progress reserve'
chrome mini-gda-soft.json "$gpu"
chrome mini-proxy-soft.json "$proxy"
chrome mini-gda-sim.json \
    'ack build cqe dbrec deliver doorbell doorbell_flight fence nic_fetch nic_schedule op poll reserve wire'
chrome mini-proxy-sim.json "ack $proxy_sim wire"
claim 'the path and the clock' mini-gda-sim.json \
    '.[0].args | .path == "gpu-doorbell" and .clock_domain == "virtual"'
claim 'the path and the clock' mini-gda-soft.json \
    '.[0].args | .path == "host-doorbell" and .clock_domain == "monotonic"'
claim 'the path' mini-proxy-sim.json '.[0].args.path == "proxy"'
claim 'lanes by name' mini-proxy-sim.json 'map(select(.name == "thread_name") | .args.name) ==
    ["GPU lane 0", "worker 0", "NIC queue 0"]'
claim 'lanes by name' mini-gda-soft.json 'map(select(.name == "thread_name") | .args.name) ==
    ["CPU lane 0", "NIC queue 0"]'

report
