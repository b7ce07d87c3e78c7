#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Executor `verbs` against the real libibverbs and the kernel's Soft-RoCE, in a guest that qemu emulates: no RDMA NIC,
# no KVM and no module of this machine's kernel is needed.  With BELL_RXE_FETCH=1 the guest's kernel is downloaded into
# BELL_RXE_KERNEL (default: the build folder) when there is none; see guest/kernel.sh.  BELL_RXE_KEEP=1 keeps the work
# folder, BELL_RXE_SECONDS bounds the guest.
set -u
: "${BELL_SOURCE_DIR:?}" "${BELL_BINARY_DIR:?}" "${BELLWETHER:?}"
PATH=$PATH:/usr/sbin:/sbin
here=$BELL_SOURCE_DIR/tests/verbs/guest
cases=$BELL_BINARY_DIR/tests/bell_verbs_cases
work=$(mktemp -d) || exit 2
root=$work/root
guest=
guest_seconds=${BELL_RXE_SECONDS:-400}

clean_up() {
    # `timeout` passes the signal on to qemu.
    if [ -n "$guest" ] && kill "$guest" 2> /dev/null; then wait "$guest" 2> /dev/null; fi
    if [ "${BELL_RXE_KEEP:-0}" = 1 ]; then echo "kept: $work"; else rm -rf "$work"; fi
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

skip() {
    echo "skipped: $1"
    exit 77
}

# need COMMAND PACKAGE
need() {
    command -v "$1" > /dev/null || skip "$1 is not installed: apt-get install --no-install-recommends $2"
}

if [ "$(uname -m)" != x86_64 ]; then skip "the guest is x86_64, this machine $(uname -m)"; fi
if [ ! -x "$BELLWETHER" ]; then skip "$BELLWETHER was not built"; fi
if [ ! -x "$cases" ]; then skip 'built without libibverbs: apt-get install libibverbs-dev'; fi
need qemu-system-x86_64 qemu-system-x86
need busybox busybox-static
need cpio cpio
need modinfo kmod
need ip iproute2
need rdma iproute2
busybox=$(command -v busybox)
if ldd "$busybox" > /dev/null 2>&1; then skip 'busybox is not static: apt-get install busybox-static'; fi
provider=$(find /usr/lib /usr/lib64 -path '*/libibverbs/librxe-rdmav*.so' 2> /dev/null | head -n 1)
if [ -z "$provider" ]; then skip 'librxe is not installed: apt-get install ibverbs-providers'; fi
found=$(sh "$here/kernel.sh" "${BELL_RXE_KERNEL:-$BELL_BINARY_DIR/rxe-kernel}")
status=$?
if [ "$status" -ne 0 ]; then
    echo "$found"
    exit "$status"
fi
kernel=$(echo "$found" | sed -n 1p)
modules=$(echo "$found" | sed -n 2p)

# ---- the initramfs ----

mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys" "$root/modules" "$root/tools" "$root/bell" \
    "$root/etc/libibverbs.d" "$root$BELL_SOURCE_DIR"

# add FILE DESTINATION: with the libraries that it needs, which keep their places.
add() {
    mkdir -p "$root$(dirname "$2")"
    cp -L "$1" "$root$2" || exit 2
    ldd "$1" 2> /dev/null | grep -o '/[^ ()]*' | while read -r library; do
        [ -e "$root$library" ] && continue
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
}

# add_module NAME: those it depends on first.  What is not there as a file is built in.
add_module() {
    file=$(find "$modules" -name "$1.ko*" | head -n 1)
    [ -n "$file" ] || file=$(find "$modules" -name "$(echo "$1" | tr _ -).ko*" | head -n 1)
    if [ -z "$file" ] || [ -e "$root/modules/$1.ko" ]; then return 0; fi
    case $file in
    *.xz) xz -dc "$file" > "$root/modules/$1.ko" ;;
    *.zst) zstd -dcq "$file" > "$root/modules/$1.ko" ;;
    *.gz) gzip -dc "$file" > "$root/modules/$1.ko" ;;
    *) cp "$file" "$root/modules/$1.ko" ;;
    esac || skip "$file cannot be unpacked: apt-get install xz-utils zstd"
    name=$1
    for needed in $(modinfo -F depends "$root/modules/$name.ko" | tr ',' ' '); do
        # In a shell of its own, for `name` and `file` are ours.
        (add_module "$needed") || exit $?
    done
    echo "$name.ko" >> "$root/modules/order"
}

cp "$busybox" "$root/bin/busybox"
cp "$here/init.sh" "$root/init"
cp "$here/cases.sh" "$root/cases.sh"
chmod 755 "$root/init"
# rdma_rxe asks the kernel for "crc32" by name, so no module depends on it.
for module in crc32_generic dummy rdma_rxe; do add_module "$module"; done
grep -q '^rdma_rxe' "$root/modules/order" || skip "$modules holds no rdma_rxe that can be read"
add "$(command -v ip)" /tools/ip
add "$(command -v rdma)" /tools/rdma
add "$BELLWETHER" /bell/bellwether
add "$cases" /bell/cases
add "$provider" "$provider"
echo 'driver rxe' > "$root/etc/libibverbs.d/rxe.driver"
cp -R "$BELL_SOURCE_DIR/models" "$root$BELL_SOURCE_DIR/"
# glibc loads it when a thread ends.
library=$(ldconfig -p 2> /dev/null | sed -n 's|.*libgcc_s.so.1 .*x86-64.* => ||p' | head -n 1)
[ -z "$library" ] || add "$library" "$library"
# What a build with sanitizers was told.
{
    echo "export ASAN_OPTIONS='${ASAN_OPTIONS:-}'"
    echo "export UBSAN_OPTIONS='${UBSAN_OPTIONS:-}'"
    echo "export LSAN_OPTIONS='detect_leaks=${BELL_RXE_LEAKS:-1}:suppressions=/lsan.supp:print_suppressions=0'"
} > "$root/environment"
cp "$BELL_SOURCE_DIR/tests/lsan.supp" "$root/lsan.supp"
(cd "$root" && find . | cpio -o -H newc -R 0:0 --quiet | gzip -1) > "$work/initramfs" || exit 2

# ---- the guest ----

# TCG by name: a /dev/kvm that opens may still not run a stock kernel.  Without erms and fsrm, whose emulation makes
# bulk copies slow.  Two CPUs, each a thread: two threads that poll need them.
timeout -k 5 "$guest_seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max,-erms,-fsrm -smp 2 -m 1024 \
    -machine q35 -kernel "$kernel" -initrd "$work/initramfs" -append 'console=ttyS0 quiet panic=-1' \
    -display none -monitor none -serial stdio -nodefaults -no-user-config -no-reboot \
    -device isa-debug-exit,iobase=0xf4,iosize=0x01 < /dev/null > "$work/console" 2>&1 &
guest=$!
wait "$guest"
status=$?
guest=
tr -d '\r' < "$work/console" | grep -a -v '^$'
case $status in
85) echo 'passed in the guest' ;;
87) echo 'a case failed in the guest' ;;
124 | 137) echo "the guest was not done after $guest_seconds s" ;;
*) echo "the guest did not report; qemu ended with $status" ;;
esac
[ "$status" -eq 85 ]
