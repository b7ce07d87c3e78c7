/* SPDX-License-Identifier: Apache-2.0
 * Findings about RDMA: kernel modules, devices, their ports, and the limits that libibverbs gives. */
#include "hw/doctor/probe.h"

#include <stdio.h>
#include <string.h>

#define AREA "rdma"
#define GIDS_MAX 256

static bool has_uverbs_file(const char *root)
{
    char names[64][BELL_TREE_NAME];
    size_t count = bell_tree_list(root, names, 64, "/dev/infiniband");
    while (count && strncmp(names[count - 1], "uverbs", 6) != 0)
        count--;
    return count > 0;
}

static void find_modules(const struct bell_probe *p, bool has_device, struct bell_findings *f)
{
    static const char *const names[] = { "ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib", "rdma_rxe" };
    char have[120] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bell_has_module(p->root, names[i]))
            bell_append(have, sizeof have, &used, "%s%s", used ? ", " : "", names[i]);
    /* Built into the kernel it is no module, but has its class all the same. */
    bool has_uverbs = bell_has_module(p->root, "ib_uverbs") || bell_tree_has(p->root, "/sys/class/infiniband_verbs");
    if (has_uverbs) {
        (void)bell_find(f, AREA, BELL_FINDING_OK, "kernel modules", "ib_uverbs is there; seen: %s",
                        used ? have : "none");
    } else {
        bell_fix(bell_find(f, AREA, BELL_FINDING_MISSING, "kernel modules", "ib_uverbs is not loaded%s%s",
                           used ? "; loaded: " : "", have),
                 "modprobe ib_uverbs%s; in a container: on the host", has_device || p->pci.nics ? " mlx5_ib" : "");
    }
    if (has_device && !has_uverbs_file(p->root))
        bell_fix(
            bell_find(f, AREA, BELL_FINDING_MISSING, "/dev/infiniband", "no uverbs there: devices cannot be opened"),
            "modprobe ib_uverbs; in a container: pass /dev/infiniband in");
}

/* How many entries of a GID table are in use; the one to take and its index: RoCE v2 before v1, and of these one that
 * routes.  "0000:0000:..." is an empty entry. */
static uint32_t count_gids(const char *root, const char *device, const char *port, char best[64], uint32_t *best_at)
{
    char gid[64], kind[40];
    uint32_t count = 0;
    int best_score = -1;
    best[0] = '\0';
    for (uint32_t i = 0; i < GIDS_MAX; i++) {
        if (!bell_tree_text(root, gid, sizeof gid, "/sys/class/infiniband/%s/ports/%s/gids/%u", device, port, i)) break;
        if (strspn(gid, "0:") == strlen(gid)) continue;
        count++;
        bool has_kind = bell_tree_text(root, kind, sizeof kind, "/sys/class/infiniband/%s/ports/%s/gid_attrs/types/%u",
                                       device, port, i);
        int score = 2 * (has_kind && strstr(kind, "v2")) + (strncmp(gid, "fe80", 4) != 0);
        if (score <= best_score) continue;
        best_score = score;
        *best_at = i;
        (void)snprintf(best, 64, "%.39s%s%.20s", gid, has_kind ? " " : "", has_kind ? kind : "");
    }
    return count;
}

static void find_port(const struct bell_probe *p, const char *device, const char *port, struct bell_findings *f)
{
    char state[40], rate[60], layer[40], name[40], gid[64], take[100] = "";
    uint32_t at = 0;
    (void)snprintf(name, sizeof name, "%.24s port %.4s", device, port);
    if (!bell_tree_text(p->root, state, sizeof state, "/sys/class/infiniband/%s/ports/%s/state", device, port)) {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, name, "its state %s", bell_tree_why());
        return;
    }
    if (!bell_tree_text(p->root, rate, sizeof rate, "/sys/class/infiniband/%s/ports/%s/rate", device, port))
        (void)snprintf(rate, sizeof rate, "rate unknown");
    if (!bell_tree_text(p->root, layer, sizeof layer, "/sys/class/infiniband/%s/ports/%s/link_layer", device, port))
        (void)snprintf(layer, sizeof layer, "link layer unknown");
    uint32_t gids = count_gids(p->root, device, port, gid, &at);
    bool is_active = strstr(state, "ACTIVE") != NULL, is_roce = strcmp(layer, "Ethernet") == 0;
    if (gids) (void)snprintf(take, sizeof take, "; use index %u: %s", at, gid);
    struct bell_finding *new =
        bell_find(f, AREA, is_active && gids ? BELL_FINDING_OK : BELL_FINDING_MISSING, name, "%s, %s, %s, %u GID%s%s",
                  state, rate, layer, gids, gids == 1 ? "" : "s", take);
    if (!is_active)
        bell_fix(new, "%s",
                 is_roce ? "bring its network interface up (ip link set DEV up), and look at the cable"
                         : "a subnet manager must run on the fabric (opensm), and look at the cable");
    else if (!gids)
        bell_fix(new, "give its network interface an address (ip addr add)");
}

static void find_limits(const struct bell_probe *p, const char *device, struct bell_findings *f)
{
    const struct bell_rdma_answer *a = NULL;
    char name[40], inlined[60];
    (void)snprintf(name, sizeof name, "%.24s limits", device);
    for (uint32_t i = 0; i < p->rdma.devices && !a; i++)
        if (strcmp(p->rdma.device[i].name, device) == 0) a = &p->rdma.device[i];
    if (!a || !a->is_open) {
        const char *why = a ? a->why : p->rdma.why[0] ? p->rdma.why : "libibverbs does not list this device";
        struct bell_finding *new = bell_find(f, AREA, BELL_FINDING_UNKNOWN, name, "%s", why);
        if (a) bell_fix(new, "read and write access to /dev/infiniband/uverbs*, and its provider (ibverbs-providers)");
        return;
    }
    if (a->max_inline < 0)
        (void)snprintf(inlined, sizeof inlined, "not known: no queue pair could be made");
    else
        (void)snprintf(inlined, sizeof inlined, "%d B", a->max_inline);
    (void)bell_find(f, AREA, BELL_FINDING_OK, name,
                    "%d queue pairs, %d work requests each, %d SGEs, %d CQEs a CQ, inline %s, atomics %s", a->max_qp,
                    a->max_qp_wr, a->max_sge, a->max_cqe, inlined, a->atomics);
}

static void find_device(const struct bell_probe *p, const char *device, struct bell_findings *f)
{
    char type[40], firmware[40], board[60], model[60], ports[8][BELL_TREE_NAME];
    bool has_type = bell_tree_text(p->root, type, sizeof type, "/sys/class/infiniband/%s/node_type", device);
    bool has_firmware = bell_tree_text(p->root, firmware, sizeof firmware, "/sys/class/infiniband/%s/fw_ver", device);
    bool has_model = bell_tree_text(p->root, model, sizeof model, "/sys/class/infiniband/%s/hca_type", device);
    bool has_board = bell_tree_text(p->root, board, sizeof board, "/sys/class/infiniband/%s/board_id", device);
    bool is_soft = strncmp(device, "rxe", 3) == 0 || strncmp(device, "siw", 3) == 0;
    (void)bell_find(f, AREA, BELL_FINDING_OK, device, "node type %s, model %s, board %s, firmware %s%s",
                    has_type ? type : "unknown", has_model ? model : "not given", has_board ? board : "not given",
                    has_firmware && *firmware ? firmware : "not given",
                    is_soft ? "; software, so times on it say nothing about a NIC" : "");
    size_t count = bell_tree_list(p->root, ports, 8, "/sys/class/infiniband/%s/ports", device);
    for (size_t i = 0; i < count; i++)
        find_port(p, device, ports[i], f);
    find_limits(p, device, f);
}

void bell_doctor_rdma(const struct bell_probe *p, struct bell_findings *f)
{
    char names[BELL_NICS_MAX][BELL_TREE_NAME];
    size_t count = bell_tree_list(p->root, names, BELL_NICS_MAX, "/sys/class/infiniband");
    find_modules(p, count > 0, f);
    if (!count) {
        struct bell_finding *new =
            bell_find(f, AREA, BELL_FINDING_MISSING, "devices", "/sys/class/infiniband names none%s",
                      p->pci.nics ? ", though a NIC is on PCI" : "");
        if (p->pci.nics)
            bell_fix(new, "modprobe mlx5_ib");
        else
            bell_fix(
                new,
                "without a NIC, a software one runs verbs: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev DEV");
    }
    for (size_t i = 0; i < count; i++)
        find_device(p, names[i], f);
}
