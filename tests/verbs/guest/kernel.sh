#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A Linux kernel with rdma_rxe for the guest of test_rxe.sh: usage kernel.sh FOLDER.  Prints two lines, the kernel and
# the folder with its modules.  It is one that is installed in /boot, or one that was unpacked into FOLDER before; with
# BELL_RXE_FETCH=1 the package of the distribution is downloaded and the few files that are needed are unpacked there,
# nothing is installed.  Exit 77 and one line: there is none.
set -u
folder=${1:?usage: kernel.sh FOLDER}

has_rxe() {
    [ -d "$1" ] && find "$1" -name 'rdma_rxe.ko*' 2> /dev/null | grep -q .
}

# Under $1, which is "" or FOLDER.
find_kernel() {
    for kernel in "$1"/boot/vmlinuz-*; do
        version=${kernel##*/vmlinuz-}
        [ -r "$kernel" ] || continue
        for modules in "$1/lib/modules/$version" "$1/usr/lib/modules/$version"; do
            if has_rxe "$modules"; then
                printf '%s\n%s\n' "$kernel" "$modules"
                return 0
            fi
        done
    done
    return 1
}

# What a package depends on that matches $2, the first of it.
depends() {
    apt-cache depends --important "$1" 2> /dev/null | sed -n "s/^ *Depends: \($2\)\$/\1/p" | head -n 1
}

# Debian has all modules in the image; Ubuntu has rdma_rxe in linux-modules-extra.
packages() {
    image=$(depends linux-image-amd64 'linux-image-[0-9].*')
    if [ -n "$image" ]; then
        echo "$image"
        return
    fi
    image=$(depends linux-image-generic 'linux-image-[0-9].*')
    [ -n "$image" ] || return
    version=${image#linux-image-}
    echo "$image linux-modules-$version linux-modules-extra-$version"
}

fetch() {
    wanted=$(packages)
    if [ -z "$wanted" ]; then
        echo "apt-cache knows no linux-image-amd64 or linux-image-generic"
        return 1
    fi
    rm -rf "$folder.part"
    mkdir -p "$folder.part/deb" || return 1
    # shellcheck disable=SC2086
    if ! (cd "$folder.part/deb" && apt-get -q -o APT::Sandbox::User=root -o Acquire::http::Timeout=30 \
        download $wanted) > "$folder.part/log" 2>&1; then
        echo "apt-get download $wanted failed: $(tail -n 1 "$folder.part/log")"
        return 1
    fi
    for deb in "$folder.part"/deb/*.deb; do
        # A package that holds none of them is no error here; what is missing shows below.
        dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$folder.part" --wildcards '*/boot/vmlinuz-*' \
            '*/kernel/drivers/infiniband/core/*' '*/kernel/drivers/infiniband/sw/rxe/*' '*/kernel/net/ipv[46]/*' \
            '*/kernel/drivers/net/dummy.ko*' '*/kernel/crypto/crc32*' '*/kernel/lib/*' 2> /dev/null
    done
    rm -rf "$folder.part/deb" "$folder"
    mv "$folder.part" "$folder"
    find_kernel "$folder" > /dev/null && return 0
    echo "$wanted: no kernel with rdma_rxe was in it"
    return 1
}

find_kernel "" && exit 0
find_kernel "$folder" && exit 0
if [ "${BELL_RXE_FETCH:-0}" != 1 ]; then
    echo 'skipped: no kernel with rdma_rxe in /boot and /lib/modules; BELL_RXE_FETCH=1 downloads one (70 MB on Debian)'
    exit 77
fi
if ! why=$(fetch); then
    echo "skipped: no kernel with rdma_rxe: $why"
    exit 77
fi
find_kernel "$folder"
