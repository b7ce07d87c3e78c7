#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `doctor` prints, whatever this machine has: forms that agree, states that are known, a reason with each unknown;
# and its line in the traces.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"
needs jq

ok 'doctor ends with 0 in every form' "'$BELLWETHER' doctor > d.txt && '$BELLWETHER' doctor --format json > d.json &&
    '$BELLWETHER' doctor --format csv > d.csv"
ok 'it says nothing on standard error' "'$BELLWETHER' doctor 2>&1 > again | cmp - /dev/null"
ok 'each fact is whole' "jq -e 'length > 15 and all((keys == [\"area\", \"fact\", \"fix\", \"state\", \"value\"]) and
    (.fact | length > 0) and (.value | length > 0))' d.json"
ok 'areas and states are known' "jq -e 'all((.area | IN(\"gpu\", \"pcie\", \"rdma\", \"cpu\", \"executor\")) and
    (.state | IN(\"ok\", \"warn\", \"missing\", \"unknown\")))' d.json"
ok 'every area speaks' "jq -e 'map(.area) | unique | length == 5' d.json"
ok 'no fact is said twice' "jq -e '(map([.area, .fact]) | unique | length) == length' d.json"
ok 'csv has as many records as json' "[ \$(wc -l < d.csv) -eq \$(jq 'length + 1' d.json) ]"
ok 'text has a line for each fact and each fix' "[ \$(grep -c -E '^  (ok|warn|missing|unknown) ' d.txt) -eq \
    \$(jq length d.json) ] && [ \$(grep -c '^ *-> ' d.txt) -eq \$(jq 'map(select(.fix != \"\")) | length' d.json) ]"
ok 'the kernel is named' "jq -r '.[] | select(.fact == \"kernel\") | .value' d.json | grep -x -F \"\$(uname -r)\""
ok 'the CPUs are those that this process may use' "jq -r '.[] | select(.fact == \"CPUs allowed\") | .value' d.json |
    grep -F \"\$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)\""
ok 'the verdict is that of list executors' "'$BELLWETHER' list executors --format json |
    jq -r '.[] | [.name, if (.summary | test(\"cannot run here\")) then \"missing\" else \"ok\" end] | @tsv' > listed &&
    jq -r '.[] | select(.area == \"executor\") | [.fact, .state] | @tsv' d.json | cmp - listed"
ok 'null, soft and sim run anywhere' "jq -e 'map(select(.area == \"executor\" and .state == \"ok\") | .fact) |
    contains([\"null\", \"soft\", \"sim\"])' d.json"

ok 'a trace in real time names the machine' "'$BELLWETHER' run one-op --on soft --set iterations=2 -o soft.json &&
    sed -n '2s/,\$//p' soft.json | jq -r .args.machine | grep -F \"kernel \$(uname -r); \" &&
    '$BELLWETHER' check soft.json"
ok 'one in virtual time does not' "'$BELLWETHER' run one-op --platform P-IB --set iterations=2 -o sim.json &&
    sed -n '2s/,\$//p' sim.json | jq -e '.args.machine == \"\"'"
ok 'a trace without it is read' "sed '2s/,\"machine\":\"[^\"]*\"//' soft.json > old.json &&
    ! grep -q machine old.json &&
    '$BELLWETHER' check old.json && '$BELLWETHER' diff --normalize old.json soft.json"

report
