/* SPDX-License-Identifier: Apache-2.0
 * GPUs and NICs on PCI, and how far apart they are, from the names of folders in /sys. */
#include "hw/doctor/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PCI ids: https://pci-ids.ucw.cz; class codes: PCI Code and ID Assignment Specification. */
#define VENDOR_NVIDIA 0x10de
#define VENDOR_MELLANOX 0x15b3
#define CLASS_VGA 0x0300
#define CLASS_3D 0x0302
#define CLASS_ETHERNET 0x0200
#define CLASS_INFINIBAND 0x0207

#define DEVICES_MAX 4096

/* "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0" as its parts from the host bridge on. */
static void fill_chain(const char *root, struct bell_pci *d)
{
    char path[BELL_TREE_PATH], *rest = path;
    if (!bell_tree_real(root, path, "/sys/bus/pci/devices/%s", d->address)) return;
    for (char *part = strtok_r(path, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        if (d->depth == 0 && strncmp(part, "pci", 3) != 0) continue;
        if (d->depth == BELL_PCI_DEPTH || strlen(part) >= sizeof d->chain[0]) {
            d->depth = 0;
            return;
        }
        (void)snprintf(d->chain[d->depth++], sizeof d->chain[0], "%.19s", part);
    }
}

static void fill(const char *root, const char *address, struct bell_pci *d)
{
    memset(d, 0, sizeof *d);
    (void)snprintf(d->address, sizeof d->address, "%.19s", address);
    if (!bell_tree_number(root, &d->numa, "/sys/bus/pci/devices/%s/numa_node", address)) d->numa = -1;
    fill_chain(root, d);
}

static void add_gpu(const char *root, const char *address, struct bell_pci_set *out)
{
    if (out->gpus_seen++ >= BELL_GPUS_MAX) return;
    struct bell_pci *gpu = &out->gpu[out->gpus];
    fill(root, address, gpu);
    (void)snprintf(gpu->name, sizeof gpu->name, "GPU %u", out->gpus++);
}

static void add_nic(const char *root, const char *address, struct bell_pci_set *out)
{
    if (out->nics_seen++ >= BELL_NICS_MAX) return;
    char name[1][BELL_TREE_NAME];
    struct bell_pci *nic = &out->nic[out->nics++];
    fill(root, address, nic);
    size_t has_name = bell_tree_list(root, name, 1, "/sys/bus/pci/devices/%s/infiniband", address);
    (void)snprintf(nic->name, sizeof nic->name, "%.23s", has_name ? name[0] : address);
}

void bell_pci_scan(const char *root, struct bell_pci_set *out)
{
    memset(out, 0, sizeof *out);
    out->is_readable = bell_tree_has(root, "/sys/bus/pci/devices");
    char(*names)[BELL_TREE_NAME] = calloc(DEVICES_MAX, sizeof *names);
    size_t count = names ? bell_tree_list(root, names, DEVICES_MAX, "/sys/bus/pci/devices") : 0;
    for (size_t i = 0; i < count; i++) {
        int64_t vendor, kind;
        bool has_class = bell_tree_number(root, &kind, "/sys/bus/pci/devices/%s/class", names[i]);
        kind = has_class ? kind >> 8 : 0; /* without the programming interface */
        bool is_display = kind == CLASS_VGA || kind == CLASS_3D;
        bool is_net = kind == CLASS_ETHERNET || kind == CLASS_INFINIBAND;
        if (!is_display && !is_net) continue;
        if (!bell_tree_number(root, &vendor, "/sys/bus/pci/devices/%s/vendor", names[i])) continue;
        if (is_display && vendor == VENDOR_NVIDIA)
            add_gpu(root, names[i], out);
        else if (is_net && (vendor == VENDOR_MELLANOX || kind == CLASS_INFINIBAND ||
                            bell_tree_has(root, "/sys/bus/pci/devices/%s/infiniband", names[i])))
            add_nic(root, names[i], out);
    }
    free(names);
}

void bell_pci_name_gpus(struct bell_pci_set *set, const struct bell_gpu_answers *cuda)
{
    for (uint32_t i = 0; cuda->gpus && i < set->gpus; i++) {
        struct bell_pci *gpu = &set->gpu[i];
        uint32_t k = 0;
        while (k < cuda->gpus && strcmp(cuda->gpu[k].address, gpu->address) != 0)
            k++;
        if (k < cuda->gpus)
            (void)snprintf(gpu->name, sizeof gpu->name, "GPU %u", k);
        else
            memcpy(gpu->name, gpu->address, sizeof gpu->address);
    }
}

/* Words and meanings: legend of `nvidia-smi topo -m`.  A switch is one bridge there and two in /sys (its upstream port,
 * and the downstream port of each device), so one downstream port a device is "at most a single bridge". */
const char *bell_pci_path(const struct bell_pci *a, const struct bell_pci *b)
{
    if (a->depth < 2 || b->depth < 2) return "?";
    uint32_t same = 0;
    while (same < a->depth && same < b->depth && strcmp(a->chain[same], b->chain[same]) == 0)
        same++;
    if (same == 1) return "PHB";
    if (same == 0) {
        if (a->numa < 0 || b->numa < 0) return "?";
        return a->numa == b->numa ? "NODE" : "SYS";
    }
    /* Bridges below the nearest one that both share. */
    return a->depth - same <= 2 && b->depth - same <= 2 ? "PIX" : "PXB";
}
