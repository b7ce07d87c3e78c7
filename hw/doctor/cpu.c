/* SPDX-License-Identifier: Apache-2.0
 * Findings about processor and kernel: what a proxy's speed and the registration of memory depend on. */
#include "hw/doctor/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AREA "cpu"
#define CPU_FOLDER "/sys/devices/system/cpu"

static void find_system(const struct bell_probe *p, struct bell_findings *f)
{
    char kernel[80], model[120], flags[8000];
    int major, minor;
    if (bell_kernel(p->root, &major, &minor, kernel))
        (void)bell_find(f, AREA, BELL_FINDING_OK, "kernel", "%s", kernel);
    else
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "kernel", "/proc/sys/kernel/osrelease %s", bell_tree_why());
    if (bell_tree_field(p->root, "model name", model, sizeof model, "/proc/cpuinfo"))
        (void)bell_find(f, AREA, BELL_FINDING_OK, "processor", "%s", model);
    bool is_virtual =
        bell_tree_field(p->root, "flags", flags, sizeof flags, "/proc/cpuinfo") && strstr(flags, " hypervisor") != NULL;
    bool is_contained = bell_tree_has(p->root, "/.dockerenv") || bell_tree_has(p->root, "/run/.containerenv");
    if (!is_virtual && !is_contained) return;
    bell_fix(bell_find(f, AREA, BELL_FINDING_WARN, "runs in", "a %s%s%s", is_virtual ? "virtual machine" : "",
                       is_virtual && is_contained ? ", in a " : "", is_contained ? "container" : ""),
             "what is missing here may be there on the host, and not passed in");
}

/* ---- clock ---- */

static int mhz_of(const char *root, const char *file)
{
    int64_t khz;
    return bell_tree_number(root, &khz, CPU_FOLDER "/cpu0/cpufreq/%s", file) ? (int)(khz / 1000) : 0;
}

static void find_clock(const struct bell_probe *p, struct bell_findings *f)
{
    char governor[80], driver[40], now[40];
    int current = mhz_of(p->root, "scaling_cur_freq"), most = mhz_of(p->root, "cpuinfo_max_freq");
    if (!bell_governor(p->root, governor, sizeof governor)) {
        bool has_now = bell_tree_field(p->root, "cpu MHz", now, sizeof now, "/proc/cpuinfo");
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "governor", "the kernel offers no cpufreq here (usual in a VM)");
        (void)bell_find(f, AREA, has_now ? BELL_FINDING_OK : BELL_FINDING_UNKNOWN, "core clock", "%s%s",
                        has_now ? now : "neither cpufreq nor /proc/cpuinfo gives it",
                        has_now ? " MHz, which /proc/cpuinfo says of the first CPU; maximum unknown" : "");
        return;
    }
    bool has_driver = bell_tree_text(p->root, driver, sizeof driver, CPU_FOLDER "/cpu0/cpufreq/scaling_driver");
    bool is_fast = strcmp(governor, "performance") == 0;
    struct bell_finding *new = bell_find(f, AREA, is_fast ? BELL_FINDING_OK : BELL_FINDING_WARN, "governor", "%s%s%s",
                                         governor, has_driver ? ", driver " : "", has_driver ? driver : "");
    if (!is_fast) bell_fix(new, "cpupower frequency-set -g performance: a proxy is as fast as its core's clock");
    if (current && most)
        (void)bell_find(f, AREA, BELL_FINDING_OK, "core clock", "%d MHz now (first CPU), %d MHz at most", current,
                        most);
    else
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "core clock", "scaling_cur_freq or cpuinfo_max_freq %s",
                        bell_tree_why());
}

static void find_turbo(const struct bell_probe *p, struct bell_findings *f)
{
    int64_t value;
    bool is_intel = bell_tree_number(p->root, &value, CPU_FOLDER "/intel_pstate/no_turbo");
    if (!is_intel && !bell_tree_number(p->root, &value, CPU_FOLDER "/cpufreq/boost")) return;
    bool is_on = is_intel ? value == 0 : value != 0;
    struct bell_finding *new = bell_find(f, AREA, is_on ? BELL_FINDING_OK : BELL_FINDING_WARN, "turbo",
                                         is_on ? "on: the clock falls when many cores work" : "off");
    if (!is_on)
        bell_fix(new, "echo %d > " CPU_FOLDER "/%s, or leave it off for steadier runs", is_intel ? 0 : 1,
                 is_intel ? "intel_pstate/no_turbo" : "cpufreq/boost");
}

/* The deepest idle state that is allowed, and how long waking from it takes. */
static void find_idle(const struct bell_probe *p, struct bell_findings *f)
{
    char states[16][BELL_TREE_NAME], name[40] = "";
    int64_t latency, deepest_us = -1, is_disabled;
    size_t count = bell_tree_list(p->root, states, 16, CPU_FOLDER "/cpu0/cpuidle");
    for (size_t i = 0; i < count; i++) {
        if (strncmp(states[i], "state", 5) != 0) continue;
        if (!bell_tree_number(p->root, &latency, CPU_FOLDER "/cpu0/cpuidle/%s/latency", states[i])) continue;
        bool has = bell_tree_number(p->root, &is_disabled, CPU_FOLDER "/cpu0/cpuidle/%s/disable", states[i]);
        if ((has && is_disabled) || latency <= deepest_us) continue;
        deepest_us = latency;
        if (!bell_tree_text(p->root, name, sizeof name, CPU_FOLDER "/cpu0/cpuidle/%s/name", states[i])) name[0] = '\0';
    }
    if (deepest_us >= 0)
        (void)bell_find(f, AREA, BELL_FINDING_OK, "idle states",
                        "down to %s, %d us to wake (the kernel's table); a worker that spins never gets there",
                        *name ? name : "one without a name", (int)deepest_us);
    else
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "idle states",
                        "the kernel offers no cpuidle here (usual in a VM)");
}

/* ---- which CPUs ---- */

/* CPUs' worth of time a period, of cgroup v2 ("200000 100000") or v1; 0: no limit or not readable. */
static double quota(const char *root)
{
    char text[80], group[200];
    int64_t used, period;
    bool has_group = bell_tree_field(root, "0:", group, sizeof group, "/proc/self/cgroup"); /* "0::/path" */
    bool has = (has_group && bell_tree_text(root, text, sizeof text, "/sys/fs/cgroup%s/cpu.max", group)) ||
               bell_tree_text(root, text, sizeof text, "/sys/fs/cgroup/cpu.max");
    if (has) {
        double most, per;
        return sscanf(text, "%lf %lf", &most, &per) == 2 && per > 0 ? most / per : 0;
    }
    if (!bell_tree_number(root, &used, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us") || used <= 0 ||
        !bell_tree_number(root, &period, "/sys/fs/cgroup/cpu/cpu.cfs_period_us") || period <= 0)
        return 0;
    return (double)used / (double)period;
}

static void find_cpus(const struct bell_probe *p, struct bell_findings *f)
{
    char allowed[200], online[200], nodes[80];
    double most = quota(p->root);
    if (!bell_tree_field(p->root, "Cpus_allowed_list", allowed, sizeof allowed, "/proc/self/status")) {
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "CPUs allowed", "/proc/self/status %s", bell_tree_why());
    } else {
        bool has_online = bell_tree_text(p->root, online, sizeof online, CPU_FOLDER "/online");
        uint32_t may = bell_cpus_in(allowed), all = has_online ? bell_cpus_in(online) : 0;
        char of[40] = "; which are online is not readable";
        if (all && may) (void)snprintf(of, sizeof of, ": %u of %u online", may, all);
        struct bell_finding *new = bell_find(f, AREA,
                                             !may      ? BELL_FINDING_UNKNOWN
                                             : may < 4 ? BELL_FINDING_WARN
                                                       : BELL_FINDING_OK,
                                             "CPUs allowed", "%s%s", allowed, of);
        /* One rank: a lane, a worker and the software NIC; soft runs two ranks. */
        if (may && may < 4)
            bell_fix(new, "soft gives each lane, worker and NIC a thread: with fewer CPUs than threads its times say "
                          "little; allow more (taskset, cpuset)");
    }
    if (most > 0)
        bell_fix(bell_find(f, AREA, BELL_FINDING_WARN, "CPU quota", "%.2f CPUs' worth of time (cgroup): threads pause",
                           most),
                 "run without a quota (docker: no --cpus; Kubernetes: whole CPUs, static policy)");
    if (bell_tree_text(p->root, nodes, sizeof nodes, "/sys/devices/system/node/online"))
        (void)bell_find(f, AREA, BELL_FINDING_OK, "NUMA nodes", "online: %s", nodes);
    else
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "NUMA nodes", "/sys/devices/system/node/online %s",
                        bell_tree_why());
}

/* ---- memory ---- */

static void find_memory(const struct bell_probe *p, struct bell_findings *f)
{
    uint64_t bytes;
    bool has_cap;
    char total[40], size[40], huge[80];
    if (!bell_memlock(p->root, &bytes, &has_cap))
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "memlock limit", "/proc/self/limits %s", bell_tree_why());
    else if (bytes == UINT64_MAX)
        (void)bell_find(f, AREA, BELL_FINDING_OK, "memlock limit", "unlimited");
    else if (has_cap)
        (void)bell_find(f, AREA, BELL_FINDING_OK, "memlock limit", "%llu KiB, but this user may pass it (CAP_IPC_LOCK)",
                        (unsigned long long)bytes / 1024);
    else
        bell_fix(
            bell_find(f, AREA, BELL_FINDING_WARN, "memlock limit", "%llu KiB: RDMA pins what it registers",
                      (unsigned long long)bytes / 1024),
            "ulimit -l unlimited (limits.conf: memlock; docker: --ulimit memlock=-1; Slurm: PropagateResourceLimits)");
    bool has_total = bell_tree_field(p->root, "HugePages_Total", total, sizeof total, "/proc/meminfo");
    bool has_size = bell_tree_field(p->root, "Hugepagesize", size, sizeof size, "/proc/meminfo");
    bool has_huge = bell_tree_text(p->root, huge, sizeof huge, "/sys/kernel/mm/transparent_hugepage/enabled");
    if (has_total || has_huge)
        (void)bell_find(f, AREA, BELL_FINDING_OK, "huge pages", "%s reserved of %s; transparent: %s",
                        has_total ? total : "not known how many", has_size ? size : "unknown size",
                        has_huge ? huge : "not offered");
    else
        (void)bell_find(f, AREA, BELL_FINDING_UNKNOWN, "huge pages", "/proc/meminfo does not say");
}

void bell_doctor_cpu(const struct bell_probe *p, struct bell_findings *f)
{
    find_system(p, f);
    find_clock(p, f);
    find_turbo(p, f);
    find_idle(p, f);
    find_cpus(p, f);
    find_memory(p, f);
}
