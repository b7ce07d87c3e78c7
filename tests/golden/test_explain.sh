#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `explain`: the parts are the whole, what is not on the critical path gains nothing, and the drawing is one.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"
needs jq
# Well-formed XML, as far as can be said here.
parses() {
    if command -v xmllint > /dev/null; then
        xmllint --noout "$1"
    elif command -v python3 > /dev/null; then
        python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$1"
    else
        grep -q '<svg' "$1" && tail -n 1 "$1" | grep -q '</svg>'
    fi
}

for platform in P-IB P-GB200; do
    for stack in mini-gda mini-proxy; do
        for experiment in one-op round-trip; do
            case="$experiment, $stack, $platform"
            explain="$BELLWETHER explain $experiment --stack $stack --platform $platform"
            ok "$case: explains" "$explain --format json > e.json && $explain > e.txt && $explain --format csv > e.csv"
            ok "$case: one operation" "jq -e '.schema == \"bell.explanation/1\" and (.operations | length) == 1 and
                .operations[0].stack == \"$stack\"' e.json"
            ok "$case: steps and waiting are the whole" "jq -e '.operations[0] |
                .critical_us > 0 and .waiting_us >= 0 and
                (.critical_us + .waiting_us - .total_us | fabs) < 1e-9' e.json"
            ok "$case: the critical steps are the critical path" "jq -e '.operations[0] | ([.steps[] |
                select(.critical == \"*\") | .duration_us] | add) - .critical_us | fabs < 0.0005 * 40' e.json"
            if [ "$experiment" = one-op ]; then
                ok "$case: nothing waits" "jq -e '.operations[0].waiting_us == 0' e.json"
            fi
            ok "$case: the total is the median of a run" "$BELLWETHER run $experiment --stack $stack \
                --platform $platform --format json > run.json && jq -s -e '.[0].operations[0].total_us -
                .[1].metrics[1].p50_us | fabs < 0.000501' e.json run.json"
            ok "$case: off the path nothing is gained" "jq -e '.operations[0].steps | map(select(.critical != \"*\")) |
                length > 0 and all(.gain_us == 0)' e.json"
            ok "$case: on it no more than the step takes" "jq -e '.operations[0].steps |
                all(.gain_us <= .duration_us) and any(.gain_us > 0)' e.json"
            ok "$case: in order of start, within the operation" "jq -e '.operations[0] | ([.steps[].start_us] |
                . == sort) and .steps[0].start_us == 0 and (.total_us as \$t | .steps | all(.start_us <= \$t))' e.json"
            ok "$case: every step that takes time has a clock" "jq -e '.operations[0].steps | all((.duration_us == 0) ==
                (.clock == \"\"))' e.json"
            ok "$case: text and csv have the steps" "[ \$(jq '.operations[0].steps | length' e.json) -eq \
                \$(grep -c -E '^ +[0-9]+[.][0-9]{3} ' e.txt) ] && [ \$(jq '.operations[0].steps | length' e.json) -eq \
                \$(grep -c -E '^[0-9]' e.csv) ]"
            ok "$case: text sums up" "grep -E '^critical path .*= (put.completion|round trip) [0-9.]+ us\$' e.txt"
            # Steps off the path that begin at the very end may be past it in a faster run.
            for clock in gpu.clock_mhz:SM cpu.cold_mhz:CPU; do
                ok "$case: twice ${clock%:*} shortens what follows ${clock#*:}" "$explain --format json \
                    --set platform.${clock%:*}=2x > fast.json && jq -s -e 'map(.operations[0].steps |
                    group_by([.step, .who]) | map(to_entries |
                    map({ key: (.value.step + .value.who + (.key | tostring)), value: .value })) | add |
                    from_entries) as [\$a, \$b] | ((\$b | keys) - (\$a | keys) | length) == 0 and
                    ([\$a | to_entries[] | \$b[.key] as \$fast |
                        if \$fast == null then .value.critical != \"*\"
                        elif .value.clock == \"${clock#*:}\" then \$fast.duration_us < .value.duration_us
                        else \$fast.duration_us == .value.duration_us end] | all)' e.json fast.json"
            done
        done
    done
done

# ---- what a step is worth comes true ----
explain="$BELLWETHER explain --stack mini-gda --platform P-IB --format json"
ok 'without the schedule the operation ends that much sooner' "$explain > a && $explain --set nic.schedule.ps=0 > b &&
    jq -s -e '.[0].operations[0] as \$a | (\$a.steps | map(select(.clock == \"NIC\"))[0].gain_us) as \$gain |
        \$gain > 0 and (\$a.total_us - .[1].operations[0].total_us - \$gain | fabs) < 0.001' a b"

# ---- two stacks ----
ok '--vs gives two operations' "$explain --vs mini-proxy > vs.json && jq -e '[.operations[].stack] ==
    [\"mini-gda\", \"mini-proxy\"] and (.operations | all(.steps | length > 0))' vs.json"
ok 'each is what it is alone' "jq '.operations[0]' vs.json > a && $explain | jq '.operations[0]' | cmp - a"
ok '--vs compares in text' "'$BELLWETHER' explain --stack mini-gda --platform P-IB --vs mini-proxy > vs.txt &&
    sed -n '/^critical_path_us/,/^total/p' vs.txt > parts && [ \$(wc -l < parts) -eq 10 ]"
ok 'the parts add up to the totals' "sed '1d;\$d' parts | awk '{ a += \$(NF-2); b += \$(NF-1); d += \$NF } END {
    print a, b, d }' > sums && tail -n 1 parts | awk '{ print \$(NF-2), \$(NF-1), \$NF }' | paste -d ' ' - sums |
    awk '{ for (i = 1; i <= 3; i++) { e = \$i - \$(i + 3); if (e > 0.005 || e < -0.005) exit 1 } }'"

# ---- the drawing ----
draw="$BELLWETHER explain --stack mini-gda --platform P-IB --vs mini-proxy"
if command -v gnuplot > /dev/null; then
    ok '--plot writes a drawing' "$draw --plot both.svg > plot.txt && parses both.svg"
    ok 'with both titles' "grep -F 'mini-gda on P-IB' both.svg && grep -F 'mini-proxy on P-IB' both.svg"
    ok 'and the steps' "grep -F 'acknowledgement' both.svg"
    ok 'and no draft is left' "[ \$(ls | grep -c both) -eq 1 ]"
    ok 'what is printed is the same' "$draw | cmp - plot.txt"
    ok 'one operation is drawn too' "$BELLWETHER explain round-trip --platform P-GB200 --plot one.svg &&
        parses one.svg && grep -F 'mini-gda on P-GB200' one.svg"
    ok 'a folder that is not there is exit 1' "exits 1 $draw --plot gone/both.svg && [ ! -e gone ] &&
        [ \$(grep -c '^bellwether: ' exits.err) -eq 1 ]"
    mkdir taken
    ok 'a folder of that name is exit 1, and no draft is left' "exits 1 $draw --plot taken && [ \$(ls -d taken* |
        wc -l) -eq 1 ]"
else
    ok '--plot without gnuplot is exit 77' "exits 77 $draw --plot both.svg && [ ! -e both.svg ]"
fi

# ---- wrong usage ----
ok 'without a platform it is exit 2' "exits 2 '$BELLWETHER' explain && grep -e '--platform' exits.err"
ok 'an unknown stack is exit 2' "exits 2 '$BELLWETHER' explain --platform P-IB --stack mini-gdq"
ok 'an unknown second stack too' "exits 2 '$BELLWETHER' explain --platform P-IB --vs mini-gdq"
ok 'an unknown experiment too' "exits 2 '$BELLWETHER' explain no-op --platform P-IB && [ ! -s exits.out ]"

report
