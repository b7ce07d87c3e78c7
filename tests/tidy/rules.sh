#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The rules of the tree, held by a test: usage rules.sh ROOT.  Prints FILE:LINE: rule, and exits 1 when one is broken.
set -u
LC_ALL=C
export LC_ALL
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:?usage: rules.sh ROOT}" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
found=$work/found
: > "$found"

rooms='core models traces calib sim hw tools tests'
for room in $rooms; do
    [ -d "$room" ] && find "$room" -type f \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \)
done | sort > "$work/sources"
{
    for room in $rooms cmake .ci; do
        [ -d "$room" ] && find "$room" -type f \( -name '*.sh' -o -name '*.awk' -o -name '*.cmake' -o \
            -name CMakeLists.txt -o -perm -u+x \)
    done
    find . -maxdepth 1 -name CMakeLists.txt
    find tools .ci -maxdepth 1 -type f ! -name '*.*' 2> /dev/null
} | sed 's|^\./||' | sort -u > "$work/scripts"
sort -u "$work/sources" "$work/scripts" > "$work/code"
{
    cat "$work/code"
    for room in $rooms docs; do
        [ -d "$room" ] && find "$room" -type f \( -name '*.json' -o -name '*.md' -o -name '*.1' -o -name '*.in' \)
    done
    find . -maxdepth 1 -type f \( -name '*.md' -o -name '*.json' -o -name '*.in' \)
} | sed 's|^\./||' | sort -u > "$work/texts"

# Code without comments and literals, as FILE:LINE:TEXT, one file a room.
while read -r file; do
    awk -f "$here/strip.awk" "$file" | awk -v f="$file" 'NF { print f ":" FNR ":" $0 }'
done < "$work/sources" > "$work/stripped"

# forbid NAME FILES-PATTERN TEXT-PATTERN [EXCEPT-PATTERN]: no stripped line of those files matches.
forbid() {
    awk -v name="$1" -v files="$2" -v text="$3" -v except="${4:-^$}" '
        {
            split($0, part, ":")
            body = substr($0, length(part[1]) + length(part[2]) + 3)
            if (part[1] ~ files && part[1] !~ except && body ~ text) print part[1] ":" part[2] ": " name ": " body
        }' "$work/stripped" >> "$found"
}

# ---- arrows ----
awk '
    BEGIN {
        may["core"] = " core "
        may["models"] = " models core "
        may["traces"] = " traces core "
        may["hw"] = " hw core "
        may["sim"] = " sim models core "
        may["calib"] = " calib models traces core "
        may["tools"] = " tools hw sim calib models traces core "
    }
    /#[ \t]*include[ \t]*"/ {
        split($0, part, ":")
        split(part[1], path, "/")
        room = path[1]
        if (!(room in may)) next
        name = $0
        sub(/^[^"]*"/, "", name)
        sub(/".*$/, "", name)
        if (name == "bell_port_impl.h") next
        to = name
        if (!sub(/\/.*$/, "", to) || index(may[room], " " to " ") == 0)
            print part[1] ":" part[2] ": " room "/ may not include \"" name "\""
    }' "$work/stripped" >> "$found"
libc='assert|ctype|errno|float|inttypes|limits|locale|math|stdalign|stdarg|stdbool|stddef'
libc="$libc|stdint|stdio|stdlib|string|time"
awk -v libc="^($libc)[.]h\$" '
    /^core\/.*#[ \t]*include[ \t]*</ {
        split($0, part, ":")
        name = $0
        sub(/^[^<]*</, "", name)
        sub(/>.*$/, "", name)
        if (name !~ libc) print part[1] ":" part[2] ": core/ includes libc only, not <" name ">"
    }' "$work/stripped" >> "$found"

# ---- tokens ----
b='(^|[^A-Za-z0-9_])'
forbid 'cJSON outside traces/' '^(core|models|calib|sim|hw|tools)/' "${b}cJSON|<cjson/"
# sg_list is a field of struct ibv_send_wr.
forbid 'SimGrid outside sim/' '^(core|models|traces|calib|hw|tools)/' \
    "${b}(sg_([^l]|l[^i]|li[^s])|simgrid_|xbt_)|<simgrid"
forbid 'verbs outside hw/' '^(core|models|traces|calib|sim|tools)/' "${b}(ibv_|mlx5dv_)|<infiniband/"
forbid 'CUDA outside hw/cuda/' '^(core|models|traces|calib|sim|tools|hw)/' \
    "${b}(cuda|cu)[A-Z]|${b}cuda_[a-z]|<cuda|__(global|device|host)__" '^hw/cuda/|^core/compiler[.]h$'
forbid 'not in core/' '^core/' "${b}(printf|fprintf|puts|fputs|malloc|calloc|realloc|free|fopen|exit)[ \t]*[(]"
forbid 'not in core/' '^core/' "${b}(pthread_|__atomic_|__sync_|asm|__asm__|_Atomic)"
forbid 'a library does not print or exit' '^(models|traces|calib|sim|hw)/' "${b}(printf|puts|exit|abort)[ \t]*[(]" \
    '[.]cu$'
forbid '__CUDACC__ outside core/compiler.h and ports' '^(core|models|traces|calib|sim|hw|tools)/' '__CUDACC__' \
    '^core/compiler[.]h$|/port/'
forbid 'threads in core/, models/, traces/, calib/ or sim/' '^(core|models|traces|calib|sim)/' "<(pthread|threads)[.]h>"

# ---- a number in C is a defect: costs are data; bounds of a wait and unit conversions are not costs ----
mv "$found" "$work/before_costs" && : > "$found"
forbid 'a cost in C' '^(core|models|sim|hw)/' \
    '[a-z0-9_]_(ps|ns|us|cycles)[ \t]*=[ \t]*([1-9]|0[.][0-9])' '[.]cu$'
forbid 'a cost in C' '^(core|models|sim|hw)/' \
    '#[ \t]*define[ \t]+[A-Z0-9_]+_(PS|NS|US|CYCLES)[ \t]+[(]?([1-9]|0[.][0-9])' '[.]cu$'
grep -v -E '_per_|_PER_|timeout|TIMEOUT|bound|BOUND' "$found" >> "$work/before_costs"
mv "$work/before_costs" "$found"

# ---- shape ----
while read -r file; do
    awk -v f="$file" '
        length($0) > 120 && f !~ /[.]awk$/ { print f ":" FNR ": longer than 120 columns" }
        FNR <= 3 && /SPDX-License-Identifier: Apache-2[.]0/ { licensed = 1 }
        /[ \t\r]$/ { print f ":" FNR ": white space at the end of the line" }
        f ~ /[.][ch]$/ && /^{/ { start = FNR }
        f ~ /[.][ch]$/ && /^}/ && start {
            if (FNR - start + 1 > 72) print f ":" start ": function longer than 70 lines"
            start = 0
        }
        END {
            if (FNR > 600) print f ":" FNR ": file longer than 600 lines"
            if (!licensed) print f ":1: no SPDX line"
        }' "$file"
done < "$work/code" >> "$found"

# Spelled in pieces, so that this file does not match itself.
markers="TO""DO|FIX""ME|XX""X|HA""CK"
places="/wo""rk/|/ro""ot/|/ho""me/"
while read -r file; do
    grep -n -E "(^|[^A-Za-z0-9_])($markers)([^A-Za-z0-9_]|\$)" "$file" | sed "s|^|$file:|; s|\$| (left-over marker)|"
    grep -n -E "(^|[^A-Za-z0-9_.}])($places)" "$file" | sed "s|^|$file:|; s|\$| (path of one machine)|"
done < "$work/texts" >> "$found"

if [ -s "$found" ]; then
    sort -u "$found"
    echo "$(sort -u "$found" | wc -l) broken rules"
    exit 1
fi
echo "$(wc -l < "$work/sources") sources, $(wc -l < "$work/texts") files: all rules hold"
