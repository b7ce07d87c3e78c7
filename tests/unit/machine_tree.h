/* SPDX-License-Identifier: Apache-2.0
 * A machine that is not there: files of /sys, /proc and /dev in a folder of their own. */
#ifndef BELL_TESTS_UNIT_MACHINE_TREE_H
#define BELL_TESTS_UNIT_MACHINE_TREE_H

#include "hw/doctor/probe.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static int make_tree(void **state)
{
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/bell_doctor_XXXXXX");
    return mkdtemp(root) ? 0 : 1;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s;
    (void)kind;
    (void)at;
    return remove(path);
}

static int remove_tree(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_folders(char *path)
{
    for (char *c = path + strlen(root) + 1; *c; c++) {
        if (*c != '/') continue;
        *c = '\0';
        if (mkdir(path, 0700) != 0) assert_int_equal(errno, EEXIST);
        *c = '/';
    }
}

static void put_bytes(const char *file, const void *bytes, size_t size)
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s%s", root, file);
    make_folders(path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

static void put(const char *file, const char *text)
{
    put_bytes(file, text, strlen(text));
}

static void put_at(const char *folder, const char *file, const char *text)
{
    char path[400];
    (void)snprintf(path, sizeof path, "%s/%s", folder, file);
    put(path, text);
}

/* A link at `at` to `to`, both inside the tree; the link is relative, as in /sys. */
static void put_link(const char *at, const char *to)
{
    char path[600], target[600];
    size_t used = 0;
    (void)snprintf(path, sizeof path, "%s%s", root, at);
    make_folders(path);
    for (const char *c = at + 1; *c; c++)
        if (*c == '/') bell_append(target, sizeof target, &used, "../");
    bell_append(target, sizeof target, &used, "%s", to + 1);
    assert_int_equal(symlink(target, path), 0);
}

/* A device with its folder under /sys/devices and the link from the bus. */
static void put_pci(const char *path, const char *class, const char *vendor, const char *node)
{
    char folder[300], at[300];
    (void)snprintf(folder, sizeof folder, "/sys/devices/%s", path);
    put_at(folder, "class", class);
    put_at(folder, "vendor", vendor);
    put_at(folder, "numa_node", node);
    put_at(folder, "local_cpulist", "0-3\n");
    put_at(folder, "current_link_speed", "32.0 GT/s PCIe\n");
    put_at(folder, "max_link_speed", "32.0 GT/s PCIe\n");
    put_at(folder, "current_link_width", "16\n");
    put_at(folder, "max_link_width", "16\n");
    (void)snprintf(at, sizeof at, "/sys/bus/pci/devices/%s", strrchr(path, '/') + 1);
    put_link(at, folder);
}

/* Configuration of a bridge: an AER capability, then ACS. */
static void put_bridge(const char *path, unsigned control, size_t size)
{
    unsigned char config[4096] = { 0 };
    char file[300];
    put_pci(path, "0x060400\n", "0x1000\n", "0\n");
    memcpy(config + 0x100, "\x01\x00\x02\x15", 4); /* id 1, version 2, next 0x150 */
    memcpy(config + 0x150, "\x0d\x00\x01\x00", 4); /* ACS, last */
    config[0x156] = (unsigned char)control;
    (void)snprintf(file, sizeof file, "/sys/devices/%s/config", path);
    put_bytes(file, config, size);
}

static void put_rdma(const char *name, const char *path, const char *state, const char *layer)
{
    char folder[100], at[300];
    (void)snprintf(folder, sizeof folder, "/sys/class/infiniband/%s", name);
    put_at(folder, "node_type", "1: CA\n");
    put_at(folder, "fw_ver", "28.39.1002\n");
    put_at(folder, "hca_type", "MT4129\n");
    put_at(folder, "board_id", "MT_0000000838\n");
    put_at(folder, "ports/1/state", state);
    put_at(folder, "ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put_at(folder, "ports/1/link_layer", layer);
    (void)snprintf(at, sizeof at, "/sys/devices/%s/infiniband/%s/dev", path, name);
    put(at, "231:0\n");
}

static void put_driver(bool is_open)
{
    put("/proc/driver/nvidia/version",
        is_open ? "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x@)  \n"
                  "GCC version:  gcc version 12.2.0 (Debian)\n"
                : "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n");
}

static void put_process(const char *memlock, const char *capabilities)
{
    char text[200];
    (void)snprintf(text, sizeof text, "Max locked memory         %-20s %-20s bytes\n", memlock, memlock);
    put("/proc/self/limits", text);
    (void)snprintf(text, sizeof text, "Name:\tx\nCapEff:\t%s\nCpus_allowed:\tff\nCpus_allowed_list:\t0-5,8\n",
                   capabilities);
    put("/proc/self/status", text);
    put("/sys/devices/system/cpu/online", "0-15\n");
}

#endif
