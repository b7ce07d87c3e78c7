#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# First process of the guest: mounts, modules, a Soft-RoCE device on a dummy interface, then the cases.  What came of
# them goes to qemu's isa-debug-exit device, in codes that qemu itself never ends with.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
exec < /dev/console > /dev/console 2>&1

# 42: passed, 43: failed; qemu ends with twice that and one more.
finish() {
    echo "guest: $1 after $(cut -d ' ' -f 1 /proc/uptime) s"
    code='\053'
    [ "$1" != passed ] || code='\052'
    [ ! -c /dev/port ] || printf "$code" | dd of=/dev/port bs=1 seek=244 count=1 2> /dev/null
    poweroff -f
}

while read -r module; do
    insmod "/modules/$module" || echo "guest: insmod $module failed"
done < /modules/order
ulimit -l unlimited
for name in lo rxenet; do
    [ "$name" = lo ] || /tools/ip link add "$name" type dummy || finish "failed (no dummy interface)"
    [ "$name" = lo ] || /tools/ip addr add 10.9.0.1/24 dev "$name"
    # 4096 bytes of payload fit a packet.
    [ "$name" = lo ] || /tools/ip link set "$name" mtu 4200
    /tools/ip link set "$name" up
done
/tools/rdma link add rxe0 type rxe netdev rxenet || finish "failed (rdma link add)"
# Device file and GIDs come a moment later.
tries=0
until [ -c /dev/infiniband/uverbs0 ] && grep -q . /sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/1 2> /dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || finish "failed (rxe0 has no device file or GID)"
    sleep 0.1
done
echo "guest: rxe0 after $(cut -d ' ' -f 1 /proc/uptime) s, Linux $(uname -r)"
if sh /cases.sh; then finish passed; else finish failed; fi
