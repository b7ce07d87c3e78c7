/* SPDX-License-Identifier: Apache-2.0
 * Findings about PCIe: how far GPU and NIC are apart, their links, ACS of the bridges above them, and the IOMMU. */
#include "hw/doctor/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AREA "pcie"

/* PCI Express Base Specification: extended capabilities begin at 0x100, a header of id (16 bits), version (4) and next
 * offset (12); ACS is id 0x000d with its control register at +6, whose bits 2 and 3 are P2P request and P2P completion
 * redirect.  Linux: PCI_EXT_CAP_ID_ACS, PCI_ACS_CTRL, PCI_ACS_RR, PCI_ACS_CR. */
#define CONFIG_BYTES 4096
#define EXTENDED_AT 0x100
#define ACS_ID 0x000d
#define ACS_CONTROL 6
#define ACS_REDIRECT 0x000c

enum acs { ACS_NONE, ACS_OFF, ACS_ON, ACS_UNREADABLE };

static enum acs read_acs(const char *root, const char *address)
{
    unsigned char c[CONFIG_BYTES];
    ptrdiff_t n = bell_tree_bytes(root, c, sizeof c, "/sys/bus/pci/devices/%s/config", address);
    if (n < 0) return ACS_UNREADABLE;
    if (n <= EXTENDED_AT) { /* 64 bytes: all that a user who is not root gets.  256: a conventional device. */
        errno = n < 256 ? EACCES : 0;
        return n < 256 ? ACS_UNREADABLE : ACS_NONE;
    }
    ptrdiff_t at = EXTENDED_AT;
    for (int i = 0; i < CONFIG_BYTES / 8 && at >= EXTENDED_AT && at + ACS_CONTROL + 2 <= n; i++) {
        unsigned id = c[at] | (unsigned)c[at + 1] << 8, next = (unsigned)c[at + 3] << 4 | c[at + 2] >> 4;
        if (id == ACS_ID) {
            unsigned control = c[at + ACS_CONTROL] | (unsigned)c[at + ACS_CONTROL + 1] << 8;
            return control & ACS_REDIRECT ? ACS_ON : ACS_OFF;
        }
        at = next;
    }
    return ACS_NONE;
}

/* Bridges above GPUs and NICs, each once. */
struct bridges {
    char address[256][20];
    uint32_t count;
};

static void collect(const struct bell_pci *d, struct bridges *b)
{
    for (uint32_t i = 1; i + 1 < d->depth && b->count < 256; i++) {
        uint32_t k = 0;
        while (k < b->count && strcmp(b->address[k], d->chain[i]) != 0)
            k++;
        if (k == b->count) memcpy(b->address[b->count++], d->chain[i], sizeof d->chain[i]);
    }
}

static void find_acs(const struct bell_probe *p, struct bell_findings *f)
{
    static const char name[] = "ACS redirect";
    struct bridges *b = calloc(1, sizeof *b);
    char list[300] = "", first[20] = "";
    uint32_t on = 0, unreadable = 0;
    size_t used = 0;
    if (!b) return;
    for (uint32_t i = 0; i < p->pci.gpus; i++)
        collect(&p->pci.gpu[i], b);
    for (uint32_t i = 0; i < p->pci.nics; i++)
        collect(&p->pci.nic[i], b);
    for (uint32_t i = 0; i < b->count; i++) {
        enum acs acs = read_acs(p->root, b->address[i]);
        unreadable += acs == ACS_UNREADABLE;
        if (acs != ACS_ON) continue;
        if (!on++) memcpy(first, b->address[i], sizeof first);
        bell_append(list, sizeof list, &used, "%s%s", used ? ", " : "", b->address[i]);
    }
    if (!b->count) {
        (void)bell_find(f, AREA, BELL_FINDING_OK, name, "no bridge above a GPU or NIC is visible here");
    } else if (on) {
        bell_fix(bell_find(f, AREA, BELL_FINDING_WARN, name,
                           "on at %u of %u bridges, so traffic between GPU and NIC goes up to the root complex: %s", on,
                           b->count, list),
                 "as root, for each: setpci -s %s ECAP_ACS+0x6.w=0000 (until reboot; virtual machines that get devices "
                 "passed through need it on)",
                 first);
    } else if (unreadable) {
        bell_fix(bell_find(f, AREA, BELL_FINDING_UNKNOWN, name, "the configuration of %u of %u bridges is not readable",
                           unreadable, b->count),
                 "run bellwether doctor as root");
    } else {
        (void)bell_find(f, AREA, BELL_FINDING_OK, name, "off at all %u bridges above GPUs and NICs", b->count);
    }
    free(b);
}

/* ---- IOMMU ---- */

static void find_iommu(const struct bell_probe *p, const struct bell_pci *d, struct bell_findings *f)
{
    char path[BELL_TREE_PATH], type[40], name[40];
    (void)snprintf(name, sizeof name, "%.23s IOMMU", d->name);
    if (!bell_tree_real(p->root, path, "/sys/bus/pci/devices/%s/iommu_group", d->address)) {
        (void)bell_find(f, AREA, BELL_FINDING_OK, name, "no IOMMU group: addresses are not translated");
        return;
    }
    const char *group = strrchr(path, '/') + 1;
    if (!bell_tree_text(p->root, type, sizeof type, "/sys/kernel/iommu_groups/%s/type", group))
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, name, "group %s; its type %s", group, bell_tree_why());
    else if (strcmp(type, "identity") == 0)
        (void)bell_find(f, AREA, BELL_FINDING_OK, name, "group %s, passed through (identity)", group);
    else
        bell_fix(bell_find(f, AREA, BELL_FINDING_WARN, name, "group %s, addresses are translated (%s)", group, type),
                 "boot with iommu=pt: NVIDIA's GPUDirect RDMA guide asks for no IOMMU or a pass-through one on x86");
}

static void find_kernel_iommu(const struct bell_probe *p, struct bell_findings *f)
{
    char line[2048], words[300] = "", names[1][BELL_TREE_NAME], *rest = line;
    size_t used = 0;
    bool has_line = bell_tree_text(p->root, line, sizeof line, "/proc/cmdline");
    for (char *word = has_line ? strtok_r(line, " ", &rest) : NULL; word; word = strtok_r(NULL, " ", &rest))
        if (strstr(word, "iommu")) bell_append(words, sizeof words, &used, "%s%s", used ? " " : "", word);
    bool has_unit = bell_tree_list(p->root, names, 1, "/sys/class/iommu") > 0;
    bool has_group = bell_tree_list(p->root, names, 1, "/sys/kernel/iommu_groups") > 0;
    (void)bell_find(f, AREA, BELL_FINDING_OK, "IOMMU", "%s; kernel command line: %s",
                    has_unit || has_group ? "in use" : "none in use",
                    !has_line ? "not readable"
                    : used    ? words
                              : "says nothing about it");
}

/* ---- links ---- */

static void find_link(const struct bell_probe *p, const struct bell_pci *d, struct bell_findings *f)
{
    char speed[40], most[40], name[40];
    int64_t width, widest;
    const char *root = p->root, *a = d->address;
    (void)snprintf(name, sizeof name, "%.23s link", d->name);
    if (!bell_tree_text(root, speed, sizeof speed, "/sys/bus/pci/devices/%s/current_link_speed", a) ||
        !bell_tree_number(root, &width, "/sys/bus/pci/devices/%s/current_link_width", a)) {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, name, "current_link_speed or current_link_width of %s %s", a,
                        bell_tree_why());
        return;
    }
    bool has_most = bell_tree_text(root, most, sizeof most, "/sys/bus/pci/devices/%s/max_link_speed", a);
    bool has_widest = bell_tree_number(root, &widest, "/sys/bus/pci/devices/%s/max_link_width", a);
    if (has_widest && width < widest)
        bell_fix(bell_find(f, AREA, BELL_FINDING_WARN, name, "x%d of x%d lanes at %s", (int)width, (int)widest, speed),
                 "another slot, or reseat the card");
    else if (has_most && strtod(speed, NULL) < strtod(most, NULL))
        bell_fix(bell_find(f, AREA, BELL_FINDING_WARN, name, "x%d at %s, %s at most", (int)width, speed, most),
                 "a GPU slows its link when idle: look again under load; else it is the slot");
    else
        (void)bell_find(f, AREA, BELL_FINDING_OK, name, "x%d at %s", (int)width, speed);
}

/* ---- distance ---- */

static const char *const words[][2] = {
    { "PIX", "same switch" },
    { "PXB", "several switches, one root port" },
    { "PHB", "through one host bridge" },
    { "NODE", "between host bridges of one NUMA node" },
    { "SYS", "between NUMA nodes" },
};

static uint32_t rank_of(const char *path)
{
    uint32_t i = 0;
    while (i < 5 && strcmp(words[i][0], path) != 0)
        i++;
    return i;
}

/* One line a GPU: nearest NICs first. */
static void find_paths(const struct bell_probe *p, const struct bell_pci *gpu, struct bell_findings *f)
{
    char line[440] = "", name[40];
    size_t used = 0;
    uint32_t best = 6;
    for (uint32_t rank = 0; rank <= 5; rank++) {
        bool is_first = true;
        for (uint32_t i = 0; i < p->pci.nics; i++) {
            if (rank_of(bell_pci_path(gpu, &p->pci.nic[i])) != rank) continue;
            if (best == 6) best = rank;
            if (is_first && rank < 5)
                bell_append(line, sizeof line, &used, "%s%s (%s):", used ? "; " : "", words[rank][0], words[rank][1]);
            else if (is_first)
                bell_append(line, sizeof line, &used,
                            "%snot known (/sys gives no NUMA node or path):", used ? "; " : "");
            bell_append(line, sizeof line, &used, " %s", p->pci.nic[i].name);
            is_first = false;
        }
    }
    (void)snprintf(name, sizeof name, "%.23s to NICs", gpu->name);
    struct bell_finding *new = bell_find(f, AREA,
                                         best <= 1  ? BELL_FINDING_OK
                                         : best < 5 ? BELL_FINDING_WARN
                                                    : BELL_FINDING_UNKNOWN,
                                         name, "%s", line);
    if (best > 1 && best < 5)
        bell_fix(new,
                 "nothing but another slot: no NIC is under this GPU's switch, so each doorbell and WQE fetch crosses "
                 "the processor");
}

/* One line for GPU or NIC: its NUMA node, and the CPUs near it. */
static void find_numa(const struct bell_probe *p, const struct bell_pci *d, struct bell_findings *f)
{
    char name[40], cpus[120];
    (void)snprintf(name, sizeof name, "%.23s NUMA node", d->name);
    if (d->numa < 0) {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, name, "the firmware names none (-1)");
        return;
    }
    bool has_cpus = bell_tree_text(p->root, cpus, sizeof cpus, "/sys/bus/pci/devices/%s/local_cpulist", d->address);
    (void)bell_find(f, AREA, BELL_FINDING_OK, name, "%d, CPUs near it: %s", (int)d->numa,
                    has_cpus && *cpus ? cpus : "not given");
}

void bell_doctor_pcie(const struct bell_probe *p, struct bell_findings *f)
{
    if (!p->pci.gpus && !p->pci.nics) {
        (void)bell_find(f, AREA, p->pci.is_readable ? BELL_FINDING_MISSING : BELL_FINDING_UNKNOWN, "devices", "%s",
                        p->pci.is_readable ? "neither an NVIDIA GPU nor an RDMA NIC is on PCI here"
                                           : "/sys/bus/pci/devices cannot be read");
        return;
    }
    for (uint32_t i = 0; i < p->pci.gpus + p->pci.nics; i++) {
        const struct bell_pci *d = i < p->pci.gpus ? &p->pci.gpu[i] : &p->pci.nic[i - p->pci.gpus];
        find_link(p, d, f);
        find_numa(p, d, f);
        find_iommu(p, d, f);
    }
    for (uint32_t i = 0; i < p->pci.gpus && p->pci.nics; i++)
        find_paths(p, &p->pci.gpu[i], f);
    find_acs(p, f);
    find_kernel_iommu(p, f);
}
