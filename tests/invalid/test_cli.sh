#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Wrong input to the command: one line on standard error that says what is wrong, the exit status, no half-made file.
set -u
. "${BELL_SOURCE_DIR:?}/tests/claims.sh"
source=${BELL_SOURCE_DIR:?}

# expect STATUS PATTERN ARGUMENTS...: exactly one line on standard error, which matches the extended pattern.
expect() {
    status=$1
    pattern=$2
    shift 2
    count=$((count + 1))
    "$BELLWETHER" "$@" > out 2> all
    got=$?
    # A sanitizer warns when a simulated lane's own stack is left for good.
    sed '/ASan is ignoring requested __asan_handle_no_return/,/^For details see/d' all > err
    lines=$(wc -l < err)
    if [ "$got" -ne "$status" ] || [ "$lines" -ne 1 ] || ! grep -E -q -e "$pattern" err; then
        failed=$((failed + 1))
        echo "bellwether $*"
        echo "  expected exit $status, one line like: $pattern"
        echo "  found exit $got, $lines lines: $(head -n 3 err)"
    fi
}

# document NAME FILTER: a copy of the experiment one-op, changed by sed.
document() {
    sed "$2" "$source/models/experiments/one-op.json" > "$1"
}

# ---- command and options ----
expect 2 'expected a command; see bellwether help'
expect 2 "'rum' is not a command, did you mean run; see bellwether help" rum
expect 2 "'zzzzzz' is not a command; see" zzzzzz
expect 2 "unknown option '--zzz'; see bellwether help run" run one-op --zzz
expect 2 "unknown option '--platfrom', did you mean --platform" run one-op --platfrom P-IB
expect 2 "unknown option '-x'" run one-op -x
expect 2 "unknown option '--zzz'" check --zzz
expect 2 "help: 'rum' is not a command, did you mean run" help rum
expect 2 'run: expected EXPERIMENT' run
expect 2 "run: unexpected argument 'two'" run one-op two
expect 2 'run: --platform: expected P after it' run one-op --platform
expect 2 'run: --platform: expected P, found nothing' run one-op --platform ''
expect 2 "run: --format: 'xml' is unknown, expected text, json or csv" run one-op --format xml
expect 2 "run: --seed: '-1' is not a whole number" run one-op --seed -1
expect 2 "run: --seed: '9007199254740992' is not a whole number" run one-op --seed 9007199254740992
expect 2 "run: --max-events: '3k' is not a whole number" run one-op --max-events 3k
expect 2 '--max-events: nothing is traced without -o' run one-op --max-events 3
expect 2 'diff: --normalize takes no value' diff --normalize=yes a b
expect 2 'diff: expected A B' diff a
expect 2 'check: expected TRACE' check
expect 2 "list: 'platform' is not listed, did you mean platforms" list platform
expect 2 'list: --platform and --stack are for list parameters' list stacks --platform P-IB
expect 2 "doctor: unexpected argument 'gpu'" doctor gpu
expect 2 "doctor: --format: 'xml' is unknown, expected text, json or csv" doctor --format xml
expect 2 "doctor: unknown option '--root'" doctor --root /

# ---- names ----
expect 2 "'one-oq' is not a known experiment, did you mean one-op; known: message-rate, one-op, probe, round-trip" \
    run one-oq
expect 2 "'P-IX' is not a known platform, did you mean P-IB; known: H200-soft, P-GB200, P-IB" run one-op --platform P-IX
expect 2 "'' is not a known platform|expected P" run one-op --platform=
expect 2 "'mini' is not a known stack, did you mean mini-gda; known: mini-gda, mini-proxy" run one-op --stack mini
expect 2 "'sims' .* executor, did you mean sim; known: null, soft, cuda, verbs, mlx5, sim" run one-op --on sims
expect 2 'executor sim needs --platform; see bellwether list platforms' run one-op --on sim
expect 2 'executor soft does not use a platform' run one-op --on soft --platform P-IB
expect 2 'executor null does not use a platform' run one-op --on null --platform P-IB

# ---- --set ----
expect 2 '--set bytes: expected KEY=VALUE' run one-op --set bytes
expect 2 '--set =8: expected KEY=VALUE' run one-op --set =8
expect 2 '--set experiment.byte: no such parameter, did you mean experiment.bytes' run one-op --set experiment.byte=8
expect 2 '--set zzzzzz: no such parameter; see bellwether list parameters' run one-op --set zzzzzz=8
expect 2 '--set platform.name: no such parameter' run one-op --platform P-IB --set platform.name=8
expect 2 "--set bytes=many: bytes: 'many' is not a number" run one-op --set bytes=many
expect 2 '--set bytes=1e30: bytes: .* is out of range' run one-op --set bytes=1e30
expect 2 '--set bytes=9.5: bytes: 9.5 is not a whole number' run one-op --set bytes=9.5
expect 2 '--set bytes=0.1x: bytes: .*out of range' run one-op --set bytes=0.1x
expect 2 '--set bytes=nan: bytes: nan is out of range' run one-op --set bytes=nan
expect 2 "--set bytes=: bytes: '' is not a number" run one-op --set bytes=
expect 2 "--set ordering=2x: ordering: '2x' is unknown, expected one of: none, gpu-fence" run one-op --set ordering=2x
expect 2 "--set blueflame=1: blueflame: '1' is neither true nor false" run one-op --set blueflame=1
expect 2 '--set platform.gpu.clock_mhz: nothing uses it without --platform' \
    run one-op --on soft --set platform.gpu.clock_mhz=1
expect 2 '--set gpu.clock_mhz: nothing uses it without --platform' run one-op --set gpu.clock_mhz=1000
expect 2 'one-op on stack mini-gda: bytes: 12 is not a multiple of 8' run one-op --set bytes=12
expect 2 'stack mini-gda: depth: 3 is not a power of two' run one-op --set depth=3
expect 2 'one-op on stack mini-gda: sharing: 2 lanes a queue' run one-op --set lanes=2
expect 2 'stack mini-proxy: queue_memory: .*expected host' run one-op --stack mini-proxy --set queue_memory=gpu

# ---- documents ----
expect 2 './none.json: .*No such file' run ./none.json
expect 2 'none.json: .*No such file' run none.json
mkdir folder.json
expect 2 'folder.json: .*(directory|not a regular file)' run ./folder.json
: > empty.json
expect 2 'empty.json' run ./empty.json
document schema.json 's|bell.experiment/1|bell.experiment/9|'
expect 2 'schema.json: [$].schema: expected "bell.experiment/1", found bell.experiment/9' run ./schema.json
expect 2 'mini-gda.json: [$].schema: expected "bell.experiment/1"' run "$source/models/stacks/mini-gda.json"
document key.json 's|"bytes"|"bites"|'
expect 2 'key.json: [$].parameters.bites: unknown key' run ./key.json
document value.json 's|"bytes": 8|"bytes": "8"|'
expect 2 'value.json: [$].parameters.bytes: expected a whole number, found' run ./value.json
document range.json 's|"bytes": 8|"bytes": 7|'
expect 2 'range.json: [$].parameters.bytes: .*7 is out of range' run ./range.json
document twice.json 's|"bytes": 8|"bytes": 8, "bytes": 16|'
expect 2 'twice.json: [$].parameters.bytes: duplicate key' run ./twice.json
document missing.json 's|"pattern": "one-op",||'
expect 2 'missing.json: [$].pattern: missing' run ./missing.json
document trailing.json '$s|$| junk|'
expect 2 'trailing.json' run ./trailing.json
head -c 60 "$source/models/experiments/one-op.json" > cut.json
expect 2 'cut.json' run ./cut.json
printf '{"schema": "bell.experiment/1", \377}' > utf8.json
expect 2 'utf8.json:1: ' run ./utf8.json
document long.json 's|"name": "one-op"|"name": "a-name-of-more-than-twenty-three"|'
expect 2 'long.json: [$].name: .*longer than 23 characters' run ./long.json

# ---- runs that fail leave no file ----
expect 1 'nowhere/t.json: cannot create: No such file' run one-op -o nowhere/t.json
expect 1 'folder.json: is a directory' run one-op -o folder.json
expect 1 '(poll|complet|NIC|queue)' run one-op --platform P-IB --set fault=silent -o silent.json
expect 1 'syndrome' run one-op --platform P-IB --set fault=bad-key -o bad-key.json
for file in silent.json* bad-key.json*; do
    if [ -e "$file" ]; then
        failed=$((failed + 1))
        echo "a failed run left $file"
    fi
done

# ---- traces ----
"$BELLWETHER" run one-op --on null --set iterations=4 --set warmup=0 -o good.json > out || failed=$((failed + 1))
expect 2 'none.json: .*No such file' check none.json
expect 2 'folder.json' check folder.json
expect 2 'empty.json:[01]: expected a trace' check empty.json
expect 2 'key.json:1: expected a trace' check key.json
head -c 200 good.json > cut-trace.json
expect 2 'cut-trace.json:2: ' check cut-trace.json
{ cat good.json; echo junk; } > junk-trace.json
expect 2 'junk-trace.json:[0-9]+: .*nothing after' check junk-trace.json
sed 's|bell.trace/1|bell.trace/9|' good.json > schema-trace.json
expect 2 'schema-trace.json:2: .*bell.trace/1' check schema-trace.json
sed '/"name":"fence"/d' good.json > gap-trace.json
expect 1 'gap-trace.json:[0-9]+: event [0-9]+: seq-order: ' check gap-trace.json
expect 2 'none.json: .*No such file' diff good.json none.json
expect 2 'cut-trace.json:[0-9]+: ' diff good.json cut-trace.json
# What a run left that was cut off later can be checked as far as it goes.
head -c 1500 good.json > cut-later.json
count=$((count + 1))
if ! "$BELLWETHER" check cut-later.json | grep -q 'cut off' || "$BELLWETHER" diff good.json cut-later.json > out; then
    failed=$((failed + 1))
    echo 'a trace that was cut off between events was not told from a whole one'
fi
# One bad file does not hide the next.
"$BELLWETHER" check good.json gap-trace.json good.json > out 2> err
if [ $? -ne 1 ] || [ "$(grep -c ': OK, ' out)" -ne 2 ]; then
    failed=$((failed + 1))
    echo 'check of three files, one bad, did not report all three'
fi

# ---- standard output ----
for command in list help 'run one-op --on null' 'list parameters --format json'; do
    count=$((count + 1))
    # shellcheck disable=SC2086
    "$BELLWETHER" $command > /dev/full 2> err
    if [ $? -ne 1 ] || ! grep -q 'standard output cannot be written: No space' err; then
        failed=$((failed + 1))
        echo "bellwether $command on a full disk: $(cat err)"
    fi
done
count=$((count + 1))
"$BELLWETHER" run one-op --on null -o closed.json >&- 2> err
if [ $? -ne 1 ] || ! grep -q 'standard output is closed' err || [ -e closed.json ]; then
    failed=$((failed + 1))
    echo "bellwether with standard output closed: $(cat err)"
fi

report
