#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How far the model is from the published rows, and that `validate` says so honestly: forms agree, the data files hold
# what a fit gives, and a wrong value fails.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"
needs jq
validate() {
    "$BELLWETHER" validate --figure 'Table 3,Table 4,Table 9' --stack mini-gda,mini-proxy "$@"
}

# ---- the numbers ----
ok 'the tables validate' 'validate --format json > v.json'
ok 'all 50 rows are modelled' "jq -e '.schema == \"bell.validation/1\" and .count == 50 and (.rows | length) == 50 and
    .unmodelled == 0' v.json"
ok 'the median is at most 4 %, the worst at most 12 %' "jq -e '.median_percent <= 4 and .worst_percent <= 12' v.json"
ok 'at most one fitted value for two rows' "jq -e '0 < .fitted and .fitted <= .count / 2 and
    .fitted == (.parameters | length)' v.json"
ok 'each row has its error' "jq -e '.rows | all(((.predicted / .published - 1) * 100 - .error_percent | fabs) <
    0.06 + 0.06 / .published)' v.json"
ok 'the summary is that of the rows' "jq -e '([.rows[].error_percent | fabs] | sort) as \$e |
    ((\$e[24] + \$e[25]) / 2 - .median_percent | fabs) < 0.06 and (\$e[49] - .worst_percent | fabs) < 0.06' v.json"
ok 'every metric and platform is there' "jq -e '([.rows[].metric] | unique) ==
    [\"issue_us\", \"put_completion_us\", \"rtt_p99_us\", \"rtt_us\"] and ([.rows[].platform] | unique) ==
    [\"P-GB200\", \"P-IB\"]' v.json"
ok 'the published values are those of the file' "jq -r '.[] | select((.source | test(\"^Table [349]\$\")) and
    (.stack | test(\"^mini-(gda|proxy)\$\"))) | [.source, .platform, .stack, .metric, .value] | @tsv' \
    '$BELL_SOURCE_DIR/traces/reference/paper.json' | sort > a &&
    jq -r '.rows[] | [.source, .platform, .stack, .metric, .published] | @tsv' v.json | sort | cmp - a"
ok 'what is called fitted is what the files call fitted' "for p in P-IB P-GB200; do
        '$BELLWETHER' list parameters --platform \$p --format json | jq -r --arg p \$p '.[] |
            select(.source | test(\"^fitted\")) | \$p + \" \" + (.key | ltrimstr(\"platform.\"))'; done | sort > a &&
    jq -r '.parameters[] | .platform + \" \" + .fitted_parameter' v.json | sort | cmp - a"
ok 'what is called as another key has its value' "(for p in P-IB P-GB200; do
        '$BELLWETHER' list parameters --platform \$p --format json | jq -e '(map({ key: .key, value: .value }) |
            from_entries) as \$value | map(select(.source | test(\"^as [a-z]+[.]\"))) | length > 0 and
            all(.value == \$value[\"platform.\" + (.source | capture(\"^as (?<key>[^ :,]+)\").key)])' || exit 1
    done)"
ok 'the same again' 'validate --format json | cmp - v.json'

# ---- the platform that was measured here: its values come from some of its rows, the others are the test ----
ok 'H200-soft validates' "'$BELLWETHER' validate --platform H200-soft --median 10 --worst 50 --format json > h.json"
ok 'its held-out rows have a median error of at most 10 %' "jq -e '.held_out.count == 33 and .fit.count == 24 and
    .held_out.median_percent <= 10 and .fit.median_percent <= 10' h.json"
ok 'they are not the ones that it names' "jq -e '.rows | all((.source == \"H200 fit\") == (.use == \"fit\"))' h.json"
ok 'its stored values are what the fit gives' "'$BELLWETHER' validate --platform H200-soft --median 10 --worst 50 \
    --refit --format json | jq -e '.parameters | length == 8 and all((.value / .refit - 1 | fabs) < 0.01)'"

# ---- forms ----
jq -r '.rows[] | [.metric, .published, .predicted, .error_percent] | @tsv' v.json > from-json
columns='awk -v OFS="\t" "{ print \$(NF-3), \$(NF-2) + 0, \$(NF-1) + 0, \$NF + 0 }"'
ok 'csv agrees' "validate --format csv 2> csv.err | tail -n +2 | tr , ' ' | $columns | cmp - from-json"
ok 'text agrees' "validate > v.txt && grep '^Table ' v.txt | $columns | cmp - from-json"
ok 'text has the parameters' "jq -r '.parameters[] | [.fitted_parameter, .value] | @tsv' v.json > a &&
    grep -E '^P-[A-Z0-9]+ ' v.txt | awk -v OFS='\t' '{ print \$2, \$NF + 0 }' | cmp - a"
ok 'text and csv sum up' "grep -E '^50 rows: median error [0-9.]+ %, worst [0-9.]+ %' v.txt > a &&
    grep '^50 rows' csv.err | cmp - a"
ok 'a list of one figure has its rows only' "'$BELLWETHER' validate --figure 'Table 4' --stack mini-gda --format json |
    jq -e '(.count > 0) and (.rows | all(.source == \"Table 4\" and .stack == \"mini-gda\"))'"
ok 'one platform' "validate --platform P-GB200 --format json | jq -e '.rows | all(.platform == \"P-GB200\")'"

# ---- what fails ----
ok 'a worst error past the tolerance is exit 1' "exits 1 validate --worst 1 && grep 'past the tolerance' exits.err"
ok 'a median past it too' "exits 1 validate --median 0.1"
ok 'and the rows are printed all the same' "validate --worst 1 --format json 2> err | jq -e '.count == 50'"
ok 'a wrong value fails' "exits 1 validate --set platform.nic.schedule.ps=3x"
ok 'so does a wrong clock' "exits 1 validate --set platform.gpu.clock_mhz=0.5x"
ok 'an unknown figure is exit 2' "exits 2 '$BELLWETHER' validate --figure 'Table 99' && grep 'Table 99' exits.err"
ok 'an unknown stack is exit 2' "exits 2 '$BELLWETHER' validate --stack mini-gdq && grep mini-gdq exits.err"
ok 'an unknown platform is exit 2' "exits 2 '$BELLWETHER' validate --platform P-X && grep P-X exits.err"
ok 'nothing but an error is printed then' "[ ! -s exits.out ] && [ \$(grep -c '^bellwether: ' exits.err) -eq 1 ]"
ok 'too few rows for the fit are exit 2' "exits 2 '$BELLWETHER' validate --figure 'Table 4' \
    --platform P-GB200 --refit && grep 'cannot fix' exits.err"

# ---- the fit ----
ok 'the rows can be fitted again' 'validate --loo --refit --format json > fit.json'
ok 'the files hold the fit' "jq -e '.parameters | length > 0 and all(.refit / .value - 1 | fabs < 0.01)' fit.json"
# By its own rows alone the fence inside a release store would be 0.3 % less.
ok 'a value that is as another moves with it in a fit' "jq -e '.parameters | map(select(.platform == \"P-IB\" and
    .fitted_parameter == \"gpu.fence_sys.ps\")) | length == 1 and all(.refit / .value - 1 | fabs < 0.0015)' fit.json"
ok 'each value has an interval' "jq -e '.parameters | all(.interval_percent > 0)' fit.json"
ok 'rows that are left out are predicted' "jq -e '.left_out.count + .left_out.alone == .count and
    .left_out.count > 0 and .left_out.median_percent >= .median_percent and
    .left_out.worst_percent >= .worst_percent' fit.json"
ok 'no better than when they are in' "jq -e '[.rows[] | select(.left_out_error_percent != null) |
    (.left_out_error_percent | fabs) >= (.error_percent | fabs) - 0.5] | all' fit.json"
ok 'the predictions are of the stored values' "jq '[.rows[].predicted]' fit.json > a &&
    jq '[.rows[].predicted]' v.json | cmp - a"

report
