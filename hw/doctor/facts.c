/* SPDX-License-Identifier: Apache-2.0
 * Facts that the findings and the summary share, each from a file or two. */
#include "hw/doctor/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAP_IPC_LOCK_BIT 14 /* linux/capability.h */
#define CPUS_MAX 4096

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build ..." or
 * "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ...": the first word that is a number with a
 * dot. */
bool bell_nvidia_driver(const char *root, char version[40], bool *is_open)
{
    char line[256], *rest = line;
    version[0] = '\0';
    *is_open = false;
    if (!bell_tree_field(root, "NVRM version", line, sizeof line, "/proc/driver/nvidia/version")) return false;
    *is_open = strstr(line, "Open Kernel Module") != NULL;
    for (char *word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
        size_t digits = strspn(word, "0123456789");
        if (digits == 0 || word[digits] != '.') continue;
        (void)snprintf(version, 40, "%.39s", word);
        return true;
    }
    return false;
}

bool bell_has_module(const char *root, const char *name)
{
    return bell_tree_has(root, "/sys/module/%s", name);
}

bool bell_has_peermem(const char *root)
{
    return bell_has_module(root, "nvidia_peermem") || bell_has_module(root, "nv_peer_mem");
}

bool bell_kernel(const char *root, int *major, int *minor, char text[80])
{
    *major = *minor = 0;
    return bell_tree_text(root, text, 80, "/proc/sys/kernel/osrelease") && sscanf(text, "%d.%d", major, minor) == 2;
}

bool bell_kernel_has_dma_buf(int major, int minor)
{
    return major > 5 || (major == 5 && minor >= 12);
}

bool bell_may_dma_buf(const char *root)
{
    char text[80], version[40];
    int major, minor;
    bool is_open;
    return bell_kernel(root, &major, &minor, text) && bell_kernel_has_dma_buf(major, minor) &&
           bell_nvidia_driver(root, version, &is_open) && is_open;
}

/* Only the capability of the first user namespace counts (Linux: can_do_mlock); a rootless container has another. */
static bool is_first_namespace(const char *root)
{
    char map[80];
    unsigned long inside, outside, count;
    if (!bell_tree_text(root, map, sizeof map, "/proc/self/uid_map")) return true; /* a kernel without namespaces */
    return sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && !inside && !outside && count == UINT32_MAX;
}

bool bell_memlock(const char *root, uint64_t *bytes, bool *has_cap)
{
    char text[120];
    *bytes = 0;
    *has_cap = bell_tree_field(root, "CapEff", text, sizeof text, "/proc/self/status") &&
               (strtoull(text, NULL, 16) >> CAP_IPC_LOCK_BIT & 1) && is_first_namespace(root);
    if (!bell_tree_field(root, "Max locked memory", text, sizeof text, "/proc/self/limits")) return false;
    *bytes = strncmp(text, "unlimited", 9) == 0 ? UINT64_MAX : strtoull(text, NULL, 10);
    return *bytes == UINT64_MAX || (text[0] >= '0' && text[0] <= '9');
}

/* Each policy of cpufreq is one group of CPUs with one governor. */
bool bell_governor(const char *root, char *out, size_t size)
{
    static const char folder[] = "/sys/devices/system/cpu/cpufreq";
    char governor[40], worst[40] = "", cpus[400];
    uint32_t count = 0, odd = 0;
    char(*names)[BELL_TREE_NAME] = calloc(CPUS_MAX, sizeof *names);
    size_t policies = names ? bell_tree_list(root, names, CPUS_MAX, "%s", folder) : 0;
    for (size_t i = 0; i < policies; i++) {
        if (strncmp(names[i], "policy", 6) != 0) continue;
        if (!bell_tree_text(root, governor, sizeof governor, "%s/%s/scaling_governor", folder, names[i])) continue;
        bool has_cpus = bell_tree_text(root, cpus, sizeof cpus, "%s/%s/affected_cpus", folder, names[i]);
        /* affected_cpus is a list with blanks: "0 1 2". */
        uint32_t here = has_cpus ? 0 : 1;
        for (const char *c = cpus; has_cpus && *c; c += strspn(c, " ")) {
            here++;
            c += strcspn(c, " ");
        }
        count += here;
        if (strcmp(governor, "performance") == 0) continue;
        odd += here;
        if (!worst[0]) memcpy(worst, governor, sizeof worst);
    }
    free(names);
    out[0] = '\0';
    if (!count) return false;
    if (!odd || odd == count)
        (void)snprintf(out, size, "%s", odd ? worst : "performance");
    else
        (void)snprintf(out, size, "%s on %u of %u CPUs", worst, odd, count);
    return true;
}

uint32_t bell_cpus_in(const char *list)
{
    uint32_t count = 0;
    while (*list >= '0' && *list <= '9') {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;
        if (*end == '-') last = strtoul(end + 1, &end, 10);
        if (last < first || last > UINT16_MAX) return 0;
        count += (uint32_t)(last - first + 1);
        list = end + (*end == ',');
    }
    return *list ? 0 : count;
}
