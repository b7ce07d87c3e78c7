#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Applies each mutation of list.txt alone to a copy of the tree, and prints the first test that notices; the checker of
# schedules is asked first.  Exits 1 when one survives, cannot be built, or matches no longer exactly once.
# usage: run.sh [WORD]: only mutations whose line holds WORD.  CC is the compiler.
set -u
LC_ALL=C
export LC_ALL
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
word=${1:-}
cc=${CC:-cc}
flags='-std=c11 -D_GNU_SOURCE -g -O2 -w -I.'
tree=$(mktemp -d) || exit 2
trap 'rm -rf "$tree"' EXIT
for room in core hw traces tests models; do
    cp -R "$root/$room" "$tree/$room" || exit 2
done
cd "$tree" || exit 2

# compile OUT FLAGS...: quietly; what the compiler says is in $tree/said
compile() {
    out=$1
    shift
    # shellcheck disable=SC2086 # words on purpose
    $cc $flags "$@" -o "$out" > said 2>&1
}

# What no mutation touches is compiled once.
for source in core/event.c core/field.c core/program.c core/stack.c core/status.c traces/*.c; do
    compile "base_$(basename "$source" .c).o" -Ihw/soft/port -c "$source" || { cat said; exit 2; }
    compile "thread_$(basename "$source" .c).o" -fsanitize=thread -Ihw/soft/port -c "$source" || { cat said; exit 2; }
done
for source in explore memory table; do
    compile "check_$source.o" -Itests/interleave/port -c "tests/interleave/$source.c" || { cat said; exit 2; }
done

build() {
    case $1 in
    unit_*)
        compile "$1" -Ihw/soft/port "tests/unit/test_${1#unit_}.c" core/world.c hw/soft/*.c base_*.o \
            -lcmocka -lcjson -lpthread -lm ;;
    interleave_*)
        compile "$1" -Itests/interleave/port "tests/interleave/test_$1.c" tests/interleave/queue.c check_*.o -lcmocka ;;
    stress)
        compile "$1" -fsanitize=thread -Ihw/soft/port tests/stress/test_soft_stress.c core/world.c hw/soft/*.c \
            thread_*.o -lcmocka -lcjson -lpthread -lm ;;
    esac
}

# Whether a test fails, or hangs: 0 it does, 1 it passes, 2 it cannot be built.
fails() {
    rm -f "$1"
    build "$1" || return 2
    case $1 in unit_*) limit=20 ;; *) limit=300 ;; esac
    TSAN_OPTIONS=halt_on_error=1 timeout "$limit" "./$1" > said 2>&1 && return 1
    return 0
}

for test in interleave_sq interleave_proxy unit_sq unit_proxy unit_nic stress; do
    fails "$test"
    case $? in
    0) echo "$test fails without any mutation:"; tail -20 said; exit 2 ;;
    2) echo "$test cannot be built:"; cat said; exit 2 ;;
    esac
done

# judge NAME TESTS...: prints the line.
judge() {
    mutation=$1
    shift
    for test in "$@"; do
        fails "$test"
        case $? in
        0) echo "$mutation: $test"; return 0 ;;
        2) echo "$mutation: CANNOT BE BUILT: $(grep -m1 error: said)"; return 1 ;;
        esac
    done
    echo "$mutation: SURVIVED"
    return 1
}

bad=0
count=0
sed 's/ @@ */@/g; s/@$/@ /' "$here/list.txt" > list
while IFS=@ read -r name file function text by; do
    case $name in '#'* | '') continue ;; esac
    case "$name $file $function" in *"$word"*) ;; *) continue ;; esac
    count=$((count + 1))
    MUTATE_TEXT=$text MUTATE_BY=$by awk -v name="$function" -f "$here/mutate.awk" "$file" > mutated || {
        echo "$name: NOT FOUND EXACTLY ONCE in $function of $file"
        bad=$((bad + 1))
        continue
    }
    case $by in equivalent:*) echo "$name: $by"; continue ;; esac
    cp "$file" clean
    cp mutated "$file"
    case $file in
    hw/soft/*) judge "$name" stress ;;
    core/proxy.h) judge "$name" interleave_proxy unit_proxy stress ;;
    core/nic.h) judge "$name" unit_nic interleave_sq stress ;;
    *) judge "$name" interleave_sq unit_sq interleave_proxy stress ;;
    esac || bad=$((bad + 1))
    cp clean "$file"
done < list
echo "$count mutations, $bad not caught"
[ "$count" -gt 0 ] && [ "$bad" -eq 0 ]
