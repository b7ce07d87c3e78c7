#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs to an empty prefix, then does what a user of the library does: pkg-config, compile, link, run.
# usage: install_and_link.sh BUILD SOURCE COMPILER [SANITIZERS]
set -eu
build=${1:?}
source=${2:?}
compiler=${3:?}
sanitize=${4:+-fsanitize=$4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }

# The .pc file holds the prefix given at configure time, so say where it lies now.
pc=$(find "$work/prefix" -name bellwether.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
flags=$(pkg-config --define-variable=prefix="$work/prefix" --cflags --libs bellwether)
case " $flags " in
*" -I$work/prefix/include/bellwether "*) ;;
*) echo "pkg-config does not point into the prefix: $flags"; exit 1 ;;
esac
mkdir "$work/elsewhere"
cd "$work/elsewhere"
# shellcheck disable=SC2086
"$compiler" -std=c11 -Wall -Werror $sanitize -o user "$source/tests/install/user.c" $flags
LD_LIBRARY_PATH=$(dirname "$(dirname "$pc")") ./user

for file in share/man/man1/bellwether.1; do
    [ -s "$work/prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
for folder in models traces/reference traces/measured; do
    (cd "$source" && find $folder -name '*.json') | while read -r file; do
        cmp -s "$source/$file" "$work/prefix/share/bellwether/$file" || { echo "not installed: $file"; exit 1; }
    done
done
if [ -x "$work/prefix/bin/bellwether" ]; then
    "$work/prefix/bin/bellwether" help > "$work/help" || { echo "the installed command does not start"; exit 1; }
    [ -s "$work/help" ] || { echo "help is empty"; exit 1; }
fi
