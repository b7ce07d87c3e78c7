#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `run` and `list` print: stored keys and columns, and forms that agree with one another.  The numbers are the
# model's business.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"
needs jq
golden=${BELL_SOURCE_DIR:?}/tests/golden

for experiment in one-op round-trip; do
    for stack in mini-gda mini-proxy; do
        case="$experiment on $stack"
        sim="$BELLWETHER run $experiment --on sim --platform P-IB --stack $stack --set iterations=20"
        ok "$case runs" "$sim --format json > run.json && $sim --format csv > run.csv && $sim > run.txt"
        ok "$case gives the same bytes again" \
            "$sim --format json | cmp - run.json && $sim --format csv | cmp - run.csv"
        ok "$case gives them in another folder and locale" \
            "(cd / && LC_ALL=C.UTF-8 $sim --format json) | cmp - run.json"
        ok "$case has the stored keys" "jq -r 'keys_unsorted[]' run.json | sort | cmp - '$golden/run_keys.txt'"
        ok "$case has the stored columns" "head -n 1 run.csv | cmp - '$golden/run_header.csv'"
        ok "$case has two metrics, in order" "jq -e '(.metrics | length == 2) and
            (.metrics | all(0 < .min_us and .min_us <= .p50_us and .p50_us <= .p99_us and .p99_us <= .max_us)) and
            .metrics[0].p50_us < .metrics[1].p50_us' run.json"
        ok "$case names itself" "jq -e '.schema == \"bell.result/1\" and .experiment == \"$experiment\" and
            .stack == \"$stack\" and .platform == \"P-IB\" and .executor == \"sim\" and .clock_domain == \"virtual\" and
            .samples == 20 and .is_traced == false and .trace == \"\" and .events == 0' run.json"
        ok "$case says where its numbers come from" "jq -r .origin run.json |
            grep -E '^virtual time, platform P-IB: .*[0-9]+ published.*[0-9]+ fitted.*docs/model.md'"
        jq -r '.metrics[] | [.name, .p50_us, .p99_us, .min_us, .max_us] | @tsv' run.json > from-json
        ok "$case agrees in csv" "tail -n +2 run.csv | awk -F, -v OFS='\t' '{ print \$7, \$9 + 0, \$10 + 0, \$11 + 0,
            \$12 + 0 }' | cmp - from-json"
        ok "$case agrees in text" "grep -E '^(issue|put.completion|round trip) ' run.txt |
            sed -E 's/  +/\t/g' |
            awk -F'\t' -v OFS='\t' '{ print \$1, \$2 + 0, \$3 + 0, \$4 + 0, \$5 + 0 }' | cmp - from-json"
    done
done

# ---- --set, --seed, digest ----
sim="$BELLWETHER run one-op --platform P-IB --set iterations=4 --format json"
ok 'sim is the default with a platform' "$sim | jq -e '.executor == \"sim\"'"
ok 'soft is the default without' "$BELLWETHER run one-op --set iterations=4 --format json |
    jq -e '.executor == \"soft\" and .platform == \"\" and (.origin | test(\"not a NIC\"))'"
ok 'what --set says is in the parameters' "$sim --set stack.ordering=system-fence --set platform.gpu.clock_mhz=985 |
    jq -e '.parameters[\"stack.ordering\"] == \"system-fence\" and .parameters[\"platform.gpu.clock_mhz\"] == 985 and
        (.origin | test(\"1 set by hand\"))'"
ok '2x doubles, and the bare key is the same parameter' "$sim --set platform.nic.schedule.ps=2x > a &&
    jq '.parameters[\"platform.nic.schedule.ps\"] / 2' a > half &&
    $sim --set nic.schedule.ps=\$(cat half) | jq '.parameters[\"platform.nic.schedule.ps\"]' | cmp - half"
ok 'half the clock, more time' "$sim > a && $sim --set gpu.clock_mhz=0.5x > b &&
    jq -s -e '.[0].metrics[0].p50_us < .[1].metrics[0].p50_us' a b"
ok 'the digest follows the parameters' "$sim > a && $sim --set bytes=16 > b && $sim --seed 77 > c &&
    jq -s -e '(map(.digest) | unique | length == 3) and .[2].parameters[\"experiment.seed\"] == 77' a b c"
ok 'a file is the same as its name' "$sim > a && '$BELLWETHER' run '$BELL_SOURCE_DIR/models/experiments/one-op.json' \
    --platform '$BELL_SOURCE_DIR/models/platforms/P-IB.json' --set iterations=4 --format json | cmp - a"
printf '{"schema": "bell.experiment/1", "pattern": "one-op"}' > mine.json
ok 'a document without a name is called after its file' "'$BELLWETHER' run mine.json --format json |
    jq -e '.experiment == \"mine\" and .samples == 100'"
ok 'an option may hold its value' "'$BELLWETHER' run one-op --format=json --seed=3 -o./t.json |
    jq -e '.parameters[\"experiment.seed\"] == 3 and .is_traced and .trace == \"./t.json\" and .events > 0'"
ok 'the trace ends where it is told to' "'$BELLWETHER' run one-op --platform P-IB -o cut.json --max-events 7 > out &&
    [ \$(grep -c '\"ph\":\"X\"' cut.json) -eq 7 ] && '$BELLWETHER' check cut.json | grep 'cut off'"
ok 'the times of each operation can be had' "'$BELLWETHER' run round-trip --platform P-IB --set iterations=9 \
    --samples times.csv > out && [ \$(wc -l < times.csv) -eq 10 ] && head -n 1 times.csv | grep -qx issue_us,total_us &&
    awk -F, 'NR > 1 && !(\$1 > 0 && \$2 > \$1) { exit 1 }' times.csv && [ \"\$(ls times*)\" = times.csv ]"
ok 'and where they cannot be written it says so' "! '$BELLWETHER' run one-op --platform P-IB --samples none/t.csv \
    > out 2> err && grep -q 'none/t.csv: cannot create' err"
ok 'a device is written to, and not replaced' "ln -s /dev/full full && ! '$BELLWETHER' run one-op --platform P-IB \
    --samples full > out 2> err && grep -q 'full: cannot be written: No space left' err && [ -L full ]"

# ---- list ----
ok 'list parameters has every parameter of a run' "'$BELLWETHER' list parameters --format json > p.json && $sim > a &&
    jq -r '.[].key | select(startswith(\"machine.\") | not)' p.json | sort > p &&
    jq -r '.parameters | keys[]' a | sort | cmp - p"
ok 'a run in real time has those of the machine' "'$BELLWETHER' run one-op --on soft --format json |
    jq -e '.parameters | (.[\"machine.device\"] == \"\") and (.[\"machine.nic_threads\"] == 1)'"
ok 'each is described' "jq -e 'all((.help | length > 0) and (.range | length > 0) and (.default | length > 0))' p.json"
ok 'with a platform it has its values' "'$BELLWETHER' list parameters --platform P-IB --format json | jq -e '
    map(select(.key == \"platform.gpu.clock_mhz\"))[0] | (.value | tonumber > 0) and (.source | length > 0)'"
ok 'csv has as many records as json' "[ \$('$BELLWETHER' list --format csv | wc -l) -eq \
    \$('$BELLWETHER' list --format json | jq 'length + 1') ]"
for name in platforms stacks experiments; do
    ok "list $name has every file" "'$BELLWETHER' list $name --format json | jq -r '.[].name' | sort > listed &&
        (cd '$BELL_SOURCE_DIR/models/$name' && ls *.json) | sed 's/.json\$//' | sort | cmp - listed"
    ok "with summaries" "'$BELLWETHER' list $name --format json | jq -e 'all(.summary | length > 10)'"
done
ok 'list figures counts the rows' "'$BELLWETHER' list figures --format json | jq -e 'map(.name) | index(\"Table 3\")'"

# ---- help ----
for command in run validate explain check diff list doctor help; do
    ok "help $command" "'$BELLWETHER' help $command > a && '$BELLWETHER' $command --help | cmp - a &&
        head -n 1 a | grep '^usage: bellwether $command'"
    ok "the man page has $command" "grep -q '^.B $command\$' '$BELL_SOURCE_DIR/docs/bellwether.1'"
done
for command in run check diff list doctor; do
    "$BELLWETHER" help $command | sed -n 's/^  \(-[-a-z]*\).*/\1/p' | sed 's/-/\\-/g' > names
    while read -r name; do
        ok "the man page has $name of $command" "grep -q -F -e '$name' '$BELL_SOURCE_DIR/docs/bellwether.1'"
    done < names
done
ok '--version' "'$BELLWETHER' --version | grep -E '^bellwether [0-9]+[.][0-9]+[.][0-9]+ '"

report
