/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/verbs/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bell_verbs_cores_list_has(const char *list, int cpu)
{
    while (*list >= '0' && *list <= '9') {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        if (cpu >= first && cpu <= last) return true;
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}

/* CPUs of a NUMA node as sysfs lists them; "" when it does not. */
static void read_node(int node, char *out, size_t size)
{
    char path[64];
    out[0] = '\0';
    (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
    FILE *f = node >= 0 ? fopen(path, "r") : NULL;
    if (!f) return;
    if (!fgets(out, (int)size, f)) out[0] = '\0';
    (void)fclose(f);
}

enum bell_status bell_verbs_cores_pick(uint32_t first_core, int numa_node, uint32_t count, int *cpu,
                                       struct bell_error *err)
{
    char near[4096];
    cpu_set_t allowed;
    uint32_t found = 0;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return bell_fail(err, BELL_UNSUPPORTED, "machine.pin: sched_getaffinity does not say which CPUs may be used");
    read_node(first_core ? -1 : numa_node, near, sizeof near);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = (int)first_core; i < CPU_SETSIZE && found < count; i++)
            if (CPU_ISSET((size_t)i, &allowed) && bell_verbs_cores_list_has(near, i) == (pass == 0)) cpu[found++] = i;
    }
    if (found == count) return BELL_OK;
    return bell_fail(err, BELL_UNSUPPORTED,
                     "machine.pin: %u threads want a core each, %u CPUs may be used from "
                     "machine.first_core=%u on",
                     count, found, first_core);
}
