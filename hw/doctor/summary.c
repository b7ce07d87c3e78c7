/* SPDX-License-Identifier: Apache-2.0
 * The line about this machine that goes into the header of a trace. */
#include "hw/doctor/probe.h"

#include <stdio.h>
#include <string.h>

static void add_gpu(const char *root, char *out, size_t size, size_t *used)
{
    char name[1][BELL_TREE_NAME], model[64], version[40];
    bool is_open;
    if (!bell_nvidia_driver(root, version, &is_open)) {
        bell_append(out, size, used, "; no NVIDIA driver");
        return;
    }
    bell_append(out, size, used, "; NVIDIA driver %s%s", version, is_open ? " (open)" : "");
    bool has_gpu =
        bell_tree_list(root, name, 1, "/proc/driver/nvidia/gpus") &&
        bell_tree_field(root, "Model", model, sizeof model, "/proc/driver/nvidia/gpus/%s/information", name[0]);
    bell_append(out, size, used, "; GPU %s", has_gpu ? model : "not named");
    bell_append(out, size, used, "; peermem %s; dma-buf %s", bell_has_peermem(root) ? "loaded" : "not loaded",
                bell_may_dma_buf(root) ? "possible" : "not possible");
}

static void add_rdma(const char *root, char *out, size_t size, size_t *used)
{
    char names[BELL_NICS_MAX][BELL_TREE_NAME], firmware[40];
    size_t count = bell_tree_list(root, names, BELL_NICS_MAX, "/sys/class/infiniband");
    if (!count) {
        bell_append(out, size, used, "; no RDMA device");
        return;
    }
    bell_append(out, size, used, "; RDMA %s", names[0]);
    if (bell_tree_text(root, firmware, sizeof firmware, "/sys/class/infiniband/%s/fw_ver", names[0]))
        bell_append(out, size, used, " firmware %s", firmware);
    if (count > 1) bell_append(out, size, used, " and %zu more", count - 1);
}

static void add_memlock(const char *root, char *out, size_t size, size_t *used)
{
    uint64_t bytes;
    bool has_cap;
    if (!bell_memlock(root, &bytes, &has_cap))
        bell_append(out, size, used, "; memlock unknown");
    else if (has_cap || bytes == UINT64_MAX)
        bell_append(out, size, used, "; memlock unlimited");
    else
        bell_append(out, size, used, "; memlock %llu KiB", (unsigned long long)bytes / 1024);
}

void bell_doctor_summary(const char *root, char *out, size_t size)
{
    char text[80], cpus[120];
    int major, minor;
    size_t used = 0;
    if (!size) return;
    out[0] = '\0';
    bell_append(out, size, &used, "kernel %s", bell_kernel(root, &major, &minor, text) ? text : "unknown");
    add_gpu(root, out, size, &used);
    add_rdma(root, out, size, &used);
    bell_append(out, size, &used, "; governor %s", bell_governor(root, text, sizeof text) ? text : "none");
    bool has_cpus = bell_tree_field(root, "Cpus_allowed_list", cpus, sizeof cpus, "/proc/self/status");
    bell_append(out, size, &used, "; CPUs allowed %s", has_cpus ? cpus : "unknown");
    add_memlock(root, out, size, &used);
    for (char *c = out; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\') *c = '?';
}
