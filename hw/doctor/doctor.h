/* SPDX-License-Identifier: Apache-2.0
 * What this machine has for GPU-initiated RDMA: findings, one a fact, with the fix where something is missing.
 *
 * Every function takes `root`, put before /sys, /proc and /dev: "" for this machine, a folder for a copy of another
 * machine's files.  Nothing here waits for anybody, and no value is made up: what cannot be read is unknown, and the
 * value says why.  No call keeps state; they may run side by side. */
#ifndef BELL_HW_DOCTOR_DOCTOR_H
#define BELL_HW_DOCTOR_DOCTOR_H

#include "core/status.h"

BELL_EXTERN_C_BEGIN

enum bell_finding_state {
    BELL_FINDING_OK,      /* there, or as it should be */
    BELL_FINDING_WARN,    /* there, but slower, or not fit for comparable runs */
    BELL_FINDING_MISSING, /* not there; a path that needs it cannot run */
    BELL_FINDING_UNKNOWN  /* could not be read; the value says why */
};

struct bell_finding {
    const char *area; /* constant: "gpu", "pcie", "rdma", "cpu" */
    enum bell_finding_state state;
    char name[40];
    char value[480];
    char fix[400]; /* "" where nothing is to be done */
};

#define BELL_FINDINGS_MAX 320

struct bell_findings {
    struct bell_finding item[BELL_FINDINGS_MAX];
    uint32_t count;
    uint32_t dropped; /* did not fit */
};

/* "ok", "warn", "missing" or "unknown". */
const char *bell_finding_state_name(enum bell_finding_state state);

/* All areas, in the order gpu, pcie, rdma, cpu.  Drivers' libraries are opened (dlopen) and asked with root "" only;
 * the CUDA driver is initialised, which can take a second.  toolkit: version of the CUDA toolkit this program was built
 * with,
 * "" for none.  BELL_NO_MEMORY is the only failure. */
enum bell_status bell_doctor(const char *root, const char *toolkit, struct bell_findings *out,
                             struct bell_error *err) BELL_MUST_USE;

/* The facts of this machine that a measured time depends on, in one line of at most size - 1 bytes: printable ASCII
 * without quotes and backslashes.  Reads files only (under a millisecond on two cores without a GPU), so that a run may
 * call it. */
void bell_doctor_summary(const char *root, char *out, size_t size);

BELL_EXTERN_C_END

#endif
