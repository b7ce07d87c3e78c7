#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rows that are not published, on a made-up platform that says which of them it was fitted to: P-IB under another name.
# What it was fitted to are the published rows of P-IB; each is held out once more, half as long again.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"
needs jq
BELLWETHER_DATA=$work/data
export BELLWETHER_DATA
mkdir -p data/models/platforms data/traces/measured
rows=data/traces/measured/made-up.json
platform=data/models/platforms/made-up.json
jq '.name = "made-up" | .fitted_to = "Made fit, Made too"' "$BELL_SOURCE_DIR/models/platforms/P-IB.json" > $platform
jq '[.[] | select((.source | test("^Table [349]$")) and .platform == "P-IB" and (.stack | test("^mini-(gda|proxy)$"))) |
    .platform = "made-up"] | map(.source = if .source == "Table 9" then "Made too" else "Made fit" end) as $fit |
    ($fit | map(.source = "Made held-out" | .value *= 1.5)) +
    [{ source: "Made rate", platform: "made-up", stack: "mini-gda", config: { threads: 4 }, metric: "loaded_rtt_us",
       value: 1.5 }] + $fit' "$BELL_SOURCE_DIR/traces/reference/paper.json" > $rows
validate() {
    "$BELLWETHER" validate --platform made-up --worst 99 --median 99 "$@"
}
published() {
    "$BELLWETHER" validate --platform P-IB --figure 'Table 3,Table 4,Table 9' --stack mini-gda,mini-proxy "$@"
}
ok 'the published rows validate' 'published --refit --loo --format json > p.json'
ok 'the measured rows too' 'validate --format json > m.json'

# ---- which rows ----
ok 'rows for the fit come first, the others are held out' "jq -e '(.rows | length) == .count and .count > 40 and
    ([.rows[].use] == [(.rows[: .count / 2][] | \"fit\"), (.rows[.count / 2 :][] | \"held out\")]) and
    (.rows | all((.use == \"held out\") == (.source == \"Made held-out\")))' m.json"
ok 'they are told from published ones' "
    jq -e '.rows | all(has(\"measured\") and (has(\"published\") | not))' m.json &&
    jq -e '.rows | all(has(\"published\") and (has(\"use\") | not))' p.json"
ok 'the predictions are those for P-IB' "jq -c '[.rows[].predicted]' p.json > a &&
    jq -c '.rows[: .count / 2] | map(.predicted)' m.json | cmp - a &&
    jq -c '.rows[.count / 2 :] | map(.predicted)' m.json | cmp - a"
ok 'what is not modelled is counted' "jq -e '.unmodelled == 1' m.json &&
    validate | grep '1 matching rows are not modelled (first: Made rate: loaded_rtt_us on made-up)'"
ok 'nothing asked for: nothing measured is taken' "'$BELLWETHER' validate --format json > all.json &&
    jq -e '.rows | all(has(\"published\") and .platform != \"made-up\")' all.json &&
    env -u BELLWETHER_DATA '$BELLWETHER' validate --format json | cmp - all.json"
ok 'the name of a figure is enough' "'$BELLWETHER' validate --figure 'Made held-out,Table 4' --worst 99 --median 99 \
    --format json | jq -e '[.rows[].source] | unique == [\"Made held-out\", \"Table 4\"]'"
ok 'list has them beside the published ones' "'$BELLWETHER' list figures --format json > l.json &&
    jq -e 'map(select(.name == \"Made held-out\" and (.summary | test(\"^[0-9]+ measured rows\$\")))) | length == 1' \
    l.json && jq -e 'map(select(.name == \"Table 3\" and (.summary | test(\"published\")))) | length == 1' l.json"
ok 'list has the platform beside the others' "'$BELLWETHER' list platforms --format json |
    jq -e 'map(.name) | contains([\"P-IB\", \"made-up\"])'"

# ---- the summary ----
summary() {
    jq -e --arg use "$1" --arg key "$2" '([.rows[] | select(.use == $use) | .error_percent | fabs] | sort) as $e |
        ($e | length) as $n | .[$key].count == $n and (.[$key].worst_percent - $e[$n - 1] | fabs) < 0.06 and
        (.[$key].median_percent - ($e[$n / 2 - 0.5 | ceil] + $e[($n - 1) / 2 | floor]) / 2 | fabs) < 0.06' m.json
}
ok 'each group is summed up by itself' 'summary fit fit && summary "held out" held_out'
ok 'text too, and as many fitted values as rows to fit' "validate > m.txt &&
    grep -E '^[0-9]+ rows used to fit: median error [0-9.]+ %, worst [0-9.]+ %' m.txt &&
    grep -E '^[0-9]+ rows held out: median error [0-9.]+ %, worst [0-9.]+ %' m.txt &&
    grep \"^\$(jq -r '\"\\(.fitted) fitted parameters for \\(.count / 2) rows\"' m.json)\" m.txt"
ok 'each row says it' "[ \"\$(grep -c '^Made held-out .* held out ' m.txt)\" -eq \$(jq .held_out.count m.json) ] &&
    [ \"\$(grep -cE '^Made (fit|too) .* fit ' m.txt)\" -eq \$(jq .fit.count m.json) ]"
ok 'bad rows held out fail, and alone' "exits 1 validate --worst 12 --median 4 &&
    [ \$(grep -c 'past the tolerance' exits.err) -eq 1 ] && grep 'rows held out are past the tolerance' exits.err"
ok 'good rows alone pass' "validate --worst 12 --median 4 --figure 'Made fit,Made too' &&
    validate --figure 'Made fit,Made too' --format json > g.json &&
    jq -e '(has(\"held_out\") or has(\"fit\") | not) and .count > 25' g.json"
ok 'held out alone' "validate --figure 'Made held-out' > h.txt && ! grep 'used to fit' h.txt &&
    grep 'fitted parameters for 0 of these rows' h.txt"

# ---- the fit ----
ok 'rows held out change no fitted value' "validate --refit --loo --format json > f.json &&
    jq -c '[.parameters[] | [.fitted_parameter, .refit, .interval_percent]]' p.json > a &&
    jq -c '[.parameters[] | [.fitted_parameter, .refit, .interval_percent]]' f.json | cmp - a"
ok 'nor are they left out' "jq -c .left_out p.json > a && jq -c .left_out f.json | cmp - a &&
    jq -e '.rows | map(select(.use == \"held out\")) | all(.left_out_error_percent == null)' f.json"
ok 'nothing to fit to is exit 2' "exits 2 validate --figure 'Made held-out' --refit && grep 'held out' exits.err"

# ---- where completions are counted ----
proxy() {
    jq -n --arg memory "$1" '[
        { source: "Made fit", platform: "made-up", stack: "mini-proxy", metric: "put_completion_us",
          config: { bytes: 8, protocol: "baseline", completion_memory: $memory }, value: 9 },
        { source: "Made too", platform: "made-up", stack: "mini-gda", metric: "rtt_us",
          config: { bytes: 8 }, value: 7 }]'
}
for memory in gpu host; do
    proxy $memory > $rows
    validate --figure 'Made fit' --format json > $memory.json
done
ok 'a row says where completions are counted' "jq -s -e '.[0].rows[0].predicted != .[1].rows[0].predicted and
    .[0].count == 1 and .[1].count == 1' gpu.json host.json"
ok 'so --set does not' "exits 2 validate --set completion_memory=gpu && grep 'the rows say this' exits.err"

# ---- what fails ----
ok 'an unknown figure is exit 2' "exits 2 validate --figure 'Made up' &&
    grep \"figure 'Made up': no row has it\" exits.err"
jq '.fitted_to = "Made fitt"' $platform > a && mv a $platform
ok 'so is an unknown one in the platform' "exits 2 validate &&
    grep \"platform made-up: fitted_to 'Made fitt': no row has it\" exits.err"
jq '.fitted_to = 3' $platform > a && mv a $platform
ok 'a list of another kind is named' "exits 2 validate && grep -F 'made-up.json: \$.fitted_to: expected text' exits.err"
jq 'del(.fitted_to)' $platform > a && mv a $platform
ok 'without it no row is held out' "validate --format json | jq -e '.rows | length == 2 and all(has(\"use\") | not)'"
printf '[\n%s,\n%s\n]\n' \
    '{"source":"s","platform":"made-up","stack":"mini-gda","config":{},"metric":"rtt_us","value":1}' \
    '{"source":"s","platform":"made-up","stack":"mini-gda","config":{"bytes":[]},"metric":"rtt_us","value":1}' > $rows
ok 'a bad row is named by file, line and key' "exits 2 validate &&
    grep \"traces/measured/made-up.json:3: 'bytes': expected text\" exits.err && exits 2 '$BELLWETHER' list figures"
ok 'with one line' "[ ! -s exits.out ] && [ \$(grep -c '^bellwether: ' exits.err) -eq 1 ]"

report
