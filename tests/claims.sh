# SPDX-License-Identifier: Apache-2.0
# What the script tests share: sourced as `. "${BELL_SOURCE_DIR:?}/tests/claims.sh"`, after which the script is in an
# empty folder of its own.  A claim counts itself in count, and in failed when it does not hold; end with `report`.
if [ ! -x "${BELLWETHER:?}" ]; then
    echo "skipped: $BELLWETHER was not built"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
count=0
failed=0

# Skip the whole test without this program.
needs() {
    command -v "$1" > /dev/null && return
    echo "skipped: $1 is not installed"
    exit 77
}

# ok CLAIM COMMANDS
ok() {
    count=$((count + 1))
    if ! eval "$2" > ok.out 2>&1; then
        failed=$((failed + 1))
        echo "not so: $1"
        head -n 5 ok.out
    fi
}

# The exit status of a command is $1.
exits() {
    expected=$1
    shift
    "$@" > exits.out 2> exits.err
    [ $? -eq "$expected" ] || { cat exits.err; return 1; }
}

report() {
    echo "$count claims, $failed failed"
    [ "$count" -gt 0 ] && [ "$failed" -eq 0 ]
}
