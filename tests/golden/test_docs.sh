#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The docs do not rot: every command of the tool in a ```sh block of README.md and docs/ ends with 0, and every relative
# link leads to a file (and to a heading, where it names one).
set -u
: "${BELL_SOURCE_DIR:?}"
if [ ! -x "${BELLWETHER:?}" ]; then
    echo "skipped: $BELLWETHER was not built"
    exit 77
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# Lines of ```sh blocks that run the tool, without comments.
commands_of() {
    awk '
        /^```/ { inside = !inside && $0 == "```sh"; next }
        inside && /^build\/release\/bellwether / { print }' "$1"
}

# Targets of [text](target) and ![text](target) outside of code, without those on the web.
links_of() {
    awk '
        /^```/ { code = !code; next }
        code { next }
        {
            gsub(/`[^`]*`/, "")
            while (match($0, /\]\([^) ]+\)/)) {
                print substr($0, RSTART + 2, RLENGTH - 3)
                $0 = substr($0, RSTART + RLENGTH)
            }
        }' "$1" | grep -v '^[a-z]*:'
}

# Headings as the anchors that a forge makes of them.
anchors_of() {
    awk '/^```/ { code = !code } !code && /^#+ /' "$1" | sed 's/^#* //' | tr 'A-Z' 'a-z' |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

# Prints what is wrong with the links of a file.
check_links() {
    links_of "$1" | while read -r link; do
        target=${link%%#*}
        file=$1
        if [ -n "$target" ]; then file=$(dirname "$1")/$target; fi
        if [ ! -e "$file" ]; then
            echo "$1: no such file: $link"
        elif [ "$link" != "$target" ] && ! anchors_of "$file" | grep -q -x -F "${link#*#}"; then
            echo "$1: no such heading: $link"
        fi
    done
}

# Runs a command of the docs in the work folder.
run_command() {
    rest=${1#build/release/bellwether }
    (cd "$work" && BELLWETHER=$BELLWETHER sh -c "\"\$BELLWETHER\" $rest" > "$work/out" 2>&1 < /dev/null)
}

# ---- this script finds what is wrong ----
printf '%s\n' '# One' '[a](gone.md) [b](#two) [c](#one)' '```sh' 'build/release/bellwether run no-such' '```' '```' \
    'build/release/bellwether never' '```' > "$work/bad.md"
if [ "$(check_links "$work/bad.md" | wc -l)" -ne 2 ] || [ "$(commands_of "$work/bad.md" | wc -l)" -ne 1 ] ||
    run_command "$(commands_of "$work/bad.md")"; then
    echo 'the checks of this test find nothing'
    exit 1
fi

cd "$BELL_SOURCE_DIR" || exit 2
documents=$(find README.md docs traces -name '*.md' | sort)
for document in $documents; do check_links "$document"; done > "$work/wrong"
# The same command in two places is run once.
for document in $documents; do commands_of "$document"; done | awk '!seen[$0]++' > "$work/commands"
if [ "$(wc -l < "$work/commands")" -lt 10 ]; then echo 'too few commands were found' >> "$work/wrong"; fi
while read -r command; do
    run_command "$command"
    status=$?
    if [ "$status" -ne 0 ]; then
        echo "exit $status: $command" >> "$work/wrong"
        tail -n 5 "$work/out" >> "$work/wrong"
    fi
done < "$work/commands"
cat "$work/wrong"
echo "$(wc -l < "$work/commands") commands and the links of $(echo "$documents" | wc -l) documents"
[ ! -s "$work/wrong" ]
