#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles alone: usage headers.sh ROOT gcc|clang|cxx|cuda.  Exit 77: that compiler is not here.
set -u
cd "${1:?usage: headers.sh ROOT READER}" || exit 2
reader=${2:?usage: headers.sh ROOT READER}
port=hw/soft/port
strict='-Wall -Wextra -Wpedantic -Werror'
case $reader in
gcc) compiler=gcc ;;
clang) compiler=clang ;;
cxx) compiler=g++ ;;
cuda) compiler=nvcc ;;
*) echo "no such reader: $reader"; exit 2 ;;
esac
if ! command -v "$compiler" > /dev/null; then
    echo "skipped: $compiler is not installed"
    exit 77
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
rooms='core models traces'
case $reader in cxx | cuda) rooms=core ;; esac
headers=$(find $rooms -maxdepth 1 -name '*.h' | sort)

needs_port() {
    ! echo "#include \"$1\"" | gcc -x c -std=c11 -D_GNU_SOURCE -I. -E - > /dev/null 2>&1
}

failed=0
count=0
for header in $headers; do
    count=$((count + 1))
    echo "#include \"$header\"" > "$work/alone.c"
    case $reader in
    cxx)
        cp "$work/alone.c" "$work/alone.cpp"
        g++ -std=c++17 $strict -fsyntax-only -I$port -I. "$work/alone.cpp" || failed=$((failed + 1))
        ;;
    cuda)
        # The port that the device compiles is the CUDA one; without it only headers that need none are read.
        needs_port "$header" || cat "$work/alone.c" >> "$work/all.cu"
        ;;
    *)
        $compiler -std=c11 -D_GNU_SOURCE $strict -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
            -fsyntax-only -I$port -I. "$work/alone.c" || failed=$((failed + 1))
        ;;
    esac
done
if [ "$reader" = cuda ] && [ -s "$work/all.cu" ]; then
    count=$(wc -l < "$work/all.cu")
    nvcc -std=c++17 -arch=sm_90 -I. -ptx -o "$work/all.ptx" "$work/all.cu" || failed=1
fi
echo "$compiler: $count headers, $failed failed"
[ "$failed" -eq 0 ]
