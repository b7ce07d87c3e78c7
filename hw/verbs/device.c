/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/verbs/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SOFT_VENDOR 0xffffffu /* rdma_rxe's vendor_id: RXE_VENDOR_ID in drivers/infiniband/sw/rxe/rxe_param.h */

static enum bell_status list_devices(struct ibv_device ***list, int *count, struct bell_error *err)
{
    *count = 0;
    *list = ibv_get_device_list(count);
    if (!*list)
        return bell_fail(err, BELL_UNSUPPORTED, "no RDMA device: ibv_get_device_list: %s",
                         errno == ENOSYS ? "the kernel has no RDMA devices" : strerror(errno));
    if (*count > 0) return BELL_OK;
    ibv_free_device_list(*list);
    *list = NULL;
    return bell_fail(err, BELL_UNSUPPORTED,
                     "no RDMA device: /sys/class/infiniband lists none that libibverbs has a "
                     "provider for (docs/verbs.md shows Soft-RoCE)");
}

enum bell_status bell_verbs_probe(struct bell_error *err)
{
    struct ibv_device **list;
    int count;
    enum bell_status s = list_devices(&list, &count, err);
    if (s == BELL_OK) ibv_free_device_list(list);
    return s;
}

/* ---- what kind of device ---- */

/* The last part of what a link under the device's folder in sysfs points to; false: no such link. */
static bool read_link_name(const struct ibv_device *device, const char *link, char *out, size_t size)
{
    char path[IBV_SYSFS_PATH_MAX + 32], target[512];
    (void)snprintf(path, sizeof path, "%s/%s", device->ibdev_path, link);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0) return false;
    target[n] = '\0';
    const char *slash = strrchr(target, '/');
    (void)snprintf(out, size, "%.*s", (int)size - 1, slash ? slash + 1 : target);
    return true;
}

static int read_numa_node(const struct ibv_device *device)
{
    char path[IBV_SYSFS_PATH_MAX + 32], line[16] = "";
    (void)snprintf(path, sizeof path, "%s/device/numa_node", device->ibdev_path);
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    bool is_read = fgets(line, sizeof line, f) != NULL;
    (void)fclose(f);
    return is_read ? (int)strtol(line, NULL, 10) : -1;
}

/* A device of a bus has a driver.  One without is software; rdma_rxe says so by its vendor, too. */
static void tell_kind(struct bell_verbs_device *d, const struct ibv_device *device)
{
    struct ibv_device_attr attr;
    memset(&attr, 0, sizeof attr);
    bool is_rxe = ibv_query_device(d->context, &attr) == 0 && attr.vendor_id == SOFT_VENDOR;
    bool has_driver = read_link_name(device, "device/driver", d->driver, sizeof d->driver);
    d->is_software = is_rxe || !has_driver;
    if (is_rxe) (void)snprintf(d->driver, sizeof d->driver, "rdma_rxe");
    d->numa_node = read_numa_node(device);
}

/* ---- port and GID ---- */

/* Why a GID is better than another: it can be routed by IP, and RoCE v2 is what switches and rdma_rxe speak. */
static int rank_gid(const struct ibv_gid_entry *e)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    static const uint8_t none[16] = { 0 };
    if (memcmp(e->gid.raw, none, sizeof none) == 0) return 0;
    bool is_mapped = memcmp(e->gid.raw, mapped, sizeof mapped) == 0, is_v2 = e->gid_type == IBV_GID_TYPE_ROCE_V2;
    return is_mapped ? 3 + is_v2 : 1 + is_v2;
}

static enum bell_status pick_gid(struct bell_verbs_device *d, const struct ibv_port_attr *port, uint32_t wanted,
                                 struct bell_error *err)
{
    struct ibv_gid_entry entry;
    int best = 0;
    bool is_any = wanted == BELL_GID_ANY;
    d->address.has_global = d->address.is_roce || !is_any;
    if (!d->address.has_global) return BELL_OK;
    if (!is_any && wanted >= (uint32_t)port->gid_tbl_len)
        return bell_fail(err, BELL_INVALID, "machine.gid: %s port %u has GIDs 0 to %d, got %u", d->name, d->port,
                         port->gid_tbl_len - 1, wanted);
    for (uint32_t i = is_any ? 0 : wanted; i < (is_any ? (uint32_t)port->gid_tbl_len : wanted + 1); i++) {
        memset(&entry, 0, sizeof entry);
        if (ibv_query_gid_ex(d->context, d->port, i, &entry, 0) != 0 || rank_gid(&entry) <= best) continue;
        best = rank_gid(&entry);
        d->gid_index = i;
        memcpy(d->address.gid, entry.gid.raw, sizeof d->address.gid);
    }
    if (best) return BELL_OK;
    return is_any
               ? bell_fail(err, BELL_UNSUPPORTED, "%s port %u has no GID: give its network interface an address",
                           d->name, d->port)
               : bell_fail(err, BELL_INVALID, "machine.gid: GID %u of %s port %u is empty", wanted, d->name, d->port);
}

/* BELL_AGAIN: not this device, and why. */
static enum bell_status try_device(struct bell_verbs_device *d, struct ibv_device *device, uint32_t port_number,
                                   struct ibv_port_attr *port, struct bell_error *err)
{
    (void)snprintf(d->name, sizeof d->name, "%s", ibv_get_device_name(device));
    d->context = ibv_open_device(device);
    if (!d->context) return bell_fail(err, BELL_AGAIN, "%s cannot be opened: %s", d->name, strerror(errno));
    memset(port, 0, sizeof *port);
    int code = ibv_query_port(d->context, (uint8_t)port_number, port);
    if (code == 0 && port->state == IBV_PORT_ACTIVE) {
        tell_kind(d, device);
        return BELL_OK;
    }
    (void)bell_fail(err, BELL_AGAIN, "port %u of %s is %s", port_number, d->name,
                    code ? strerror(code > 0 ? code : -code) : ibv_port_state_str(port->state));
    (void)ibv_close_device(d->context);
    d->context = NULL;
    return BELL_AGAIN;
}

static enum bell_status not_found(const struct bell_verbs_device *d, int count, const char *wanted,
                                  struct bell_error *err)
{
    char names[200] = "";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(names);
        (void)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", ibv_get_device_name(d->list[i]));
    }
    return bell_fail(err, BELL_INVALID, "machine.device: no RDMA device '%s'; here: %s", wanted, names);
}

static enum bell_status find_device(struct bell_verbs_device *d, const struct bell_machine *m,
                                    struct ibv_port_attr *port, struct bell_error *err)
{
    struct bell_error last = { BELL_OK, "" };
    int count;
    enum bell_status s = list_devices(&d->list, &count, err);
    if (s != BELL_OK) return s;
    for (int i = 0; i < count; i++) {
        if (m->device[0] && strcmp(ibv_get_device_name(d->list[i]), m->device) != 0) continue;
        if (try_device(d, d->list[i], m->port, port, &last) == BELL_OK) return BELL_OK;
    }
    if (!last.text[0]) return not_found(d, count, m->device, err);
    return bell_fail(err, m->device[0] ? BELL_INVALID : BELL_UNSUPPORTED,
                     "no usable RDMA device: %s; expected an active "
                     "port (machine.port=%u)",
                     last.text, m->port);
}

enum bell_status bell_verbs_open(struct bell_verbs_device *d, const struct bell_machine *m, struct bell_error *err)
{
    struct ibv_port_attr port;
    memset(d, 0, sizeof *d);
    d->numa_node = -1;
    enum bell_status s = find_device(d, m, &port, err);
    if (s == BELL_OK) {
        d->port = m->port;
        d->address.lid = port.lid;
        d->address.mtu = (uint8_t)port.active_mtu;
        d->address.is_roce = port.link_layer == IBV_LINK_LAYER_ETHERNET;
        s = pick_gid(d, &port, m->gid, err);
    }
    if (s == BELL_OK && !(d->pd = ibv_alloc_pd(d->context)))
        s = bell_fail(err, BELL_IO, "%s: ibv_alloc_pd: %s", d->name, strerror(errno));
    if (s != BELL_OK) bell_verbs_close(d);
    return s;
}

void bell_verbs_close(struct bell_verbs_device *d)
{
    if (d->pd) (void)ibv_dealloc_pd(d->pd);
    if (d->context) (void)ibv_close_device(d->context);
    if (d->list) ibv_free_device_list(d->list);
    d->pd = NULL;
    d->context = NULL;
    d->list = NULL;
}

enum bell_status bell_verbs_register(struct bell_verbs_device *d, void *at, size_t size_bytes, int access,
                                     const char *what, struct ibv_mr **out, struct bell_error *err)
{
    *out = ibv_reg_mr(d->pd, at, size_bytes, (unsigned)access);
    if (*out) return BELL_OK;
    return bell_fail(err, BELL_NO_MEMORY, "%s: ibv_reg_mr of %s, %zu bytes: %s%s", d->name, what, size_bytes,
                     strerror(errno), errno == ENOMEM ? " (ulimit -l limits what may be registered)" : "");
}
